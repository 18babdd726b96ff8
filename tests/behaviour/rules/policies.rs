// SPDX-License-Identifier: GPL-2.0-only
//! SCHED_IDLE tasks are as good as nobody.

use std::ops::Range;

use super::{ENOUGH, WATCH, counted, moved, set, sum};
use crate::kin::Kin;
use crate::load::{Crew, PingPong, nr_cpus, pin, policy};

/// A pair beside SCHED_IDLE hogs makes at least one of so many steps that it makes
/// without them. CFS gives such a hog 3 of 1027 parts; but each step is then two
/// switches and a wakeup that searched, which the emulator makes two to three times
/// as dear as a wakeup from idle. One that waited for slices would make hardly any.
const WORSE: u64 = 6;

/// Steps of a pair on the first half of the CPUs, and what is counted meanwhile, with
/// a hog on each CPU of some half: so many CPUs are busy for the emulator either way.
fn pair(kin: &Kin, words: &str, hogs: Range<usize>, of: i32) -> (u64, super::Counts) {
    set(kin, words);
    let (begin, half) = (hogs.start, nr_cpus() / 2);
    let _hogs = Crew::hogs(hogs.len(), move |i| {
        pin(0, [begin + i]);
        policy(of);
    });
    let pair = PingPong::start(move || pin(0, 0..half));
    let mut rounds = 0;
    let counts = counted(kin, || rounds = pair.rounds(WATCH)).counters;
    println!("{words} hogs on {hogs:?}: {rounds}, {:?}", moved(&counts));
    (rounds, counts)
}

pub fn check(kin: &Kin) {
    let (half, n) = (nr_cpus() / 2, nr_cpus());
    let (free, _) = pair(kin, "SCHED_IDLE_CPU", half..n, libc::SCHED_IDLE);
    let (beside, counts) = pair(kin, "SCHED_IDLE_CPU", 0..half, libc::SCHED_IDLE);
    assert!(
        beside * WORSE >= free,
        "{beside} rounds, {free} without hogs"
    );
    let chosen = sum(&counts, ["select_sched_idle"]);
    assert!(chosen >= ENOUGH, "{chosen} wakees chose a SCHED_IDLE CPU");
    let preempted = sum(&counts, ["preempt_idle_policy"]);
    assert!(preempted >= ENOUGH, "{preempted} preempted");

    let (_, counts) = pair(kin, "NO_SCHED_IDLE_CPU", 0..half, libc::SCHED_IDLE);
    assert_eq!(sum(&counts, ["select_sched_idle"]), 0, "it is off");
    assert!(
        sum(&counts, ["preempt_idle_policy"]) >= ENOUGH,
        "not preempted"
    );
}
