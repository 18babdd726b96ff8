// SPDX-License-Identifier: GPL-2.0-only
//! From results to judgements: each cell's median, its ratio to the reference with
//! an interval, a verdict that knows the noise, and what the counters say. Pure.
//!
//! Of a disturbed run and its repetition the repetition counts. Ratios are made
//! round by round. The reference's second run of a round tells the noise floor and
//! nothing else.

use std::collections::BTreeMap;

use crate::bench::data::{Metric, Results, Run};
use crate::bench::stats::{Ratio, Verdict, floor, median, ratio, verdict};
use crate::bench::why::{Seen, why};

pub use crate::bench::why::Why;

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
    /// repetition the latter. Empty if no run's output had the figure.
    pub values: Vec<f64>,
    /// Their median; not a number if there are none.
    pub median: f64,
    /// To the reference; none for the reference itself, or where one of them has no value.
    pub ratio: Option<Ratio>,
    /// How far from 1 the reference's ratio to itself may lie (the A/A comparison);
    /// none if it had no second runs, or too few: then no noise floor was applied.
    pub floor: Option<f64>,
    /// None where there is no ratio.
    pub verdict: Option<Verdict>,
    /// Values that count although something disturbed their run.
    pub disturbed: usize,
    /// The counters that differ most from those of the setting that it is explained by.
    pub why: Vec<Why>,
    /// Median and 99th percentile of scx_kin's wakeup latency in these runs, in ns.
    pub latency: Option<(f64, f64)>,
}

/// All cells that were measured: by workload, then metric, clients and setting, each
/// in the spec's order.
pub fn compare(results: &Results) -> Vec<Cell> {
    let runs = Runs::new(results);
    let mut cells = vec![];
    for workload in &results.spec.workloads {
        let clients = match workload.clients.as_slice() {
            [] => &[0],
            some => some,
        };
        for metric in &workload.metrics {
            for &clients in clients {
                let place = Place {
                    workload: &workload.name,
                    clients,
                };
                cells.extend(runs.cells(results, place, metric));
            }
        }
    }
    cells
}

/// The cells that are judged worse, by more than so many percent of the reference.
pub fn worse_by(cells: &[Cell], percent: f64) -> Vec<&Cell> {
    let change = |cell: &Cell| cell.ratio.map_or(0.0, |r| (r.value - 1.0).abs() * 100.0);
    let worse = |cell: &&Cell| cell.verdict == Some(Verdict::Worse) && change(cell) > percent;
    cells.iter().filter(worse).collect()
}

/// Where settings meet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    workload: &'a str,
    clients: u32,
}

/// One run a round.
type Rounds<'a> = BTreeMap<u32, &'a Run>;

/// The runs that count, by place, setting and whether they are twins.
struct Runs<'a>(BTreeMap<(Place<'a>, &'a str, bool), Rounds<'a>>);

impl<'a> Runs<'a> {
    fn new(results: &'a Results) -> Runs<'a> {
        let mut all: BTreeMap<_, Rounds> = BTreeMap::new();
        for run in &results.runs {
            let place = Place {
                workload: &run.workload,
                clients: run.clients,
            };
            let rounds = all.entry((place, run.setting.as_str(), run.twin));
            let counts = rounds.or_default().entry(run.round).or_insert(run);
            if run.repeat || !counts.repeat {
                *counts = run;
            }
        }
        Runs(all)
    }

    fn of(&self, place: Place<'a>, setting: &'a str, twin: bool) -> Rounds<'a> {
        let rounds = self.0.get(&(place, setting, twin));
        rounds.cloned().unwrap_or_default()
    }

    fn seen(&self, place: Place<'a>, setting: &'a str) -> Option<Seen<'a>> {
        let rounds = self.of(place, setting, false);
        Seen::new(rounds.into_values().filter_map(|run| run.sample.as_ref()))
    }

    /// All settings' cells at a place.
    fn cells(&self, results: &'a Results, place: Place<'a>, metric: &Metric) -> Vec<Cell> {
        let (spec, seed) = (&results.spec, results.seed);
        let reference = spec.reference_name();
        let names = || spec.settings.iter().map(|s| s.name.as_str());
        let seen: BTreeMap<&str, Seen> = names()
            .filter_map(|name| Some((name, self.seen(place, name)?)))
            .collect();
        let explains = [reference].into_iter().chain(names());
        let explains = explains.into_iter().find(|name| seen.contains_key(name));

        let theirs = figures(&self.of(place, reference, false), metric);
        let twins = figures(&self.of(place, reference, true), metric);
        let (once, again) = paired(&theirs, &twins);
        let floor = floor(&once, &again, seed);

        let cell = |name: &'a str| {
            let rounds = self.of(place, name, false);
            let mine = figures(&rounds, metric);
            let (here, there) = paired(&mine, &theirs);
            let other = name != reference;
            let ratio = other.then(|| ratio(&here, &there, seed)).flatten();
            let told = |r: &Ratio| verdict(r, floor.unwrap_or(0.0), metric.better);
            let values: Vec<f64> = mine.values().copied().collect();
            let disturbed = |round: &&u32| rounds[round].disturbed.is_some();
            let here = seen.get(name);
            let there = explains.filter(|e| *e != name).and_then(|e| seen.get(e));
            Cell {
                workload: place.workload.into(),
                metric: metric.clone(),
                clients: place.clients,
                setting: name.into(),
                median: median(&values).unwrap_or(f64::NAN),
                values,
                ratio,
                floor,
                verdict: ratio.as_ref().map(told),
                disturbed: mine.keys().filter(disturbed).count(),
                why: here.zip(there).map_or(vec![], |(a, b)| why(a, b)),
                latency: here.and_then(Seen::latency),
            }
        };
        let measured = names().filter(|name| !self.of(place, name, false).is_empty());
        measured.map(cell).collect()
    }
}

/// Each round's figure, where there is one.
fn figures(rounds: &Rounds, metric: &Metric) -> BTreeMap<u32, f64> {
    let figure = |(round, run): (&u32, &&Run)| {
        let figure = run.figures.get(&metric.name)?;
        figure.is_finite().then_some((*round, *figure))
    };
    rounds.iter().filter_map(figure).collect()
}

/// The figures of the rounds that both have.
fn paired(mine: &BTreeMap<u32, f64>, theirs: &BTreeMap<u32, f64>) -> (Vec<f64>, Vec<f64>) {
    let both = mine.iter().filter_map(|(r, f)| Some((*f, *theirs.get(r)?)));
    both.unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::data::{FORMAT, Spec};
    use crate::hist::Hist;
    use crate::metrics::Sample;

    fn results(runs: Vec<Run>) -> Results {
        let spec = r#"
            about = "a test"
            settings = ["stock", "cfs", "eevdf"]
            [[workload]]
            name = "w"
            command = "true"
            metric = [{ name = "rate", unit = "1/s", better = "higher" },
                      { name = "p99", unit = "ms", better = "lower" }]
        "#;
        let spec: Spec = toml::from_str(spec).expect("a spec");
        Results {
            format: FORMAT,
            spec,
            seed: 1,
            started: String::new(),
            machine: vec![],
            ended_early: None,
            runs,
        }
    }

    fn run(round: u32, setting: &str, rate: f64) -> Run {
        Run {
            round,
            setting: setting.into(),
            workload: "w".into(),
            figures: [("rate".to_string(), rate)].into(),
            ..Run::default()
        }
    }

    /// The cell of a setting's rate.
    fn cell(runs: &[Run], setting: &str) -> Cell {
        let cells = compare(&results(runs.to_vec()));
        let found = cells
            .into_iter()
            .find(|c| c.setting == setting && c.metric.name == "rate");
        found.expect("a cell")
    }

    #[test]
    fn cells_come_in_the_specs_order_and_only_where_runs_were_made() {
        let runs = vec![run(1, "cfs", 2.0), run(1, "stock", 1.0)];
        let cells = compare(&results(runs));
        let order: Vec<_> = cells
            .iter()
            .map(|c| (c.metric.name.as_str(), c.setting.as_str(), c.values.len()))
            .collect();
        let want = [
            ("rate", "stock", 1),
            ("rate", "cfs", 1),
            ("p99", "stock", 0),
            ("p99", "cfs", 0),
        ];
        assert_eq!(order, want);
        assert!(cells[2].median.is_nan() && cells[3].verdict.is_none());
        assert!(compare(&results(vec![])).is_empty());
    }

    #[test]
    fn of_a_disturbed_run_and_its_repetition_the_latter_counts() {
        let disturbed = |run: Run| Run {
            disturbed: Some("hot".into()),
            ..run
        };
        let repeat = |run: Run| Run {
            repeat: true,
            ..run
        };
        let runs = [
            repeat(run(1, "cfs", 10.0)),
            disturbed(run(1, "cfs", 5.0)),
            disturbed(run(2, "cfs", 6.0)),
            disturbed(repeat(run(2, "cfs", 11.0))),
            disturbed(run(3, "cfs", 12.0)),
        ];
        let cell = cell(&runs, "cfs");
        assert_eq!(cell.values, [10.0, 11.0, 12.0]);
        assert_eq!((cell.median, cell.disturbed), (11.0, 2));
    }

    #[test]
    fn rounds_are_paired_by_their_number() {
        // stock has no figure in round 2, where cfs's is far off
        let mut runs = vec![];
        for (round, drift) in [(1, 1.0), (3, 3.0), (4, 2.0), (5, 5.0)] {
            runs.push(run(round, "stock", 100.0 * drift));
            runs.insert(0, run(round, "cfs", 120.0 * drift));
        }
        runs.push(run(2, "cfs", 1e9));
        let ratio = cell(&runs, "cfs").ratio.expect("a ratio");
        assert!((ratio.low - 1.2).abs() < 1e-9 && (ratio.high - 1.2).abs() < 1e-9);
        assert_eq!(cell(&runs, "cfs").verdict, Some(Verdict::Better));
        assert_eq!(cell(&runs, "stock").ratio, None);
    }

    #[test]
    fn twins_make_the_floor_and_nothing_else() {
        let twin = |run: Run| Run { twin: true, ..run };
        let mut runs = vec![];
        for round in 1..=4 {
            runs.push(run(round, "stock", 100.0));
            runs.push(run(round, "cfs", 103.0));
        }
        let without = cell(&runs, "cfs");
        assert_eq!(
            (without.floor, without.verdict),
            (None, Some(Verdict::Better))
        );
        runs.extend((1..=4).map(|round| twin(run(round, "stock", 105.0))));
        let with = cell(&runs, "cfs");
        assert_eq!(cell(&runs, "stock").values, [100.0; 4]);
        assert_eq!(
            (with.ratio, with.verdict),
            (without.ratio, Some(Verdict::Same))
        );
        assert!((with.floor.expect("a floor") - 0.05).abs() < 1e-9);
    }

    #[test]
    fn cells_are_explained_by_the_first_setting_that_has_samples() {
        let with = |setting: &str, n| Run {
            sample: Some(Sample {
                seconds: 2.0,
                counters: [("wake_wide".into(), n)].into(),
                hists: [("wakeup_latency".into(), Hist(vec![0, 0, 0, 10]))].into(),
                ..Sample::default()
            }),
            ..run(1, setting, 1.0)
        };
        let runs = [run(1, "stock", 1.0), with("cfs", 600), with("eevdf", 0)];
        let why = cell(&runs, "eevdf").why;
        assert_eq!(why.len(), 1);
        assert_eq!((why[0].here, why[0].there), (0.0, 300.0));
        assert!(cell(&runs, "cfs").why.is_empty(), "it explains the others");
        assert_eq!(cell(&runs, "cfs").latency, Some((12.0, 15.92)));
        assert_eq!(cell(&runs, "stock").latency, None);
    }

    #[test]
    fn worse_is_told_from_a_percentage_on() {
        let mut runs = vec![];
        for round in 1..=3 {
            for (name, rate) in [("stock", 100.0), ("cfs", 93.0), ("eevdf", 150.0)] {
                runs.push(run(round, name, rate));
            }
        }
        let cells = compare(&results(runs));
        let names = |percent| {
            let worse = worse_by(&cells, percent).into_iter();
            worse.map(|c| c.setting.as_str()).collect::<Vec<_>>()
        };
        assert_eq!((names(0.0), names(6.9)), (vec!["cfs"], vec!["cfs"]));
        assert_eq!(names(7.1), [""; 0]);
    }
}
