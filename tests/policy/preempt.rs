// SPDX-License-Identifier: GPL-2.0-only
//! The part of policy.h that says whether a wakee preempts, and who runs next.

use super::{MS, NICE_0, NOW, Tunables, random, tunables, weight};

unsafe extern "C" {
    safe fn t_wakeup_gran(gran: u64, w: u32) -> u64;
    safe fn t_wakeup_preempt_entity(curr_v: u64, wakee_v: u64, gran: u64) -> i32;
    safe fn t_adaptive_gran(gran: u64, avg_wakeup: u64, nr: u32, ran: u64) -> u64;
    safe fn t_buddy_scale(tun: &Tunables, nr: u32) -> bool;
}

#[test]
fn a_wakee_needs_more_than_the_granularity() {
    let test = |lead: i64| t_wakeup_preempt_entity(NOW, NOW.wrapping_add_signed(-lead), 4 * MS);
    assert_eq!(test(-1), -1);
    assert_eq!(test(0), -1);
    assert_eq!(test(1), 0);
    assert_eq!(test(4_000_000), 0);
    assert_eq!(test(4_000_001), 1);
}

#[test]
fn a_light_wakee_needs_a_larger_lead() {
    // 4 ms x 1024 / 335
    assert_eq!(t_wakeup_gran(4 * MS, weight(5)), 12_226_865);
    assert_eq!(t_wakeup_gran(4 * MS, NICE_0), 4 * MS);
    assert!(t_wakeup_gran(4 * MS, weight(-5)) < 4 * MS);
}

#[test]
fn a_frequent_waker_s_granularity_is_what_is_left_of_its_cycle() {
    // 2.6.32 adaptive_gran(): 2 x 0.5 ms x 3 - ran, from 0 to wakeup_granularity.
    let gran = |ran| t_adaptive_gran(4 * MS, MS / 2, 3, ran);
    assert_eq!(gran(0), 3 * MS);
    assert_eq!(gran(MS), 2 * MS);
    assert_eq!(gran(3 * MS - 1), 1);
    assert_eq!(gran(3 * MS), 0);
    assert_eq!(gran(3 * MS + 1), 0, "not below it");
    assert_eq!(gran(u64::MAX), 0);
    // 2 x 1 ms x 3 - 2 ms is 4 ms exactly.
    let capped = |ran| t_adaptive_gran(4 * MS, MS, 3, ran);
    assert_eq!(capped(0), 4 * MS, "not 6 ms");
    assert_eq!(capped(2 * MS - 1), 4 * MS);
    assert_eq!(capped(2 * MS), 4 * MS);
    assert_eq!(capped(2 * MS + 1), 4 * MS - 1);
}

#[test]
fn an_adaptive_granularity_has_no_wild_ends() {
    assert_eq!(t_adaptive_gran(4 * MS, 0, 3, 0), 0, "wakes all the time");
    assert_eq!(t_adaptive_gran(4 * MS, MS, 0, 0), 0, "nobody runs");
    assert_eq!(t_adaptive_gran(0, MS, 3, 0), 0);
    // 2 x 52 days x 1000 tasks fit: 2^53 x 1000 < 2^63.
    assert_eq!(t_adaptive_gran(4 * MS, 1 << 52, 1000, 0), 4 * MS);
    assert_eq!(t_adaptive_gran(u64::MAX, 1 << 52, 1000, 0), 1000 << 53);
}

#[test]
fn buddies_matter_where_slices_reach_their_minimum() {
    // nr_latency: 24 ms / 3 ms is 8 (6.1), 5 ms / 1 ms is 5 (2.6.32 on one CPU).
    let scale = |latency, min, nr| {
        let named = [("sched_latency_ns", latency), ("min_granularity_ns", min)];
        t_buddy_scale(&tunables(&named), nr)
    };
    for (latency, min, nr_latency) in [(24, 3, 8), (5, 1, 5), (1000, 1, 1000), (3, 3, 1)] {
        assert!(!scale(latency * MS, min * MS, nr_latency - 1));
        assert!(scale(latency * MS, min * MS, nr_latency));
        assert!(scale(latency * MS, min * MS, nr_latency + 1));
    }
    assert!(scale(MS, 1000 * MS, 1), "one task is always enough then");
    assert!(scale(24 * MS, 3 * MS, u32::MAX));
}

#[test]
fn law_an_adaptive_granularity_is_never_above_the_fixed_one() {
    let mut seed = 11;
    for _ in 0..100_000 {
        let (gran, avg) = (random(&mut seed) >> 34, random(&mut seed) >> 34);
        let (nr, ran) = (1 + random(&mut seed) as u32 % 8, random(&mut seed) >> 34);
        let left = t_adaptive_gran(gran, avg, nr, ran);
        assert!(left <= gran, "{gran} {avg} {nr} {ran}: {left}");
        assert!(
            t_adaptive_gran(gran, avg, nr, ran + MS) <= left,
            "rises as curr runs"
        );
        assert!(
            t_adaptive_gran(gran, avg + MS, nr, ran) >= left,
            "falls with avg_wakeup"
        );
        assert!(
            t_adaptive_gran(gran, avg, nr + 1, ran) >= left,
            "falls with nr"
        );
        let any = [(); 3].map(|()| random(&mut seed));
        assert!(
            t_adaptive_gran(any[0], any[1], nr, any[2]) <= any[0],
            "{any:?}"
        );
    }
}
