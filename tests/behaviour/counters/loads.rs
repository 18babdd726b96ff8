// SPDX-License-Identifier: GPL-2.0-only
//! Loads, each made to drive some counters, and the settings that it takes.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::load::{Crew, burn, nr_cpus, pin, policy, run, timers_elsewhere};

const WHILE: Duration = Duration::from_millis(700);
const MS: Duration = Duration::from_millis(1);
/// A CPU that no load but its own is put on.
const HERE: usize = 1;

/// Something to do, and words for what it needs beside the defaults.
pub struct Load {
    pub name: &'static str,
    pub words: &'static str,
    pub run: fn(),
}

/// Believes a waker that an emulator keeps from its sleep for long.
const PATIENT: &str = "sync_overlap_ns=100ms";
/// Two tasks on a CPU are enough for buddies.
const BUDDIES: &str = "sched_latency_ns=6ms min_granularity_ns=3ms NO_WAKEUP_PREEMPTION NEXT_BUDDY";
/// New tasks stay with their parent, and have their turn soon.
const NO_FORK: &str = "SMT:-SD_BALANCE_FORK LLC:-SD_BALANCE_FORK NODE:-SD_BALANCE_FORK \
                       SYSTEM:-SD_BALANCE_FORK NO_START_DEBIT sched_latency_ns=4ms \
                       min_granularity_ns=1ms";

const fn load(name: &'static str, words: &'static str, run: fn()) -> Load {
    Load { name, words, run }
}

pub const LOADS: &[Load] = &[
    load("sockets", "SYSTEM:+SD_BALANCE_WAKE", || {
        drop(run("hackbench -g 1 -f 10 -l 60"));
    }),
    load("yields", "", || {
        drop(run("sysbench threads --threads=8 --time=1 run"));
    }),
    load("affinity", "", || {
        drop(run(
            "stress-ng --temp-path /tmp --affinity 4 --affinity-delay 1 --cpu 2 --fork 2 -t 2",
        ));
    }),
    load("hogs let go from one CPU", "", let_go),
    load(
        "the same, what ran lately staying",
        "CACHE_HOT migration_cost_ns=100ms",
        let_go,
    ),
    load("a sleeper beside a hog", "", || beside(1, |_| {})),
    load("sleepers beside two hogs", "", || beside(2, |_| {})),
    load("a batch sleeper beside a hog", "", || {
        beside(1, |_| policy(libc::SCHED_BATCH))
    }),
    load(
        "a sleeper below the granularity",
        "wakeup_granularity_ns=1s",
        || beside(1, |_| {}),
    ),
    load("a sleeper that overlaps little", "WAKEUP_OVERLAP", || {
        beside(1, |_| {})
    }),
    load(
        "a sleeper whose runs are short",
        "WAKEUP_RUNNING migration_cost_ns=10ms",
        || beside(2, |_| {}),
    ),
    load("a wakee that is next", BUDDIES, || beside(2, |_| {})),
    load(
        "a preempted hog that is next",
        "sched_latency_ns=6ms min_granularity_ns=3ms wakeup_granularity_ns=1ms LAST_BUDDY \
         NO_RUN_TO_PARITY",
        || beside(2, |_| {}),
    ),
    load("a sleeper beside an idle-policy hog", "", || {
        let _hog = Crew::hogs(1, |_| {
            pin(0, [HERE]);
            policy(libc::SCHED_IDLE);
        });
        let _sleeper = Crew::sleepers(1, MS / 10, 5 * MS, |_| pin(0, [HERE]));
        sleep(WHILE);
    }),
    load("a sleeper beside a realtime task", "", || {
        let _realtime = Crew::sleepers(1, 20 * MS, 20 * MS, |_| {
            pin(0, [HERE]);
            policy(libc::SCHED_FIFO);
        });
        let _sleeper = Crew::sleepers(1, MS / 10, 3 * MS, |_| pin(0, [HERE]));
        sleep(WHILE);
    }),
    load("a timer on an idle CPU", "", || {
        let _hog = Crew::hogs(1, |_| pin(0, [HERE]));
        let _waited = timers_elsewhere();
        sleep(WHILE);
    }),
    load(
        "more sleepers than CPUs",
        "SYSTEM:+SD_BALANCE_WAKE",
        sleepers,
    ),
    load(
        "the same, on the CPU before the last",
        "RECENT_CPU",
        sleepers,
    ),
    load(
        "the same, on the sibling",
        "IDLE_SMT NO_IDLE_CORE",
        sleepers,
    ),
    load("the same, looking at few CPUs", "SIS_UTIL", sleepers),
    load(
        "the same, by the slow path",
        "NO_IDLE_SIBLING LLC:+SD_BALANCE_WAKE SMT:+SD_BALANCE_WAKE",
        sleepers,
    ),
    load("the same, by today's gate", "NI_RANDOM", sleepers),
    // No idle time is as long as any pull.
    load(
        "the same, no idle time being long",
        "NI_RANDOM migration_cost_ns=0",
        sleepers,
    ),
    load(
        "a chain, by the walk",
        "IDLE_SHARED_CACHE NO_WA_WEIGHT SMT:+SD_PREFER_SIBLING",
        || chain(0, Duration::ZERO),
    ),
    load("a chain of wakers that sleep", PATIENT, || {
        chain(0, Duration::ZERO)
    }),
    load("a chain of wakers that run on", "sync_overlap_ns=0", || {
        chain(0, MS)
    }),
    load(
        "a chain that preempts at once",
        "WAKEUP_SYNC sync_overlap_ns=100ms",
        || chain(0, Duration::ZERO),
    ),
    load("a chain beside idle-policy hogs", "", || {
        chain(nr_cpus(), Duration::ZERO)
    }),
    load("what a worker of the kernel wakes", "", completions),
    load("many wakees that wake", "WAKE_WIDE", || many_to_many(0)),
    load(
        "many wakees that wake beside hogs",
        "WAKE_WIDE LLC:+SD_BALANCE_WAKE SMT:+SD_BALANCE_WAKE",
        || many_to_many(nr_cpus()),
    ),
    load("exec where others wait", NO_FORK, execs),
    load(
        "a buddy that others would pull",
        "sched_latency_ns=6ms min_granularity_ns=3ms NO_WAKEUP_PREEMPTION NEXT_BUDDY \
         CACHE_HOT_BUDDY balance_interval_ns=1ms",
        wanted_buddy,
    ),
];

/// One sleeper of some kind and so many hogs, all on one CPU.
fn beside(hogs: usize, setup: fn(usize)) {
    let _hogs = Crew::hogs(hogs, |_| pin(0, [HERE]));
    let _sleeper = Crew::sleepers(1, MS / 10, 7 * MS, move |i| {
        pin(0, [HERE]);
        setup(i);
    });
    sleep(WHILE);
}

fn let_go() {
    let hogs = Crew::hogs(3 * nr_cpus(), |_| pin(0, [0]));
    sleep(WHILE / 3);
    hogs.pin_all(0..nr_cpus());
    sleep(WHILE);
}

fn sleepers() {
    let _sleepers = Crew::sleepers(3 * nr_cpus(), 2 * MS, 3 * MS, |_| {});
    sleep(WHILE);
}

/// Pipes, of which each thread of a crew reads one and writes others.
struct Pipes(Vec<(PipeReader, PipeWriter)>);

impl Pipes {
    fn new(n: usize) -> Arc<Pipes> {
        let one = |_| pipe().expect("a pipe");
        Arc::new(Pipes((0..n).map(one).collect()))
    }

    fn take(&self, i: usize) {
        let _ = (&self.0[i].0).read(&mut [0; 64]);
    }

    fn give(&self, i: usize) {
        let _ = (&self.0[i].1).write(&[0]);
    }
}

/// A thread each of whose calls knows that thread's number.
fn numbered(n: usize, work: impl Fn(usize) + Send + Sync + 'static) -> Vec<Crew> {
    let work = Arc::new(work);
    let one = |i| {
        let work = work.clone();
        Crew::start(1, |_| {}, move || work(i))
    };
    (0..n).map(one).collect()
}

/// Ends crews that wait for each other: all get something to read until they have.
fn end(crews: Vec<Crew>, pipes: Arc<Pipes>) {
    let feed = move || {
        (0..pipes.0.len()).for_each(|i| pipes.give(i));
        sleep(MS);
    };
    let _feeder = Crew::start(1, |_| {}, feed);
    drop(crews);
}

/// Four threads in a ring, with two tokens: each reads, runs on for a time after it
/// has woken the next, and sleeps. Hogs of the idle policy fill the CPUs.
fn chain(idle_hogs: usize, run_on: Duration) {
    const RING: usize = 4;
    let _hogs = Crew::hogs(idle_hogs, |i| {
        pin(0, [i]);
        policy(libc::SCHED_IDLE);
    });
    let pipes = Pipes::new(RING);
    let ring = pipes.clone();
    let crews = numbered(RING, move |i| {
        ring.take(i);
        ring.give((i + 1) % RING);
        burn(run_on);
    });
    pipes.give(0);
    pipes.give(RING / 2);
    sleep(WHILE);
    end(crews, pipes);
}

/// One wakes sixteen in turn, each of which wakes one of two: the first changes its
/// wakees sixteen times as often as those, which is more than an LLC has CPUs.
fn many_to_many(hogs: usize) {
    const MANY: usize = 16;
    let _hogs = Crew::hogs(hogs, |i| pin(0, [i]));
    let pipes = Pipes::new(MANY + 2);
    let (middle, last) = (pipes.clone(), pipes.clone());
    let turn = Arc::new(AtomicUsize::new(0));
    let mut crews = numbered(2, move |i| last.take(MANY + i));
    let turns: Vec<AtomicUsize> = (0..MANY).map(|_| AtomicUsize::new(0)).collect();
    crews.extend(numbered(MANY, move |i| {
        middle.take(i);
        middle.give(MANY + turns[i].fetch_add(1, Ordering::Relaxed) % 2);
    }));
    let first = pipes.clone();
    crews.extend(numbered(1, move |_| {
        for _ in 0..MANY {
            first.give(turn.fetch_add(1, Ordering::Relaxed) % MANY);
        }
        sleep(2 * MS);
    }));
    sleep(2 * WHILE);
    end(crews, pipes);
}

/// Tasks that wait for what a worker of their CPU tells them. Of the root of a virtual
/// machine (virtiofs) the kernel keeps no statistics, but asks: the answer's interrupt
/// leaves the rest to the worker of the CPU it strikes. One thread of each CPU, free to
/// move, for a pinned one would not be placed.
fn completions() {
    let n = nr_cpus();
    let tasks = Crew::start(
        n,
        |i| pin(0, [i]),
        || {
            // SAFETY: all zeroes is a valid struct, and it outlives the call.
            unsafe {
                let mut stat: libc::statfs = std::mem::zeroed();
                libc::statfs(c"/".as_ptr(), &mut stat);
            }
        },
    );
    tasks.pin_all(0..n);
    sleep(2 * WHILE);
}

/// Programs that start on a CPU where hogs wait, while each other one has a hog.
fn execs() {
    let n = nr_cpus();
    let _hogs = Crew::hogs(n + 2, move |i| pin(0, [if i < n { i } else { HERE }]));
    let start = move || {
        pin(0, [HERE]);
        pin(0, 0..n);
        let _ = Command::new("/bin/true").status();
    };
    let _starters = Crew::start(4, |_| {}, start);
    sleep(2 * WHILE);
}

/// A hog on each CPU, three more on one; and there sleepers too, which might go
/// elsewhere, were they not the ones to run next.
fn wanted_buddy() {
    let n = nr_cpus();
    let _hogs = Crew::hogs(n, |i| pin(0, [i]));
    let _more = Crew::hogs(3, |_| pin(0, [HERE]));
    let _sleepers = Crew::start(
        2,
        |_| {},
        move || {
            pin(0, [HERE]);
            pin(0, 0..n);
            burn(MS / 10);
            sleep(2 * MS);
        },
    );
    sleep(2 * WHILE);
}
