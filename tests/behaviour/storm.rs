// SPDX-License-Identifier: GPL-2.0-only
//! A storm of changes: switches, domain flags and numbers at random, many times
//! a second, under load. Whatever the setting of a moment, nobody waits for ever,
//! nothing is lost, and what was counted stays consistent.

mod counts;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use scx_kin::client::Client;
use scx_kin::tables::{DOMAIN_FLAGS, FEATURES, LEVELS, TUNABLES};

use crate::kin::{Kin, state, wait_for};
use crate::load::{Crew, nr_cpus, pin, policy};
use counts::{consistent, never_decreased};

const STORM: Duration = Duration::from_secs(60);
/// How often the counters are looked at on the way.
const LOOK: Duration = Duration::from_secs(2);

/// Changes a second. A `set` takes 10 ms at least, for which the loader waits for
/// the ops that run, so there are 100 sets a second at the most, and each carries a
/// lot. An emulated processor comes to some 12 to 20, each with 60 times a word to
/// read, compare and log: the loader runs on one of eight emulated CPUs, all busy,
/// that share a part of a real one. There the storm is as dense as it can be.
const FLIPS_PER_SECOND: f64 = 1000.0;
const FLIPS_EMULATED: f64 = 150.0;
/// Of the 60 or so things that can be changed, how many a set changes.
const FLIPS_PER_SET: std::ops::RangeInclusive<u64> = 50..=64;
/// Any number; the same each time, so that a storm can be had again.
const SEED: u64 = 0x5eed_0f57_0a11;

/// Some hogs and 20 processes of hackbench.
const HACKBENCH: &str = "-g 2 -f 5 -l 40";
const HOGS: usize = 3;
/// It may be slow under settings made by dice, but must end.
const SLOWER_BY_DICE: u32 = 10;
/// Under the defaults it is as fast as before; two runs in an emulator differ.
const SLOWER: u32 = 4;
/// What a run on a loaded host may take when the first one was lucky.
const LEAST: Duration = Duration::from_secs(2);

/// Numbers whose upper bound alone would be a stall, and the most that is set here.
/// The watchdog strikes after 30 s. A task waits on one CPU with 25 others at most
/// (hackbench and hogs, should all be there). It waits
/// - for a round of slices: of min_granularity each, or of the latency together,
/// - until the others have run through its debt, which is at most four latencies,
/// - and while buddies or granularity hold it back, for as long as they may be ahead,
///   which is wakeup_granularity each.
///
/// With these bounds that is 25 x (20 + 4 x 40 + 20) ms = 5 s. With 1 s for each,
/// as intf.h allows, it would be minutes, and no error.
const AT_MOST: [(&str, u64); 3] = [
    ("sched_latency_ns", 40_000_000),
    ("min_granularity_ns", 20_000_000),
    ("wakeup_granularity_ns", 20_000_000),
];

/// xorshift64*
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
}

/// Something that can be changed. Not `tunable_scaling`: it multiplies numbers, and
/// so would leave the bounds above.
#[derive(Clone, Copy)]
enum Item {
    Feature(usize),
    Flag(usize, usize),
    Tunable(usize),
}

fn items() -> Vec<Item> {
    let flags = (0..LEVELS.len()).flat_map(|level| {
        let here = (0..DOMAIN_FLAGS.len()).filter(move |f| DOMAIN_FLAGS[*f].applies_at(level));
        here.map(move |flag| Item::Flag(level, flag))
    });
    let features = (0..FEATURES.len()).map(Item::Feature);
    let tunables = (0..TUNABLES.len()).map(Item::Tunable);
    features.chain(flags).chain(tunables).collect()
}

/// What is on and off, as far as the storm has set it.
struct Storm {
    dice: Dice,
    items: Vec<Item>,
    on: Vec<bool>,
}

impl Storm {
    fn new(client: &mut Client) -> Storm {
        let settings = client.get().expect("settings");
        let items = items();
        let on = items.iter().map(|item| match item {
            Item::Feature(index) => settings.feature(*index),
            Item::Flag(level, flag) => settings.flag(*level, *flag),
            Item::Tunable(_) => false,
        });
        Storm {
            dice: Dice(SEED),
            on: on.collect(),
            items,
        }
    }

    /// The words of one set: each changes something else.
    fn words(&mut self) -> Vec<String> {
        let many = self
            .dice
            .between(*FLIPS_PER_SET.start(), *FLIPS_PER_SET.end());
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        for i in 0..many as usize {
            let other = self.dice.between(i as u64, order.len() as u64 - 1);
            order.swap(i, other as usize);
        }
        let mut words = Vec::new();
        for i in order.into_iter().take(many as usize) {
            self.on[i] = !self.on[i];
            words.push(self.word(i));
        }
        self.one_form(&mut words);
        words
    }

    fn word(&mut self, i: usize) -> String {
        let (no, sign) = if self.on[i] { ("", '+') } else { ("NO_", '-') };
        match self.items[i] {
            Item::Feature(index) => format!("{no}{}", FEATURES[index].name),
            Item::Flag(level, flag) => {
                let (level, flag) = (LEVELS[level].name, DOMAIN_FLAGS[flag].name);
                format!("{level}:{sign}{flag}")
            }
            Item::Tunable(index) => {
                let t = &TUNABLES[index];
                let bound = AT_MOST.iter().find(|(name, _)| *name == t.name);
                let most = bound.map_or(t.max, |(_, most)| *most);
                format!("{}={}", t.name, self.dice.between(t.min, most))
            }
        }
    }

    /// Of two forms of one rule the later word is left out where both are asked for;
    /// and where one was turned on, the scheduler has turned the other off.
    fn one_form(&mut self, words: &mut Vec<String>) {
        let place = |name| {
            let is = |item: &Item| matches!(item, Item::Feature(i) if FEATURES[*i].name == name);
            self.items.iter().position(is).expect(name)
        };
        let (cache, sibling) = (place("IDLE_SHARED_CACHE"), place("IDLE_SIBLING"));
        let asked = |words: &[String], name: &str| words.iter().any(|word| word == name);
        let loser = match (
            asked(words, "IDLE_SHARED_CACHE"),
            asked(words, "IDLE_SIBLING"),
        ) {
            (false, false) => return,
            (true, _) => {
                words.retain(|word| word != "IDLE_SIBLING");
                sibling
            }
            (false, true) => cache,
        };
        self.on[loser] = false;
    }
}

/// hackbench, again and again, until told to stop; then how often it ran.
struct Hackbenches {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

fn hackbench() -> Child {
    Command::new("hackbench")
        .args(HACKBENCH.split_whitespace())
        .stdout(Stdio::null())
        .spawn()
        .expect("hackbench")
}

/// How long one takes; it must end.
#[track_caller]
fn one_hackbench() -> Duration {
    let start = Instant::now();
    let mut child = hackbench();
    wait_for("hackbench to end", || {
        child.try_wait().expect("a child").is_some()
    });
    let status = child.wait().expect("a child");
    assert!(status.success(), "hackbench: {status}");
    start.elapsed()
}

impl Hackbenches {
    fn start() -> Hackbenches {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = spawn(move || {
            let mut runs = 0;
            while !stopped.load(Ordering::Relaxed) {
                one_hackbench();
                runs += 1;
            }
            runs
        });
        Hackbenches { stop, thread }
    }

    #[track_caller]
    fn end(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("every hackbench to end well")
    }
}

/// The loader's threads, and this one in storm(), are realtime ones: the storm is to be
/// as dense as it can be, and must not wait where its own settings make tasks wait.
fn hurry(pid: i32) {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    for thread in threads {
        let tid = thread.expect("a thread").file_name();
        let tid = tid.to_str().and_then(|tid| tid.parse().ok());
        let param = libc::sched_param { sched_priority: 1 };
        let tid = tid.expect("a number");
        // SAFETY: the struct lives to the end of the call.
        let done = unsafe { libc::sched_setscheduler(tid, libc::SCHED_FIFO, &param) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}

/// The storm itself: how many sets, and how many flips a second.
fn storm(client: &mut Client) -> (u64, f64) {
    policy(libc::SCHED_FIFO);
    let mut storm = Storm::new(client);
    let (mut sets, mut flips) = (0, 0);
    let mut last = client.total().expect("counters");
    let (start, mut looked) = (Instant::now(), Instant::now());
    while start.elapsed() < STORM {
        let words = storm.words();
        let reply = client.set(&words).expect("the scheduler to be there");
        assert_eq!(reply.bad_word, None, "{words:?}");
        sets += u64::from(!reply.changes.is_empty());
        flips += reply.changes.len() as u64;
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            let now = client.total().expect("counters");
            never_decreased(&last, &now);
            last = now;
        }
    }
    policy(libc::SCHED_OTHER);
    let seconds = start.elapsed().as_secs_f64();
    let (per_second, each) = (flips as f64 / seconds, flips as f64 / sets as f64);
    println!("{sets} sets, {flips} flips in {seconds:.1} s: {per_second:.0}/s, {each:.0} a set");
    (sets, per_second)
}

/// How many tasks wait in each CPU's queue that has any, by the kernel's own dump of
/// the scheduler (SysRq D), which comes as trace events.
fn queues() -> Vec<String> {
    const TRACING: &str = "/sys/kernel/tracing";
    let write = |file: &str, text: &str| {
        let path = format!("{TRACING}/{file}");
        fs::write(&path, text).expect(&path);
    };
    write("trace", "");
    write("events/sched_ext/sched_ext_dump/enable", "1");
    fs::write("/proc/sysrq-trigger", "D").expect("SysRq");
    write("events/sched_ext/sched_ext_dump/enable", "0");
    let trace = fs::read_to_string(format!("{TRACING}/trace")).expect("a trace");
    assert!(trace.contains("kin: epoch"), "no dump: {trace}");
    let lines = trace
        .lines()
        .filter_map(|line| line.split_once("kin: queued "));
    let busy = lines.filter(|(_, rest)| !rest.starts_with("0 (weight 0, DSQ 0)"));
    busy.map(|(_, rest)| rest.to_string()).collect()
}

#[test]
#[ignore = "needs root on a sched_ext kernel"]
fn a_flip_storm_ends_with_everything_attached_and_counted() {
    let kin = Kin::start(&[]);
    let before = one_hackbench();
    let mut client = Client::connect().expect("an answer");
    hurry(kin.pid());
    let first = client.total().expect("counters");
    let n = nr_cpus();
    let hogs = Crew::hogs(HOGS, move |i| pin(0, [i % n]));
    hogs.pin_all(0..n);
    let load = Hackbenches::start();
    wait_for("a dump that shows who waits", || !queues().is_empty());

    let (sets, per_second) = storm(&mut client);

    let runs = load.end();
    drop(hogs);
    println!("hackbench ended {runs} times");
    assert!(runs > 0, "no hackbench ended");
    assert_eq!(state(), "enabled", "{}", kin.log());
    assert_eq!(client.get().expect("settings").epoch, sets);
    let all = client.total().expect("counters");
    never_decreased(&first, &all);
    consistent(&all);
    wait_for("all queues to be empty", || queues().is_empty());

    let (by_dice, patience) = (one_hackbench(), before.max(LEAST));
    println!("hackbench: {before:.2?} before, {by_dice:.2?} by dice");
    assert!(by_dice < patience * SLOWER_BY_DICE, "{by_dice:?}");
    kin.set("preset=default");
    let after = one_hackbench();
    println!("hackbench: {after:.2?} after");
    assert!(
        after < patience * SLOWER,
        "{after:?} after, {before:?} before"
    );
    never_decreased(&all, &kin.total());
    kin.stop();
    let emulated = std::env::var("SCX_KIN_VM").is_ok_and(|by| by == "tcg");
    let least = if emulated {
        FLIPS_EMULATED
    } else {
        FLIPS_PER_SECOND
    };
    assert!(per_second >= least, "{per_second:.0} flips/s");
}
