// SPDX-License-Identifier: GPL-2.0-only
//! The specs that ship: their words are right, and their patterns find in real
//! output the figure that a person would read there. Nothing is measured here.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use scx_kin::bench::data::{Source, Spec, Workload};
use scx_kin::presets;
use scx_kin::scaling::Scaling;
use scx_kin::settings::Settings;
use scx_kin::tables::{LEVELS, TUNABLES, flag_index};

/// Of each workload's output, what its metrics are in it: spec, workload, the
/// command's sample, figures in the spec's order. Samples were printed by the
/// programs of Debian 12; lines without a figure were taken out.
const READ: [(&str, &str, &str, &[f64]); 21] = [
    ("hackbench", "pipes, processes", "hackbench", &[0.117]),
    ("hackbench", "pipes, threads", "hackbench", &[0.117]),
    ("hackbench", "sockets, processes", "hackbench", &[0.117]),
    ("hackbench", "sockets, threads", "hackbench", &[0.117]),
    ("sysbench", "cpu", "sysbench-cpu", &[1609.63]),
    ("sysbench", "threads", "sysbench-threads", &[927.42]),
    ("sysbench", "mutex", "sysbench-mutex", &[0.1082]),
    ("sysbench", "memory", "sysbench-memory", &[3930997.69]),
    ("oltp-pgsql", "read only", "oltp-pgsql", &[910.05, 38.25]),
    (
        "oltp-pgsql",
        "read and write",
        "oltp-pgsql",
        &[910.05, 38.25],
    ),
    ("oltp-mysql", "read only", "oltp-mysql", &[756.37, 38.25]),
    (
        "oltp-mysql",
        "read and write",
        "oltp-mysql",
        &[756.37, 38.25],
    ),
    ("ladder", "hackbench", "hackbench", &[0.117]),
    ("ladder", "chat", "hackbench-tcp", &[0.164]),
    ("tbench", "tbench", "tbench", &[923.845, 4.56]),
    ("sched-pipe", "pipe", "sched-pipe", &[3.62565]),
    ("sched-pipe", "messaging", "sched-messaging", &[0.104]),
    ("numa", "bandwidth", "numa-bandwidth", &[8.505]),
    ("numa", "passes", "numa-passes", &[0.185]),
    ("mixed", "messages", "hackbench", &[0.117, 84.0, 1417.0]),
    (
        "mixed",
        "computing",
        "sysbench-cpu",
        &[1609.63, 84.0, 1417.0],
    ),
];
/// The same for what is measured by a task of one's own.
const LATENCIES: [(&str, &str, &str, &[f64]); 2] = [
    (
        "wakeup-latency",
        "idle",
        "wakeup-latency",
        &[80.0, 3572.0, 38985.0],
    ),
    (
        "wakeup-latency",
        "hogs",
        "wakeup-latency",
        &[80.0, 3572.0, 38985.0],
    ),
];
/// The output of the command beside, wherever there is one that is read.
const PROBE: &str = "probe";
/// What scripts/demo runs has its own test, and the same patterns.
const DEMO: &str = "demo";

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn sample(name: &str) -> String {
    let path = folder("tests/bench/samples").join(format!("{name}.txt"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// All specs, by name.
fn specs() -> Vec<Spec> {
    let files = std::fs::read_dir(folder("scripts/bench")).expect("a folder");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a text");
        let spec = toml::from_str::<Spec>(&text);
        let mut spec = spec.unwrap_or_else(|error| panic!("{path:?}: {error}"));
        spec.name = path.file_stem().expect("a name").to_string_lossy().into();
        spec
    };
    paths.into_iter().map(read).collect()
}

fn spec(name: &str) -> Spec {
    specs()
        .into_iter()
        .find(|spec| spec.name == name)
        .expect(name)
}

fn workload(spec: &str, name: &str) -> Workload {
    let workloads = self::spec(spec).workloads;
    workloads.into_iter().find(|w| w.name == name).expect(name)
}

/// A setting's words, where a preset goes by its bare name.
fn words(is: &str) -> Vec<String> {
    let names = presets::names();
    let word = |word: &str| match names.contains(&word) {
        true => format!("preset={word}"),
        false => word.to_string(),
    };
    let words: Vec<String> = is.split(' ').map(word).collect();
    presets::expand(&words).unwrap_or_else(|error| panic!("{is}: {error}"))
}

/// Each rung of a ladder on a machine with so many CPUs.
fn rungs(spec: &Spec, cpus: usize) -> Vec<Settings> {
    let mut set = Settings::default_for(cpus);
    let mut step = |is: &str| {
        set.apply(&words(is))
            .unwrap_or_else(|error| panic!("{is}: {error}"));
        set.clone()
    };
    spec.settings.iter().map(|s| step(&s.is)).collect()
}

fn unique<'a>(names: impl Iterator<Item = &'a String>) -> bool {
    let mut seen = BTreeSet::new();
    names.into_iter().all(|name| seen.insert(name))
}

#[test]
fn names_are_unique_and_the_reference_is_one_of_them() {
    for spec in specs() {
        let name = &spec.name;
        assert!(unique(spec.settings.iter().map(|s| &s.name)), "{name}");
        assert!(unique(spec.workloads.iter().map(|w| &w.name)), "{name}");
        let known = spec.settings.iter().any(|s| s.name == spec.reference);
        assert!(
            known || spec.reference.is_empty(),
            "{name}: {}",
            spec.reference
        );
        for workload in &spec.workloads {
            assert!(unique(workload.metrics.iter().map(|m| &m.name)), "{name}");
        }
    }
}

#[test]
fn every_setting_is_made_of_right_words() {
    for spec in specs() {
        for setting in spec.settings.iter().filter(|s| s.is != "stock") {
            let applied = Settings::default().apply(&words(&setting.is));
            assert_eq!(applied, Ok(()), "{}: {}", spec.name, setting.name);
        }
    }
}

#[test]
fn patterns_have_one_group_and_commands_what_they_sweep() {
    for spec in specs() {
        for w in &spec.workloads {
            let at = format!("{}, {}", spec.name, w.name);
            assert_eq!(
                w.command.contains("{clients}"),
                !w.clients.is_empty(),
                "{at}"
            );
            assert_eq!(w.command.contains("{db}"), w.database.is_some(), "{at}");
            assert!(!w.needs.is_empty() && !w.metrics.is_empty(), "{at}");
            for metric in &w.metrics {
                let pattern = metric.pattern.as_deref().expect("a pattern");
                let pattern = Regex::new(pattern).expect("a regular expression");
                assert_eq!(pattern.captures_len(), 2, "{at}");
                assert!(metric.from == Source::Command || w.beside.is_some(), "{at}");
            }
        }
    }
}

#[test]
fn every_program_that_is_run_is_needed() {
    let programs = "hackbench|sysbench|perf|tbench|tbench_srv|cyclictest|unshare|ip";
    let run = Regex::new(&format!(r"(?m)(?:^|exec |^ +)({programs}) ")).expect("a pattern");
    for spec in specs() {
        for w in &spec.workloads {
            let text = format!("{}\n{}", w.command, w.beside.as_deref().unwrap_or_default());
            for found in run.captures_iter(&text) {
                assert!(
                    w.needs.contains_key(&found[1]),
                    "{}: {}",
                    spec.name,
                    &found[1]
                );
            }
        }
    }
}

#[test]
fn each_figure_is_the_one_that_a_person_reads() {
    for (spec, name, output, figures) in READ.iter().chain(&LATENCIES) {
        let workload = workload(spec, name);
        assert_eq!(workload.metrics.len(), figures.len(), "{spec}, {name}");
        for (metric, figure) in workload.metrics.iter().zip(*figures) {
            let text = match metric.from {
                Source::Command => sample(output),
                Source::Beside => sample(PROBE),
            };
            let pattern = Regex::new(metric.pattern.as_deref().expect("a pattern"));
            let last = pattern
                .expect("a regular expression")
                .captures_iter(&text)
                .last();
            let found = last.map(|found| found[1].parse());
            assert_eq!(found, Some(Ok(*figure)), "{spec}, {name}: {}", metric.name);
        }
    }
}

#[test]
fn each_workload_has_a_sample() {
    let all = specs().into_iter().filter(|spec| spec.name != DEMO);
    let of_spec = |spec: Spec| {
        let name = spec.name;
        spec.workloads
            .into_iter()
            .map(move |w| (name.clone(), w.name))
    };
    let there: BTreeSet<(String, String)> = all.flat_map(of_spec).collect();
    let read = READ.iter().chain(&LATENCIES);
    let read = read.map(|(spec, name, _, _)| (spec.to_string(), name.to_string()));
    assert_eq!(there, read.collect());
}

#[test]
fn a_server_that_did_nothing_gives_no_figure() {
    let workload = workload("tbench", "tbench");
    let pattern = workload.metrics[0].pattern.as_deref().expect("a pattern");
    let pattern = Regex::new(pattern).expect("a regular expression");
    assert!(!pattern.is_match("Throughput 0 MB/sec  4 clients  4 procs"));
    assert!(pattern.is_match("Throughput 0.31 MB/sec  4 clients  4 procs"));
}

/// What a command makes of the output of a program, which prints a sample instead
/// of running.
fn with_fake(command: &str, program: &str, output: &str) -> String {
    let name = format!("scx_kin-test-{}-{program}", std::process::id());
    let fakes = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&fakes).expect("a folder");
    let fake = fakes.join(program);
    let text = folder("tests/bench/samples").join(format!("{output}.txt"));
    std::fs::write(&fake, format!("#!/bin/sh\ncat '{}'\n", text.display())).expect("a file");
    std::fs::set_permissions(&fake, PermissionsExt::from_mode(0o755)).expect("a mode");
    let path = format!(
        "{}:{}",
        fakes.display(),
        std::env::var("PATH").expect("a PATH")
    );
    let out = Command::new("sh")
        .args(["-c", command])
        .env("PATH", path)
        .output();
    std::fs::remove_dir_all(&fakes).expect("it goes away");
    String::from_utf8(out.expect("a shell").stdout).expect("a text")
}

#[test]
fn percentiles_are_those_of_the_histogram() {
    let all = |text: String| text.lines().last().map(str::to_string);
    for name in ["idle", "hogs"] {
        let command = workload("wakeup-latency", name).command;
        let told = all(with_fake(&command, "cyclictest", "cyclictest"));
        let right = "of 100 wakeups: p50 10 us, p99 300 us, max 38985 us";
        assert_eq!(told.as_deref(), Some(right));
    }
    for name in ["messages", "computing"] {
        let command = workload("mixed", name).beside.expect("a probe");
        let told = all(with_fake(&command, "cyclictest", "cyclictest"));
        assert_eq!(
            told.as_deref(),
            Some("of 100 wakeups: p50 10 us, p99 300 us")
        );
    }
}

#[test]
fn a_rate_of_locks_is_events_by_time() {
    let command = workload("sysbench", "threads").command;
    let told = with_fake(&command, "sysbench", "sysbench-threads");
    // 929 events in 1.0017 s, printed by awk behind the sample's own line.
    assert_eq!(
        told.matches("events per second: 927.42\n").count(),
        2,
        "{told}"
    );
}

#[test]
fn the_ladder_doubles_both_granularities_on_every_machine() {
    let ladder = spec("ladder");
    let at = |name: &str| {
        ladder
            .settings
            .iter()
            .position(|s| s.name == name)
            .expect(name)
    };
    for cpus in [1, 4, 8, 64] {
        let rungs = rungs(&ladder, cpus);
        for name in ["min_granularity_ns", "wakeup_granularity_ns"] {
            let index = TUNABLES.iter().position(|t| t.name == name).expect(name);
            let first = rungs[0].tunables[index];
            assert_eq!(first, 1_000_000 * Scaling::LogUncapped.factor(cpus));
            assert_eq!(rungs[at("granularity x2")].tunables[index], 2 * first);
            assert_eq!(rungs[at("granularity x4")].tunables[index], 4 * first);
        }
    }
}

#[test]
fn each_rung_of_the_ladder_changes_something() {
    let rungs = rungs(&spec("ladder"), 8);
    for pair in rungs.windows(2) {
        assert!(!pair[1].words_since(&pair[0]).is_empty());
    }
    // Which rung turns which flag off, at every level.
    for (rung, name) in [(1, "SD_BALANCE_NEWIDLE"), (2, "SD_BALANCE_WAKE")] {
        let flag = flag_index(name).expect(name);
        for level in 0..LEVELS.len() {
            assert!(rungs[rung - 1].flag(level, flag) && !rungs[rung].flag(level, flag));
        }
    }
}

#[test]
fn a_quick_look_is_quick() {
    for spec in specs().into_iter().filter(|spec| spec.name != DEMO) {
        assert_eq!(
            (spec.quick.rounds, spec.quick.seconds),
            (3, 1),
            "{}",
            spec.name
        );
        let swept = spec.workloads.iter().any(|w| !w.clients.is_empty());
        assert_eq!(!spec.quick.clients.is_empty(), swept, "{}", spec.name);
        assert!(spec.quick.clients.iter().all(|n| *n <= 16), "{}", spec.name);
    }
}
