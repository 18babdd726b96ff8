// SPDX-License-Identifier: GPL-2.0-only
//! What all outputs of a bench have in common: cells in blocks of one workload and
//! metric, numbers as text, verdicts as words, notes. Pure.
//!
//! A number is never told without what it is worth: whoever shows a ratio shows its
//! verdict too. Names are anybody's text: [`plain`] before they go into a line.

use textwrap::core::display_width;

use crate::bench::compare::Cell;
use crate::bench::data::{Better, Metric, Results, Run};
use crate::bench::stats::{Ratio, Verdict};
use crate::hist::show_rounded;
use crate::metrics::show_count;

/// The cells of one workload and metric.
#[derive(Debug)]
pub struct Block<'a> {
    /// Name of the workload.
    pub workload: &'a str,
    /// The metric.
    pub metric: &'a Metric,
    /// Values of `{clients}`, in the order of the cells.
    pub clients: Vec<u32>,
    /// Names of the settings, in the order of the cells.
    pub settings: Vec<&'a str>,
    cells: Vec<&'a Cell>,
}

/// All cells by workload and metric, each in the order of its first cell.
pub fn blocks(cells: &[Cell]) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block> = vec![];
    for cell in cells {
        let of = |b: &&mut Block| b.workload == cell.workload && b.metric.name == cell.metric.name;
        match blocks.iter_mut().find(of) {
            Some(block) => block.add(cell),
            None => {
                let mut block = Block {
                    workload: &cell.workload,
                    metric: &cell.metric,
                    clients: vec![],
                    settings: vec![],
                    cells: vec![],
                };
                block.add(cell);
                blocks.push(block);
            }
        }
    }
    blocks
}

impl<'a> Block<'a> {
    fn add(&mut self, cell: &'a Cell) {
        if !self.clients.contains(&cell.clients) {
            self.clients.push(cell.clients);
        }
        if !self.settings.contains(&cell.setting.as_str()) {
            self.settings.push(&cell.setting);
        }
        self.cells.push(cell);
    }

    /// Its cells, in order.
    pub fn cells(&self) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().copied()
    }

    /// A cell that has a value.
    pub fn at(&self, clients: u32, setting: &str) -> Option<&'a Cell> {
        let here = |c: &&Cell| c.clients == clients && c.setting == setting;
        self.cells().find(here).filter(|c| has_value(c))
    }

    /// Whether it has several numbers of clients.
    pub fn is_sweep(&self) -> bool {
        self.clients.len() > 1
    }

    /// "pgbench, 16 clients: latency, ms (lower is better); median of 7 rounds".
    pub fn title(&self) -> String {
        let clients = match self.clients.as_slice() {
            [n] if *n > 0 => format!(", {}", clients_text(*n)),
            _ => String::new(),
        };
        let workload = plain(self.workload);
        format!("{workload}{clients}: {}; {}", self.what(), self.rounds())
    }

    /// "latency, ms (lower is better)".
    pub fn what(&self) -> String {
        format!("{} ({} is better)", self.axis(), way(self.metric.better))
    }

    /// "latency, ms".
    pub fn axis(&self) -> String {
        match self.metric.unit.as_str() {
            "" => plain(&self.metric.name),
            unit => plain(&format!("{}, {unit}", self.metric.name)),
        }
    }

    fn rounds(&self) -> String {
        let counts = || self.cells().map(|c| c.values.len());
        let (least, most) = (counts().min(), counts().max());
        match (least.unwrap_or(0), most.unwrap_or(0)) {
            (1, 1) => "one round".into(),
            (a, b) if a == b => format!("median of {a} rounds"),
            (a, b) => format!("median of {a} to {b} rounds"),
        }
    }

    /// How far the reference's ratio to itself may lie from 1 with so many clients;
    /// none if that was not measured.
    pub fn floor(&self, clients: u32) -> Option<f64> {
        let here = self.cells().filter(|c| c.clients == clients);
        here.filter_map(floor).next()
    }

    /// Median over that of the setting before: what a rung of a ladder adds.
    pub fn step(&self, clients: u32, setting: &str) -> Option<f64> {
        let place = self.settings.iter().position(|s| *s == setting)?;
        let before = self.at(clients, self.settings[place.checked_sub(1)?])?;
        let step = self.at(clients, setting)?.median / before.median;
        step.is_finite().then_some(step)
    }
}

/// Whether anything was measured.
pub fn has_value(cell: &Cell) -> bool {
    !cell.values.is_empty() && cell.median.is_finite()
}

/// The noise floor, where it is known.
pub fn floor(cell: &Cell) -> Option<f64> {
    cell.floor.filter(|f: &f64| f.is_finite())
}

/// Which way is good, as a word.
pub fn way(better: Better) -> &'static str {
    match better {
        Better::Higher => "higher",
        Better::Lower => "lower",
    }
}

/// "1 client", "16 clients".
pub fn clients_text(n: u32) -> String {
    format!("{n} client{}", if n == 1 { "" } else { "s" })
}

/// A figure with at least four digits where it has them.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if !value.is_finite() => "-".into(),
        0.0 => "0".into(),
        n if n >= 1e12 => format!("{value:.2e}"),
        n if n >= 9_999_999.5 => format!("{:.2}M", value / 1e6),
        n if n >= 999.95 => {
            let sign = if value < 0.0 { "-" } else { "" };
            sign.to_string() + &crate::prose::grouped(size.round() as u64)
        }
        n if n >= 99.995 => format!("{value:.1}"),
        n if n >= 9.9995 => format!("{value:.2}"),
        n if n >= 0.0999 => format!("{value:.3}"),
        n if n >= 0.001 => format!("{value:.5}"),
        _ => format!("{value:.2e}"),
    }
}

/// A ratio: a tenth of a percent counts near 1, not at 12.
pub fn times(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() => "-".into(),
        r if r >= 99_999.5 => format!("{r:.1e}"),
        r if r >= 99.95 => format!("{r:.0}"),
        r if r >= 9.995 => format!("{r:.1}"),
        r if r >= 1.9995 => format!("{r:.2}"),
        r => format!("{r:.3}"),
    }
}

/// The ends of a ratio's interval.
pub fn interval(ratio: &Ratio) -> String {
    if !ratio.high.is_finite() {
        return "not known".into();
    }
    format!("{} .. {}", times(ratio.low), times(ratio.high))
}

/// "1.2 %", from a fraction.
pub fn percent(fraction: f64) -> String {
    format!("{:.1} %", fraction * 100.0)
}

/// A verdict as a word.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Same => "same",
        Verdict::TooNoisy => "noisy",
    }
}

/// A verdict as one character; a blank where no difference was shown.
pub fn mark(verdict: Option<Verdict>) -> char {
    match verdict {
        Some(Verdict::Better) => '+',
        Some(Verdict::Worse) => '-',
        Some(Verdict::TooNoisy) => '?',
        Some(Verdict::Same) | None => ' ',
    }
}

/// What the words mean.
pub fn legend(results: &Results) -> String {
    format!(
        "better, worse: than {}, beyond the 95 % interval and the noise floor. same: \
         no difference shown. noisy: too much noise to tell. Ratios are made round by \
         round and may differ a little from those of the medians.",
        plain(results.spec.reference_name())
    )
}

/// Whether a cell calls for an explanation.
pub fn differs(cell: &Cell) -> bool {
    matches!(cell.verdict, Some(Verdict::Better | Verdict::Worse))
}

/// What goes with a difference: counters, wakeup latency; none if nothing is known.
pub fn because(cell: &Cell) -> Option<String> {
    let rate = |n: f64| match n {
        n if (1000.0..9_999.5).contains(&n) => figure(n),
        n => show_count(n),
    };
    let counters = cell.why.iter().map(|why| {
        let (here, there) = (rate(why.here), rate(why.there));
        format!("{} {here}/s against {there}/s", plain(&why.counter))
    });
    let latency = cell.latency.map(|(half, most)| {
        let (half, most) = (show_rounded(half), show_rounded(most));
        format!("wakeup latency p50 {half}, p99 {most}")
    });
    let all: Vec<String> = counters.chain(latency).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// What there is to explain in a block. Of a sweep, each setting's strongest gain
/// and loss come first; `all` brings the others after them.
pub fn explained<'a>(block: &Block<'a>, all: bool) -> Vec<(&'a Cell, String)> {
    let told: Vec<&Cell> = block.cells().filter(|c| differs(c)).collect();
    let size = |c: &Cell| c.ratio.map_or(0.0, |r| r.value.ln().abs());
    let strongest = |c: &&Cell| {
        let rival = |o: &&Cell| o.setting == c.setting && o.verdict == c.verdict;
        !told.iter().any(|o| rival(o) && size(o) > size(c))
    };
    let (mut first, rest): (Vec<&Cell>, Vec<&Cell>) = told.iter().partition(|c| strongest(c));
    first.sort_by_key(|c| block.settings.iter().position(|s| *s == c.setting));
    let rest = rest.into_iter().filter(|_| all);
    let both = first.into_iter().chain(rest);
    both.filter_map(|c| Some((c, because(c)?))).collect()
}

/// Whether a run is the one that counts of its round and place.
pub fn counts(results: &Results, run: &Run) -> bool {
    let repeated = |other: &Run| other.repeat && same_place(other, run);
    !run.twin && (run.repeat || !results.runs.iter().any(repeated))
}

/// Whether two runs are of the same cell and round.
pub fn same_place(a: &Run, b: &Run) -> bool {
    let place = |r: &Run| (r.round, r.twin, r.clients);
    place(a) == place(b) && a.setting == b.setting && a.workload == b.workload
}

/// A text in one line: anybody's names may hold line breaks.
pub fn plain(text: &str) -> String {
    let tame = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(tame).collect()
}

/// Lines of at most so many columns, the first behind `head`, the others behind as
/// many blanks as `hang`. A number and its % stay together.
pub fn fold(head: &str, text: &str, hang: usize, width: usize) -> Vec<String> {
    let glued = plain(text).replace(" %", "\u{a0}%");
    let blanks = " ".repeat(hang);
    let how = textwrap::Options::new(width)
        .initial_indent(head)
        .subsequent_indent(&blanks)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    let lines = textwrap::wrap(&glued, how);
    lines
        .iter()
        .map(|line| line.replace('\u{a0}', " "))
        .collect()
}

/// A text with blanks behind it, to so many columns.
pub fn left(text: &str, width: usize) -> String {
    text.to_string() + &" ".repeat(width.saturating_sub(display_width(text)))
}

/// A text with blanks before it.
pub fn right(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(display_width(text))) + text
}

/// Columns that a text takes.
pub fn columns(text: &str) -> usize {
    display_width(text)
}
