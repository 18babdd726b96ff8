// SPDX-License-Identifier: GPL-2.0-only
//! What an idle CPU pulls, and from where.

use std::collections::BTreeSet;
use std::thread::sleep;

use scx_kin::topology::Machine;

use super::{Counts, ENOUGH, MS, WATCH, counted, machine, moved, set, sum};
use crate::kin::Kin;
use crate::load::{Crew, nr_cpus, run};

/// Short: each message of it is a decision, and it sends some thousands.
const HACKBENCH: &str = "hackbench -g 2 -f 8 -l 60";
/// A far level is asked only where the near ones have nothing, which a short load
/// may not come to.
const TRIES: usize = 3;
/// CPUs may pull however short their idle times are.
const NO_GATE: &str = "migration_cost_ns=0";

fn hackbench(kin: &Kin, words: &str) -> Counts {
    set(kin, words);
    let counts = counted(kin, || drop(run(HACKBENCH))).counters;
    println!("{words}: {:?}", moved(&counts));
    counts
}

/// Levels at which this machine has something to pull from: level, counter.
fn levels(machine: &Machine) -> Vec<(&'static str, &'static str)> {
    let llcs = &machine.llcs;
    let nodes: BTreeSet<usize> = llcs.iter().map(|llc| llc.node).collect();
    let has = [
        llcs.iter()
            .any(|llc| llc.cores.iter().any(|core| core.len() > 1)),
        llcs.iter().any(|llc| llc.cores.len() > 1),
        llcs.len() > nodes.len(),
        nodes.len() > 1,
    ];
    let names = [
        ("SMT", "dispatch_pull_smt"),
        ("LLC", "dispatch_pull_llc"),
        ("NODE", "dispatch_pull_node"),
        ("SYSTEM", "dispatch_pull_system"),
    ];
    let here = names.into_iter().zip(has).filter(|(_, has)| *has);
    here.map(|(names, _)| names).collect()
}

fn newidle_levels(kin: &Kin) {
    let levels = levels(&machine());
    assert!(levels.len() > 1, "nothing to compare: {levels:?}");
    for (level, counter) in &levels {
        let counts = hackbench(kin, &format!("{NO_GATE} {level}:-SD_BALANCE_NEWIDLE"));
        assert_eq!(sum(&counts, [*counter]), 0, "{level} is off");
        let others = levels.iter().map(|(_, counter)| *counter);
        assert!(sum(&counts, others) > 0, "without {level} nobody pulls");
    }
    let mut still = levels.clone();
    for _ in 0..TRIES {
        let counts = hackbench(kin, NO_GATE);
        still.retain(|(_, counter)| sum(&counts, [*counter]) == 0);
        if still.is_empty() {
            return;
        }
    }
    panic!("on again, but nobody pulls there: {still:?}");
}

/// Counters of pulls that are from another core, or mostly. Where an LLC is one core,
/// dispatch_pull_llc is what the look at the sibling just missed.
fn far_pulls() -> Vec<&'static str> {
    let mut far = vec!["dispatch_handed", "dispatch_balance"];
    let levels = levels(&machine()).into_iter();
    far.extend(
        levels
            .map(|(_, counter)| counter)
            .filter(|counter| *counter != "dispatch_pull_smt"),
    );
    far
}

fn cache_hot(kin: &Kin) {
    let pulls = |words: &str| {
        // NI_RANDOM: by 2009's gate nobody would pull at that cost at all.
        set(kin, &format!("{words} NI_RANDOM migration_cost_ns=100ms"));
        let load = || {
            // Each runs several times in 100 ms, so it is hot nearly always.
            let _sleepers = Crew::sleepers(3 * nr_cpus(), 2 * MS, 3 * MS, |_| {});
            sleep(WATCH);
        };
        let counts = counted(kin, load).counters;
        println!("{words}: {:?}", moved(&counts));
        (sum(&counts, far_pulls()), sum(&counts, ["pull_hot"]))
    };
    let (without, hot) = pulls("NO_CACHE_HOT");
    assert_eq!(hot, 0, "CACHE_HOT is off");
    let (with, hot) = pulls("CACHE_HOT");
    assert!(hot >= ENOUGH, "nothing was hot");
    assert!(with < without, "{with} far pulls with, {without} without");
}

fn newidle_gates(kin: &Kin) {
    let today = ["newidle_cost", "newidle_ratio"];
    let counts = hackbench(kin, "NI_RANDOM");
    assert!(sum(&counts, today) > 0, "today's gate stops nothing");
    assert_eq!(sum(&counts, ["newidle_short"]), 0, "2009's gate is in use");
    // In the emulator everything takes long, idle times too.
    let counts = hackbench(kin, "NO_NI_RANDOM migration_cost_ns=100ms");
    assert_eq!(sum(&counts, today), 0, "today's gate is in use");
    assert!(
        sum(&counts, ["newidle_short"]) > 0,
        "2009's gate stops nothing"
    );
}

pub fn check(kin: &Kin) {
    newidle_levels(kin);
    cache_hot(kin);
    newidle_gates(kin);
}
