// SPDX-License-Identifier: GPL-2.0-only
//! What each rule does while it is on, and that nothing does it while it is off.
//!
//! A test here loads the scheduler once and throws the switches of several rules of
//! one kind, since loading takes longer than most of them. What a single task met
//! with is read off a watch of it (`explain --pid`), all else off the counters:
//! times mean little in an emulator that runs all CPUs in turn on one thread.

mod balancing;
mod explain;
mod placement;
mod policies;
mod preemption;
mod presets;

use std::thread::sleep;
use std::time::Duration;

use scx_kin::metrics::Sample;
use scx_kin::tables::{COUNTERS, LEVELS};
use scx_kin::topology::Machine;
use scx_kin::watch::Watched;

use crate::kin::{Kin, scx_kin, text};

/// How long one setting is watched: several ticks, slices and wakeups even where
/// the emulator gives each CPU 100 ms in turn.
const WATCH: Duration = Duration::from_millis(1200);
const MS: Duration = Duration::from_millis(1);

/// So many decisions at least must have been seen, or the load did not do what it
/// is there for.
const ENOUGH: u64 = 5;

/// "Most" of the decisions about one task. Not all: a CPU that a search takes may
/// be busy for a moment with what the kernel or the test itself does.
fn is_most(part: u64, all: u64) -> bool {
    all >= ENOUGH && part * 4 >= all * 3
}

/// Sets the defaults, and then some words.
#[track_caller]
fn set(kin: &Kin, words: &str) {
    kin.set(&format!("preset=default {words}"));
}

/// A domain flag off at all levels, each of which it has a meaning at.
fn nowhere(flag: &str) -> String {
    let off = LEVELS.iter().map(|level| format!("{}:-{flag}", level.name));
    off.collect::<Vec<_>>().join(" ")
}

/// What is counted while a load runs.
#[track_caller]
fn counted(kin: &Kin, load: impl FnOnce()) -> Sample {
    // An op that began under the last setting may still count for it.
    sleep(50 * MS);
    let before = kin.total();
    load();
    kin.total().since(&before)
}

/// The sum of some counters; a name that is none is a mistake of the test.
#[track_caller]
fn sum<'a>(counts: &Counts, names: impl IntoIterator<Item = &'a str>) -> u64 {
    let of = |name| {
        counts
            .get(name)
            .unwrap_or_else(|| panic!("no counter {name}"))
    };
    names.into_iter().map(of).sum()
}

type Counts = std::collections::BTreeMap<String, u64>;

/// Those that moved, for messages.
fn moved(counts: &Counts) -> Counts {
    let moved = counts.iter().filter(|(_, n)| **n > 0);
    moved.map(|(name, n)| (name.clone(), *n)).collect()
}

/// Names of all counters that begin so.
fn rows(prefix: &str) -> Vec<&'static str> {
    let names = COUNTERS.iter().map(|row| row.name);
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// What the scheduler decided about one task of this process in WATCH's time.
#[track_caller]
fn watched(tid: i32) -> Watched {
    let (pid, seconds) = (tid.to_string(), WATCH.as_secs_f64().to_string());
    let out = scx_kin(&["explain", "--pid", &pid, &seconds, "--json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("a watch as JSON")
}

fn machine() -> Machine {
    Machine::read().expect("a topology")
}

/// The first CPU that has neither core nor, if there is another, LLC of CPU 0.
fn far_cpu(machine: &Machine) -> usize {
    let here = &machine.cpus[0];
    let mut others = machine.cpus.iter().filter(|cpu| cpu.core != here.core);
    let llc = others.clone().find(|cpu| cpu.llc != here.llc);
    llc.or(others.next()).expect("a second core").id
}

#[test]
#[ignore = "needs root on a sched_ext kernel"]
fn tasks_are_placed_and_pulled_as_the_switches_say() {
    let kin = Kin::start(&[]);
    placement::check(&kin);
    balancing::check(&kin);
    kin.stop();
}

#[test]
#[ignore = "needs root on a sched_ext kernel"]
fn wakees_preempt_as_the_switches_say() {
    let stock = preemption::stock();
    let kin = Kin::start(&[]);
    policies::check(&kin);
    preemption::check(&kin, stock);
    kin.stop();
}

#[test]
#[ignore = "needs root on a sched_ext kernel"]
fn presets_are_thrown_and_tasks_watched_live() {
    let kin = Kin::start(&[]);
    explain::check();
    presets::check(&kin);
    kin.stop();
}
