// SPDX-License-Identifier: GPL-2.0-only
//! Which setting helps a load: settings x workloads x rounds, interleaved, and told
//! with the noise known. A file imports only from those above it in this list
//! (tests/layout.rs).

use std::fmt;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

pub mod data;

pub mod command;
pub mod database;
pub mod stats;

pub mod args;
pub mod why;

pub mod compare;
pub mod host;
pub mod plan;
pub mod setting;

pub mod check;

pub mod spec;

pub mod attach;
pub mod session;

pub mod axis;
pub mod progress;
pub mod show;

pub mod cost;

pub mod meter;

pub mod rig;

pub mod notes;
pub mod plot;

pub mod export;
pub mod table;

pub mod across;
pub mod figures;

pub mod html;

use crate::bench::args::{Action, BenchArgs, Show};
use crate::bench::compare::{Cell, compare};
use crate::bench::data::{FORMAT, Results};
use crate::bench::progress::{Kept, Progress, read};
use crate::output::{print, print_json};
use crate::run::stop_on_signal;

/// A setting is worse than `--fail-if-worse` allows.
#[derive(Debug)]
pub struct TooBad(String);

impl fmt::Display for TooBad {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TooBad {}

/// `scx_kin bench`.
pub fn bench(args: &BenchArgs) -> Result<()> {
    match &args.action {
        Some(Action::Report { file, show }) => {
            let results = read(file)?;
            tell(&results, &compare(&results), show)
        }
        Some(Action::Compare { a, b }) => {
            let (first, second) = (read(a)?, read(b)?);
            let (x, y) = (compare(&first), compare(&second));
            print(&across::across((a, &first, &x), (b, &second, &y)))
        }
        None if args.spec.is_none() && args.cmd.is_none() => print(&spec::list()?),
        None => run(args),
    }
}

/// Measures, keeps, tells.
fn run(args: &BenchArgs) -> Result<()> {
    let spec = spec::asked_for(args)?;
    rig::check(&spec)?;
    let now = OffsetDateTime::now_utc().truncate_to_second();
    let mut results = Results {
        format: FORMAT,
        seed: args.seed.unwrap_or_else(seed_of_now),
        started: now.format(&Rfc3339)?,
        machine: host::record(),
        ended_early: None,
        runs: vec![],
        spec,
    };
    let file = args.out.clone().unwrap_or_else(|| {
        let time: String = results
            .started
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        format!(
            "scx_kin-bench-{}-{}.json",
            results.spec.name,
            &time[..15.min(time.len())]
        )
    });
    let kept = Kept::create(&file)?;
    let measured = measure(&mut results, args.cost, &kept);
    if results.runs.is_empty() {
        kept.remove();
        return measured;
    }
    results.ended_early = measured.as_ref().err().map(|error| format!("{error:#}"));
    kept.write(&results)?;
    let cells = compare(&results);
    tell(&results, &cells, &args.show)?;
    kept.tell();
    measured?;
    match args.fail_if_worse {
        Some(percent) => fail_if_worse(&cells, percent),
        None => Ok(()),
    }
}

fn measure(results: &mut Results, cost: bool, kept: &Kept) -> Result<()> {
    let stop = stop_on_signal()?;
    let mut progress = Progress::new(session::runs_of(results), kept.clone());
    let mut rig = rig::Rig::start(&results.spec, cost, &stop)?;
    let measured = session::measure(results, &mut rig, &mut progress);
    progress.finish();
    let ended = rig.end();
    measured.and(ended)
}

/// A seed that is not that of the last time, short enough to be typed.
fn seed_of_now() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::from(now.subsec_micros())
}

fn tell(results: &Results, cells: &[Cell], show: &Show) -> Result<()> {
    if let Some(path) = &show.html {
        let page = html::html(results, cells);
        fs::write(path, page).with_context(|| format!("writing {path}"))?;
    }
    match show {
        Show { json: true, .. } => print_json(results),
        Show { csv: true, .. } => print(&export::csv(results, cells)),
        Show { markdown: true, .. } => print(&export::markdown(results, cells)),
        _ => print(&table::table(results, cells)),
    }
}

fn fail_if_worse(cells: &[Cell], percent: f64) -> Result<()> {
    let bad = compare::worse_by(cells, percent);
    match bad.first() {
        None => Ok(()),
        Some(cell) => Err(TooBad(format!(
            "{} of {} figures are worse by more than {percent} %: {} under {} among them",
            bad.len(),
            cells.len(),
            cell.workload,
            cell.setting
        ))
        .into()),
    }
}
