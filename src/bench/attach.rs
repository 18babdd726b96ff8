// SPDX-License-Identifier: GPL-2.0-only
//! Which scheduler is attached: the kernel's own, scx_kin, or another. scx_kin is
//! this same binary as a child, as a user would start it: what is measured is what
//! ships, loader and all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::bench::command::{Interrupted, Running, quoted};
use crate::bench::setting::{OTHER, is_kin, words_of};
use crate::client::Client;
use crate::metrics::Sample;
use crate::preflight::running_scheduler;

/// How long a scheduler may take to attach: the verifier needs several seconds on
/// an emulated machine.
const ATTACH_LIMIT: Duration = Duration::from_secs(120);
/// How long the kernel may take to let one go.
const DETACH_LIMIT: Duration = Duration::from_secs(30);
/// How long a scheduler that the kernel has thrown out may take to say why.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What is attached now.
#[derive(Default)]
pub struct Attached {
    child: Option<Running>,
    /// What [`Attached::make`] was given last.
    is: String,
    client: Option<Client>,
}

impl Attached {
    /// Makes a setting so: by a live change where scx_kin is attached already.
    pub fn make(&mut self, is: &str, stop: &AtomicBool) -> Result<()> {
        self.check()?;
        if is_kin(is) {
            if self.client.is_none() {
                self.detach()?;
                self.attach_kin(stop)?;
            }
            self.set(is)?;
        } else if self.is != is || self.child.is_some() != is.starts_with(OTHER) {
            self.detach()?;
            if let Some(command) = is.strip_prefix(OTHER) {
                self.attach(&format!("exec {command}"), stop)?;
            }
        }
        self.is = is.into();
        Ok(())
    }

    /// Fails if what should be attached is not any more.
    pub fn check(&mut self) -> Result<()> {
        let Some(child) = &mut self.child else {
            return match running_scheduler() {
                None => Ok(()),
                Some(name) => bail!("another sched_ext scheduler came up meanwhile: {name}"),
            };
        };
        let gone = child.ended()?.is_some() || running_scheduler().is_none();
        ensure!(
            !gone,
            "the scheduler has ended:\n    {}",
            child.last_words()
        );
        Ok(())
    }

    /// What scx_kin has counted since it was attached; none for other schedulers.
    pub fn sample(&mut self) -> Result<Option<Sample>> {
        let sample = self.client.as_mut().map(Client::total).transpose();
        sample.or_else(|error| self.better_reason(error))
    }

    /// A scheduler that does not answer has most likely ended, or is about to: its
    /// last words say more.
    fn better_reason<T>(&mut self, error: anyhow::Error) -> Result<T> {
        let start = Instant::now();
        while start.elapsed() < LEAVE_LIMIT {
            self.check()?;
            sleep(LOOK_EVERY);
        }
        Err(error)
    }

    fn set(&mut self, is: &str) -> Result<()> {
        let client = self.client.as_mut().context("scx_kin is not attached")?;
        let reply = client.set(&words_of(is)?);
        let reply = reply.or_else(|error| self.better_reason(error))?;
        reply.bad_word.map_or(Ok(()), |wrong| Err(anyhow!(wrong)))
    }

    fn attach_kin(&mut self, stop: &AtomicBool) -> Result<()> {
        let program = std::env::current_exe().context("the path of scx_kin itself")?;
        let program = program.to_string_lossy();
        self.attach(&format!("exec {}", quoted(&program)), stop)?;
        self.client = Some(Client::connect_patiently()?);
        Ok(())
    }

    fn attach(&mut self, command: &str, stop: &AtomicBool) -> Result<()> {
        let mut child = Running::start(command)?;
        let start = Instant::now();
        let name = command.trim_start_matches("exec ");
        // A name under root/ops: attached to the end, not just enabling.
        while running_scheduler().is_none_or(|name| name.starts_with("one that is")) {
            if stop.load(Ordering::Relaxed) {
                child.stop();
                return Err(Interrupted.into());
            }
            ensure!(
                child.ended()?.is_none(),
                "the scheduler {name} did not start:\n    {}",
                child.last_words()
            );
            if start.elapsed() > ATTACH_LIMIT {
                child.stop();
                bail!(
                    "the scheduler {name} was not attached after {} s",
                    ATTACH_LIMIT.as_secs()
                );
            }
            sleep(LOOK_EVERY);
        }
        self.child = Some(child);
        Ok(())
    }

    /// Back to the kernel's own scheduler.
    pub fn detach(&mut self) -> Result<()> {
        self.client = None;
        self.is.clear();
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        child.stop();
        let start = Instant::now();
        while let Some(name) = running_scheduler() {
            ensure!(start.elapsed() < DETACH_LIMIT, "{name} does not go away");
            sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // On an error's way out: that one is told, not this.
        let _ = self.detach();
    }
}
