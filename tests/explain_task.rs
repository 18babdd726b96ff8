// SPDX-License-Identifier: GPL-2.0-only
//! What `explain --pid` makes of made-up watches.

use scx_kin::explain_task::explain_task;
use scx_kin::hist::Hist;
use scx_kin::settings::Settings;
use scx_kin::tables::{COUNTERS, HIST_BUCKETS, HISTS};
use scx_kin::task::Task;
use scx_kin::topology::{Cpu, Llc, Machine, Node};
use scx_kin::watch::Watched;

const MS: u64 = 1_000_000;

/// Two nodes of two LLCs of four CPUs, or one of each.
fn machine(groups: usize) -> Machine {
    let nr_cpus = 4 * groups * groups;
    let cpu = |id| Cpu {
        id,
        online: true,
        core: id,
        llc: id / 4,
        node: id / (4 * groups),
        smt_next: id,
    };
    let llc = |id: usize| Llc {
        id,
        clusters: vec![],
        node: id / groups,
        cores: (4 * id..4 * id + 4).map(|cpu| vec![cpu]).collect(),
        order: vec![],
        order_node: groups,
    };
    let node = |id| Node {
        id,
        distance: vec![10; groups],
    };
    Machine {
        nr_cpus,
        cpus: (0..nr_cpus).map(cpu).collect(),
        llcs: (0..groups * groups).map(llc).collect(),
        nodes: (0..groups).map(node).collect(),
    }
}

/// A watch of 4 s with these (CPU, runs, ns) and these counters.
fn watched(on: &[(usize, u64, u64)], counters: &[(&str, u64)]) -> Watched {
    let mut cpus = [(0, 0); 16];
    for (cpu, runs, ns) in on {
        cpus[*cpu] = (*runs, *ns);
    }
    let count = |name: &str| counters.iter().find(|(n, _)| *n == name);
    let counts = COUNTERS
        .iter()
        .map(|row| count(row.name).map_or(0, |(_, n)| *n));
    let mut waits = Hist(vec![0; HIST_BUCKETS]);
    waits.0[20] = on.iter().map(|(_, runs, _)| runs).sum();
    let hists = HISTS.iter().map(|_| waits.clone());
    Watched::new(42, 4.0, cpus.into_iter(), counts.collect(), hists)
}

fn task() -> Task {
    Task {
        pid: 42,
        name: "worker".into(),
        threads: 3,
        ..Task::default()
    }
}

/// The story on one line, so that a sentence can be looked for.
fn told(seen: &Watched, before: &Task, after: Option<&Task>, machine: &Machine) -> String {
    let text = explain_task(seen, before, after, &Settings::default(), machine);
    for line in text.lines() {
        assert!(line.chars().count() <= 80 && line.is_ascii(), "{line:?}");
    }
    for wrong in ["NaN", "inf", "{", "}"] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_task_of_which_nothing_was_seen_is_told_why() {
    let (none, m) = (watched(&[], &[]), machine(1));
    let slept = told(&none, &task(), Some(&task()), &m);
    assert!(slept.contains("worker (pid 42, a process of 3 threads), watched for 4.0 s"));
    assert!(slept.contains("it slept all the time"), "{slept}");

    let ended = told(&none, &task(), None, &m);
    assert!(ended.contains("It ended meanwhile.") && ended.contains("did not run before it ended"));

    let realtime = Task {
        realtime: 3,
        ..task()
    };
    let text = told(&none, &realtime, Some(&realtime), &m);
    assert!(
        text.contains("a realtime or deadline task, which is not scx_kin's"),
        "{text}"
    );

    let held = Task {
        cpu_ns: 4000 * MS,
        ..task()
    };
    let text = told(&none, &task(), Some(&held), &m);
    assert!(
        text.contains("By /proc it ran for 4.0s more: in runs that had not ended"),
        "{text}"
    );
    assert!(!text.contains("slept"));
}

#[test]
fn a_thread_that_stays_on_one_cpu_is_told_so() {
    let thread = Task {
        threads: 0,
        ..task()
    };
    let mut seen = watched(&[(3, 10, 1000 * MS)], &[]);
    seen.slept = 10;
    let text = told(&seen, &thread, Some(&thread), &machine(1));
    assert!(text.contains("worker (pid 42, a thread)"), "{text}");
    let ran = "It ran for 1.0s in 10 runs: 250ms of CPU time per second, 100ms a run on average.";
    assert!(text.contains(ran), "{text}");
    assert!(
        text.contains("On 1 CPU: 100 % CPU 3, 10 runs It never left that CPU."),
        "{text}"
    );
    assert!(!text.contains("by LLC") && !text.contains("By /proc"));
    assert!(
        text.contains("Of 10 runs that ended, because 100 % it went to sleep"),
        "{text}"
    );
    assert!(text.contains("No wakeup asked for a CPU."));
    assert!(text.contains("No wakee was queued behind a running task"));
}

#[test]
fn a_process_all_over_the_machine_is_told_by_cpu_llc_and_node() {
    let on: Vec<_> = (0..16)
        .map(|cpu| (cpu, 10, (1 + cpu as u64) * MS))
        .collect();
    let counters = [
        ("move_llc", 16),
        ("move_node", 8),
        ("select_prev_idle", 30),
        ("select_busy_prev", 10),
        ("preempt_local", 1),
        ("preempt_granularity", 3),
    ];
    let mut seen = watched(&on, &counters);
    (seen.slept, seen.expired, seen.preempted, seen.outranked) = (80, 40, 20, 20);
    let some = Task {
        realtime: 1,
        ..task()
    };
    let text = told(&seen, &some, Some(&some), &machine(2));
    assert!(text.contains("1 of its threads, being realtime"), "{text}");
    assert!(text.contains("On 16 CPUs: 12 % CPU 15 (LLC 3, node 1), 10 runs 11 % CPU 14"));
    assert!(text.contains("10 others, 100 runs"), "{text}");
    assert!(
        text.contains("Of its time by LLC: LLC 0 7.4 %, LLC 1 19 %,"),
        "{text}"
    );
    assert!(
        text.contains("Of its time by node: node 0 26 %, node 1 74 %."),
        "{text}"
    );
    assert!(text.contains("another LLC of the node 16 times (10 % of its runs), and from another"));
    let ends = "50 % it went to sleep 25 % its slice was over 12 % a wakee preempted it 12 % a";
    assert!(text.contains(ends), "{text}");
    assert!(
        text.contains("Of 40 wakeups, 75 % got an idle CPU"),
        "{text}"
    );
    assert!(text.contains("75 % refused: the wakee's lead was below wakeup_granularity_ns (4ms)"));
    assert!(
        text.contains("From wakeup to running: half within 1.6ms"),
        "{text}"
    );
}

#[test]
fn a_cpu_that_this_machine_does_not_show_is_no_error() {
    let seen = watched(&[(15, 1, MS), (2, 1, 0)], &[]);
    let text = told(&seen, &task(), None, &machine(1));
    assert!(text.contains("It ended meanwhile."));
    assert!(
        text.contains("100 % CPU 15, 1 run 0 % CPU 2, 1 run"),
        "{text}"
    );
}

#[test]
fn a_watch_travels_by_name() {
    let seen = watched(&[(3, 10, MS)], &[("select_sync", 2)]);
    let json = serde_json::to_value(&seen).expect("JSON");
    assert_eq!(json["cpus"]["3"]["runs"], 10);
    assert_eq!(json["counters"]["select_sync"], 2);
    let back: Watched = serde_json::from_value(json).expect("a watch");
    assert_eq!((back.cpus, back.counters), (seen.cpus, seen.counters));
}
