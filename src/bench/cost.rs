// SPDX-License-Identifier: GPL-2.0-only
//! What the callbacks of a sched_ext scheduler cost, by setting: the kernel's own
//! count of the calls and the time of each BPF program (bpf_stats). Pure; meter.rs
//! reads them.
//!
//! 1. The time is that of the program with all kernel functions that it calls, and
//!    with what the kernel takes to read its clock twice, some 20 to 50 ns a call.
//! 2. Interrupts that come in between are in it.
//! 3. Timers, and the kernel's own part of a switch, are not.

use std::collections::BTreeMap;

use crate::bench::data::{Cost, Results};
use crate::bench::show::fold;
use crate::metrics::show_count;

/// The callbacks that a scheduler may have, as struct sched_ext_ops names them.
const OPS: [&str; 24] = [
    "select_cpu",
    "enqueue",
    "dequeue",
    "dispatch",
    "tick",
    "runnable",
    "running",
    "stopping",
    "quiescent",
    "yield",
    "core_sched_before",
    "set_weight",
    "set_cpumask",
    "update_idle",
    "cpu_acquire",
    "cpu_release",
    "init_task",
    "exit_task",
    "enable",
    "disable",
    "cpu_online",
    "cpu_offline",
    "init",
    "exit",
];
/// A program's name is cut off after so many characters.
const NAME_LENGTH: usize = 15;
/// Less of a cut-off name may stand for several callbacks.
const SHORTEST: usize = 3;
/// Longest of [`OPS`], and a gap.
const NAME_COLUMN: usize = 19;

/// The callback that a program is: `kin_select_cpu`, or `bpfland_select_`, cut off.
/// What is none goes by its own name.
pub fn callback_of(program: &str) -> &str {
    let ends = |op: &&&str| {
        let head = program.strip_suffix(**op);
        head.is_some_and(|head| head.is_empty() || head.ends_with('_'))
    };
    // "enable" before "le": the longest that fits.
    if let Some(op) = OPS.iter().filter(ends).max_by_key(|op| op.len()) {
        return op;
    }
    if program.len() < NAME_LENGTH {
        return program;
    }
    let starts = program.match_indices('_').map(|(at, _)| &program[at + 1..]);
    let mut cut = starts.filter(|rest| rest.len() >= SHORTEST);
    let known = cut.find_map(|rest| OPS.iter().find(|op| op.starts_with(rest)));
    known.copied().unwrap_or(program)
}

/// Of all runs of a setting that were metered: seconds, and what each callback cost.
fn total(results: &Results, setting: &str) -> (f64, BTreeMap<String, Cost>) {
    let mut seconds = 0.0;
    let mut all: BTreeMap<String, Cost> = BTreeMap::new();
    let runs = results.runs.iter().filter(|run| run.setting == setting);
    for (run, costs) in runs.filter_map(|run| Some((run, run.cost.as_ref()?))) {
        seconds += run.seconds;
        for (name, cost) in costs {
            let sum = all.entry(name.clone()).or_default();
            sum.calls += cost.calls;
            sum.ns += cost.ns;
        }
    }
    (seconds, all)
}

/// A block of lines for each setting that was metered; nothing if none was.
pub fn text(results: &Results) -> Vec<String> {
    let mut lines = vec![];
    for setting in &results.spec.settings {
        let (seconds, costs) = total(results, &setting.name);
        if costs.is_empty() || seconds <= 0.0 {
            continue;
        }
        let title = format!("What its callbacks cost, {}", setting.name);
        lines.extend(fold("", &title, 2, crate::metrics::WIDTH));
        lines.push(String::new());
        lines.push(row("", "calls/s", "ns/call", "% of a CPU"));
        let mut costs: Vec<(&String, &Cost)> = costs.iter().collect();
        costs.sort_by_key(|(_, cost)| std::cmp::Reverse(cost.ns));
        let sum = costs.iter().fold(Cost::default(), |sum, (_, cost)| Cost {
            calls: sum.calls + cost.calls,
            ns: sum.ns + cost.ns,
        });
        for (name, cost) in costs {
            lines.push(cost_row(name, cost, seconds));
        }
        lines.push(cost_row("all", &sum, seconds));
        lines.push(String::new());
    }
    lines
}

fn cost_row(name: &str, cost: &Cost, seconds: f64) -> String {
    let calls = show_count(cost.calls as f64 / seconds);
    let each = cost.ns as f64 / cost.calls.max(1) as f64;
    let share = cost.ns as f64 / 1e9 / seconds * 100.0;
    row(name, &calls, &format!("{each:.0}"), &format!("{share:.2}"))
}

fn row(name: &str, calls: &str, each: &str, share: &str) -> String {
    format!("  {name:<NAME_COLUMN$}{calls:>10}{each:>10}{share:>13}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_end_or_what_is_left_of_it() {
        assert_eq!(callback_of("kin_select_cpu"), "select_cpu");
        assert_eq!(callback_of("bpfland_select_"), "select_cpu");
        assert_eq!(callback_of("rusty_quiescent"), "quiescent");
        assert_eq!(callback_of("kin_exit_task"), "exit_task");
        assert_eq!(callback_of("kin_exit"), "exit");
        assert_eq!(callback_of("layered_update_"), "update_idle");
        assert_eq!(callback_of("enqueue"), "enqueue");
        assert_eq!(callback_of("something_else_"), "something_else_");
        assert_eq!(callback_of("reinit"), "reinit");
    }
}
