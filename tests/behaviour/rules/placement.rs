// SPDX-License-Identifier: GPL-2.0-only
//! Where wakees, new tasks and those that call exec() go.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::{sleep, spawn};
use std::time::Duration;

use scx_kin::watch::Watched;

use super::{counted, far_cpu, is_most, machine, moved, nowhere, rows, set, sum, watched};
use crate::kin::Kin;
use crate::load::{Crew, Wakee, nr_cpus, pin, this_cpu};

const WAKER: usize = 0;
/// Between two wakeups the wakee has to get onto the CPU of two hogs: each of their
/// slices is 12 ms.
const PAUSE: Duration = Duration::from_millis(60);
/// How many threads a parent starts, one after the other.
const FORKS: usize = 30;
/// How many programs are started on a CPU where others wait.
const EXECS: u64 = 25;

/// What became of a wakee whose previous CPU two hogs keep busy, and that CPU.
fn wakee_of_a_busy_cpu(kin: &Kin, words: &str) -> (Watched, usize) {
    set(kin, words);
    let busy = far_cpu(&machine());
    let _hogs = Crew::hogs(2, move |_| pin(0, [busy]));
    let wakee = Wakee::start(WAKER, busy, PAUSE);
    sleep(5 * PAUSE);
    let seen = watched(wakee.tid());
    println!("{words}: {:?}, {:?}", moved(&seen.counters), seen.cpus);
    (seen, busy)
}

/// Runs on some CPUs, of those on all but the busy one, to which it goes by itself.
fn runs_on(seen: &Watched, busy: usize, here: impl Fn(usize) -> bool) -> (u64, u64) {
    let others = seen.cpus.iter().filter(|(cpu, _)| **cpu != busy);
    let all = others.clone().map(|(_, on)| on.runs).sum();
    let here = others.filter(|(cpu, _)| here(**cpu));
    (here.map(|(_, on)| on.runs).sum(), all)
}

fn idle_sibling(kin: &Kin) {
    let near = ["select_idle_core", "select_idle_sibling", "select_idle_smt"];
    let (seen, busy) = wakee_of_a_busy_cpu(kin, "IDLE_SIBLING");
    let all = sum(&seen.counters, rows("select_"));
    assert!(
        is_most(sum(&seen.counters, near), all),
        "not put on an idle CPU"
    );
    let (idle, all) = runs_on(&seen, busy, |cpu| cpu != WAKER);
    assert!(is_most(idle, all), "did not run there: {:?}", seen.cpus);

    let no_slow_path = nowhere("SD_BALANCE_WAKE");
    let (seen, _) = wakee_of_a_busy_cpu(kin, &format!("NO_IDLE_SIBLING {no_slow_path}"));
    let stacked = ["select_busy_waker", "select_busy_prev"];
    let all = sum(&seen.counters, rows("select_"));
    assert!(is_most(sum(&seen.counters, stacked), all), "not stacked");
    assert_eq!(
        sum(&seen.counters, rows("select_idle_")),
        0,
        "a search is left"
    );
}

fn idle_shared_cache(kin: &Kin) {
    let (seen, busy) = wakee_of_a_busy_cpu(kin, "IDLE_SHARED_CACHE");
    let all = sum(&seen.counters, rows("select_"));
    let walked = sum(&seen.counters, ["select_shared_cache"]);
    assert!(is_most(walked, all), "not by the walk");
    let near = ["select_idle_core", "select_idle_sibling", "select_idle_smt"];
    assert_eq!(sum(&seen.counters, near), 0, "both forms are on");
    let machine = machine();
    let llc = machine.llcs[machine.cpus[WAKER].llc].cpus();
    let first = llc.into_iter().find(|cpu| *cpu != WAKER && *cpu != busy);
    let (there, all) = runs_on(&seen, busy, |cpu| Some(cpu) == first);
    assert!(is_most(there, all), "not on CPU {first:?}: {:?}", seen.cpus);
}

/// How many of FORKS threads began on the CPU of their parent.
fn forks_that_stay() -> u64 {
    let parent = spawn(|| {
        let stays = |_| {
            let here = this_cpu();
            spawn(this_cpu).join().expect("a child") == here
        };
        (0..FORKS).map(stays).filter(|stays| *stays).count() as u64
    });
    parent.join().expect("a parent")
}

fn fork(kin: &Kin) {
    // A CPU that goes idle would pull the child off its parent's at once.
    let no_pull = nowhere("SD_BALANCE_NEWIDLE");
    let nowhere = nowhere("SD_BALANCE_FORK");
    let count = |words: &str| {
        set(kin, words);
        let mut stay = 0;
        let counts = counted(kin, || stay = forks_that_stay()).counters;
        println!("{stay} of {FORKS} forks stay, {:?}", moved(&counts));
        (stay, counts)
    };
    let (stay, counts) = count(&no_pull);
    assert!(is_most(FORKS as u64 - stay, FORKS as u64), "{stay} stay");
    assert!(sum(&counts, ["select_fork_idle"]) > sum(&counts, ["select_fork_load"]));
    let (stay, counts) = count(&format!("{nowhere} {no_pull}"));
    assert!(is_most(stay, FORKS as u64), "{stay} of {FORKS} stay");
    assert_eq!(sum(&counts, ["select_fork_idle"]), 0, "placed all the same");
}

/// Starts a program on a CPU which it may leave by then, and waits for its end.
fn exec_on(cpu: usize) {
    let mut command = Command::new("/bin/true");
    let all = nr_cpus();
    let move_there = move || {
        pin(0, [cpu]);
        pin(0, 0..all);
        Ok(())
    };
    // SAFETY: two system calls; what they fail with ends the child alone.
    let command = unsafe { command.pre_exec(move_there) };
    assert!(command.status().expect("a program").success());
}

fn exec(kin: &Kin) {
    let busy = far_cpu(&machine());
    // exec() reads files, for which the task sleeps a few times before it is asked for;
    // no wakeup is to take it off that CPU, nor a CPU that goes idle.
    let stays = format!(
        "NO_AFFINE_WAKEUPS NO_IDLE_SIBLING NO_RUN_TO_PARITY {} {}",
        nowhere("SD_BALANCE_WAKE"),
        nowhere("SD_BALANCE_NEWIDLE")
    );
    let moves = |words: &str| {
        set(kin, &format!("{stays} {words}"));
        let _hog = Crew::hogs(1, move |_| pin(0, [busy]));
        let load = || (0..EXECS).for_each(|_| exec_on(busy));
        let moves = sum(&counted(kin, load).counters, ["exec_move"]);
        println!("{moves} of {EXECS} move at exec() under {words:?}");
        moves
    };
    // Some may be handed over before, at a tick of the hog while they wait.
    assert!(moves("") > 0, "exec() moves nobody");
    assert_eq!(moves(&nowhere("SD_BALANCE_EXEC")), 0, "it still moves some");
}

pub fn check(kin: &Kin) {
    idle_sibling(kin);
    idle_shared_cache(kin);
    fork(kin);
    exec(kin);
}
