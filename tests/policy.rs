// SPDX-License-Identifier: GPL-2.0-only
//! policy.h, built for the host (tests/native/policy.c), and the lists of intf.h
//! as C and Rust see them. Here: the lists, numbers, vruntime; the rest in policy/.

#[path = "policy/balance.rs"]
mod balance;
#[path = "policy/newidle.rs"]
mod newidle;
#[path = "policy/preempt.rs"]
mod preempt;

use scx_kin::tables::{DOMAIN_FLAGS, FEATURES, HIST_BUCKETS, TUNABLES};

/// Longer than any list; the arrays are read as far as the list goes.
#[repr(C)]
struct List([u64; 0]);

#[link(name = "policy_host", kind = "static")]
unsafe extern "C" {
    static t_feature_dfl: List;
    static t_tunable_dfl: List;
    static t_tunable_min: List;
    static t_tunable_max: List;
    static t_flag_levels: List;
    static t_flag_dfl: List;
    static t_sizes: List;
    safe fn t_hist_bucket(ns: u64) -> u32;
    safe fn t_first_bit(word: u64) -> u32;
    safe fn t_count_bits(word: u64) -> u32;
    safe fn t_task_weight(static_prio: i32, idle: bool) -> u32;
    safe fn t_time_is_before(a: u64, b: u64) -> bool;
    safe fn t_calc_delta_fair(delta: u64, w: u32) -> u64;
    safe fn t_sched_period(tun: &Tunables, nr: u32) -> u64;
    safe fn t_sched_slice(tun: &Tunables, nr: u32, w: u32, total: u64) -> u64;
    safe fn t_sleeper_credit(tun: &Tunables, w: u32, fair: bool, gentle: bool, normal: bool)
    -> u64;
    safe fn t_debt_limit(latency: u64, w: u32) -> u64;
    safe fn t_place_new(min_v: u64, parent_v: u64, vslice: u64) -> u64;
    safe fn t_rebase(v: u64, from: u64, to: u64) -> u64;
    safe fn t_clamp_credit(v: u64, min_v: u64, credit: u64) -> u64;
    safe fn t_clamp_debt(v: u64, min_v: u64, debt: u64) -> u64;
}

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const NICE_0: u32 = 1024;
/// The vruntime of a CPU that has been up for a while.
const NOW: u64 = 1 << 40;

/// struct tunables: its fields in the order of the list, and room to spare.
#[repr(C)]
struct Tunables([u64; 32]);

/// The defaults, with some values changed by name.
fn tunables(changes: &[(&str, u64)]) -> Tunables {
    let mut all = Tunables([0; 32]);
    for (slot, row) in all.0.iter_mut().zip(TUNABLES.iter()) {
        let change = changes.iter().find(|(name, _)| *name == row.name);
        *slot = change.map_or(row.dfl, |(_, value)| *value);
    }
    all
}

fn weight(nice: i32) -> u32 {
    t_task_weight(120 + nice, false)
}

/// The first `len` numbers of a list of C's.
fn c_list(list: *const List, len: usize) -> Vec<u64> {
    // SAFETY: the list in policy.c has one number for each row, and each_list_..
    // in tables.rs shows that there are `len` rows.
    unsafe { std::slice::from_raw_parts(list.cast(), len) }.to_vec()
}

#[test]
fn c_and_rust_read_the_same_features() {
    let rust: Vec<u64> = FEATURES.iter().map(|f| u64::from(f.dfl)).collect();
    assert_eq!(rust, c_list(&raw const t_feature_dfl, FEATURES.len()));
}

#[test]
fn c_and_rust_read_the_same_tunables() {
    let rust =
        |pick: fn(&scx_kin::tables::Tunable) -> u64| TUNABLES.iter().map(pick).collect::<Vec<_>>();
    assert_eq!(
        rust(|t| t.dfl),
        c_list(&raw const t_tunable_dfl, TUNABLES.len())
    );
    assert_eq!(
        rust(|t| t.min),
        c_list(&raw const t_tunable_min, TUNABLES.len())
    );
    assert_eq!(
        rust(|t| t.max),
        c_list(&raw const t_tunable_max, TUNABLES.len())
    );
}

#[test]
fn c_and_rust_read_the_same_domain_flags() {
    let levels: Vec<u64> = DOMAIN_FLAGS.iter().map(|f| f.levels).collect();
    let dfl: Vec<u64> = DOMAIN_FLAGS.iter().map(|f| f.dfl).collect();
    assert_eq!(levels, c_list(&raw const t_flag_levels, DOMAIN_FLAGS.len()));
    assert_eq!(dfl, c_list(&raw const t_flag_dfl, DOMAIN_FLAGS.len()));
    assert!(levels.contains(&0b1111), "none is spelled ON_ALL any more");
}

#[test]
fn c_and_rust_lay_out_the_same_structs() {
    let rust = [
        8 * TUNABLES.len(),
        balance::WAKEES_SIZE,
        newidle::NEWIDLE_SIZE,
    ];
    assert_eq!(
        rust.map(|size| size as u64)[..],
        c_list(&raw const t_sizes, 3)
    );
    assert!(rust[0] <= size_of::<Tunables>(), "room for all of them");
}

#[test]
fn every_power_of_two_opens_a_bucket_until_the_last() {
    let last = HIST_BUCKETS as u32 - 1;
    assert_eq!((t_hist_bucket(0), t_hist_bucket(1)), (0, 0));
    for b in 1..64 {
        assert_eq!(t_hist_bucket(1 << b), b.min(last));
        assert_eq!(t_hist_bucket((1 << b) - 1), (b - 1).min(last));
    }
    assert_eq!(t_hist_bucket(u64::MAX), last);
}

#[test]
fn the_first_cpu_of_a_mask_word_is_its_lowest_bit() {
    for cpu in 0..64 {
        assert_eq!(t_first_bit(1 << cpu), cpu);
        assert_eq!(t_first_bit(u64::MAX << cpu), cpu, "others behind it");
    }
}

#[test]
fn law_bits_are_counted_wherever_they_are() {
    assert_eq!((t_count_bits(0), t_count_bits(u64::MAX)), (0, 64));
    for n in 0..64 {
        assert_eq!(t_count_bits(1 << n), 1, "bit {n} alone");
        assert_eq!(t_count_bits(!(1 << n)), 63, "all but bit {n}");
        assert_eq!(t_count_bits(u64::MAX >> n), 64 - n);
    }
    let mut seed = 3;
    for _ in 0..100_000 {
        let word = random(&mut seed);
        assert_eq!(t_count_bits(word), word.count_ones(), "{word:#x}");
    }
}

#[test]
fn time_order_survives_wraparound() {
    assert!(t_time_is_before(u64::MAX, 1));
    assert!(!t_time_is_before(1, u64::MAX));
    assert!(!t_time_is_before(7, 7));
}

#[test]
fn a_step_of_nice_is_a_tenth_of_the_cpu() {
    assert_eq!((weight(-20), weight(0), weight(19)), (88761, 1024, 15));
    assert_eq!(
        t_task_weight(120, true),
        3,
        "SCHED_IDLE, whatever its nice value"
    );
    for nice in -20..19 {
        let ratio = f64::from(weight(nice)) / f64::from(weight(nice + 1));
        assert!((1.16..1.34).contains(&ratio), "nice {nice}: {ratio}");
    }
    assert_eq!(
        weight(40),
        weight(19),
        "out of range: the last, not beyond the table"
    );
}

#[test]
fn virtual_time_of_a_heavy_task_is_slow() {
    // 10 ms x 1024 / 1024, / 335 (nice 5), / 3121 (nice -5), by hand
    assert_eq!(t_calc_delta_fair(10 * MS, NICE_0), 10_000_000);
    assert_eq!(t_calc_delta_fair(10 * MS, weight(5)), 30_567_164);
    assert_eq!(t_calc_delta_fair(10 * MS, weight(-5)), 3_280_999);
    assert_eq!(
        t_calc_delta_fair(10 * MS, 0),
        10_240_000_000,
        "no division by zero"
    );
}

#[test]
fn the_period_stretches_when_slices_would_be_too_short() {
    // 24 ms hold eight slices of 3 ms; a ninth makes 27.
    let tun = tunables(&[]);
    assert_eq!(t_sched_period(&tun, 1), 24 * MS);
    assert_eq!(t_sched_period(&tun, 8), 24 * MS);
    assert_eq!(t_sched_period(&tun, 9), 27 * MS);
}

#[test]
fn a_slice_is_the_task_s_part_of_the_period() {
    let tun = tunables(&[]);
    assert_eq!(
        t_sched_slice(&tun, 1, NICE_0, 1024),
        24 * MS,
        "alone: all of it"
    );
    assert_eq!(t_sched_slice(&tun, 2, NICE_0, 2048), 12 * MS);
    // nice 0 beside nice 5: 24 ms x 1024 / 1359; and 24 ms x 335 / 1359
    assert_eq!(t_sched_slice(&tun, 2, NICE_0, 1359), 18_083_885);
    assert_eq!(t_sched_slice(&tun, 2, weight(5), 1359), 5_916_114);
    // 24 ms x 15 / 1039 is 346 us: less than the minimum
    assert_eq!(t_sched_slice(&tun, 2, weight(19), 1039), 3 * MS);
}

#[test]
fn sleepers_get_a_latency_or_half_or_nothing() {
    // 2.6.32 place_entity(): thresh = latency, >>= 1 if gentle; not weighed.
    let tun = tunables(&[]);
    for nice in [-20, 0, 19] {
        let credit = |fair, gentle| t_sleeper_credit(&tun, weight(nice), fair, gentle, false);
        assert_eq!(credit(true, false), 24 * MS);
        assert_eq!(credit(true, true), 12 * MS);
        assert_eq!(credit(false, false), 0);
        assert_eq!(credit(false, true), 0);
    }
    let odd = tunables(&[("sched_latency_ns", 100_001)]);
    assert_eq!(t_sleeper_credit(&odd, NICE_0, true, true, false), 50_000);
}

#[test]
fn a_normalized_credit_is_the_sleeper_s_own_time() {
    // 24 ms x 1024 / 335 (nice 5), / 3121 (nice -5), / 15 (nice 19); gentle halves last.
    let tun = tunables(&[]);
    let credit = |w, gentle| t_sleeper_credit(&tun, w, true, gentle, true);
    assert_eq!(credit(NICE_0, false), 24 * MS);
    assert_eq!(credit(weight(5), false), 73_361_194);
    assert_eq!(credit(weight(5), true), 36_680_597);
    assert_eq!(credit(weight(-5), false), 7_874_399);
    assert_eq!(credit(weight(-5), true), 3_937_199);
    assert_eq!(credit(weight(19), false), 1_638_400_000);
    assert_eq!(credit(0, false), 24_576_000_000, "no division by zero");
    assert_eq!(t_sleeper_credit(&tun, weight(5), false, false, true), 0);
}

#[test]
fn a_sched_idle_sleeper_gets_a_min_granularity_and_never_weighed() {
    // 6.1 place_entity(): thresh = min_granularity for an idle entity. 2.6.32 does
    // not normalize SCHED_IDLE; by its weight of 3 it would be 3 ms x 341.
    let idle = t_task_weight(120, true);
    let tun = tunables(&[("min_granularity_ns", 5 * MS)]);
    for normalized in [false, true] {
        let credit = |fair, gentle| t_sleeper_credit(&tun, idle, fair, gentle, normalized);
        assert_eq!(credit(true, false), 5 * MS);
        assert_eq!(credit(true, true), 2_500_000);
        assert_eq!(credit(false, true), 0);
    }
}

#[test]
fn a_sleeper_keeps_what_it_is_owed_up_to_the_credit() {
    let place = |v| t_clamp_credit(v, NOW, 12 * MS);
    assert_eq!(
        place(NOW - 5 * MS),
        NOW - 5 * MS,
        "a short sleep: its own vruntime"
    );
    assert_eq!(
        place(NOW - 1000 * MS),
        NOW - 12 * MS,
        "a long one: the credit"
    );
    assert_eq!(place(NOW + 3 * MS), NOW + 3 * MS, "debt is not forgiven");
}

#[test]
fn debt_is_bounded_by_weight_and_absolutely() {
    assert_eq!(t_debt_limit(24 * MS, NICE_0), 96 * MS, "four latencies");
    assert_eq!(
        t_debt_limit(24 * MS, weight(-5)),
        31_497_596,
        "96 ms x 1024 / 3121"
    );
    assert_eq!(t_debt_limit(24 * MS, weight(19)), 500 * MS, "not 6.5 s");
    assert_eq!(t_clamp_debt(NOW + 900 * MS, NOW, 500 * MS), NOW + 500 * MS);
    assert_eq!(t_clamp_debt(NOW + 100 * MS, NOW, 500 * MS), NOW + 100 * MS);
}

#[test]
fn a_new_task_waits_a_slice_or_what_its_parent_owes() {
    assert_eq!(t_place_new(NOW, NOW - 4 * MS, 12 * MS), NOW + 12 * MS);
    assert_eq!(t_place_new(NOW, NOW + 40 * MS, 12 * MS), NOW + 40 * MS);
}

#[test]
fn a_move_carries_lag_between_clocks_however_far_apart() {
    assert_eq!(
        t_rebase(1_000, 1_500, 9_000_000),
        8_999_500,
        "owed 500 here and there"
    );
    assert_eq!(t_rebase(NOW + 7, NOW, 3), 10);
    let there = t_rebase(NOW - 5 * MS, NOW, 77);
    assert_eq!(t_rebase(there, 77, NOW), NOW - 5 * MS, "and back again");
}

/// xorshift: the laws below run over many cases, the same each time.
fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[test]
fn law_no_placement_leaves_the_bounds() {
    let mut seed = 7;
    for _ in 0..100_000 {
        let min = random(&mut seed);
        let v = min.wrapping_add_signed((random(&mut seed) as i64) >> 20);
        let w = weight((random(&mut seed) % 40) as i32 - 20);
        let latency = MS + random(&mut seed) % (1000 * MS);
        let tun = tunables(&[("sched_latency_ns", latency)]);
        let bits = random(&mut seed);
        let credit = t_sleeper_credit(&tun, w, bits & 1 == 0, bits & 2 == 0, bits & 4 == 0);
        let debt = t_debt_limit(latency, w);
        let placed = t_clamp_debt(t_clamp_credit(v, min, credit), min, debt);
        let lag = min.wrapping_sub(placed) as i64;
        assert!(
            lag <= credit as i64 && lag >= -(debt as i64),
            "{v} at {min}: {lag}"
        );
    }
}

#[test]
fn law_shares_follow_weights() {
    // Pick the least vruntime, run it for its slice, charge it: 10 s of one CPU.
    let tun = tunables(&[]);
    let weights = [weight(0), weight(5), weight(-5), weight(10)];
    let total: u64 = weights.iter().map(|w| u64::from(*w)).sum();
    let (mut v, mut ran) = ([NOW; 4], [0u64; 4]);
    while ran.iter().sum::<u64>() < 10_000 * MS {
        let first = (0..4).min_by_key(|i| v[*i]).unwrap();
        let slice = t_sched_slice(&tun, 4, weights[first], total);
        ran[first] += slice;
        v[first] += t_calc_delta_fair(slice, weights[first]);
    }
    let time: u64 = ran.iter().sum();
    for (ran, w) in ran.iter().zip(weights) {
        let due = time * u64::from(w) / total;
        // No task is further from its due than two periods.
        assert!(ran.abs_diff(due) < 48 * MS, "weight {w}: {ran} of {due}");
    }
}
