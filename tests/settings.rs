// SPDX-License-Identifier: GPL-2.0-only
//! Scaling with the number of CPUs, rules of which one form may be on, and the
//! built-in presets against figures worked out by hand.

use scx_kin::presets::{names, words_of};
use scx_kin::settings::Settings;
use scx_kin::tables::{TUNABLES, Tunable, tunable_index};

fn with(words: &[&str]) -> Settings {
    let mut set = Settings::default();
    set.apply(words).expect("words");
    set
}

#[test]
fn defaults_are_scaled_as_the_kernel_scales_them() {
    // 6, 0.75 and 1 ms times 1 + log2(CPUs), of which at most 8 count
    let on = |cpus| Settings::default_for(cpus).tunables[..3].to_vec();
    assert_eq!(on(1), [6_000_000, 750_000, 1_000_000]);
    assert_eq!(on(2), [12_000_000, 1_500_000, 2_000_000]);
    assert_eq!(on(4), [18_000_000, 2_250_000, 3_000_000]);
    assert_eq!(on(8), [24_000_000, 3_000_000, 4_000_000]);
    assert_eq!(on(64), on(8));
    assert_eq!(Settings::default().tunables[3], TUNABLES[3].dfl);
}

#[test]
fn a_scaling_and_back_gives_the_same_numbers() {
    for cpus in 1..=64 {
        for value in ["7ms", "123457ns", "1s", "333333333ns"] {
            let mut set = Settings::default_for(cpus);
            set.apply(&[format!("sched_latency_ns={value}")])
                .expect("word");
            set.apply(&["min_granularity_ns=100us"]).expect("word");
            let before = set.clone();
            for word in ["none", "linear", "log-uncapped", "none", "log"] {
                let word = format!("tunable_scaling={word}");
                set.apply(&[word]).expect("word");
                let fits = |(t, v): (&Tunable, &u64)| (t.min..=t.max).contains(v);
                assert!(TUNABLES.iter().zip(&set.tunables).all(fits), "{set}");
            }
            assert_eq!(set, before, "{cpus} CPUs, {value}");
        }
    }
}

#[test]
fn a_scaling_travels_in_words_and_shows_what_it_changed() {
    let dfl = Settings::default();
    let set = with(&["tunable_scaling=none", "sched_latency_ns=7ms"]);
    // from 8 CPUs to one: 24, 3 and 4 ms become 6, 0.75 and 1 ms
    let changes = [
        "tunable_scaling log -> none",
        "sched_latency_ns 24ms -> 7ms",
        "min_granularity_ns 3ms -> 750us",
        "wakeup_granularity_ns 4ms -> 1ms",
    ];
    assert_eq!(set.changes_since(&dfl), changes);
    let words = set.words_since(&dfl);
    assert_eq!(words, ["tunable_scaling=none", "sched_latency_ns=7ms"]);
    assert_eq!(with(&[&words.join(" ")]), set);
    assert_eq!(dfl.words_since(&set)[0], "tunable_scaling=log");
}

#[test]
fn of_two_forms_of_one_rule_one_is_on() {
    let dfl = Settings::default();
    let set = with(&["IDLE_SHARED_CACHE"]);
    let changes = ["IDLE_SHARED_CACHE off -> on", "IDLE_SIBLING on -> off"];
    assert_eq!(set.changes_since(&dfl), changes);
    let mut back = set.clone();
    back.apply(&["IDLE_SIBLING"]).expect("word");
    assert_eq!(back, dfl);
    back.apply(&["NO_IDLE_SIBLING"]).expect("word");
    assert!(!back.provides("IDLE_SHARED_CACHE"), "off turns nothing on");
}

/// A setting in which nothing is as in `set`.
fn opposite(set: &Settings) -> Settings {
    let mut other = set.clone();
    other.features = !set.features;
    other.sd.iter_mut().for_each(|mask| *mask = !*mask);
    let mut words: Vec<String> = vec!["tunable_scaling=linear".into()];
    for (t, value) in TUNABLES.iter().zip(&set.tunables) {
        let far = if *value == t.max { t.min } else { t.max };
        words.push(format!("{}={}", t.name, t.show(far)));
    }
    other.apply(&words).expect("words");
    other
}

fn preset(name: &str, cpus: usize) -> Settings {
    let mut set = opposite(&Settings::default_for(cpus));
    set.apply(&words_of(name).expect(name)).expect(name);
    set
}

#[test]
fn a_built_in_preset_leaves_nothing_as_it_was() {
    for name in names() {
        for cpus in [1, 4, 64] {
            let words = words_of(name).expect(name);
            let mut set = Settings::default_for(cpus);
            set.apply(&words).expect(name);
            let missing = preset(name, cpus).words_since(&set);
            assert_eq!(missing, [""; 0], "{name} does not say");
        }
    }
}

/// sched_latency, min_granularity, wakeup_granularity, migration_cost, in us.
fn figures(name: &str, cpus: usize) -> [u64; 4] {
    let set = preset(name, cpus);
    let rows = [
        "sched_latency_ns",
        "min_granularity_ns",
        "wakeup_granularity_ns",
        "migration_cost_ns",
    ];
    rows.map(|name| set.tunables[tunable_index(name).expect(name)] / 1000)
}

#[test]
fn a_preset_has_its_sources_numbers_on_any_machine() {
    // 5/1/1 ms times 1 + log2(CPUs): 3 for 4, 4 for 8, 7 for 64
    assert_eq!(figures("cfs-2.6.32", 4), [15_000, 3000, 3000, 500]);
    assert_eq!(figures("cfs-2.6.32", 8), [20_000, 4000, 4000, 500]);
    assert_eq!(figures("cfs-2.6.32", 64), [35_000, 7000, 7000, 500]);
    // 6/0.75/1 ms times 3 for 4 CPUs, 4 for 8 and more
    assert_eq!(figures("cfs-6.1", 4), [18_000, 2250, 3000, 500]);
    assert_eq!(figures("cfs-6.1", 8), [24_000, 3000, 4000, 500]);
    assert_eq!(figures("cfs-6.1", 64), [24_000, 3000, 4000, 500]);
    // sysctls are not scaled
    let name = "tuned-throughput-performance";
    assert_eq!(figures(name, 4), [18_000, 10_000, 15_000, 500]);
    assert_eq!(figures(name, 64), [24_000, 10_000, 15_000, 500]);
    let name = "tuned-virtual-host";
    assert_eq!(figures(name, 8), [24_000, 10_000, 15_000, 5000]);
    let name = "tuned-latency-performance";
    assert_eq!(figures(name, 8), [24_000, 10_000, 4000, 5000]);
}

#[test]
fn a_preset_has_its_sources_rules() {
    let old = preset("cfs-2.6.32", 8);
    let late = preset("cfs-6.1", 8);
    for (rule, in_old, in_late) in [
        ("IDLE_SHARED_CACHE", true, false),
        ("IDLE_SIBLING", false, true),
        ("WA_IDLE", false, true),
        ("WAKE_WIDE", false, true),
        ("SYNC_LESS", true, false),
        ("SYNC_STACK", false, false),
        ("ADAPTIVE_GRAN", true, false),
        ("RUN_TO_PARITY", false, false),
        ("LAST_BUDDY", true, true),
        ("NEXT_BUDDY", false, false),
        ("GENTLE_FAIR_SLEEPERS", true, true),
        ("NODE:SD_BALANCE_WAKE", false, false),
        ("NODE:SD_PREFER_SIBLING", true, true),
        ("SMT:SD_PREFER_SIBLING", false, true),
        ("SYSTEM:SD_BALANCE_NEWIDLE", true, true),
        ("SYSTEM:SD_LOAD_BALANCE", true, true),
    ] {
        assert_eq!(old.provides(rule), in_old, "2.6.32 {rule}");
        assert_eq!(late.provides(rule), in_late, "6.1 {rule}");
    }
}

#[test]
fn default_is_the_default_and_off_is_off() {
    for cpus in [1, 2, 4, 8, 64] {
        let dfl = Settings::default_for(cpus);
        assert_eq!(preset("default", cpus).words_since(&dfl), [""; 0]);
        let off = preset("off", cpus);
        assert!(
            off.words_since(&dfl)
                .iter()
                .all(|word| { word.starts_with("NO_") || word.contains(":-") })
        );
        assert!(
            off.to_string().split(' ').all(|word| {
                word.starts_with("NO_") || word.contains(":-") || word.contains('=')
            })
        );
        assert_eq!(off.tunables, dfl.tunables);
    }
}

#[test]
fn one_preset_alone_warns() {
    let dfl = Settings::default();
    let since = |name| preset(name, 8).warnings_since(&dfl);
    for name in [
        "default",
        "off",
        "cfs-2.6.32",
        "cfs-6.1",
        "tuned-latency-performance",
    ] {
        assert_eq!(since(name), [""; 0], "{name}");
    }
    // 15 ms of lead against a gentle credit of 24 / 2 = 12 ms
    let warnings = since("tuned-throughput-performance");
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("wakeup_granularity_ns=15ms is not below 12ms"));
}
