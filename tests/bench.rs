// SPDX-License-Identifier: GPL-2.0-only
//! How a bench goes about it: order, repetition, interruption, through a runner that
//! only pretends; and what is said to wrong words, through the binary.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};

use anyhow::{Result, bail};
use scx_kin::bench::compare::compare;
use scx_kin::bench::data::{FORMAT, Order, Results, Run, Spec, Workload};
use scx_kin::bench::plan::rounds;
use scx_kin::bench::session::{Audience, Measured, Runner, measure, runs_of};
use scx_kin::bench::setting::{cumulative, words_of};
use scx_kin::bench::stats::Verdict;
use scx_kin::settings::Settings;

const SPEC: &str = "
    about = 'a fake load'
    reference = 'stock'
    rounds = 7
    settings = ['stock', 'default', { name = 'slow', is = 'off' }]
    [[workload]]
    name = 'fake'
    command = 'fake {clients}'
    clients = '1..4'
    [[workload.metric]]
    name = 'rate'
    unit = '1/s'
    pattern = '([0-9]+)'
    better = 'higher'
";

fn results(seed: u64) -> Results {
    Results {
        format: FORMAT,
        spec: toml::from_str(SPEC).expect("a spec"),
        seed,
        started: String::new(),
        machine: vec![],
        ended_early: None,
        runs: vec![],
    }
}

/// A machine whose load is 5 % slower under one setting than under all others, with
/// noise of 1 %, and which gets slower for all of them as time goes by.
#[derive(Default)]
struct Fake {
    is: String,
    made: Vec<String>,
    runs: usize,
    disturbed: Option<usize>,
    fails: Option<usize>,
    noise: fastrand::Rng,
}

impl Fake {
    fn new(seed: u64) -> Fake {
        Fake {
            noise: fastrand::Rng::with_seed(seed),
            ..Fake::default()
        }
    }
}

impl Runner for Fake {
    fn make(&mut self, is: &str) -> Result<()> {
        self.is = is.into();
        self.made.push(is.into());
        Ok(())
    }

    fn run(&mut self, _: &Workload, clients: u32) -> Result<Measured> {
        self.runs += 1;
        if self.fails == Some(self.runs) {
            bail!("the load fell over");
        }
        let noise: f64 = (0..12).map(|_| self.noise.f64()).sum::<f64>() - 6.0;
        let speed = if self.is == "off" { 0.95 } else { 1.0 };
        let drift = 1.0 - self.runs as f64 * 0.0003;
        let rate = 1000.0 * f64::from(clients) * speed * drift * (1.0 + 0.01 * noise);
        Ok(Measured {
            figures: BTreeMap::from([("rate".into(), rate)]),
            seconds: 1.0,
            disturbed: (self.disturbed == Some(self.runs)).then(|| "a compiler".into()),
            ..Measured::default()
        })
    }
}

/// Keeps what it is told.
#[derive(Default)]
struct Ear {
    kept: Vec<usize>,
}

impl Audience for Ear {
    fn step(&mut self, _: &str) {}
    fn begin(&mut self, _: &Run) {}
    fn end(&mut self, _: &Run, _: &Workload) {}
    fn keep(&mut self, results: &Results) -> Result<()> {
        self.kept.push(results.runs.len());
        Ok(())
    }
}

fn spec() -> Spec {
    results(0).spec
}

#[test]
fn every_round_measures_every_cell_once_and_the_reference_twice() {
    let spec = spec();
    for round in rounds(&spec, 5) {
        let arms: BTreeSet<_> = round.arms.iter().map(|a| (a.setting, a.twin)).collect();
        assert_eq!(
            arms,
            BTreeSet::from([(0, false), (0, true), (1, false), (2, false)])
        );
        let cells: BTreeSet<_> = round.cells.iter().copied().collect();
        assert_eq!(cells, BTreeSet::from([(0, 1), (0, 2), (0, 4)]));
    }
}

#[test]
fn the_seed_alone_makes_the_order() {
    let spec = spec();
    assert_eq!(rounds(&spec, 7), rounds(&spec, 7));
    assert_ne!(rounds(&spec, 7), rounds(&spec, 8));
    let orders: BTreeSet<Vec<usize>> = rounds(&spec, 7)
        .iter()
        .map(|r| r.arms.iter().map(|a| a.setting).collect())
        .collect();
    assert!(orders.len() > 2, "the rounds are in turn: {orders:?}");
}

#[test]
fn each_setting_comes_first_and_last_about_equally_often() {
    let spec = Spec {
        rounds: 400,
        ..spec()
    };
    let mut first = [0; 3];
    for round in rounds(&spec, 1) {
        first[round.arms[0].setting] += 1;
    }
    // 100 each, 200 for the reference, which is there twice; 5 standard deviations.
    assert!((150..250).contains(&first[0]), "{first:?}");
    assert!(
        first[1..].iter().all(|n| (56..144).contains(n)),
        "{first:?}"
    );
}

#[test]
fn a_listed_order_is_kept_and_turned_round_every_other_time() {
    let spec = Spec {
        order: Order::Listed,
        ..spec()
    };
    let all = rounds(&spec, 1);
    let settings = |i: usize| all[i].arms.iter().map(|a| a.setting).collect::<Vec<_>>();
    assert_eq!(settings(0), [0, 1, 2, 0]);
    assert_eq!(settings(1), [0, 2, 1, 0]);
}

#[test]
fn settings_are_interleaved_and_each_round_is_kept() {
    let mut results = results(3);
    let (mut fake, mut ear) = (Fake::new(1), Ear::default());
    measure(&mut results, &mut fake, &mut ear).expect("a bench");
    assert_eq!(results.runs.len(), runs_of(&results));
    assert_eq!(results.runs.len(), 7 * 4 * 3);
    assert_eq!(
        ear.kept,
        (1..=7).map(|round| round * 12).collect::<Vec<_>>()
    );
    // One for the warm-up, then four a round: never all rounds of one after another.
    assert_eq!(fake.made.len(), 1 + 7 * 4);
    let longest = fake.made.chunk_by(|a, b| a == b).map(<[String]>::len).max();
    assert!(longest < Some(5), "{:?}", fake.made);
}

#[test]
fn a_disturbed_run_is_made_once_more_and_both_are_kept() {
    let mut results = results(3);
    let mut fake = Fake::new(1);
    fake.disturbed = Some(10);
    measure(&mut results, &mut fake, &mut Ear::default()).expect("a bench");
    assert_eq!(results.runs.len(), 7 * 4 * 3 + 1);
    let at = results
        .runs
        .iter()
        .position(|r| r.disturbed.is_some())
        .expect("one");
    let (bad, again) = (&results.runs[at], &results.runs[at + 1]);
    assert!(!bad.repeat && again.repeat && again.disturbed.is_none());
    let cell = |r: &Run| (r.round, r.setting.clone(), r.twin, r.clients);
    assert_eq!(cell(bad), cell(again));
    assert!(compare(&results).iter().all(|cell| cell.disturbed == 0));
}

#[test]
fn what_was_measured_before_a_failure_is_there() {
    let mut results = results(3);
    let mut fake = Fake::new(1);
    fake.fails = Some(20);
    let error = measure(&mut results, &mut fake, &mut Ear::default()).expect_err("a failure");
    assert_eq!(format!("{error:#}"), "workload fake: the load fell over");
    // One of the 19 was the warm-up.
    assert_eq!(results.runs.len(), 18);
}

#[test]
fn five_percent_are_found_and_nothing_is_called_the_same() {
    let mut results = results(11);
    measure(&mut results, &mut Fake::new(2), &mut Ear::default()).expect("a bench");
    let cells = compare(&results);
    let verdicts = |setting: &str| -> Vec<Option<Verdict>> {
        let here = cells.iter().filter(|c| c.setting == setting);
        here.map(|c| c.verdict).collect()
    };
    assert_eq!(verdicts("slow"), [Some(Verdict::Worse); 3]);
    assert_eq!(verdicts("default"), [Some(Verdict::Same); 3]);
    assert_eq!(verdicts("stock"), [None; 3]);
}

#[test]
fn a_ladder_adds_its_words_up_and_stays_out_of_other_schedulers() {
    let mut spec = spec();
    spec.ladder = true;
    let text = "settings = ['stock', 'cfs-6.1', 'NO_LAST_BUDDY', 'other:scx_x -a', 'LAST_BUDDY']";
    let table: toml::Table = toml::from_str(text).expect("TOML");
    spec.settings = table["settings"].clone().try_into().expect("settings");
    let steps = cumulative(&spec);
    assert_eq!(steps[..3], ["stock", "cfs-6.1", "cfs-6.1 NO_LAST_BUDDY"]);
    assert_eq!(
        steps[3..],
        ["other:scx_x -a", "cfs-6.1 NO_LAST_BUDDY LAST_BUDDY"]
    );
    assert_eq!(spec.settings[3].name, "scx_x");
}

#[test]
fn a_setting_means_the_same_whatever_was_set_before() {
    let make = |before: &str| {
        let mut set = Settings::default();
        for is in [before, "NO_IDLE_SIBLING"] {
            set.apply(&words_of(is).expect("words")).expect("a setting");
        }
        set
    };
    assert_eq!(make("off"), make("cfs-2.6.32"));
    assert_eq!(
        make("default").words_since(&Settings::default()),
        ["NO_IDLE_SIBLING"]
    );
}

fn bench(args: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    Command::new(env!("CARGO_BIN_EXE_scx_kin"))
        .arg("bench")
        .args(args)
        .current_dir(&folder)
        .output()
        .expect("scx_kin starts")
}

/// Standard error of a bench that must end with a code and leave no file.
#[track_caller]
fn refused(args: &[&str], code: i32) -> String {
    let out = bench(args);
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(code), "{error}");
    assert!(out.stdout.is_empty());
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn wrong_words_are_named_with_the_nearest_right_one() {
    let said = |args: &[&str]| refused(args, 2);
    assert!(said(&["hackbnch"]).contains("did you mean hackbench?"));
    assert!(said(&["hackbench", "--settings", "stok"]).contains("did you mean stock?"));
    let error = said(&["hackbench", "--settings", "NO_IDLE_SIBLIN"]);
    assert!(error.contains("did you mean NO_IDLE_SIBLING?"), "{error}");
    let error = said(&[
        "hackbench",
        "--settings",
        "stock,default",
        "--reference",
        "off",
    ]);
    assert!(
        error.contains("none of the settings: stock, default"),
        "{error}"
    );
    assert!(said(&["hackbench", "--workloads", "x"]).contains("it has "));
    assert!(said(&["hackbench", "--clients", "4..1"]).contains("1..256"));
    assert!(said(&["hackbench", "--clients", "0"]).contains("from 1 to"));
    assert!(said(&["hackbench", "--rounds", "0"]).contains("1 to 1000"));
    assert!(said(&["hackbench", "--settings", "stock,stock"]).contains("two settings"));
    assert!(said(&["hackbench", "--settings", "other:"]).contains("needs the command"));
    let cmd = |more: &[&str]| said(&[&["--cmd", "true"], more].concat());
    assert!(cmd(&["--metric", "tps"]).contains("--better"));
    assert!(cmd(&["--metric", "tps", "--better", "higher"]).contains("put ( ) around"));
    assert!(cmd(&["--metric", "tps (", "--better", "higher"]).contains("metric pattern"));
    assert!(cmd(&["--clients", "1"]).contains("{clients}"));
}

#[test]
fn a_spec_of_ones_own_is_told_its_wrong_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("my.toml");
    let text = SPEC.replace("reference", "referenze");
    std::fs::write(&path, text).expect("a file");
    let error = refused(&[&path.to_string_lossy()], 2);
    assert!(
        error.contains("spec my, line 3") && error.contains("referenze"),
        "{error}"
    );
    assert!(refused(&["no/such.toml"], 1).contains("no/such.toml"));
}

#[test]
fn what_is_missing_is_named_before_anything_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("my.toml");
    let text = SPEC.replace(
        "clients =",
        "needs = { no-such-program = 'such-package' }\nclients =",
    );
    std::fs::write(&path, text).expect("a file");
    let error = refused(&[&path.to_string_lossy(), "--settings", "stock"], 1);
    assert!(error.contains("missing no-such-program"), "{error}");
    assert!(error.contains("apt install such-package"), "{error}");
}

#[test]
fn stock_alone_can_be_measured_anywhere_and_told_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("r.json");
    let out = out.to_string_lossy();
    let load = "echo tps = 40$$ | cut -c1-8";
    let args = [
        "--cmd",
        load,
        "--metric",
        "tps = ([0-9]+)",
        "--better",
        "higher",
    ];
    let more = [
        "--settings",
        "stock",
        "--rounds",
        "3",
        "--out",
        &out,
        "--csv",
    ];
    let done = bench(&[&args[..], &more].concat());
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{error}");
    let csv = String::from_utf8_lossy(&done.stdout).into_owned();
    // A head, three rounds, and the reference's twin in each.
    assert_eq!(csv.lines().count(), 1 + 2 * 3, "{csv}");
    let again = bench(&["report", &out, "--csv"]);
    assert_eq!(String::from_utf8_lossy(&again.stdout), csv);
    let html = folder.path().join("r.html");
    let page = bench(&["report", &out, "--html", &html.to_string_lossy()]);
    assert!(page.status.success() && html.exists());
    assert!(String::from_utf8_lossy(&page.stdout).contains("tps"));
    let error = refused(&["--cmd", load, "--settings", "stock", "--out", &out], 1);
    assert!(
        error.contains("--out FILE"),
        "a file that is there: {error}"
    );
}

#[test]
fn what_goes_to_dev_null_is_not_kept() {
    let load = ["--cmd", "true", "--settings", "stock", "--rounds", "1"];
    let said = bench(&[&load[..], &["--out", "/dev/null"]].concat()).stderr;
    assert!(!String::from_utf8_lossy(&said).contains("kept in"));
}

#[test]
fn what_are_no_results_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.json");
    let path = path.to_string_lossy();
    for text in ["", "{}", "{\"format\": 99}", "[1]"] {
        std::fs::write(&*path, text).expect("a file");
        assert!(refused(&["report", &path], 1).contains("results"), "{text}");
    }
    assert!(refused(&["compare", "a.json", "b.json"], 1).contains("a.json"));
}
