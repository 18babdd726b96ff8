// SPDX-License-Identifier: GPL-2.0-only
//! The real thing: schedulers, databases, commands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use regex::Regex;

use crate::bench::attach::Attached;
use crate::bench::command::{self, Running};
use crate::bench::data::{Database, Metric, Source, Spec, Workload};
use crate::bench::database::{self, Server, find};
use crate::bench::host::{Usage, adopt_orphans};
use crate::bench::meter::{Meter, since};
use crate::bench::session::{Measured, Runner};
use crate::bench::setting::STOCK;
use crate::preflight;
use crate::topology::online_cpus;

/// A run may take so much longer than it was told to.
const RUN_LIMIT: Duration = Duration::from_secs(600);
/// A command beside gets so long to be in full swing.
const BESIDE_FIRST: Duration = Duration::from_millis(300);

/// What runs a spec on this machine.
pub struct Rig<'a> {
    attached: Attached,
    servers: BTreeMap<Database, Server>,
    seconds: u32,
    settle: Duration,
    meter: Option<Meter>,
    stop: &'a AtomicBool,
}

/// Fails if something that the spec needs is not there, before anything starts.
pub fn check(spec: &Spec) -> Result<()> {
    let mut missing: BTreeSet<(String, String)> = BTreeSet::new();
    for workload in &spec.workloads {
        let needs = workload
            .needs
            .iter()
            .filter(|(program, _)| find(program).is_none());
        missing.extend(needs.map(|(program, package)| (program.clone(), package.clone())));
        if let Some(kind) = workload.database {
            let parts = database::missing(kind).into_iter();
            missing.extend(parts.map(|m| (m.program.to_string(), m.package.to_string())));
        }
    }
    if !missing.is_empty() {
        let names: Vec<&str> = missing
            .iter()
            .map(|(program, _)| program.as_str())
            .collect();
        let packages: BTreeSet<&str> = missing.iter().map(|(_, p)| p.as_str()).collect();
        let packages: Vec<&str> = packages.into_iter().collect();
        bail!(
            "missing {}: on Debian, apt install {}",
            names.join(", "),
            packages.join(" ")
        );
    }
    if spec.settings.iter().any(|setting| setting.is != STOCK) {
        let hint = "a bench loads and unloads schedulers by itself";
        return preflight::check().context(hint);
    }
    match preflight::running_scheduler() {
        Some(name) => bail!("stock is to be measured, but {name} runs: end it first"),
        None => Ok(()),
    }
}

impl Rig<'_> {
    /// Starts the databases that a spec needs; with `cost` each run tells what the
    /// scheduler's callbacks cost.
    pub fn start<'a>(spec: &Spec, cost: bool, stop: &'a AtomicBool) -> Result<Rig<'a>> {
        let meter = cost.then(Meter::start).transpose()?;
        let wanted: BTreeSet<Database> = spec.workloads.iter().filter_map(|w| w.database).collect();
        adopt_orphans();
        let mut servers = BTreeMap::new();
        for kind in wanted {
            servers.insert(kind, Server::start(kind, stop)?);
        }
        Ok(Rig {
            attached: Attached::default(),
            servers,
            seconds: spec.seconds,
            settle: Duration::from_millis(spec.settle_ms.into()),
            meter,
            stop,
        })
    }

    /// Ends all that was started: what does not end is an error.
    pub fn end(mut self) -> Result<()> {
        let detached = self.attached.detach();
        for server in std::mem::take(&mut self.servers).into_values() {
            server.stop()?;
        }
        detached
    }

    /// A command with its placeholders filled in.
    fn fill(&self, text: &str, workload: &Workload, clients: u32) -> Result<String> {
        let database = match workload.database {
            Some(kind) => self
                .servers
                .get(&kind)
                .context("the database is not there")?
                .sysbench_options(),
            None => String::new(),
        };
        Ok(text
            .replace("{clients}", &clients.to_string())
            .replace("{seconds}", &self.seconds.to_string())
            .replace("{cpus}", &online_cpus().to_string())
            .replace("{db}", &database))
    }
}

impl Runner for Rig<'_> {
    fn make(&mut self, is: &str) -> Result<()> {
        self.attached.make(is, self.stop)?;
        sleep(self.settle);
        Ok(())
    }

    fn run(&mut self, workload: &Workload, clients: u32) -> Result<Measured> {
        let command = self.fill(&workload.command, workload, clients)?;
        let beside = match &workload.beside {
            Some(text) => {
                let running = Running::start(&self.fill(text, workload, clients)?)?;
                sleep(BESIDE_FIRST);
                Some(running)
            }
            None => None,
        };
        let before = self.attached.sample()?;
        let cost = self.meter.as_ref().map(Meter::read);
        let usage = Usage::now();
        let limit = RUN_LIMIT + Duration::from_secs(self.seconds.into());
        let done = command::run(&command, limit, self.stop);
        // A scheduler that was thrown out is why the load failed, not the other way round.
        self.attached.check()?;
        let done = done?;
        let after = self.attached.sample()?;
        let cost = cost.zip(self.meter.as_ref());
        let cost = cost.map(|(before, meter)| since(meter.read(), &before));
        let beside = beside.map_or(Ok(String::new()), end_beside)?;
        let disturbed = Usage::now().disturbed_since(&usage, done.seconds);
        let figures = workload.metrics.iter().map(|metric| {
            let output = match metric.from {
                Source::Command => &done.output,
                Source::Beside => &beside,
            };
            Ok((metric.name.clone(), figure(metric, output, done.seconds)?))
        });
        Ok(Measured {
            figures: figures.collect::<Result<_>>()?,
            seconds: done.seconds,
            disturbed,
            cost,
            sample: after
                .zip(before)
                .map(|(after, before)| after.since(&before)),
        })
    }
}

/// Ends a command beside: one that has ended before it was asked to has failed.
fn end_beside(mut running: Running) -> Result<String> {
    if let Some(status) = running.ended()? {
        ensure!(
            status.success(),
            "the command beside failed: {}",
            running.last_words()
        );
    }
    running.stop();
    Ok(running.output())
}

/// A metric's figure in an output.
fn figure(metric: &Metric, output: &str, seconds: f64) -> Result<f64> {
    let Some(pattern) = &metric.pattern else {
        return Ok(seconds);
    };
    let last = Regex::new(pattern)?.captures_iter(output).last();
    let text = last.and_then(|found| Some(found.get(1)?.as_str()));
    match text.and_then(|text| text.parse::<f64>().ok()) {
        Some(figure) if figure.is_finite() => Ok(figure),
        _ => {
            let lines: Vec<&str> = output.trim().lines().collect();
            let tail = lines[lines.len().saturating_sub(5)..].join("\n    ");
            bail!(
                "no figure for {} ({pattern:?}) in what it printed:\n    {tail}",
                metric.name
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::data::Better;

    fn metric(pattern: &str) -> Metric {
        Metric {
            name: "tps".into(),
            unit: "1/s".into(),
            pattern: Some(pattern.into()),
            from: Source::Command,
            better: Better::Higher,
        }
    }

    #[test]
    fn the_last_match_is_the_figure() {
        let tps = metric("tps = ([0-9.]+)");
        assert_eq!(
            figure(&tps, "tps = 1.5\ntps = 2.5\n", 9.0).expect("a figure"),
            2.5
        );
        let timed = Metric {
            pattern: None,
            ..tps.clone()
        };
        assert_eq!(figure(&timed, "", 9.0).expect("a time"), 9.0);
        let error = figure(&tps, "all went wrong", 9.0)
            .expect_err("no figure")
            .to_string();
        assert!(
            error.contains("tps") && error.contains("all went wrong"),
            "{error}"
        );
    }
}
