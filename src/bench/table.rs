// SPDX-License-Identifier: GPL-2.0-only
//! A bench as text for a terminal, in the shape that such figures are posted in:
//! a column a number of clients, a row a setting, ratios below. Pure.
//!
//! No line is longer than 80 columns. A long name goes on in the next line; it is
//! never cut, since names that differ may differ at their ends.

use crate::bench::compare::Cell;
use crate::bench::cost;
use crate::bench::data::Results;
use crate::bench::notes::notes;
use crate::bench::show::{
    Block, blocks, clients_text, columns, explained, figure, fold, interval, left, legend, mark,
    percent, plain, right, times, word,
};
use crate::metrics::WIDTH;

/// Longest part of a line that a name may take in a table of columns.
const NAME: usize = 28;
/// Between columns.
const GAP: usize = 2;
/// What a terminal is told of the machine; the JSON and the page have it all.
const BRIEF: [&str; 7] = [
    "kernel", "cpu", "model", "cpus", "topology", "governor", "memory",
];

/// All blocks, then why, then what to know before believing them.
pub fn table(results: &Results, cells: &[Cell]) -> String {
    let mut lines = vec![];
    let about = format!("{}: {}", results.spec.name, results.spec.about);
    lines.extend(fold("", &about, 2, WIDTH));
    lines.push(String::new());
    if cells.is_empty() {
        lines.push("nothing was measured".into());
    }
    for block in blocks(cells) {
        lines.extend(fold("", &block.title(), 2, WIDTH));
        lines.push(String::new());
        if block.is_sweep() {
            sweep(results, &block, &mut lines);
        } else {
            single(results, &block, &mut lines);
        }
        lines.push(String::new());
        why(&block, &mut lines);
    }
    lines.extend(cost::text(results));
    foot(results, cells, &mut lines);
    lines.join("\n") + "\n"
}

/// One row a setting: median, ratio, interval, verdict.
fn single(results: &Results, block: &Block, lines: &mut Vec<String>) {
    let clients = block.clients[0];
    let mut grid = Grid::new(&["", "median", "ratio", "95 % interval", "verdict"]);
    if results.spec.ladder {
        grid.head.push("step".into());
    }
    for setting in &block.settings {
        let cell = block.at(clients, setting);
        let ratio = cell.and_then(|c| c.ratio);
        let verdict = match cell {
            Some(_) if *setting == results.spec.reference_name() => "reference",
            Some(cell) => cell.verdict.map_or("", word),
            None => "no figure",
        };
        let mut row = vec![
            cell.map_or("-".into(), |c| figure(c.median)),
            ratio.map_or(String::new(), |r| times(r.value)),
            ratio.map_or(String::new(), |r| interval(&r)),
            verdict.into(),
        ];
        if results.spec.ladder {
            row.push(block.step(clients, setting).map_or(String::new(), times));
        }
        grid.rows.push((plain(setting), row));
    }
    grid.print(WIDTH, lines);
    if let Some(floor) = block.floor(clients) {
        let text = format!(
            "{} against itself: within {}",
            results.spec.reference_name(),
            percent(floor)
        );
        lines.extend(fold("", &text, 2, WIDTH));
    }
}

/// A column a number of clients: medians, then ratios with marks.
fn sweep(results: &Results, block: &Block, lines: &mut Vec<String>) {
    let mut grid = Grid::new(&["clients"]);
    grid.head
        .extend(block.clients.iter().map(|n| format!("{n} ")));
    let mut row = |name: &str, text: &dyn Fn(u32) -> String| {
        let texts = block.clients.iter().map(|n| text(*n)).collect();
        grid.rows.push((plain(name), texts));
    };
    for setting in &block.settings {
        let median = |n| {
            block
                .at(n, setting)
                .map_or("- ".into(), |c| figure(c.median) + " ")
        };
        row(setting, &median);
    }
    let reference = results.spec.reference_name();
    row("", &|_| String::new());
    row(&format!("ratio to {reference}"), &|_| String::new());
    for setting in block.settings.iter().filter(|s| **s != reference) {
        let ratio = |n| match block.at(n, setting) {
            Some(cell) => cell.ratio.map_or("- ".into(), |r| {
                format!("{}{}", times(r.value), mark(cell.verdict))
            }),
            None => "- ".into(),
        };
        row(setting, &ratio);
    }
    if results.spec.ladder {
        row("", &|_| String::new());
        row("step: ratio to the row above", &|_| String::new());
        for setting in block.settings.iter().skip(1) {
            let step = |n| {
                block
                    .step(n, setting)
                    .map_or("- ".into(), |s| times(s) + " ")
            };
            row(setting, &step);
        }
    }
    if block.clients.iter().any(|n| block.floor(*n).is_some()) {
        row("", &|_| String::new());
        let floor = |n| {
            block
                .floor(n)
                .map_or("- ".into(), |f| percent(f).replace(' ', ""))
        };
        row(&format!("{reference} to itself, within"), &floor);
    }
    grid.print_split(lines);
}

/// Counters and latencies of whatever is better or worse; the page has all of a
/// sweep, which would fill a terminal.
fn why(block: &Block, lines: &mut Vec<String>) {
    let before = lines.len();
    for (cell, because) in explained(block, false) {
        if lines.len() == before {
            let which = if block.is_sweep() {
                ", where it is strongest"
            } else {
                ""
            };
            lines.push(format!("Why{which}:"));
        }
        let clients = match block.is_sweep() {
            true => format!(", {}", clients_text(cell.clients)),
            false => String::new(),
        };
        let verdict = cell.verdict.map_or("", word);
        let text = format!("{}{clients}, {verdict}: {because}", cell.setting);
        lines.extend(fold("  ", &text, 4, WIDTH));
    }
    if lines.len() > before {
        lines.push(String::new());
    }
}

fn foot(results: &Results, cells: &[Cell], lines: &mut Vec<String>) {
    if cells.iter().any(|c| c.ratio.is_some()) {
        let marks = match blocks(cells).iter().any(Block::is_sweep) {
            true => " Marks: + better, - worse, ? noisy.",
            false => "",
        };
        lines.extend(fold("", &(legend(results) + marks), 0, WIDTH));
        lines.push(String::new());
    }
    let notes = notes(results, cells);
    for note in &notes {
        lines.extend(fold("* ", note, 2, WIDTH));
    }
    if !notes.is_empty() {
        lines.push(String::new());
    }
    for (what, value) in brief(results) {
        lines.extend(fold(&left(&what, 10), &value, 10, WIDTH));
    }
}

/// The machine in a few lines, with what it takes to do it again.
fn brief(results: &Results) -> Vec<(String, String)> {
    let known = |what: &str| BRIEF.contains(&what.to_lowercase().as_str());
    let machine = results.machine.iter().filter(|(what, _)| known(what));
    let mut all: Vec<_> = machine.cloned().collect();
    all.push(("started".into(), results.started.clone()));
    all.push(("seed".into(), results.seed.to_string()));
    all.into_iter()
        .map(|(what, value)| (plain(&what) + "  ", value))
        .collect()
}

/// Rows with a name each, and columns aligned to the right.
pub struct Grid {
    /// Name of the names' column, then those of the others.
    pub head: Vec<String>,
    /// Name, then a text a column. A row with empty texts is a heading.
    pub rows: Vec<(String, Vec<String>)>,
}

impl Grid {
    /// One without rows.
    pub fn new(head: &[&str]) -> Grid {
        Grid {
            head: head.iter().map(|text| (*text).into()).collect(),
            rows: vec![],
        }
    }

    /// Width of each column but the first.
    fn widths(&self) -> Vec<usize> {
        let widest = |(i, head): (usize, &String)| {
            let texts = self.rows.iter().filter_map(|(_, row)| row.get(i));
            texts.chain([head]).map(|t| columns(t)).max().unwrap_or(0) + GAP
        };
        self.head.iter().skip(1).enumerate().map(widest).collect()
    }

    fn name_width(&self, most: usize) -> usize {
        let of_columns = self.rows.iter().filter(|(_, row)| !empty(row));
        let names = of_columns.map(|(name, _)| name).chain(&self.head[..1]);
        names.map(|n| columns(n)).max().unwrap_or(0).min(most)
    }

    /// All columns in one; the names take what is left of `width`.
    pub fn print(&self, width: usize, lines: &mut Vec<String>) {
        let taken: usize = self.widths().iter().sum();
        let name = self.name_width(width.saturating_sub(taken));
        self.part(0..self.widths().len(), name, lines);
    }

    /// As many columns as fit side by side, the others below.
    pub fn print_split(&self, lines: &mut Vec<String>) {
        let widths = self.widths();
        let name = self.name_width(NAME);
        let mut from = 0;
        while from < widths.len() {
            let mut to = from + 1;
            while to < widths.len() && name + widths[from..=to].iter().sum::<usize>() <= WIDTH {
                to += 1;
            }
            if from > 0 {
                lines.push(String::new());
            }
            self.part(from..to, name, lines);
            from = to;
        }
    }

    fn part(&self, part: std::ops::Range<usize>, name: usize, lines: &mut Vec<String>) {
        let widths = self.widths();
        let mut line = |first: &str, row: &[String]| {
            let texts = part
                .clone()
                .filter_map(|i| Some(right(row.get(i)?, widths[i])));
            let text = left(first, name) + &texts.collect::<String>();
            lines.push(text.trim_end().to_string());
        };
        line(&self.head[0], &self.head[1..]);
        for (first, row) in &self.rows {
            let whole = if empty(row) { WIDTH } else { name };
            let mut names = fold("", first, 2, whole).into_iter();
            line(&names.next().unwrap_or_default(), row);
            for more in names {
                line(&more, &[]);
            }
        }
    }
}

fn empty(row: &[String]) -> bool {
    row.iter().all(String::is_empty)
}
