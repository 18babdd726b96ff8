// SPDX-License-Identifier: GPL-2.0-only
//! The part of policy.h that is today's gate for new-idle pulls.

use super::{MS, NOW, SECOND};

unsafe extern "C" {
    safe fn t_newidle_note(ni: &mut Newidle, successes: u32);
    safe fn t_newidle_weight(ratio: u32) -> u32;
    safe fn t_newidle_cost(ni: &mut Newidle, cost: u64, limit: u64, now: u64);
    safe fn t_newidle_dice(ni: &Newidle, die: u32) -> bool;
}

/// struct newidle.
#[repr(C)]
#[derive(Default)]
struct Newidle {
    max_cost: u64,
    decay_at: u64,
    calls: u32,
    successes: u32,
    ratio: u32,
}
pub const NEWIDLE_SIZE: usize = size_of::<Newidle>();

/// What a new window starts with: 7.3 sd_init().
const START: Newidle = Newidle {
    max_cost: 0,
    decay_at: 0,
    calls: 512,
    successes: 256,
    ratio: 512,
};

/// The ratio after 512 more pulls, of which so many in eight find something.
fn window(ni: &mut Newidle, successes_of_8: u32) -> u32 {
    for i in 0..512 {
        t_newidle_note(ni, u32::from(i % 8 < successes_of_8));
    }
    ni.ratio
}

#[test]
fn a_window_of_pulls_ends_at_1024_and_half_of_it_stays() {
    // 7.3 update_newidle_stats() without NI_RATE: ratio = successes, both halve.
    let mut ni = START;
    for _ in 0..511 {
        t_newidle_note(&mut ni, 0);
    }
    assert_eq!((ni.calls, ni.successes, ni.ratio), (1023, 256, 512));
    t_newidle_note(&mut ni, 1);
    assert_eq!((ni.calls, ni.successes, ni.ratio), (512, 128, 257));
    let all_found = Newidle {
        successes: 9999,
        ..START
    };
    let mut ni = all_found;
    assert_eq!(window(&mut ni, 0), 1024, "no more than all");
}

#[test]
fn failures_alone_bring_the_ratio_to_0_and_luck_brings_it_back() {
    let mut ni = START;
    let falls: Vec<u32> = (0..10).map(|_| window(&mut ni, 0)).collect();
    assert_eq!(falls, [256, 128, 64, 32, 16, 8, 4, 2, 1, 0]);
    let mut fresh = Newidle::default();
    window(&mut fresh, 0);
    assert_eq!(window(&mut fresh, 0), 0, "1024 failures from nothing");
    // 512, 256 + 512, 384 + 512, ...
    let rises: Vec<u32> = (0..4).map(|_| window(&mut ni, 8)).collect();
    assert_eq!(rises, [512, 768, 896, 960]);
}

#[test]
fn law_the_ratio_settles_at_the_share_of_successes() {
    for share in 0..=8 {
        let mut ni = START;
        for _ in 0..20 {
            window(&mut ni, share);
        }
        // s = s / 2 + 64 share, rounded down: 128 share, or one less.
        let due = 128 * share;
        assert!((due.saturating_sub(1)..=due).contains(&ni.ratio), "{share}");
    }
}

#[test]
fn law_the_dice_let_through_the_ratio_and_two() {
    // 7.3 sched_balance_newidle(): run if d1k <= 1 + ratio, and always at 1024.
    for ratio in 0..=1024 {
        let ni = Newidle { ratio, ..START };
        let through = (0..1024).filter(|die| t_newidle_dice(&ni, *die)).count();
        assert_eq!(through as u32, (ratio + 2).min(1024), "{ratio}");
    }
    let never = Newidle { ratio: 0, ..START };
    let faces = [0, 1, 2, 1023].map(|die| t_newidle_dice(&never, die));
    assert_eq!(faces, [true, true, false, false], "2 of 1024");
    let always = Newidle {
        ratio: u32::MAX,
        ..START
    };
    assert!(t_newidle_dice(&always, 1023));
}

#[test]
fn the_cost_of_a_pull_is_the_highest_seen_up_to_a_limit() {
    let mut ni = START;
    let mut cost = |ns, limit| {
        t_newidle_cost(&mut ni, ns, limit, NOW);
        ni.max_cost
    };
    assert_eq!(cost(0, 500_000), 0);
    assert_eq!(cost(300_000, 500_000), 300_000);
    assert_eq!(cost(200_000, 500_000), 300_000);
    assert_eq!(cost(300_000, 500_000), 300_000);
    assert_eq!(cost(500_000, 500_000), 500_000);
    assert_eq!(cost(500_001, 500_000), 500_000);
    assert_eq!(cost(u64::MAX, 500_000), 500_000);
    assert_eq!(cost(600_000, 100_000), 100_000, "the limit was lowered");
}

#[test]
fn the_cost_decays_by_3_of_256_once_a_second() {
    // 7.3 update_newidle_cost(): 300 us x 253 / 256 = 296484.4, again 293009.6.
    let mut ni = Newidle::default();
    t_newidle_cost(&mut ni, 300_000, 500_000, NOW);
    let mut after = |ns, cost| {
        t_newidle_cost(&mut ni, cost, 500_000, NOW + ns);
        ni.max_cost
    };
    assert_eq!(after(SECOND, 0), 300_000, "more than a second");
    assert_eq!(after(SECOND + 1, 0), 296_484);
    assert_eq!(after(SECOND + 2, 0), 296_484, "not twice");
    assert_eq!(after(2 * SECOND + 1, 0), 296_484);
    assert_eq!(
        after(3600 * SECOND, 0),
        293_009,
        "once, however long it was"
    );
    assert_eq!(
        after(3602 * SECOND, 400_000),
        400_000,
        "a new highest is not cut"
    );
    assert_eq!(after(3603 * SECOND, 0), 400_000, "and has its second");
    assert_eq!(after(3603 * SECOND + 1, 0), 395_312, "395312.5");
}

#[test]
fn law_the_cost_halves_in_59_seconds_and_ends_at_0() {
    // (253 / 256)^58 = 0.505, ^59 = 0.499; each step takes 1 ns at least.
    let mut ni = Newidle::default();
    t_newidle_cost(&mut ni, MS, MS, NOW);
    for second in 1..=59 {
        assert!(ni.max_cost > MS / 2, "{second}: {}", ni.max_cost);
        t_newidle_cost(&mut ni, 0, MS, NOW + second * (SECOND + 1));
    }
    assert!(ni.max_cost < MS / 2, "{}", ni.max_cost);
    for second in 60..2000 {
        let before = ni.max_cost;
        t_newidle_cost(&mut ni, 0, MS, NOW + second * (SECOND + 1));
        assert!(ni.max_cost < before || before == 0, "stuck at {before}");
    }
    assert_eq!(ni.max_cost, 0);
}

#[test]
fn a_success_counts_for_those_the_dice_threw_out() {
    // 7.3 sched_balance_newidle(): w = 1 + ratio, (1024 + w/2) / w: 1024/1, 1025/2,
    // (1024 + 128) / 256, (1024 + 256) / 512, (1024 + 256) / 513, (1024 + 512) / 1024
    for (ratio, weight) in [(0, 1024), (1, 512), (255, 4), (511, 2), (512, 2), (1023, 1)] {
        assert_eq!(t_newidle_weight(ratio), weight, "{ratio}");
    }
    assert_eq!(t_newidle_weight(1024), 1);
}

#[test]
fn the_ratio_holds_at_the_rate_of_success_however_low_it_got() {
    // A CPU whose every pull would succeed gets out of a ratio of 0.
    let mut ni = Newidle { ratio: 0, ..START };
    for i in 0..20_000 {
        let through = t_newidle_dice(&ni, i * 389 % 1024);
        let weight = t_newidle_weight(ni.ratio);
        t_newidle_note(&mut ni, if through { weight } else { 0 });
    }
    assert!(ni.ratio > 900, "{}", ni.ratio);
}
