// SPDX-License-Identifier: GPL-2.0-only
//! Talks to a running scx_kin over its stats socket.

use std::io::ErrorKind;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use scx_stats::{StatsClient, StatsErrno};
use serde::de::DeserializeOwned;

use crate::metrics::Sample;
use crate::preflight::running_scheduler;
use crate::settings::Settings;
use crate::watch::Watched;
use crate::wire::{CTL, OP, OP_GET, OP_SET, OP_SINCE_SET, OP_TOTAL, SOCKET, SetReply, WORDS};
use crate::wire::{OP_WATCH, OP_WATCHED, PID, SECONDS, WATCH};

/// Longest wait for an answer: a restart after a hotplug may take seconds.
const TIMEOUT_MS: u64 = 10_000;
/// How long a monitor waits for a scheduler that is just starting.
const PATIENCE: Duration = Duration::from_secs(3);
const PATIENCE_STEP: Duration = Duration::from_millis(200);

/// A connection to the scheduler.
pub struct Client(StatsClient);

impl Client {
    /// Connects, or says why not and what to do.
    pub fn connect() -> Result<Client> {
        let connected = StatsClient::new()
            .set_path(SOCKET)
            .connect(Some(TIMEOUT_MS));
        connected.map(Client).map_err(explain)
    }

    /// Connects to a scheduler that may be just starting.
    pub fn connect_patiently() -> Result<Client> {
        let start = Instant::now();
        loop {
            match Client::connect() {
                Err(_) if start.elapsed() < PATIENCE => sleep(PATIENCE_STEP),
                result => return result,
            }
        }
    }

    /// The live settings.
    pub fn get(&mut self) -> Result<Settings> {
        self.ask(OP_GET, &[])
    }

    /// Changes settings.
    pub fn set(&mut self, words: &[String]) -> Result<SetReply> {
        self.ask(OP_SET, &[(WORDS, words.join(" "))])
    }

    /// Counters since the load.
    pub fn total(&mut self) -> Result<Sample> {
        self.ask(OP_TOTAL, &[])
    }

    /// Counters since the last change of a setting.
    pub fn since_set(&mut self) -> Result<Sample> {
        self.ask(OP_SINCE_SET, &[])
    }

    /// Has a task or process watched, and answers the number of the watch, which
    /// ends by [`Client::watched`] or some time after so many seconds.
    pub fn watch(&mut self, pid: u32, time: Duration) -> Result<u64> {
        let seconds = time.as_secs_f64().ceil().to_string();
        self.ask(OP_WATCH, &[(PID, pid.to_string()), (SECONDS, seconds)])
    }

    /// Ends a watch: what was seen.
    pub fn watched(&mut self, watch: u64) -> Result<Watched> {
        self.ask(OP_WATCHED, &[(WATCH, watch.to_string())])
    }

    fn ask<T: DeserializeOwned>(&mut self, op: &str, more: &[(&str, String)]) -> Result<T> {
        let mut args = vec![("target".into(), CTL.into()), (OP.into(), op.into())];
        args.extend(more.iter().map(|(k, v)| ((*k).into(), v.clone())));
        let reply = self.0.request::<serde_json::Value>("stats", args);
        let value = reply.map_err(|error| match error.downcast_ref::<StatsErrno>() {
            Some(_) => refusal(&error.root_cause().to_string()),
            None => anyhow!("the scheduler went away ({error})"),
        })?;
        serde_json::from_value(value).context("the scheduler answered in another version's words")
    }
}

/// What the scheduler answered instead: a JSON string, in which a backtrace may
/// follow the first line.
fn refusal(answer: &str) -> anyhow::Error {
    let text = serde_json::from_str(answer).unwrap_or_else(|_| answer.to_string());
    match text.lines().next().unwrap_or_default() {
        text if text.contains("unknown") => {
            anyhow!("the scheduler that runs is not scx_kin, or another version of it")
        }
        text => anyhow!("the scheduler could not do it: {text}"),
    }
}

fn explain(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<std::io::Error>().map(|e| e.kind()) {
        Some(ErrorKind::PermissionDenied) => {
            anyhow!("only root may talk to the scheduler: use sudo")
        }
        Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused) => match running_scheduler() {
            Some(name) => anyhow!("scx_kin does not run, {name} does"),
            None => anyhow!("scx_kin does not run; `sudo scx_kin` starts it"),
        },
        _ => error.context(format!("connecting to {SOCKET}")),
    }
}

/// Prints what `show` makes of each interval, until `stop`.
pub fn monitor(
    interval: Duration,
    mut stop: impl FnMut() -> bool,
    mut show: impl FnMut(&Sample) -> Result<()>,
) -> Result<()> {
    let mut client = Client::connect_patiently()?;
    let mut last = client.total()?;
    while !stop() {
        wait(interval, &mut stop);
        if stop() {
            break;
        }
        let now = client.total()?;
        show(&now.since(&last))?;
        last = now;
    }
    Ok(())
}

/// Sleeps, but wakes up soon after `stop` says so.
pub fn wait(interval: Duration, mut stop: impl FnMut() -> bool) {
    let start = Instant::now();
    while !stop() && start.elapsed() < interval {
        sleep(PATIENCE_STEP.min(interval.saturating_sub(start.elapsed())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line() {
        let answer = serde_json::json!("pid 7 is watched\n\nStack backtrace:\n 0: ...");
        let text = refusal(&answer.to_string()).to_string();
        assert_eq!(text, "the scheduler could not do it: pid 7 is watched");
        let other = refusal("unknown operation Some(\"watch\")").to_string();
        assert!(other.contains("another version"), "{other}");
    }
}
