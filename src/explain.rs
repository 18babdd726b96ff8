// SPDX-License-Identifier: GPL-2.0-only
//! A sample told in sentences: what the scheduler did, why, and what the rules
//! that are off would have changed. Pure.

use crate::metrics::{Sample, show_count};
use crate::prose::{
    Counts, Report, capital, count_of, counters_like, grouped, help_of, percent, percentiles,
    sum_of, things, with_values,
};
use crate::settings::Settings;
use crate::tables::{HISTS, tunable_index};
use crate::topology::Machine;
use crate::whatif;

/// Ways out of select_cpu for new tasks.
const FORKS: [&str; 2] = ["select_fork_idle", "select_fork_load"];
/// ... that put a wakee on the CPU of its waker, which is about to leave it.
const STACKED: [&str; 2] = ["select_sync", "select_kthread"];
/// ... that found no idle CPU. All others found one.
const BUSY: [&str; 3] = ["select_busy_prev", "select_busy_waker", "select_wide_load"];

const PREEMPTED: [&str; 2] = ["preempt_local", "preempt_kick"];
/// Why a wakee preempted, where that has a counter: also counted in PREEMPTED.
const CAUSES: [&str; 4] = [
    "preempt_idle_policy",
    "preempt_wakeup_sync",
    "preempt_overlap",
    "preempt_running",
];

/// The whole machine's story.
pub fn explain(sample: &Sample, settings: &Settings, machine: &Machine) -> String {
    let mut report = Report::default();
    let counts = &sample.counters;
    head(&mut report, sample, settings);
    let ran = sample.hists.values().any(|hist| hist.total() > 0);
    if !ran && counts.values().all(|n| *n == 0) {
        report.say(
            "Nothing moved: the machine was idle, or all that ran was realtime, \
             which is not scx_kin's to schedule.",
        );
        return report.into_text();
    }
    report.heading("Where wakeups went");
    wakeups(&mut report, counts, settings);
    new_tasks(&mut report, counts);
    no_idle_cpu(&mut report, counts, settings, machine);
    report.heading("Who preempted whom");
    preemption(&mut report, counts, settings);
    other_ends(&mut report, counts);
    report.heading("What CPUs ran next, and what was moved");
    dispatch(&mut report, counts, settings);
    new_idle(&mut report, counts, settings);
    balance(&mut report, counts);
    moves(&mut report, sample);
    report.heading("How long it took");
    for row in HISTS.iter() {
        let hist = sample.hists.get(row.name).cloned().unwrap_or_default();
        let text = percentiles(&capital(row.help), &hist);
        report.say(&text.unwrap_or_else(|| format!("{}: nothing seen.", capital(row.help))));
    }
    whatif::tell(&mut report, sample, settings);
    report.into_text()
}

/// Wakeups that asked for a CPU: the ways out of select_cpu but for new tasks.
fn nr_wakeups(counts: &Counts) -> u64 {
    sum_of(counts, &counters_like("select_")) - sum_of(counts, &FORKS)
}

/// How often each of some counters moved, and what it counts.
fn ways(
    names: impl IntoIterator<Item = &'static str>,
    counts: &Counts,
    settings: &Settings,
) -> impl Iterator<Item = (u64, String)> {
    let way = |name| (count_of(counts, name), help_of(name, settings));
    names.into_iter().map(way)
}

fn nr_runs(sample: &Sample) -> u64 {
    sample
        .hists
        .get("run_length")
        .map_or(0, |hist| hist.total())
}

fn head(report: &mut Report, sample: &Sample, settings: &Settings) {
    let rate = |n: u64| match sample.seconds {
        s if s > 0.0 => show_count(n as f64 / s),
        _ => "0".into(),
    };
    report.heading(&format!(
        "Setting {}, {:.1} s: {} wakeups/s, {} runs/s",
        sample.epoch,
        sample.seconds,
        rate(nr_wakeups(&sample.counters)),
        rate(nr_runs(sample)),
    ));
    let changed = settings.words_since(&settings.defaults());
    report.say(&match changed.as_slice() {
        [] => "All settings are the defaults.".into(),
        words => format!("Changed from the defaults: {}.", words.join(", ")),
    });
}

/// Where wakeups went, by way out; for one task too.
pub fn wakeups(report: &mut Report, counts: &Counts, settings: &Settings) {
    let all = nr_wakeups(counts);
    if all == 0 {
        return report.say("No wakeup asked for a CPU.");
    }
    let (stacked, busy) = (sum_of(counts, &STACKED), sum_of(counts, &BUSY));
    report.say(&format!(
        "Of {}, {} got an idle CPU, {} the CPU of a waker about to leave it, and {} were queued \
         on a busy CPU:",
        things(all, "wakeup"),
        percent(all - stacked - busy, all),
        percent(stacked, all),
        percent(busy, all),
    ));
    let names = counters_like("select_").into_iter();
    let asked = names.filter(|name| !FORKS.contains(name));
    report.shares(all, ways(asked, counts, settings));
}

fn new_tasks(report: &mut Report, counts: &Counts) {
    let (forks, execs) = (sum_of(counts, &FORKS), count_of(counts, "exec_move"));
    let mut text = String::new();
    if forks > 0 {
        text += &format!(
            "Of {}, {} began on an idle CPU, {} on the CPU with the lightest queue. ",
            things(forks, "new task"),
            percent(count_of(counts, "select_fork_idle"), forks),
            percent(count_of(counts, "select_fork_load"), forks),
        );
    }
    if execs > 0 {
        text += &format!("{} moved to another CPU for exec().", things(execs, "task"));
    }
    report.say(&text);
}

fn no_idle_cpu(report: &mut Report, counts: &Counts, settings: &Settings, machine: &Machine) {
    let (all, busy) = (nr_wakeups(counts), sum_of(counts, &BUSY));
    if busy > 0 {
        report.heading("Why wakeups found no idle CPU");
        let near = search_of(counts, settings, busy);
        report.say(&(near + &search_afar(settings, machine)));
    }
    let mut text = String::new();
    let sync = count_of(counts, "select_sync");
    if sync > 0 {
        text += &format!(
            "{} ({} of all) looked for none: SYNC_STACK takes the CPU of a waker that is believed \
             to be about to sleep. ",
            things(sync, "wakeup"),
            percent(sync, all),
        );
    }
    let doubted = count_of(counts, "sync_doubted");
    if doubted > 0 {
        text += &format!(
            "{} not believed, the waker having run on for more than sync_overlap_ns before. ",
            were(doubted, "sync wakeup"),
        );
    }
    let wide = count_of(counts, "wake_wide");
    if wide > 0 {
        text += &format!(
            "For {} ({} of all) WAKE_WIDE left the waker's CPU out. ",
            things(wide, "wakeup"),
            percent(wide, all),
        );
    }
    let asked = all + sum_of(counts, &FORKS);
    if asked > 0 {
        let words = count_of(counts, "scan_words") as f64 / asked as f64;
        text += &format!("Searches read {words:.1} words of CPU masks per wakeup or new task.");
    }
    report.say(&with_values(&text, settings));
}

/// Why the `busy` wakeups that were queued on a busy CPU found no other.
fn search_of(counts: &Counts, settings: &Settings, busy: u64) -> String {
    let on = |name| settings.provides(name);
    let forms = ["IDLE_SIBLING", "IDLE_SHARED_CACHE"];
    let mut text = format!("{} queued on a busy CPU. ", were(busy, "wakeup"));
    if !forms.into_iter().any(on) {
        text += "The search of the LLC is switched off: neither IDLE_SIBLING nor \
                 IDLE_SHARED_CACHE is on. ";
    } else {
        let limited = count_of(counts, "scan_limited");
        if limited > 0 {
            text += &format!(
                "SIS_UTIL cut short or left out {}, the LLC being busy. ",
                things(limited, "search"),
            );
        }
        let full = busy.saturating_sub(limited);
        text += &match limited {
            0 => "All of them".into(),
            _ => format!(
                "At least {} of them ({})",
                grouped(full),
                percent(full, busy)
            ),
        };
        text += " searched the whole LLC without finding a CPU that is idle and allowed. ";
    }
    text
}

/// Where else wakeups looked, of what this machine has.
fn search_afar(settings: &Settings, machine: &Machine) -> String {
    let two_llcs = machine.llcs.iter().any(|llc| llc.order_node > 1);
    let levels = [
        (two_llcs, "NODE", "other LLCs of the node"),
        (machine.nodes.len() > 1, "SYSTEM", "other nodes"),
    ];
    let mut text = String::new();
    for (_, level, what) in levels.into_iter().filter(|(there, ..)| *there) {
        let flag = format!("{level}:SD_BALANCE_WAKE");
        text += &match settings.provides(&flag) {
            true => format!("They looked at {what} too ({flag}). "),
            false => format!("They did not look at {what}: {flag} is off. "),
        };
    }
    text
}

/// "1 wakeup was", "2 wakeups were".
fn were(n: u64, thing: &str) -> String {
    format!(
        "{} {}",
        things(n, thing),
        if n == 1 { "was" } else { "were" }
    )
}

/// The preemption tests' verdicts; for one task too.
pub fn preemption(report: &mut Report, counts: &Counts, settings: &Settings) {
    let names = counters_like("preempt_").into_iter();
    let verdicts: Vec<_> = names.filter(|name| !CAUSES.contains(name)).collect();
    let tests = sum_of(counts, &verdicts);
    if !settings.provides("WAKEUP_PREEMPTION") {
        report.say("WAKEUP_PREEMPTION is off: a wakee waits for its turn.");
    }
    if tests == 0 {
        return report.say("No wakee was queued behind a running task and tested.");
    }
    let preempted = sum_of(counts, &PREEMPTED);
    report.say(&format!(
        "Of {} that had to queue behind a running task, {} preempted it:",
        things(tests, "wakee"),
        percent(preempted, tests),
    ));
    report.shares(tests, ways(verdicts, counts, settings));
    let causes = CAUSES.into_iter().filter(|name| count_of(counts, name) > 0);
    let cause = |name| {
        let help = help_of(name, settings).replace(" (also counted above)", "");
        format!("{} {help}", percent(count_of(counts, name), preempted))
    };
    let causes: Vec<String> = causes.map(cause).collect();
    if !causes.is_empty() {
        let of = things(preempted, "wakee");
        report.say(&format!(
            "Of the {of} that preempted, {}.",
            causes.join("; ")
        ));
    }
}

fn other_ends(report: &mut Report, counts: &Counts) {
    let mut text = String::new();
    let kthreads = count_of(counts, "enqueue_kthread");
    if kthreads > 0 {
        let who = things(kthreads, "wakeup");
        text += &format!("{who} of per-CPU kernel threads preempted at once. ");
    }
    let ticks = count_of(counts, "tick_preempt");
    if ticks > 0 {
        text += &format!(
            "The tick ended {}, as others waited. ",
            things(ticks, "run")
        );
    }
    let (skip, alone) = (
        count_of(counts, "yield_skip"),
        count_of(counts, "yield_alone"),
    );
    if skip + alone > 0 {
        text += &format!(
            "Of {} {} gave way to the next in line; nobody waited at the others.",
            things(skip + alone, "sched_yield() call"),
            percent(skip, skip + alone),
        );
    }
    report.say(&text);
}

fn dispatch(report: &mut Report, counts: &Counts, settings: &Settings) {
    let names = counters_like("dispatch_");
    let all = sum_of(counts, &names);
    if all == 0 {
        return report.say("No CPU had to choose what to run next.");
    }
    let chose = things(all, "time");
    report.say(&format!("CPUs had to choose what to run next {chose}:"));
    report.shares(all, ways(names, counts, settings));
}

fn new_idle(report: &mut Report, counts: &Counts, settings: &Settings) {
    let pulls = counters_like("dispatch_pull_");
    let names = [pulls.clone(), counters_like("newidle_")].concat();
    let all = sum_of(counts, &names);
    if all > 0 {
        report.say(&format!(
            "Of {} that a CPU was about to go idle, {} ended with a task pulled \
             (migration_cost_ns={}):",
            things(all, "time"),
            percent(sum_of(counts, &pulls), all),
            value_of(settings, "migration_cost_ns"),
        ));
        report.each_share(all, ways(names, counts, settings));
    }
    let passed = ["pull_hot", "pull_buddy"].map(|name| (count_of(counts, name), name));
    for (n, name) in passed.into_iter().filter(|(n, _)| *n > 0) {
        report.say(&format!("{} {}.", grouped(n), help_of(name, settings)));
    }
}

fn value_of(settings: &Settings, name: &str) -> String {
    let row = tunable_index(name);
    row.map_or(String::new(), |i| {
        crate::tables::TUNABLES[i].show(settings.tunables[i])
    })
}

fn balance(report: &mut Report, counts: &Counts) {
    let n = |name| count_of(counts, name);
    let mut text = String::new();
    if n("handover_kick") + n("dispatch_handed") > 0 {
        text += &format!(
            "At {} a CPU with waiting tasks woke an idle one to take some; {} taken over. ",
            things(n("handover_kick"), "tick"),
            were(n("dispatch_handed"), "task"),
        );
    }
    let looks = sum_of(counts, &counters_like("balance_"));
    if looks > 0 {
        text += &format!(
            "Of {} at a level by busy CPUs, {} found a heavier queue in the LLC, {} in the node, \
             {} on another node; {} pulled for that.",
            things(looks, "look"),
            percent(n("balance_llc"), looks),
            percent(n("balance_node"), looks),
            percent(n("balance_system"), looks),
            were(n("dispatch_balance"), "task"),
        );
    }
    report.say(&text);
}

fn moves(report: &mut Report, sample: &Sample) {
    let n = |name| count_of(&sample.counters, name);
    let (llc, node, runs) = (n("move_llc"), n("move_node"), nr_runs(sample));
    if llc + node > 0 {
        report.say(&format!(
            "Of {}, {} began in another LLC of the node than the task's last one ({}), {} on \
             another node ({}).",
            things(runs, "run"),
            percent(llc, runs),
            grouped(llc),
            percent(node, runs),
            grouped(node),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::COUNTERS;

    #[test]
    fn every_counter_that_is_named_here_is_one() {
        let named = [&FORKS[..], &STACKED, &BUSY, &PREEMPTED, &CAUSES].concat();
        for name in named {
            assert!(COUNTERS.iter().any(|row| row.name == name), "{name}");
        }
    }
}
