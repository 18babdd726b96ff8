// SPDX-License-Identifier: GPL-2.0-only
//! What rules that are off would have done: each of them is asked, no other is.

use std::time::Duration;

use scx_kin::metrics::Sample;
use scx_kin::settings::Settings;
use scx_kin::tables::{WHATIF_ROWS, whatif_row};

use super::Ask;
use crate::kin::Kin;
use crate::load::{Crew, nr_cpus, run};

const MS: Duration = Duration::from_millis(1);

/// Rules that are never asked: they go by what is kept only while they are on (the
/// head of whatif.bpf.h), or decide at exec(), which is not among the decisions that
/// are worked out twice.
const CANNOT_BE_TOLD: [&str; 11] = [
    "SYNC_LESS",
    "WAKE_WIDE",
    "ADAPTIVE_GRAN",
    "WAKEUP_OVERLAP",
    "WAKEUP_RUNNING",
    "NEXT_BUDDY",
    "LAST_BUDDY",
    "CACHE_HOT",
    "CACHE_HOT_BUDDY",
    "NI_RANDOM",
    "SD_BALANCE_EXEC",
];

/// A row's turn comes at one decision in as many as there are rows, of its kind and
/// on each CPU: some rounds of all kinds of load.
const ROUNDS: u32 = 12;

/// Forks, wakeups that find a busy CPU, CPUs that go idle, ticks.
fn all_kinds() {
    let _sleepers = Crew::sleepers(nr_cpus(), MS, 2 * MS, |_| {});
    run("hackbench -g 1 -f 8 -l 20");
    run("stress-ng --temp-path /tmp --fork 4 --fork-ops 150");
}

fn rows() -> Vec<String> {
    let names = (0..WHATIF_ROWS).filter_map(whatif_row);
    let mut names: Vec<_> = names.map(|(name, _)| name).collect();
    names.retain(|name| !CANNOT_BE_TOLD.iter().any(|rule| name.ends_with(rule)));
    names
}

/// Whether a rule that is off has a say as long as others are as they are.
fn has_a_say(settings: &Settings, row: &str) -> bool {
    // SD_PREFER_SIBLING is about where that form of the search goes.
    !row.ends_with(":SD_PREFER_SIBLING") || settings.provides("IDLE_SHARED_CACHE")
}

/// The words that turn every rule round: what is on off, what is off on. Of two forms
/// of one rule the other one.
fn turned_round() -> String {
    let dfl = Settings::default();
    let all = (0..WHATIF_ROWS).filter_map(whatif_row);
    let words = all.map(
        |(name, _)| match (name.split_once(':'), dfl.provides(&name)) {
            (None, false) => name,
            (None, true) => format!("NO_{name}"),
            (Some((level, flag)), false) => format!("{level}:+{flag}"),
            (Some((level, flag)), true) => format!("{level}:-{flag}"),
        },
    );
    words.collect::<Vec<_>>().join(" ")
}

fn asked(sample: &Sample, row: &str) -> u64 {
    let columns = sample.whatif.get(row);
    columns.and_then(|c| c.get("asked")).copied().unwrap_or(0)
}

/// Under some words: those that are on are never asked; those that are off are, in
/// time.
#[track_caller]
fn asks_what_is_off(ask: &mut Ask, words: &str) {
    ask.set(&format!("{words} whatif_interval=1"));
    let settings = ask.settings();
    let before = ask.total();
    let mut silent = Vec::new();
    for _ in 0..ROUNDS {
        all_kinds();
        let seen = ask.total().since(&before);
        let (on, off): (Vec<_>, Vec<_>) = rows().into_iter().partition(|r| settings.provides(r));
        let wrong: Vec<_> = on.iter().filter(|row| asked(&seen, row) > 0).collect();
        assert!(wrong.is_empty(), "asked although on: {wrong:?}");
        silent = off;
        silent.retain(|row| asked(&seen, row) == 0 && has_a_say(&settings, row));
        println!("not asked yet: {silent:?}");
        if silent.is_empty() {
            return;
        }
    }
    panic!("never asked: {silent:?}, {words}");
}

#[test]
#[ignore = "needs root on a sched_ext kernel"]
fn rules_that_are_off_are_asked_and_no_others() {
    let kin = Kin::start(&[]);
    let mut ask = Ask::new();
    asks_what_is_off(&mut ask, "");
    asks_what_is_off(&mut ask, "IDLE_SHARED_CACHE");
    asks_what_is_off(&mut ask, &turned_round());

    ask.set("whatif_interval=0");
    let before = ask.total();
    all_kinds();
    let since = ask.total().since(&before);
    let some: Vec<_> = rows()
        .into_iter()
        .filter(|r| asked(&since, r) > 0)
        .collect();
    assert!(some.is_empty(), "asked with interval 0: {some:?}");
    kin.stop();
}
