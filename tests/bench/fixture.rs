// SPDX-License-Identifier: GPL-2.0-only
//! Results and cells made by hand: a small bench with a sweep and a workload without
//! one, and a ladder. What compare() would make of the runs is not asked: a cell
//! says what it is told to say.

use std::collections::BTreeMap;

use scx_kin::bench::compare::{Cell, Why};
use scx_kin::bench::data::{Better, FORMAT, Metric, Results, Run, Source, Spec};
use scx_kin::bench::stats::{Ratio, Verdict};
use scx_kin::hist::Hist;
use scx_kin::metrics::Sample;

/// Results and the cells that belong to them.
pub struct Bench {
    pub results: Results,
    pub cells: Vec<Cell>,
}

/// What a ratio is made of: low, value, high, verdict.
pub type Judged = (f64, f64, f64, Verdict);

impl Bench {
    /// Without any run, of these settings, workloads and clients.
    pub fn new(settings: &[(&str, &str)], ladder: bool) -> Bench {
        let settings: Vec<_> = settings
            .iter()
            .map(|(name, is)| serde_json::json!({ "name": name, "is": is }))
            .collect();
        let spec: Spec = serde_json::from_value(serde_json::json!({
            "name": "wakeups",
            "about": "Does it help a database when a wakee may preempt?",
            "ladder": ladder,
            "rounds": 7,
            "settings": settings,
            "workload": [],
        }))
        .expect("spec");
        let machine = [
            ("kernel", "6.16.3-generic"),
            ("cpu", "AMD EPYC 7443P 24-Core Processor"),
            ("topology", "1 node, 4 LLCs, 24 cores, 48 CPUs"),
            ("governor", "performance"),
            ("microcode", "0xa0011d1"),
        ];
        let results = Results {
            format: FORMAT,
            spec,
            seed: 42,
            started: "2026-03-01T10:00:00Z".into(),
            machine: machine.map(|(a, b)| (a.into(), b.into())).to_vec(),
            ended_early: None,
            runs: vec![],
        };
        Bench {
            results,
            cells: vec![],
        }
    }

    /// Adds a workload, and answers its metric.
    pub fn workload(&mut self, name: &str, metric: (&str, &str, Better)) -> Metric {
        let metric = Metric {
            name: metric.0.into(),
            unit: metric.1.into(),
            pattern: None,
            from: Source::Command,
            better: metric.2,
        };
        let known = self
            .results
            .spec
            .workloads
            .iter_mut()
            .find(|w| w.name == name);
        match known {
            Some(workload) => workload.metrics.push(metric.clone()),
            None => self
                .results
                .spec
                .workloads
                .push(scx_kin::bench::data::Workload {
                    name: name.into(),
                    command: format!("{name} --clients {{clients}} --seconds {{seconds}}"),
                    beside: None,
                    database: None,
                    clients: vec![],
                    needs: BTreeMap::new(),
                    metrics: vec![metric.clone()],
                }),
        }
        metric
    }

    /// Adds a cell with so many rounds around a median, and their runs.
    pub fn cell(
        &mut self,
        (workload, metric, clients): (&str, &Metric, u32),
        setting: &str,
        median: f64,
        judged: Option<Judged>,
    ) -> &mut Cell {
        let rounds = self.results.spec.rounds;
        let spread =
            |round: u32| 1.0 + (f64::from(round * 3 % rounds) / f64::from(rounds) - 0.43) / 50.0;
        let values: Vec<f64> = (1..=rounds).map(|r| median * spread(r)).collect();
        for (round, value) in (1..).zip(&values) {
            self.run((workload, &metric.name, clients), setting, round, *value);
        }
        self.cells.push(Cell {
            workload: workload.into(),
            metric: metric.clone(),
            clients,
            setting: setting.into(),
            values,
            median,
            ratio: judged.map(|(low, value, high, _)| Ratio { value, low, high }),
            floor: Some(0.012),
            verdict: judged.map(|(_, _, _, verdict)| verdict),
            disturbed: 0,
            why: vec![],
            latency: None,
        });
        self.cells.last_mut().expect("just pushed")
    }

    fn run(&mut self, place: (&str, &str, u32), setting: &str, round: u32, value: f64) {
        let (workload, metric, clients) = place;
        let at = self.results.runs.len() as f64 * 10.5;
        let same = |r: &&mut Run| {
            r.round == round
                && r.setting == setting
                && r.workload == workload
                && r.clients == clients
        };
        match self.results.runs.iter_mut().find(same) {
            Some(run) => {
                run.figures.insert(metric.into(), value);
            }
            None => self.results.runs.push(Run {
                round,
                setting: setting.into(),
                workload: workload.into(),
                clients,
                figures: BTreeMap::from([(metric.into(), value)]),
                at,
                seconds: 10.0,
                ..Run::default()
            }),
        }
    }

    /// The reference's second run of the first round.
    pub fn twin(&mut self) {
        let mut twin = self.results.runs[0].clone();
        twin.twin = true;
        self.results.runs.insert(1, twin);
    }

    /// Gives a setting's runs a wakeup latency that peaks at a bucket.
    pub fn latency(&mut self, setting: &str, peak: usize) {
        let heights = [1, 4, 30, 100, 180, 90, 40, 15, 6, 2, 1];
        let mut hist = Hist(vec![0; 40]);
        for (i, n) in heights.iter().enumerate() {
            hist.0[peak + i - 4] = n * 10;
        }
        let runs = self.results.runs.iter_mut();
        for run in runs.filter(|r| r.setting == setting) {
            let mut sample = Sample {
                seconds: 10.0,
                ..Sample::default()
            };
            sample.hists.insert("wakeup_latency".into(), hist.clone());
            run.sample = Some(sample);
        }
        for cell in self.cells.iter_mut().filter(|c| c.setting == setting) {
            let at = |p| hist.percentile(p).expect("values");
            cell.latency = Some((at(50.0), at(99.0)));
        }
    }
}

/// What a counter does in one cell and in the one that it is explained by.
pub fn why(counter: &str, here: f64, there: f64) -> Why {
    Why {
        counter: counter.into(),
        here,
        there,
    }
}

/// Three settings, a sweep, and a workload without clients.
pub fn small() -> Bench {
    use Verdict::{Better as B, Same, TooNoisy, Worse};
    let settings = [
        ("stock", "stock"),
        ("scx_kin", ""),
        ("no parity", "NO_RUN_TO_PARITY wakeup_granularity_ns=2ms"),
    ];
    let mut bench = Bench::new(&settings, false);
    let tps = bench.workload("pgbench", ("tps", "1/s", Better::Higher));
    let medians = [
        (1, 1204.4, 0.98, 1.021),
        (4, 4410.0, 1.05, 0.871),
        (64, 21_903.0, 0.99, 0.93),
    ];
    for (n, stock, kin, parity) in medians {
        let place = ("pgbench", &tps, n);
        bench.cell(place, "stock", stock, None);
        let verdict = if n == 4 { B } else { Same };
        let cell = bench.cell(
            place,
            "scx_kin",
            stock * kin,
            Some((kin - 0.02, kin, kin + 0.03, verdict)),
        );
        if n == 4 {
            cell.why = vec![
                why("preempt_kick", 310.0, 1204.2),
                why("move_node", 3.25, 90.0),
            ];
        }
        let verdict = if n == 64 {
            TooNoisy
        } else if n == 4 {
            Worse
        } else {
            Same
        };
        let width = if n == 64 { 0.3 } else { 0.03 };
        bench.cell(
            place,
            "no parity",
            stock * parity,
            Some((parity - width, parity, parity + width, verdict)),
        );
    }
    let time = bench.workload("hackbench", ("time", "s", Better::Lower));
    let place = ("hackbench", &time, 0);
    bench.cell(place, "stock", 0.5513, None);
    bench.cell(place, "scx_kin", 0.4021, Some((0.71, 0.7294, 0.744, B)));
    bench.cell(place, "no parity", 1.1814, Some((2.051, 2.143, 2.2, Worse)));
    bench.twin();
    bench.latency("scx_kin", 14);
    bench.latency("no parity", 12);
    bench
}

/// From the kernel's own scheduler up, a switch a rung.
pub fn ladder() -> Bench {
    use Verdict::{Better as B, Same, Worse};
    let settings = [
        ("stock", "stock"),
        ("off", "off"),
        ("+ sleepers", "x"),
        ("+ buddies", "y"),
    ];
    let mut bench = Bench::new(&settings, true);
    let time = bench.workload("build", ("time", "s", Better::Lower));
    let place = ("build", &time, 8);
    bench.cell(place, "stock", 61.25, None);
    bench.cell(place, "off", 66.0, Some((1.05, 1.078, 1.1, Worse)));
    bench.cell(place, "+ sleepers", 61.0, Some((0.98, 0.996, 1.01, Same)));
    bench.cell(place, "+ buddies", 59.1, Some((0.95, 0.965, 0.98, B)));
    bench
}
