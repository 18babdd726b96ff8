// SPDX-License-Identifier: GPL-2.0-only
//! Measures a spec, round by round, through a [`Runner`]: the real one (rig.rs) or,
//! in the tests, one that only pretends.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::bench::data::{Cost, Results, Run, Workload};
use crate::bench::plan::{Arm, Round, rounds};
use crate::bench::setting::cumulative;
use crate::metrics::Sample;

/// What can make a setting so and run a workload.
pub trait Runner {
    /// Makes a setting so (see `setting::cumulative`), and lets it settle.
    fn make(&mut self, is: &str) -> Result<()>;

    /// Runs a workload once.
    fn run(&mut self, workload: &Workload, clients: u32) -> Result<Measured>;
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// By the metric's name.
    pub figures: BTreeMap<String, f64>,
    /// How long it took.
    pub seconds: f64,
    /// What disturbed it.
    pub disturbed: Option<String>,
    /// What scx_kin counted meanwhile.
    pub sample: Option<Sample>,
    /// What each callback cost, if that is asked for.
    pub cost: Option<BTreeMap<String, Cost>>,
}

/// Who is told how it goes.
pub trait Audience {
    /// Something that takes a while and is no run begins.
    fn step(&mut self, text: &str);
    /// A run begins.
    fn begin(&mut self, run: &Run);
    /// It has ended.
    fn end(&mut self, run: &Run, workload: &Workload);
    /// All that there is so far is worth keeping.
    fn keep(&mut self, results: &Results) -> Result<()>;
}

/// Runs that a spec comes to, but for repetitions.
pub fn runs_of(results: &Results) -> usize {
    let rounds = rounds(&results.spec, results.seed);
    rounds.iter().map(|r| r.arms.len() * r.cells.len()).sum()
}

/// Measures `results.spec` into `results.runs`, which on an error hold what has been
/// measured up to it.
pub fn measure(
    results: &mut Results,
    runner: &mut dyn Runner,
    audience: &mut dyn Audience,
) -> Result<()> {
    let start = Instant::now();
    let settings = cumulative(&results.spec);
    let rounds = rounds(&results.spec, results.seed);
    if let Some(first) = rounds.first().and_then(|round| round.arms.first()) {
        warm_up(results, &settings[first.setting], runner, audience)?;
    }
    for round in &rounds {
        for arm in &round.arms {
            let name = &results.spec.settings[arm.setting].name;
            audience.step(&format!("round {}: {name}", round.number));
            let is = &settings[arm.setting];
            runner.make(is).with_context(|| format!("setting {name}"))?;
            measure_arm(results, round, arm, start, runner, audience)?;
        }
        audience.keep(results)?;
    }
    Ok(())
}

/// Each workload with its first number of clients, so that the first round finds
/// files in memory and databases warm as all others do.
fn warm_up(
    results: &Results,
    is: &str,
    runner: &mut dyn Runner,
    audience: &mut dyn Audience,
) -> Result<()> {
    if results.spec.warmup == 0 {
        return Ok(());
    }
    audience.step("warming up");
    runner.make(is)?;
    for workload in &results.spec.workloads {
        for _ in 0..results.spec.warmup {
            let clients = workload.clients.first().copied().unwrap_or(0);
            let done = runner.run(workload, clients);
            done.with_context(|| format!("workload {}", workload.name))?;
        }
    }
    Ok(())
}

fn measure_arm(
    results: &mut Results,
    round: &Round,
    arm: &Arm,
    start: Instant,
    runner: &mut dyn Runner,
    audience: &mut dyn Audience,
) -> Result<()> {
    for (index, clients) in &round.cells {
        let workload = results.spec.workloads[*index].clone();
        // A disturbed run is made once more, and both are kept.
        for repeat in [false, true] {
            let mut run = Run {
                round: round.number,
                setting: results.spec.settings[arm.setting].name.clone(),
                twin: arm.twin,
                workload: workload.name.clone(),
                clients: *clients,
                at: start.elapsed().as_secs_f64(),
                repeat,
                ..Run::default()
            };
            audience.begin(&run);
            let done = runner.run(&workload, *clients);
            let done = done.with_context(|| format!("workload {}", workload.name))?;
            run.figures = done.figures;
            run.seconds = done.seconds;
            run.disturbed = done.disturbed;
            run.sample = done.sample;
            run.cost = done.cost;
            audience.end(&run, &workload);
            let disturbed = run.disturbed.is_some();
            results.runs.push(run);
            if !disturbed {
                break;
            }
        }
    }
    Ok(())
}
