// SPDX-License-Identifier: GPL-2.0-only
//! One task or process told in sentences: where it ran, what it waited for, how
//! its runs ended. Pure.

use std::collections::BTreeMap;

use crate::explain::{preemption, wakeups};
use crate::hist::show_rounded;
use crate::prose::{Report, capital, count_of, grouped, percent, percentiles, things};
use crate::settings::Settings;
use crate::tables::HISTS;
use crate::task::Task;
use crate::topology::{Cpu, Machine};
use crate::watch::Watched;

/// CPUs that are named one by one; the others are summed.
const TOP_CPUS: usize = 6;
/// CPU time by /proc, in ns, that is not put down to its rounding.
const LONG_RUN: u64 = 50_000_000;

/// The story of one task, as /proc had it before and `after`, unless it has ended.
pub fn explain_task(
    seen: &Watched,
    task: &Task,
    after: Option<&Task>,
    settings: &Settings,
    machine: &Machine,
) -> String {
    let mut report = Report::default();
    report.heading(&format!(
        "{}, watched for {:.1} s under setting {}",
        who(task),
        seen.seconds,
        settings.epoch
    ));
    if after.is_none() {
        report.say("It ended meanwhile.");
    }
    if seen.runs() == 0 && seen.ns() == 0 {
        report.say(&why_nothing(seen, task, after));
        return report.into_text();
    }
    report.say(&how_much(seen, task));
    report.say(&not_counted(seen, task, after));
    report.heading("Where it ran");
    cpus(&mut report, seen, machine);
    groups(&mut report, seen, machine);
    report.say(&moves(seen));
    report.heading("What it waited for, and how long it ran at a time");
    for row in HISTS.iter() {
        let hist = seen.hists.get(row.name).cloned().unwrap_or_default();
        report.say(&percentiles(&capital(row.help), &hist).unwrap_or_default());
    }
    ends(&mut report, seen);
    report.heading("Where its wakeups went");
    wakeups(&mut report, &seen.counters, settings);
    report.heading("Whether it preempted");
    preemption(&mut report, &seen.counters, settings);
    report.into_text()
}

fn who(task: &Task) -> String {
    let kind = match task.threads {
        0 => "a thread".into(),
        n => format!("a process of {}", things(n as u64, "thread")),
    };
    format!("{} (pid {}, {kind})", task.name, task.pid)
}

/// Why no run of a task was seen.
fn why_nothing(seen: &Watched, task: &Task, after: Option<&Task>) -> String {
    if task.is_out_of_reach() {
        return "Nothing was seen of it: it is a realtime or deadline task, which is not \
                scx_kin's to schedule."
            .into();
    }
    let held = not_counted(seen, task, after);
    let why = match after {
        _ if !held.is_empty() => return held,
        Some(_) => "it slept all the time, or waited for something but a CPU",
        None => "it did not run before it ended",
    };
    format!("Nothing was seen of it: {why}.")
}

/// A run is counted when it ends: one that goes on and on shows in /proc alone.
fn not_counted(seen: &Watched, task: &Task, after: Option<&Task>) -> String {
    let used = after.map_or(0, |after| after.cpu_ns.saturating_sub(task.cpu_ns));
    let more = used.saturating_sub(seen.ns());
    if more < LONG_RUN || more * 10 < used {
        return String::new();
    }
    let more = show_rounded(more as f64);
    format!(
        "By /proc it ran for {more} more: in runs that had not ended, or under another scheduling \
         class."
    )
}

fn how_much(seen: &Watched, task: &Task) -> String {
    let per_second = match seen.seconds {
        s if s > 0.0 => seen.ns() as f64 / s,
        _ => 0.0,
    };
    let mut text = format!(
        "It ran for {} in {}: {} of CPU time per second, {} a run on average.",
        show_rounded(seen.ns() as f64),
        things(seen.runs(), "run"),
        show_rounded(per_second),
        show_rounded(seen.ns() as f64 / seen.runs().max(1) as f64),
    );
    if task.realtime > 0 {
        text += &format!(
            " {} of its threads, being realtime or deadline tasks, not counted.",
            task.realtime
        );
    }
    text
}

fn cpus(report: &mut Report, seen: &Watched, machine: &Machine) {
    let mut cpus: Vec<_> = seen.cpus.iter().collect();
    cpus.sort_by_key(|(_, on)| std::cmp::Reverse((on.ns, on.runs)));
    report.say(&format!("On {}:", things(cpus.len() as u64, "CPU")));
    let many = cpus.len() > TOP_CPUS + 1;
    let rest = cpus.split_off(if many { TOP_CPUS } else { cpus.len() });
    let place = |cpu: usize| match machine.cpus.get(cpu) {
        Some(c) if machine.llcs.len() > 1 => format!(" (LLC {}, node {})", c.llc, c.node),
        _ => String::new(),
    };
    for (cpu, on) in cpus {
        let text = format!("CPU {cpu}{}, {}", place(*cpu), things(on.runs, "run"));
        report.share(seen.ns(), on.ns, &text);
    }
    if many {
        let (ns, runs) = rest
            .iter()
            .fold((0, 0), |(ns, runs), (_, on)| (ns + on.ns, runs + on.runs));
        let text = format!("{} others, {}", rest.len(), things(runs, "run"));
        report.share(seen.ns(), ns, &text);
    }
}

/// Shares by LLC and by node, where there is more than one.
fn groups(report: &mut Report, seen: &Watched, machine: &Machine) {
    let mut by = |what: &str, several: bool, group: fn(&Cpu) -> usize| {
        let mut sums: BTreeMap<usize, u64> = BTreeMap::new();
        for (cpu, on) in &seen.cpus {
            if let Some(cpu) = machine.cpus.get(*cpu) {
                *sums.entry(group(cpu)).or_default() += on.ns;
            }
        }
        let all = seen.ns();
        let share = |(id, ns): (&usize, &u64)| format!("{what} {id} {}", percent(*ns, all));
        let shares: Vec<String> = sums.iter().map(share).collect();
        if several {
            report.say(&format!("Of its time by {what}: {}.", shares.join(", ")));
        }
    };
    by("LLC", machine.llcs.len() > 1, |cpu| cpu.llc);
    by("node", machine.nodes.len() > 1, |cpu| cpu.node);
}

fn moves(seen: &Watched) -> String {
    if seen.cpus.len() == 1 {
        return "It never left that CPU.".into();
    }
    let n = |name| count_of(&seen.counters, name);
    let (llc, node, runs) = (n("move_llc"), n("move_node"), seen.runs());
    if llc + node == 0 {
        return String::new();
    }
    format!(
        "It came from another LLC of the node {} times ({} of its runs), and from another node {} \
         times ({}).",
        grouped(llc),
        percent(llc, runs),
        grouped(node),
        percent(node, runs),
    )
}

fn ends(report: &mut Report, seen: &Watched) {
    let ends = [
        (seen.slept, "it went to sleep"),
        (seen.expired, "its slice was over"),
        (seen.preempted, "a wakee preempted it"),
        (seen.outranked, "a higher class took the CPU"),
    ];
    let all: u64 = ends.iter().map(|(n, _)| n).sum();
    if all > 0 {
        report.say(&format!("Of {} that ended, because", things(all, "run")));
        report.shares(all, ends.map(|(n, text)| (n, text.to_string())));
    }
}
