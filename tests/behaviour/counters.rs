// SPDX-License-Identifier: GPL-2.0-only
//! Every counter moves with what it belongs to on, and stands still with it off;
//! and rules that are off are asked what they would do, and no others.
//!
//! Each load (loads.rs) is there to drive some counters, under the settings that it
//! takes. All are run; then each switch that counters depend on is turned off, and
//! the load that moved a counter most must leave it at zero.

mod loads;
mod whatif;

use std::collections::{BTreeMap, BTreeSet};

use scx_kin::client::Client;
use scx_kin::metrics::Sample;
use scx_kin::presets;
use scx_kin::settings::Settings;
use scx_kin::tables::{COUNTERS, Counter};
use serde_json::Value;

use crate::kin::{Kin, scx_kin};
use loads::{LOADS, Load};

/// Some count a race that was lost; it takes more than one try to lose it.
const TRIES: u32 = 4;

/// A connection to the scheduler, since a process for each word is slow in an
/// emulator.
pub struct Ask(Client);

impl Ask {
    #[track_caller]
    pub fn new() -> Ask {
        Ask(Client::connect().expect("an answer"))
    }

    /// The defaults, but for some words.
    #[track_caller]
    pub fn set(&mut self, words: &str) {
        let mut all = presets::words_of("default").expect("a preset");
        // One form of a rule turns the other one off.
        if words.contains("IDLE_SHARED_CACHE") {
            all.retain(|word| word != "IDLE_SIBLING");
        }
        all.extend(words.split_whitespace().map(String::from));
        let reply = self.0.set(&all).expect("an answer");
        assert_eq!(reply.bad_word, None, "{words}");
    }

    #[track_caller]
    pub fn settings(&mut self) -> Settings {
        self.0.get().expect("settings")
    }

    #[track_caller]
    pub fn total(&mut self) -> Sample {
        self.0.total().expect("counters")
    }

    /// Counts of one load under some words.
    #[track_caller]
    pub fn counts(&mut self, words: &str, load: &Load) -> Sample {
        self.set(words);
        let before = self.total();
        (load.run)();
        self.total().since(&before)
    }
}

/// Which counters cannot move here: their level has but one member.
fn impossible() -> BTreeSet<&'static str> {
    let out = scx_kin(&["topology", "--json"]);
    let machine: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let list = |what: &str| machine[what].as_array().expect(what).clone();
    let llcs = list("llcs");
    let count = |llc: &Value| llc["cores"].as_array().expect("cores").len();
    let (cpus, cores) = (list("cpus").len(), llcs.iter().map(count).sum::<usize>());
    let nodes: BTreeSet<u64> = llcs.iter().filter_map(|llc| llc["node"].as_u64()).collect();
    let clusters = |llc: &Value| llc["clusters"].as_array().map_or(0, Vec::len);
    let mut none = BTreeSet::new();
    if llcs.iter().all(|llc| clusters(llc) == 0) {
        // As in all that scripts/vm can make.
        none.insert("select_idle_cluster");
    }
    if cores == cpus {
        none.extend(["dispatch_pull_smt", "select_idle_smt"]);
    }
    if cores == llcs.len() {
        // All of the LLC is siblings, which are asked before; and its one core cannot
        // be idle when the target is not.
        none.extend(["dispatch_pull_llc", "select_idle_core"]);
    }
    if llcs.len() == nodes.len() {
        none.extend([
            "dispatch_pull_node",
            "select_idle_node",
            "balance_node",
            "move_llc",
        ]);
    }
    if nodes.len() == 1 {
        none.extend([
            "dispatch_pull_system",
            "select_idle_system",
            "balance_system",
            "move_node",
        ]);
    }
    none
}

/// The word that turns off what a counter belongs to.
fn off(needs: &str) -> String {
    match needs.split_once(':') {
        Some((level, flag)) => format!("{level}:-{flag}"),
        None => format!("NO_{needs}"),
    }
}

/// The most that a load moved each counter, and which load it was.
type Best = BTreeMap<&'static str, (u64, usize)>;

/// Runs all loads.
fn drive(ask: &mut Ask, best: &mut Best) {
    for (i, load) in LOADS.iter().enumerate() {
        let sample = ask.counts(load.words, load);
        println!("{}: {:?}", load.name, moved(&sample));
        for row in COUNTERS.iter() {
            let n = sample.count(row);
            if n > best.get(row.name).map_or(0, |b| b.0) {
                best.insert(row.name, (n, i));
            }
        }
    }
}

#[test]
#[ignore = "needs root on a sched_ext kernel"]
fn every_counter_moves_and_only_with_its_switch() {
    let kin = Kin::start(&[]);
    let mut ask = Ask::new();
    let impossible = impossible();
    let mut best = Best::new();
    let mut still = Vec::new();
    for _ in 0..TRIES {
        drive(&mut ask, &mut best);
        let names = COUNTERS.iter().map(|row| row.name);
        still = names
            .filter(|name| !best.contains_key(name) && !impossible.contains(name))
            .collect();
        if still.is_empty() {
            break;
        }
        println!("still: {still:?}");
    }
    println!("best: {best:?}");
    assert!(still.is_empty(), "no load moved {still:?}");
    only_with_their_switch(&mut ask, &best);
    kin.stop();
}

/// One run for all counters that need the same and were moved most by the same load.
fn only_with_their_switch(ask: &mut Ask, best: &Best) {
    let mut runs: BTreeMap<(&str, usize), Vec<_>> = BTreeMap::new();
    for row in COUNTERS.iter().filter(|row| row.needs != "-") {
        let Some((_, i)) = best.get(row.name) else {
            continue;
        };
        runs.entry((row.needs, *i)).or_default().push(row);
    }
    let mut wrong = Vec::new();
    for ((needs, i), rows) in runs {
        let load = &LOADS[i];
        let sample = ask.counts(&format!("{} {}", load.words, off(needs)), load);
        let moved = rows.iter().filter(|row| sample.count(row) > 0);
        let name = |row: &&Counter| format!("{}: {} {}", load.name, row.name, sample.count(row));
        wrong.extend(moved.map(|row| format!("{}: {}", off(needs), name(row))));
    }
    assert!(wrong.is_empty(), "moved although off: {wrong:#?}");
}

fn moved(sample: &Sample) -> BTreeMap<&str, u64> {
    let counters = sample.counters.iter();
    let counters = counters.filter(|(_, n)| **n > 0);
    counters.map(|(name, n)| (name.as_str(), *n)).collect()
}
