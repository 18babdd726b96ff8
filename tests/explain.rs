// SPDX-License-Identifier: GPL-2.0-only
//! What `explain` makes of made-up samples.

use std::collections::BTreeMap;

use scx_kin::explain::explain;
use scx_kin::hist::Hist;
use scx_kin::metrics::{Counted, Sample};
use scx_kin::settings::Settings;
use scx_kin::tables::{COUNTERS, FEATURES, HIST_BUCKETS, HISTS, WHATIF_ROWS, WHATIFS};
use scx_kin::topology::{Llc, Machine, Node};
use scx_kin::whatif::{off_rules, table};

/// A sample of 2 s with these counters.
fn sample(counters: &[(&str, u64)]) -> Sample {
    let mut sample = Sample {
        seconds: 2.0,
        ..Sample::default()
    };
    for (name, n) in counters {
        assert!(COUNTERS.iter().any(|row| row.name == *name), "{name}");
        sample.counters.insert((*name).into(), *n);
    }
    sample
}

/// A sample in which everything moved.
fn full() -> Sample {
    let hist = Hist((0..HIST_BUCKETS as u64).collect());
    let read = Counted {
        counters: (0..COUNTERS.len() as u64).map(|n| n * n + 1).collect(),
        hists: HISTS.iter().map(|_| hist.clone()).collect(),
        whatif: (0..WHATIF_ROWS * WHATIFS.len())
            .map(|i| 1000 - (i % WHATIFS.len()) as u64 * 100)
            .collect(),
    };
    Sample::new(1, 7, 5.0, read)
}

fn settings(words: &[&str]) -> Settings {
    let mut settings = Settings::default();
    settings.apply(words).expect("words");
    settings
}

/// Every switch and flag off, and every one on.
fn extremes() -> [Settings; 2] {
    let flags = |mask| vec![mask; Settings::default().sd.len()];
    [0, u64::MAX].map(|mask| Settings {
        features: mask,
        sd: flags(mask),
        ..Settings::default()
    })
}

/// So many nodes with so many LLCs each.
fn machine(nodes: usize, llcs: usize) -> Machine {
    let node = |id| Node {
        id,
        distance: vec![10; nodes],
    };
    let llc = |id| Llc {
        id,
        clusters: vec![],
        node: id / llcs,
        cores: vec![vec![id]],
        order: vec![],
        order_node: llcs,
    };
    Machine {
        nr_cpus: nodes * llcs,
        cpus: vec![],
        llcs: (0..nodes * llcs).map(llc).collect(),
        nodes: (0..nodes).map(node).collect(),
    }
}

/// The story on one line, so that a sentence can be looked for.
fn told(sample: &Sample, settings: &Settings) -> String {
    told_on(&machine(2, 2), sample, settings)
}

fn told_on(machine: &Machine, sample: &Sample, settings: &Settings) -> String {
    let text = explain(sample, settings, machine);
    check(&text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn check(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80 && line.is_ascii(), "{line:?}");
        assert_eq!(line.trim_end(), line);
    }
    for wrong in ["NaN", "inf ", "inf%", "{", "}"] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
}

/// `sample` with a rule that was asked so often and differed so often, to `to`.
fn tried(mut sample: Sample, rule: &str, asked: u64, differed: u64, to: &str) -> Sample {
    let numbers = [("asked", asked), ("differed", differed), (to, differed)];
    let row: BTreeMap<String, u64> = numbers.map(|(k, n)| (k.into(), n)).into();
    sample.whatif.insert(rule.into(), row);
    sample
}

#[test]
fn a_machine_where_nothing_moved_is_told_so() {
    let text = told(&Sample::default(), &Settings::default());
    assert!(text.contains("Nothing moved"), "{text}");
    assert!(text.contains("0 wakeups/s, 0 runs/s") && !text.contains('%'));
}

#[test]
fn a_full_story_fits_the_terminal_under_any_setting() {
    for set in [Settings::default()].into_iter().chain(extremes()) {
        told(&full(), &set);
    }
    let text = told(&full(), &Settings::default());
    for heading in [
        "Setting 7, 5.0 s",
        "Where wakeups went",
        "Why wakeups found no idle CPU",
        "Who preempted whom",
        "What CPUs ran next",
        "How long it took",
        "What the rules that are off would have changed",
        "Something to try",
    ] {
        assert!(text.contains(heading), "{heading}: {text}");
    }
}

#[test]
fn any_counter_may_move_alone() {
    for row in COUNTERS.iter() {
        for set in [Settings::default()].into_iter().chain(extremes()) {
            told(&sample(&[(row.name, 1)]), &set);
        }
    }
}

#[test]
fn what_is_not_the_default_is_named() {
    let moved = sample(&[("select_prev_idle", 1)]);
    let text = told(&moved, &settings(&["NO_IDLE_CORE", "imbalance_pct=125"]));
    let words = "Changed from the defaults: NO_IDLE_CORE, imbalance_pct=125.";
    assert!(text.contains(words), "{text}");
    assert!(told(&moved, &Settings::default()).contains("All settings are the defaults."));
}

#[test]
fn wakeups_are_told_by_way_out_largest_first_and_small_ones_summed() {
    let moved = sample(&[
        ("select_prev_idle", 600),
        ("select_idle_core", 196),
        ("select_recent", 2),
        ("select_idle_node", 2),
        ("select_sync", 100),
        ("select_busy_prev", 100),
        ("select_fork_idle", 3),
        ("select_fork_load", 1),
    ]);
    let text = told(&moved, &Settings::default());
    let sum = "Of 1,000 wakeups, 80 % got an idle CPU, 10 % the CPU of a waker about to leave \
               it, and 10 % were queued on a busy CPU: 60 % whose previous CPU was idle 20 % ";
    assert!(text.contains(sum), "{text}");
    assert!(text.contains("0.4 % in 2 other ways"), "{text}");
    assert!(text.contains("Of 4 new tasks, 75 % began on an idle CPU"));
    assert!(text.contains("500 wakeups/s"));
}

#[test]
fn why_no_idle_cpu_was_found_follows_the_settings() {
    let busy = sample(&[
        ("select_busy_prev", 60),
        ("select_busy_waker", 40),
        ("scan_words", 250),
    ]);
    let text = told(&busy, &Settings::default());
    let all = "100 wakeups were queued on a busy CPU. All of them searched the whole LLC";
    assert!(text.contains(all), "{text}");
    assert!(text.contains("They looked at other LLCs of the node too (NODE:SD_BALANCE_WAKE)"));
    assert!(text.contains("SYSTEM:SD_BALANCE_WAKE is off"));
    assert!(text.contains("read 2.5 words of CPU masks"));
    let small = told_on(&machine(1, 1), &busy, &Settings::default());
    assert!(!small.contains("SD_BALANCE_WAKE)") && !small.contains("SD_BALANCE_WAKE is off"));
    let off = told(&busy, &settings(&["NO_IDLE_SIBLING"]));
    assert!(
        off.contains("The search of the LLC is switched off"),
        "{off}"
    );

    let limited = sample(&[
        ("select_busy_prev", 100),
        ("scan_limited", 30),
        ("sync_doubted", 5),
        ("wake_wide", 1),
        ("select_sync", 100),
    ]);
    let text = told(&limited, &settings(&["SIS_UTIL", "WAKE_WIDE"]));
    assert!(
        text.contains("SIS_UTIL cut short or left out 30 searches"),
        "{text}"
    );
    assert!(
        text.contains("At least 70 of them (70 %) searched"),
        "{text}"
    );
    assert!(text.contains("100 wakeups (50 % of all) looked for none: SYNC_STACK"));
    assert!(text.contains("5 sync wakeups were not believed"));
    assert!(text.contains("sync_overlap_ns (20us)"));
    assert!(text.contains("For 1 wakeup (0.5 % of all) WAKE_WIDE left"));
}

#[test]
fn refusals_to_preempt_name_the_rule_and_its_number() {
    let moved = sample(&[
        ("preempt_local", 10),
        ("preempt_kick", 10),
        ("preempt_granularity", 50),
        ("preempt_protected", 30),
        ("preempt_running", 5),
        ("enqueue_kthread", 1),
        ("tick_preempt", 2),
        ("yield_skip", 1),
        ("yield_alone", 3),
    ]);
    let text = told(&moved, &settings(&["wakeup_granularity_ns=2ms"]));
    assert!(text.contains("Of 100 wakees that had to queue behind a running task, 20 %"));
    assert!(text.contains("50 % refused: the wakee's lead was below wakeup_granularity_ns (2ms)"));
    assert!(text.contains("30 % refused: the running task has not had min_granularity_ns (3ms)"));
    assert!(text.contains("Of the 20 wakees that preempted, 25 % preempted for their shorter"));
    assert!(text.contains("1 wakeup of per-CPU kernel threads"));
    assert!(text.contains("The tick ended 2 runs"));
    assert!(text.contains("Of 4 sched_yield() calls 25 % gave way"));
    let off = told(&moved, &settings(&["NO_WAKEUP_PREEMPTION"]));
    assert!(off.contains("WAKEUP_PREEMPTION is off"));
}

#[test]
fn pulls_and_balance_name_their_bases() {
    let moved = sample(&[
        ("dispatch_pull_llc", 10),
        ("dispatch_next_buddy", 10),
        ("newidle_short", 70),
        ("newidle_nothing", 20),
        ("pull_hot", 4),
        ("handover_kick", 3),
        ("dispatch_handed", 1),
        ("balance_even", 9),
        ("balance_node", 1),
        ("dispatch_balance", 1),
        ("move_llc", 2),
        ("move_node", 1),
    ]);
    let text = told(&moved, &Settings::default());
    let idle = "Of 100 times that a CPU was about to go idle, 10 % ended with a task pulled \
                (migration_cost_ns=500us): 70 % new-idle pulls not tried: this CPU's idle times";
    assert!(text.contains(idle), "{text}");
    assert!(text.contains("At 3 ticks a CPU with waiting tasks woke an idle one"));
    assert!(text.contains("1 task was taken over"), "{text}");
    assert!(
        text.contains("Of 10 looks at a level by busy CPUs, 0 % found"),
        "{text}"
    );
    assert!(
        text.contains("4 waiting tasks passed over by a pull"),
        "{text}"
    );
    assert!(
        text.contains("Of 0 runs, 0 % began in another LLC"),
        "{text}"
    );
}

#[test]
fn rules_that_are_off_are_told_by_their_effect() {
    let mut moved = tried(full(), "RECENT_CPU", 3200, 100, "llc");
    moved.whatif.retain(|name, _| name == "RECENT_CPU");
    let moved = tried(moved, "NODE:SD_PREFER_SIBLING", 40, 20, "node");
    let moved = tried(moved, "SIS_UTIL", 4000, 1, "prev");
    let moved = tried(moved, "WAKEUP_SYNC", 3200, 40, "yes");
    let moved = tried(moved, "IDLE_SMT", 50, 0, "prev");
    let moved = tried(moved, "LAST_BUDDY", 29, 29, "yes");
    let moved = tried(moved, "IDLE_CORE", 900, 900, "llc");
    let text = told(&moved, &Settings::default());
    let first = "RECENT_CPU, now off, would have decided 3.1 % of 3,200 sampled decisions \
                 otherwise: to another CPU of the previous one's LLC. (Try the CPU";
    assert!(text.contains(first), "{text}");
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(place("RECENT_CPU, now") < place("WAKEUP_SYNC, now"));
    assert!(place("WAKEUP_SYNC, now") < place("NODE:SD_PREFER_SIBLING, now"));
    assert!(text.contains("1.2 % of 3,200 sampled decisions otherwise: by doing what was left"));
    assert!(text.contains("Less than 1 % of what they were asked: SIS_UTIL."));
    assert!(text.contains("Nothing at all: IDLE_SMT."));
    assert!(text.contains("Too few decisions to tell (fewer than 30): LAST_BUDDY, "));
    assert!(!text.contains("IDLE_CORE, now"), "it is on: {text}");
    let hint = "`sudo scx_kin set RECENT_CPU`, then run your load again";
    assert!(text.contains(hint), "{text}");
    assert!(text.contains("`sudo scx_kin set NO_RECENT_CPU` takes it back"));
}

#[test]
fn a_hint_for_a_flag_is_a_word_that_set_takes() {
    let moved = sample(&[("select_prev_idle", 1)]);
    let moved = tried(moved, "SYSTEM:SD_BALANCE_WAKE", 100, 50, "system");
    let text = told(&moved, &Settings::default());
    assert!(
        text.contains("`sudo scx_kin set SYSTEM:+SD_BALANCE_WAKE`"),
        "{text}"
    );
    assert!(
        text.contains("`sudo scx_kin set SYSTEM:-SD_BALANCE_WAKE` takes"),
        "{text}"
    );
    for rule in off_rules(&moved, &Settings::default()) {
        settings(&[&rule.word()]);
    }
}

#[test]
fn rules_that_are_not_tried_are_no_guess() {
    let moved = sample(&[("select_prev_idle", 1)]);
    let text = told(&moved, &settings(&["whatif_interval=0"]));
    assert!(text.contains("whatif_interval is 0: they are not tried."));
    assert!(!text.contains("Something to try"));
    let [_, all_on] = extremes();
    assert!(!told(&moved, &all_on).contains("rules that are off"));
}

#[test]
fn the_table_has_the_rules_that_are_off_and_were_tried() {
    let set = Settings::default();
    assert_eq!(table(&Sample::default(), &set), "");
    let text = table(&full(), &set);
    check(&text);
    assert!(text.starts_with("what if it were on"));
    let off = |name: &str| {
        text.lines()
            .any(|line| line.starts_with(&format!("{name} ")))
    };
    for f in FEATURES.iter() {
        assert_eq!(off(f.name), !f.dfl, "{}", f.name);
    }
    let one = tried(Sample::default(), "RECENT_CPU", 200, 20, "llc");
    assert!(
        table(&one, &set)
            .ends_with("RECENT_CPU                         200      10 %  llc 100 %\n")
    );
}

#[test]
fn the_what_if_table_is_cut_as_the_counters_are() {
    let earlier = tried(Sample::default(), "RECENT_CPU", 100, 10, "llc");
    let later = tried(Sample::default(), "RECENT_CPU", 150, 30, "llc");
    let later = tried(later, "IDLE_SMT", 5, 1, "prev");
    let since = later.since(&earlier);
    assert_eq!(since.whatif["RECENT_CPU"]["asked"], 50);
    assert_eq!(since.whatif["RECENT_CPU"]["llc"], 20);
    assert_eq!(since.whatif["IDLE_SMT"]["asked"], 5);
    assert!(later.since(&later).whatif.is_empty());
    let json = serde_json::to_value(&since).expect("JSON");
    assert_eq!(json["whatif"]["RECENT_CPU"]["differed"], 20);
    let back: Sample = serde_json::from_value(json).expect("a sample");
    assert_eq!(back.whatif, since.whatif);
}
