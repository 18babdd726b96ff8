// SPDX-License-Identifier: GPL-2.0-only
//! Two benches side by side: two machines, two kernels, two days. Pure.
//!
//! Medians of different machines say little of a setting; what does is whether it
//! is better than its own reference on both. So where the verdicts disagree is told
//! apart, and first of all what the two differ in.

use std::collections::BTreeMap;

use crate::bench::compare::Cell;
use crate::bench::data::Results;
use crate::bench::show::{
    Block, blocks, clients_text, figure, fold, has_value, left, plain, times, word,
};
use crate::bench::stats::Verdict;
use crate::bench::table::Grid;
use crate::metrics::WIDTH;

/// Before the lines of a list.
const INDENT: usize = 2;

type Side<'a> = (&'a str, &'a Results, &'a [Cell]);

/// What both measured, side by side, and where they disagree; one line if they have
/// nothing in common.
pub fn across(a: Side, b: Side) -> String {
    let mut lines = vec![];
    for (letter, (name, results, _)) in [("A", &a), ("B", &b)] {
        let text = format!("{name}, {}, {}", results.started, results.spec.name);
        lines.extend(fold(&format!("{letter}: "), &text, 3, WIDTH));
    }
    if let Some(why) = nothing_in_common(&a, &b) {
        return why + "\n";
    }
    lines.push(String::new());
    differences(a.1, b.1, &mut lines);
    let (of_a, of_b) = (blocks(a.2), blocks(b.2));
    let mut disagree = vec![];
    for (x, y) in of_a.iter().filter_map(|x| Some((x, partner(x, &of_b)?))) {
        side_by_side(x, y, (a.1, b.1), &mut lines);
        disagree.extend(disagreements(x, y));
    }
    list("They disagree:", &disagree, &mut lines);
    for (letter, here, there) in [("A", a.2, b.2), ("B", b.2, a.2)] {
        list(
            &format!("Only in {letter}:"),
            &only(here, there),
            &mut lines,
        );
    }
    for (letter, results) in [("A", a.1), ("B", b.1)] {
        let text = format!(
            "{letter}'s ratios are to {}.",
            results.spec.reference_name()
        );
        lines.extend(fold("", &text, 0, WIDTH));
    }
    lines.join("\n") + "\n"
}

/// The block of the same figure on the other side.
fn partner<'a, 'b>(block: &Block, others: &'a [Block<'b>]) -> Option<&'a Block<'b>> {
    others.iter().find(|other| {
        let (one, two) = (block.metric, other.metric);
        let same_way = one.unit == two.unit && one.better == two.better;
        other.workload == block.workload && one.name == two.name && same_way
    })
}

/// Whether two cells are of one thing.
fn same(a: &Cell, b: &Cell) -> bool {
    let way = |c: &Cell| (c.clients, c.metric.better);
    let names = |c: &Cell| {
        [
            c.workload.clone(),
            c.metric.name.clone(),
            c.metric.unit.clone(),
        ]
    };
    way(a) == way(b) && a.setting == b.setting && names(a) == names(b)
}

/// From the workload down, the first thing that no two cells share.
fn nothing_in_common(a: &Side, b: &Side) -> Option<String> {
    let (of_a, of_b): (Vec<&Cell>, Vec<&Cell>) = (
        a.2.iter().filter(|c| has_value(c)).collect(),
        b.2.iter().filter(|c| has_value(c)).collect(),
    );
    for ((name, _, _), cells) in [(a, &of_a), (b, &of_b)] {
        if cells.is_empty() {
            return Some(format!(
                "{} has no figures: nothing to compare",
                plain(name)
            ));
        }
    }
    let any = |alike: &dyn Fn(&Cell, &Cell) -> bool| {
        of_a.iter().any(|x| of_b.iter().any(|y| alike(x, y)))
    };
    let metric = |x: &Cell, y: &Cell| {
        let key = |c: &Cell| {
            (
                c.metric.name.clone(),
                c.metric.unit.clone(),
                c.metric.better,
            )
        };
        x.workload == y.workload && key(x) == key(y)
    };
    let what = if !any(&|x, y| x.workload == y.workload) {
        "workload"
    } else if !any(&metric) {
        "metric (name, unit, and which way is better)"
    } else if !any(&|x, y| metric(x, y) && x.setting == y.setting) {
        "setting by name"
    } else if !any(&same) {
        "number of clients"
    } else {
        return None;
    };
    Some(format!(
        "{} and {} have no {what} in common",
        plain(a.0),
        plain(b.0)
    ))
}

/// What makes the two sides two.
fn differences(a: &Results, b: &Results, lines: &mut Vec<String>) {
    let mut all: Vec<[String; 3]> = vec![];
    let mut differ = |what: &str, x: String, y: String| {
        if x != y {
            all.push([plain(what), x, y]);
        }
    };
    let of = |results: &Results, what: &str| {
        let found = results.machine.iter().find(|(w, _)| w == what);
        found.map_or("not known".to_string(), |(_, value)| plain(value))
    };
    let more = b
        .machine
        .iter()
        .filter(|(w, _)| a.machine.iter().all(|(v, _)| v != w));
    for (what, _) in a.machine.iter().chain(more) {
        differ(what, of(a, what), of(b, what));
    }
    differ(
        "rounds",
        a.spec.rounds.to_string(),
        b.spec.rounds.to_string(),
    );
    differ(
        "seconds",
        a.spec.seconds.to_string(),
        b.spec.seconds.to_string(),
    );
    differ(
        "reference",
        plain(a.spec.reference_name()),
        plain(b.spec.reference_name()),
    );
    for x in &a.spec.settings {
        for y in b.spec.settings.iter().filter(|y| y.name == x.name) {
            differ(&format!("setting {}", x.name), plain(&x.is), plain(&y.is));
        }
    }
    for x in &a.spec.workloads {
        for y in b.spec.workloads.iter().filter(|y| y.name == x.name) {
            differ(
                &format!("command of {}", x.name),
                plain(&x.command),
                plain(&y.command),
            );
        }
    }
    lines.push(match all.is_empty() {
        true => "The machines and what was run are alike.".into(),
        false => "They differ in:".into(),
    });
    for [what, x, y] in all {
        lines.extend(fold(&" ".repeat(INDENT), &what, INDENT + 2, WIDTH));
        lines.extend(fold("    A: ", &x, 7, WIDTH));
        lines.extend(fold("    B: ", &y, 7, WIDTH));
    }
    lines.push(String::new());
}

fn side_by_side(a: &Block, b: &Block, of: (&Results, &Results), lines: &mut Vec<String>) {
    let mut grid = Grid::new(&["", "A", "B", "B/A", "A's ratio", "B's ratio"]);
    for n in a.clients.iter().filter(|n| b.clients.contains(n)) {
        let pairs = |s: &&'_ str| Some((a.at(*n, s)?, b.at(*n, s)?));
        let pairs: Vec<_> = a.settings.iter().filter_map(pairs).collect();
        let many = a.is_sweep() || b.is_sweep();
        if many && !pairs.is_empty() {
            grid.rows.push((clients_text(*n), vec![String::new(); 5]));
        }
        for (x, y) in pairs {
            let row = vec![
                figure(x.median),
                figure(y.median),
                times(y.median / x.median),
                judged(x, of.0),
                judged(y, of.1),
            ];
            let indent = if many { "  " } else { "" };
            grid.rows
                .push((indent.to_string() + &plain(&x.setting), row));
        }
    }
    if grid.rows.is_empty() {
        return;
    }
    let clients = match a.clients.as_slice() {
        [n] if *n > 0 && !b.is_sweep() => format!(", {}", clients_text(*n)),
        _ => String::new(),
    };
    let title = format!("{}{clients}: {}; medians", a.workload, a.what());
    lines.extend(fold("", &title, 2, WIDTH));
    lines.push(String::new());
    grid.print(WIDTH, lines);
    lines.push(String::new());
}

/// "0.953 worse", with the words below each other.
fn judged(cell: &Cell, results: &Results) -> String {
    match cell.ratio {
        _ if cell.setting == results.spec.reference_name() => "reference".into(),
        None => "-".into(),
        Some(ratio) => {
            let verdict = cell.verdict.map_or("", word);
            format!("{} {}", times(ratio.value), left(verdict, 6))
        }
    }
}

/// Better on one side, worse on the other: no advice holds for both.
fn disagreements(a: &Block, b: &Block) -> Vec<String> {
    let opposed = |x: &Cell, y: &Cell| {
        let pair = (x.verdict, y.verdict);
        matches!(
            pair,
            (Some(Verdict::Better), Some(Verdict::Worse))
                | (Some(Verdict::Worse), Some(Verdict::Better))
        )
    };
    let told = a.cells().filter_map(|x| {
        let y = b.at(x.clients, &x.setting)?;
        let words = (x.verdict.map_or("", word), y.verdict.map_or("", word));
        opposed(x, y).then(|| {
            let place = place(x);
            format!("{}, {place}: {} in A, {} in B", x.setting, words.0, words.1)
        })
    });
    told.collect()
}

fn place(cell: &Cell) -> String {
    let clients = match cell.clients {
        0 => String::new(),
        n => format!(" with {}", clients_text(n)),
    };
    format!("{} of {}{clients}", cell.metric.name, cell.workload)
}

/// What has no counterpart, a line a setting and metric.
fn only(here: &[Cell], there: &[Cell]) -> Vec<String> {
    let mut places: Vec<String> = vec![];
    let mut clients: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let lonely = |c: &&Cell| !there.iter().any(|o| has_value(o) && same(c, o));
    for cell in here.iter().filter(|c| has_value(c)).filter(lonely) {
        let place = format!(
            "{} of {}, {}",
            cell.metric.name, cell.workload, cell.setting
        );
        if !places.contains(&place) {
            places.push(place.clone());
        }
        if cell.clients > 0 {
            clients
                .entry(place)
                .or_default()
                .push(cell.clients.to_string());
        }
    }
    let with = |place: String| match clients.get(&place) {
        Some(numbers) => format!("{place}: clients {}", numbers.join(", ")),
        None => place,
    };
    places.into_iter().map(with).collect()
}

fn list(title: &str, entries: &[String], lines: &mut Vec<String>) {
    if entries.is_empty() {
        return;
    }
    lines.push(title.into());
    for entry in entries {
        lines.extend(fold(&" ".repeat(INDENT), entry, INDENT + 2, WIDTH));
    }
    lines.push(String::new());
}
