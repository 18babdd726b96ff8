// SPDX-License-Identifier: GPL-2.0-only
//! Who preempts, and who runs before its turn.

use std::fs;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use scx_kin::watch::Watched;

use super::{ENOUGH, MS, WATCH, counted, moved, rows, set, sum, watched};
use crate::kin::{Kin, scx_kin, text};
use crate::load::{Crew, Timed, nr_cpus, pin, policy};
use crate::{EVEN, spread};

const CPU: usize = 1;
/// A timer ends a sleep that long. Such wakeups come from an interrupt, from which
/// RUN_TO_PARITY protects nobody.
const PERIOD: Duration = Duration::from_millis(10);
/// Ways of a wakee that preempts what runs.
const PREEMPTED: [&str; 2] = ["preempt_local", "preempt_kick"];
/// A wakee that preempts is late by what an interrupt and a switch take, one that
/// does not by what is left of a slice of 50 ms: ten times that and more, but the
/// emulator's ticks come late too.
const FAR_BELOW: u32 = 3;
/// Reads of REFRESH, each of which has a kernel thread of every CPU do something.
const REFRESHES: u32 = 3;
const REFRESH: &str = "/proc/sys/vm/stat_refresh";
/// Slices while it is read. A kernel thread that waited for one to end would take
/// about that long each time; those that preempt take some milliseconds.
const LONG_SLICE: Duration = Duration::from_secs(1);

/// How late a sleeper runs beside a hog on the same CPU, and what was decided about
/// it if a scheduler is there to ask.
fn beside_a_hog(ask: bool, setup: fn()) -> (Duration, Watched) {
    let _hog = Crew::hogs(1, |_| pin(0, [CPU]));
    let sleeper = Timed::start(PERIOD, move |_| {
        pin(0, [CPU]);
        setup();
    });
    sleep(100 * MS);
    let mut seen = Watched::default();
    if ask {
        seen = watched(sleeper.tid());
    } else {
        sleep(WATCH);
    }
    (sleeper.median(), seen)
}

fn under(kin: &Kin, words: &str, setup: fn()) -> (Duration, Watched) {
    set(kin, words);
    let (late, seen) = beside_a_hog(true, setup);
    println!("{words}: {late:?} late, {:?}", moved(&seen.counters));
    (late, seen)
}

fn wakeup_preemption(kin: &Kin, stock: Duration) {
    // Else the tick would end the hog's run soon, since the sleeper has its credit.
    let slices = "NO_TICK_PREEMPT sched_latency_ns=100ms";
    let (with, seen) = under(kin, slices, || {});
    assert!(sum(&seen.counters, PREEMPTED) >= ENOUGH, "preempts nobody");
    let (without, seen) = under(kin, &format!("{slices} NO_WAKEUP_PREEMPTION"), || {});
    assert_eq!(sum(&seen.counters, PREEMPTED), 0, "preempts all the same");
    assert!(
        with * FAR_BELOW < without,
        "{with:?} late with, {without:?} without, {stock:?} under stock"
    );
}

fn granularity(kin: &Kin) {
    let out = scx_kin(&["set", "preset=default", "wakeup_granularity_ns=1s"]);
    let said = text(&out.stderr);
    assert!(out.status.success(), "{said}");
    assert!(
        said.contains("wakeup_granularity_ns=1s"),
        "no warning: {said}"
    );
    let (_, seen) = under(kin, "wakeup_granularity_ns=1s", || {});
    let refused = ["preempt_granularity", "preempt_not_ahead"];
    assert!(sum(&seen.counters, refused) >= ENOUGH, "not refused");
    assert_eq!(sum(&seen.counters, PREEMPTED), 0, "preempts all the same");
}

/// How long it takes the kernel threads of all CPUs to do something, each beside a
/// hog that is never interrupted for a wakee.
fn kernel_threads(kin: &Kin) {
    set(
        kin,
        "NO_TICK_PREEMPT wakeup_granularity_ns=1s sched_latency_ns=1s min_granularity_ns=1s",
    );
    let mut took = Duration::ZERO;
    let load = || {
        let reader = spawn(|| {
            policy(libc::SCHED_FIFO); // it waits for nobody itself
            let _hogs = Crew::start(
                nr_cpus(),
                |i| {
                    policy(libc::SCHED_OTHER);
                    pin(0, [i]);
                },
                || crate::load::burn(MS / 10),
            );
            let start = Instant::now();
            for _ in 0..REFRESHES {
                fs::read(REFRESH).expect(REFRESH);
            }
            start.elapsed()
        });
        took = reader.join().expect("a reader");
    };
    let counts = counted(kin, load).counters;
    println!("{REFRESHES} refreshes in {took:?}, {:?}", moved(&counts));
    let woken = sum(&counts, ["enqueue_kthread"]);
    assert!(
        woken >= u64::from(REFRESHES) * nr_cpus() as u64,
        "{woken} only"
    );
    assert!(took < LONG_SLICE, "they waited: {took:?}");
}

fn batch(kin: &Kin) {
    let (_, seen) = under(kin, "", || policy(libc::SCHED_BATCH));
    assert!(
        sum(&seen.counters, ["preempt_batch"]) >= ENOUGH,
        "not asked"
    );
    assert_eq!(sum(&seen.counters, PREEMPTED), 0, "a batch task preempts");
}

/// Three hogs and two sleepers on one CPU. Buddies matter from latency / granularity
/// tasks on, here two. A sleeper's credit of 20 ms suffices to preempt, at any time of
/// a run, and a hog is seldom ahead of the others by more than the granularity: else
/// it would not be run although it is a buddy.
fn crowd(kin: &Kin, words: &str) -> super::Counts {
    set(
        kin,
        &format!(
            "tunable_scaling=none sched_latency_ns=20ms min_granularity_ns=10ms \
             wakeup_granularity_ns=10ms NO_GENTLE_FAIR_SLEEPERS NO_RUN_TO_PARITY {words}"
        ),
    );
    let hogs = Crew::hogs(3, |_| pin(0, [CPU]));
    let _sleepers = Crew::sleepers(2, MS / 2, 7 * MS, |_| pin(0, [CPU]));
    sleep(100 * MS);
    let mut shares = vec![];
    let counts = counted(kin, || shares = hogs.shares(WATCH)).counters;
    println!("{words}: {shares:.2?}, {:?}", moved(&counts));
    assert!(spread(&shares) < EVEN, "{words} is unfair: {shares:.2?}");
    counts
}

fn buddies(kin: &Kin) {
    let both = rows("dispatch_")
        .into_iter()
        .filter(|name| name.ends_with("_buddy"));
    let both: Vec<_> = both.collect();
    let counts = crowd(kin, "NO_NEXT_BUDDY NO_LAST_BUDDY");
    assert_eq!(sum(&counts, both), 0, "buddies with both switches off");
    // A wakee that preempts needs no other way to be next.
    let counts = crowd(kin, "NEXT_BUDDY NO_LAST_BUDDY NO_WAKEUP_PREEMPTION");
    assert!(
        sum(&counts, ["dispatch_next_buddy"]) >= ENOUGH,
        "no next buddy"
    );
    assert_eq!(
        sum(&counts, ["dispatch_last_buddy"]),
        0,
        "LAST_BUDDY is off"
    );
    let counts = crowd(kin, "NO_NEXT_BUDDY LAST_BUDDY");
    assert!(
        sum(&counts, ["dispatch_last_buddy"]) >= ENOUGH,
        "no last buddy"
    );
    assert_eq!(
        sum(&counts, ["dispatch_next_buddy"]),
        0,
        "NEXT_BUDDY is off"
    );
}

/// How late a sleeper is under stock, for comparison.
pub fn stock() -> Duration {
    beside_a_hog(false, || {}).0
}

pub fn check(kin: &Kin, stock: Duration) {
    wakeup_preemption(kin, stock);
    granularity(kin);
    batch(kin);
    kernel_threads(kin);
    buddies(kin);
}
