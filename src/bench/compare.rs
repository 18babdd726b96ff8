// SPDX-License-Identifier: GPL-2.0-only
//! From results to judgements: each cell's median, its ratio to the reference with
//! an interval, and a verdict that knows the noise. Pure.

use crate::bench::data::{Metric, Results};
use crate::bench::stats::{Ratio, Verdict};

/// One setting's figure for one workload, number of clients and metric.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Name of the workload.
    pub workload: String,
    /// The metric.
    pub metric: Metric,
    /// Value of `{clients}`; 0 if the workload has none.
    pub clients: u32,
    /// Name of the setting.
    pub setting: String,
    /// One value a round, in the order of the rounds; of a disturbed run and its
    /// repetition the latter.
    pub values: Vec<f64>,
    /// Their median.
    pub median: f64,
    /// To the reference; none for the reference itself, or where one of them has no value.
    pub ratio: Option<Ratio>,
    /// How far from 1 the reference's ratio to itself may lie (the A/A comparison).
    pub floor: f64,
    /// None where there is no ratio.
    pub verdict: Option<Verdict>,
    /// Values that count although something disturbed their run.
    pub disturbed: usize,
    /// The counters that differ most from those of the setting that it is explained by.
    pub why: Vec<Why>,
    /// Median and 99th percentile of scx_kin's wakeup latency in these runs, in ns.
    pub latency: Option<(f64, f64)>,
}

/// A counter that says why.
#[derive(Clone, Debug)]
pub struct Why {
    /// Its name.
    pub counter: String,
    /// Events a second in these runs.
    pub here: f64,
    /// Events a second in those that they are compared with.
    pub there: f64,
}

/// All cells: by workload, then metric, clients and setting, each in the spec's order.
pub fn compare(results: &Results) -> Vec<Cell> {
    let _ = results;
    vec![]
}
/// x
pub fn worse_by(_: &[Cell], _: f64) -> Vec<&Cell> {
    vec![]
}
