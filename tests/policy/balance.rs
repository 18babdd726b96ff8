// SPDX-License-Identifier: GPL-2.0-only
//! The part of policy.h that says where tasks go: averages, wake affinity, how far
//! a search reaches, what is too hot or too light to pull.

use super::{MS, NICE_0, NOW, SECOND, random};

unsafe extern "C" {
    safe fn t_update_avg(avg: u64, sample: u64) -> u64;
    safe fn t_update_avg_idle(avg: u64, idle: u64, cost: u64) -> u64;
    safe fn t_wake_affine_weight(this_load: u64, prev_load: u64, w: u32, pct: u32) -> bool;
    safe fn t_record_wakee(wakees: &mut Wakees, pid: u32, now: u64);
    safe fn t_wake_is_wide(waker: u32, wakee: u32, cpus: u32) -> bool;
    safe fn t_sis_util_scan(cpus: u32, busy: u32, pct: u32) -> u32;
    safe fn t_task_is_hot(since: u64, cost: u64) -> bool;
    safe fn t_load_imbalanced(mine: u64, theirs: u64, nr: u32, pct: u32) -> bool;
}

/// struct wakees.
#[repr(C)]
#[derive(Default)]
struct Wakees {
    decay_at: u64,
    last: u32,
    flips: u32,
}
pub const WAKEES_SIZE: usize = size_of::<Wakees>();

#[test]
fn an_average_moves_an_eighth_of_the_way() {
    assert_eq!(t_update_avg(800, 1600), 900);
    assert_eq!(t_update_avg(800, 0), 700);
}

#[test]
fn one_long_idle_time_opens_the_pull_and_short_ones_close_it() {
    let cost = 500_000;
    let mut avg = t_update_avg_idle(0, 3 * MS, cost);
    assert_eq!(avg, MS, "capped at twice the cost, at once");
    let mut wakes = 0;
    while avg >= cost {
        avg = t_update_avg_idle(avg, 10_000, cost);
        wakes += 1;
    }
    // 10 us + 990 us x (7/8)^n < 500 us at n = 6
    assert_eq!(wakes, 6);
}

#[test]
fn the_waker_s_cpu_must_be_clearly_lighter() {
    let w = NICE_0;
    // Both run one task: 2048 against 1024 x 1.08.
    assert!(!t_wake_affine_weight(1024, 1024, w, 117));
    // The waker is about to sleep (its weight left out), prev runs one: 1024 < 1106.
    assert!(t_wake_affine_weight(0, 1024, w, 117));
    // The waker runs alone, prev has one running and one waiting: 2048 < 2212.
    assert!(t_wake_affine_weight(1024, 2048, w, 117));
    assert!(
        !t_wake_affine_weight(1024, 2048, w, 100),
        "2048 < 2048 without the bias"
    );
    assert!(!t_wake_affine_weight(0, 0, w, 117));
}

#[test]
fn a_pull_must_make_two_queues_more_equal() {
    let queues = |mine: u64, theirs: u32| {
        t_load_imbalanced(mine * 1024, u64::from(theirs) * 1024, theirs, 117)
    };
    assert!(queues(1, 5));
    assert!(queues(1, 3), "2 and 2 after it");
    assert!(!queues(1, 2), "would only turn it round");
    assert!(!queues(4, 5));
    assert!(queues(0, 2));
    assert!(!queues(3, 3));
    assert!(
        !t_load_imbalanced(10_000, 11_000, 50, 117),
        "within imbalance_pct"
    );
}

#[test]
fn a_flip_is_a_wakeup_of_another_task_than_before() {
    // 7.3 record_wakee(): 7, 7, 8, 7, 7, 9 are four changes, the first included.
    let mut wakees = Wakees::default();
    let mut flips = vec![];
    for (i, pid) in [7, 7, 8, 7, 7, 9].into_iter().enumerate() {
        t_record_wakee(&mut wakees, pid, NOW + i as u64);
        assert_eq!(wakees.last, pid);
        flips.push(wakees.flips);
    }
    assert_eq!(flips, [1, 1, 2, 3, 3, 4]);
    assert_eq!(wakees.decay_at, NOW + SECOND);
}

#[test]
fn flips_halve_once_a_second_and_not_more_often() {
    let mut wakees = Wakees {
        decay_at: NOW,
        last: 7,
        flips: 101,
    };
    let mut at = |pid, ns: i64| {
        t_record_wakee(&mut wakees, pid, NOW.wrapping_add_signed(ns));
        wakees.flips
    };
    let second = SECOND as i64;
    assert_eq!(at(7, -1), 101, "not yet");
    assert_eq!(at(7, 1), 50);
    assert_eq!(at(7, 2), 50, "not twice");
    assert_eq!(
        at(7, second),
        50,
        "a second after the last halving, not before"
    );
    assert_eq!(at(7, second + 2), 25);
    assert_eq!(at(7, 10 * second), 12, "once, however long it was quiet");
    assert_eq!(
        at(8, 12 * second),
        7,
        "12 / 2, and the change counts in full"
    );
    for (n, left) in [3, 1, 0, 0].into_iter().enumerate() {
        assert_eq!(at(8, (14 + 2 * n as i64) * second), left);
    }
}

#[test]
fn the_halving_survives_wraparound() {
    let halve = |decay_at: u64, now| {
        let (last, flips) = (7, u32::MAX);
        let mut wakees = Wakees {
            decay_at,
            last,
            flips,
        };
        t_record_wakee(&mut wakees, 7, now);
        wakees.flips
    };
    assert_eq!(halve(5, u64::MAX), u32::MAX, "6 ns to go");
    assert_eq!(halve(u64::MAX, 5), 0x7fff_ffff, "6 ns late");
}

#[test]
fn law_flips_settle_at_twice_the_changes_of_a_second() {
    // f = f / 2 + 100 just before a halving: 200; a wakeup more or less a second.
    let mut wakees = Wakees::default();
    for i in 0..3000 {
        t_record_wakee(&mut wakees, 1 + i % 2, NOW + u64::from(i) * 10 * MS);
        assert!(wakees.flips <= 202, "{} after {i}", wakees.flips);
        assert!(wakees.flips >= 95 || i < 1000, "{} after {i}", wakees.flips);
    }
}

#[test]
fn a_wide_relation_has_both_sides_above_the_llc() {
    // 7.3 wake_wide(), factor 8: the smaller >= 8, the larger >= the smaller x 8.
    for (larger, smaller, wide) in [
        (64, 8, true),
        (63, 8, false),
        (65, 8, true),
        (1000, 7, false),
        (72, 9, true),
        (71, 9, false),
        (20, 20, false),
        (0, 0, false),
        (u32::MAX, 0, false),
        (u32::MAX, 1 << 20, true),
    ] {
        assert_eq!(
            t_wake_is_wide(larger, smaller, 8),
            wide,
            "{larger} {smaller}"
        );
        assert_eq!(
            t_wake_is_wide(smaller, larger, 8),
            wide,
            "{smaller} {larger}"
        );
    }
    assert!(t_wake_is_wide(1, 1, 1), "alone in its LLC");
    assert!(!t_wake_is_wide(1, 0, 1));
    // 2^31 x 2 and 2^16 x 2^16 are 2^32, not 0.
    assert!(!t_wake_is_wide(u32::MAX, 1 << 31, 2));
    assert!(!t_wake_is_wide(u32::MAX, 1 << 16, 1 << 16));
    assert!(t_wake_is_wide(u32::MAX, 65_537, 65_535), "u32::MAX exactly");
}

#[test]
fn law_width_is_symmetrical_and_a_larger_llc_is_never_wider() {
    let mut seed = 5;
    let mut wide = 0;
    for _ in 0..100_000 {
        let flips = |seed: &mut u64| (random(seed) as u32) >> (random(seed) % 32);
        let (waker, wakee) = (flips(&mut seed), flips(&mut seed));
        let cpus = 1 + random(&mut seed) as u32 % 256;
        let one = t_wake_is_wide(waker, wakee, cpus);
        assert_eq!(one, t_wake_is_wide(wakee, waker, cpus), "{waker} {wakee}");
        assert!(one || !t_wake_is_wide(waker, wakee, cpus + 1));
        wide += u32::from(one);
    }
    assert!(
        (1000..99_000).contains(&wide),
        "{wide}: too one-sided to show"
    );
}

#[test]
fn a_search_reaches_less_far_the_busier_the_llc_is() {
    // 7.3 update_idle_cpu_scan(), pct^2 = 13689. 16 CPUs, 8 busy: x = 512, off = 350.4,
    // 16 x 674 / 1024 = 10.5. 13 busy: x = 832, off = 925.4, 16 x 99 / 1024 = 1.5.
    assert_eq!(t_sis_util_scan(16, 0, 117), 16);
    assert_eq!(t_sis_util_scan(16, 8, 117), 10);
    assert_eq!(t_sis_util_scan(16, 13, 117), 1);
    assert_eq!(t_sis_util_scan(16, 14, 117), 0, "87.5 %");
    assert_eq!(t_sis_util_scan(16, 16, 117), 0);
    assert_eq!(t_sis_util_scan(16, 17, 117), 0, "more than there are");
    // x = 875 (85.4 %): off = 1023.5, one share left; 876: off = 1025.8.
    assert_eq!(t_sis_util_scan(1024, 874, 117), 3);
    assert_eq!(t_sis_util_scan(1024, 875, 117), 1);
    assert_eq!(t_sis_util_scan(1024, 876, 117), 0);
    assert_eq!(t_sis_util_scan(0, 0, 117), 0, "no division by zero");
    assert_eq!(t_sis_util_scan(u32::MAX, 0, 117), u32::MAX);
}

#[test]
fn imbalance_pct_says_where_a_search_ends() {
    // 100: x = 1023, off = 1022.0; nothing before all are busy. 400: x = 240 (15 of
    // 64), off = 900, 64 x 124 / 1024 = 7.75; x = 256, a quarter: off = 1024.
    assert_eq!(t_sis_util_scan(1024, 1023, 100), 2);
    assert_eq!(t_sis_util_scan(1024, 1024, 100), 0);
    assert_eq!(t_sis_util_scan(64, 15, 400), 7);
    assert_eq!(t_sis_util_scan(64, 16, 400), 0);
    assert_eq!(t_sis_util_scan(1024, 1024, 400), 0, "2^20 x 400^2 fits");
}

#[test]
fn law_a_search_never_grows_with_what_is_busy() {
    for cpus in 1..=1024 {
        let mut before = cpus;
        for busy in 0..=cpus {
            let scan = t_sis_util_scan(cpus, busy, 117);
            assert!(scan <= before, "{busy} of {cpus} busy: {scan}");
            assert!(scan == 0 || busy * 1000 < cpus * 855, "{busy} of {cpus}");
            assert!(scan > 0 || busy * 2 > cpus, "{busy} of {cpus}: too early");
            before = scan;
        }
        assert_eq!(t_sis_util_scan(cpus, 0, 117), cpus);
    }
}

#[test]
fn a_task_is_hot_for_less_than_a_migration_cost() {
    // 2.6.32 task_hot(): delta < migration_cost; with a cost of 0 nothing is hot.
    assert!(t_task_is_hot(0, 500_000));
    assert!(t_task_is_hot(499_999, 500_000));
    assert!(!t_task_is_hot(500_000, 500_000));
    assert!(!t_task_is_hot(500_001, 500_000));
    assert!(!t_task_is_hot(u64::MAX, 500_000));
    assert!(t_task_is_hot(0, 1));
    assert!(!t_task_is_hot(0, 0));
}
