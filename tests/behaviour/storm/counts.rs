// SPDX-License-Identifier: GPL-2.0-only
//! What holds between the counters whatever the settings were.

use std::collections::BTreeMap;

use scx_kin::metrics::Sample;

/// Increments that an interrupt between load and store may have cost.
const LOST: f64 = 0.01;
/// What is between two states when a sample is taken, the load being over: some tasks
/// for each CPU.
const IN_FLIGHT: f64 = 50.0;

fn sum<'a>(sample: &Sample, names: impl IntoIterator<Item = &'a str>) -> u64 {
    names.into_iter().map(|name| sample.counters[name]).sum()
}

fn of_group(sample: &Sample, group: &str, but: &[&str]) -> u64 {
    let names = sample.counters.keys().map(String::as_str);
    sum(
        sample,
        names.filter(|n| n.starts_with(group) && !but.contains(n)),
    )
}

/// Nothing that was counted is taken back.
#[track_caller]
pub fn never_decreased(before: &Sample, now: &Sample) {
    assert_eq!(before.load, now.load, "the scheduler was loaded again");
    for (name, n) in &now.counters {
        let then = before.counters[name];
        assert!(*n >= then, "{name} went from {then} back to {n}");
    }
    for (name, hist) in &now.hists {
        let pairs = before.hists[name].0.iter().zip(&hist.0);
        assert!(pairs.clone().all(|(a, b)| a <= b), "{name}: {pairs:?}");
    }
    let none = BTreeMap::new();
    for (rule, columns) in &now.whatif {
        let then = before.whatif.get(rule).unwrap_or(&none);
        let less = |c: &&String| columns[*c] < then.get(*c).copied().unwrap_or(0);
        assert_eq!(columns.keys().find(less), None, "{rule} went back");
    }
}

/// `less` of something were counted, and no more than `more`.
#[track_caller]
fn at_most(what: &str, less: u64, more: u64) {
    println!("{what}: {less} of {more}");
    let most = more as f64 * (1.0 + LOST) + IN_FLIGHT;
    assert!(less as f64 <= most, "{what}: {less} > {more}");
}

/// What holds between the counters whatever the switches were.
#[track_caller]
pub fn consistent(all: &Sample) {
    let waits = all.hists["wakeup_latency"].total();
    let runs = all.hists["run_length"].total();
    let forks = ["select_fork_idle", "select_fork_load"];
    let selected = of_group(all, "select_", &forks);
    at_most("wakeups that came to run, of runs", waits, runs);
    at_most(
        "wakeups that were placed, of those that ran",
        selected,
        waits,
    );

    // Each wakeup is claimed an idle CPU, or goes one way through enqueue. With
    // WAKEUP_PREEMPTION off some go unnamed.
    let busy = [
        "select_sync",
        "select_kthread",
        "select_sched_idle",
        "select_wide_load",
        "select_busy_waker",
        "select_busy_prev",
    ];
    let claimed = selected - sum(all, busy);
    let why = [
        "preempt_idle_policy",
        "preempt_wakeup_sync",
        "preempt_overlap",
        "preempt_running",
    ];
    let verdicts = of_group(all, "preempt_", &why);
    let queued = verdicts + sum(all, ["enqueue_kthread", "enqueue_idle"]);
    at_most("ways of a wakeup, of wakeups", claimed + queued, waits);
    let preempted = sum(all, ["preempt_local", "preempt_kick"]);
    at_most(
        "reasons to preempt, of preemptions",
        sum(all, why),
        preempted,
    );

    let looks = sum(all, ["balance_llc", "balance_node", "balance_system"]);
    let pulls = sum(all, ["dispatch_balance"]);
    at_most("periodic pulls, of those asked for", pulls, looks);
    let offers = sum(all, ["handover_kick", "enqueue_kick_idle"]);
    let taken = sum(all, ["dispatch_handed"]);
    at_most("offers taken, of those made", taken, offers);
    for (rule, columns) in &all.whatif {
        let count = |name: &str| columns.get(name).copied().unwrap_or(0);
        let (asked, differed) = (count("asked"), count("differed"));
        let to = columns.values().sum::<u64>() - asked - differed;
        assert!(differed <= asked && to == differed, "{rule}: {columns:?}");
    }
}
