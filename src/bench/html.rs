// SPDX-License-Identifier: GPL-2.0-only
//! A bench as one page: figures, and below each the table, the verdicts and why;
//! then the raw data and the machine. Pure.
//!
//! The page is whole in itself: it fetches nothing and runs nothing, so that it can
//! be mailed, and read in ten years. All text goes through maud, which escapes it.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::bench::compare::Cell;
use crate::bench::cost;
use crate::bench::data::Results;
use crate::bench::figures::{latency_plots, ratio_bars, sweep_plots};
use crate::bench::notes::notes;
use crate::bench::show::{
    Block, blocks, clients_text, counts, explained, figure, interval, legend, percent, times, word,
};
use crate::bench::stats::Verdict;
use crate::hist::show_rounded;

/// The page; see report.css for how it looks on what.
pub fn html(results: &Results, cells: &[Cell]) -> String {
    let spec = &results.spec;
    let mut workloads: Vec<&str> = vec![];
    for cell in cells {
        if !workloads.contains(&cell.workload.as_str()) {
            workloads.push(&cell.workload);
        }
    }
    let blocks = blocks(cells);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "scx_kin bench: " (spec.name) }
                style { (PreEscaped(include_str!("report.css"))) }
            }
            body { main {
                h1 { (spec.name) }
                p { (spec.about) }
                p.soft {
                    "scx_kin bench, " (results.started) ", seed " (results.seed)
                    @for what in ["kernel", "cpu"] {
                        @for (_, value) in results.machine.iter().filter(|(w, _)| w.eq_ignore_ascii_case(what)) {
                            ", " (value)
                        }
                    }
                }
                (warnings(results, cells))
                (summary(results, cells))
                @for workload in workloads {
                    section {
                        h2 { (workload) }
                        @for block in blocks.iter().filter(|b| b.workload == workload) {
                            (one_block(results, block))
                        }
                        (latency_plots(results, workload))
                        (latencies(&blocks, workload))
                    }
                }
                (costs(results))
                (settings(results))
                (machine(results))
                (raw(results))
            } }
        }
    };
    // HTML has no way to write these down, escaped or not.
    let tame = |c: &char| !c.is_control() || *c == '\n';
    page.into_string().chars().filter(tame).collect()
}

fn warnings(results: &Results, cells: &[Cell]) -> Markup {
    let notes = notes(results, cells);
    html! {
        @if cells.is_empty() { p { "Nothing was measured." } }
        @if !notes.is_empty() {
            div.note { ul { @for note in notes { li { (note) } } } }
        }
    }
}

/// How often each setting came out how.
fn summary(results: &Results, cells: &[Cell]) -> Markup {
    let verdicts = [
        Verdict::Better,
        Verdict::Worse,
        Verdict::Same,
        Verdict::TooNoisy,
    ];
    let mut counted: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for cell in cells {
        if let Some(place) = verdicts.iter().position(|v| Some(*v) == cell.verdict) {
            counted.entry(&cell.setting).or_default()[place] += 1;
        }
    }
    let rows = results.spec.settings.iter();
    let rows = rows.filter_map(|s| Some((&s.name, counted.get(s.name.as_str())?)));
    html! {
        @if !counted.is_empty() {
            h2 { "In short" }
            p { "How many of the comparisons with " b { (results.spec.reference_name()) } " came out how:" }
            div.box { table {
                thead { tr { th { "setting" } @for v in verdicts { th { (word(v)) } } } }
                tbody { @for (setting, numbers) in rows {
                    tr {
                        th { (name(setting)) }
                        @for (v, n) in verdicts.iter().zip(numbers) {
                            td { @if *n > 0 { span.(word(*v)) { (n) } } @else { "0" } }
                        }
                    }
                } }
            } }
            p.soft { (legend(results)) }
        }
    }
}

fn one_block(results: &Results, block: &Block) -> Markup {
    html! {
        h3 { (block.title()) }
        @if block.is_sweep() {
            (sweep_plots(results, block))
            (matrix(results, block))
        } @else {
            (ratio_bars(results, block))
            (rows(results, block))
        }
        (floor(results, block))
        (why(block))
    }
}

/// A verdict with a mark that stands out without its colour.
fn verdict(verdict: Option<Verdict>) -> Markup {
    let mark = match verdict {
        Some(Verdict::Better) => "\u{25b2} ",
        Some(Verdict::Worse) => "\u{25bc} ",
        _ => "",
    };
    html! { @if let Some(v) = verdict { span.(word(v)) { (mark) (word(v)) } } }
}

/// A name that may be broken where it has joints.
fn name(text: &str) -> Markup {
    html! { @for part in text.split_inclusive(['_', '=', ':', '-']) { (part) wbr; } }
}

/// A row a setting.
fn rows(results: &Results, block: &Block) -> Markup {
    let clients = block.clients[0];
    let ladder = results.spec.ladder;
    html! {
        div.box { table {
            thead { tr {
                th { "setting" } th { "median" } th { "ratio" } th { "95 % interval" }
                th.text { "verdict" }
                @if ladder { th { "step" } }
            } }
            tbody { @for setting in &block.settings {
                @let cell = block.at(clients, setting);
                tr {
                    th { (name(setting)) }
                    td { (cell.map_or("-".into(), |c| figure(c.median))) }
                    @if let Some(ratio) = cell.and_then(|c| c.ratio) {
                        td { (times(ratio.value)) }
                        td { (interval(&ratio)) }
                    } @else { td {} td {} }
                    td.text {
                        @if *setting == results.spec.reference_name() { "reference" }
                        (verdict(cell.and_then(|c| c.verdict)))
                    }
                    @if ladder { td { (step(block, clients, setting)) } }
                }
            } }
        } }
        @if ladder { p.soft { "step: ratio of the median to that of the row above." } }
    }
}

fn step(block: &Block, clients: u32, setting: &str) -> String {
    block.step(clients, setting).map_or(String::new(), times)
}

/// A row a setting, a column a number of clients.
fn matrix(results: &Results, block: &Block) -> Markup {
    html! {
        div.box { table.matrix {
            thead { tr {
                th { "clients" }
                @for n in &block.clients { th { (n) } }
            } }
            tbody { @for setting in &block.settings {
                tr {
                    th { (name(setting)) }
                    @for n in &block.clients { td { (entry(results, block, *n, setting)) } }
                }
            }
            @if block.clients.iter().any(|n| block.floor(*n).is_some()) {
                tr.soft {
                    th { (results.spec.reference_name()) " against itself, within" }
                    @for n in &block.clients { td { (block.floor(*n).map_or("-".into(), percent)) } }
                }
            } }
        } }
    }
}

fn entry(results: &Results, block: &Block, clients: u32, setting: &str) -> Markup {
    let Some(cell) = block.at(clients, setting) else {
        return html! { "-" };
    };
    let step = match results.spec.ladder {
        true => step(block, clients, setting),
        false => String::new(),
    };
    html! {
        (figure(cell.median))
        @if let Some(ratio) = cell.ratio {
            div { "\u{d7}" (times(ratio.value)) }
            small { (interval(&ratio)) }
            (verdict(cell.verdict))
        }
        @if !step.is_empty() { small { "step " (step) } }
    }
}

fn floor(results: &Results, block: &Block) -> Markup {
    let floor = block.floor(block.clients[0]);
    html! {
        @if let (Some(floor), false) = (floor, block.is_sweep()) {
            p.soft { (results.spec.reference_name()) " against itself: within " (percent(floor)) "." }
        }
    }
}

/// A short list in sight, the rest of a long one on request.
fn why(block: &Block) -> Markup {
    let first = explained(block, false).len();
    let told = explained(block, true);
    html! {
        @if !told.is_empty() {
            p { b { "Why" @if told.len() > first { ", where each is strongest" } } }
            (reasons(block, &told[..first]))
        }
        @if told.len() > first {
            details {
                summary { "Why, for the " (told.len() - first) " others" }
                (reasons(block, &told[first..]))
            }
        }
    }
}

fn reasons(block: &Block, told: &[(&Cell, String)]) -> Markup {
    html! {
        ul { @for (cell, because) in told {
            li {
                b { (cell.setting) }
                @if block.is_sweep() { ", " (clients_text(cell.clients)) }
                ", " (verdict(cell.verdict)) ": " (because)
            }
        } }
    }
}

/// Wakeup latencies of a workload; they are the same under each of its metrics.
fn latencies(blocks: &[Block], workload: &str) -> Markup {
    let Some(block) = blocks.iter().find(|b| b.workload == workload) else {
        return html! {};
    };
    let known = |s: &&&str| {
        block
            .cells()
            .any(|c| c.setting == **s && c.latency.is_some())
    };
    let settings: Vec<_> = block.settings.iter().filter(known).collect();
    html! {
        @if !settings.is_empty() {
            div.box { table.matrix {
                thead { tr {
                    th { "wakeup latency" }
                    @for n in &block.clients {
                        th { @if *n > 0 { (clients_text(*n)) } }
                    }
                } }
                tbody { @for setting in settings {
                    tr {
                        th { (name(setting)) }
                        @for n in &block.clients {
                            td {
                                @match block.at(*n, setting).and_then(|c| c.latency) {
                                    Some((half, most)) => {
                                        "p50 " (show_rounded(half))
                                        div { "p99 " (show_rounded(most)) }
                                    }
                                    None => "-",
                                }
                            }
                        }
                    }
                } }
            } }
        }
    }
}

fn costs(results: &Results) -> Markup {
    let lines = cost::text(results);
    html! {
        @if !lines.is_empty() {
            section {
                h2 { "What callbacks cost" }
                pre { (lines.join("\n")) }
            }
        }
    }
}

fn settings(results: &Results) -> Markup {
    html! {
        h2 { "What was compared" }
        div.box { table {
            thead { tr { th { "setting" } th.text { "is" } } }
            tbody { @for setting in &results.spec.settings {
                tr { th { (name(&setting.name)) } td.text { code { (setting.is) } } }
            } }
        } }
        div.box { table {
            thead { tr { th { "workload" } th.text { "command" } } }
            tbody { @for workload in &results.spec.workloads {
                tr {
                    th { (name(&workload.name)) }
                    td.text {
                        code { (workload.command) }
                        @if let Some(beside) = &workload.beside { br {} "beside it: " code { (beside) } }
                    }
                }
            } }
        } }
    }
}

fn machine(results: &Results) -> Markup {
    html! {
        h2 { "The machine" }
        div.box { table {
            tbody { @for (what, value) in &results.machine {
                tr { th { (what) } td.text { (value) } }
            } }
        } }
    }
}

/// All runs as they were made.
fn raw(results: &Results) -> Markup {
    let figures = |run: &crate::bench::data::Run| {
        let one = |(name, value): (&String, &f64)| format!("{name} {}", figure(*value));
        run.figures.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    html! {
        h2 { "All runs" }
        details.raw {
            summary { (results.runs.len()) " runs in the order in which they were made" }
            div.box { table {
                thead { tr {
                    th { "at, s" } th { "round" } th.text { "setting" } th.text { "workload" }
                    th { "clients" } th { "took, s" } th.text { "figures" } th.text { "remarks" }
                } }
                tbody { @for run in &results.runs {
                    tr {
                        td { (format!("{:.1}", run.at)) }
                        td { (run.round) }
                        td.text { (run.setting) @if run.twin { " (again)" } }
                        td.text { (run.workload) }
                        td { @if run.clients > 0 { (run.clients) } }
                        td { (format!("{:.1}", run.seconds)) }
                        td.text { (figures(run)) }
                        td.text {
                            @if run.repeat { "repetition. " }
                            @if let Some(why) = &run.disturbed { "disturbed: " (why) ". " }
                            @if !run.twin && !counts(results, run) { "made again." }
                        }
                    }
                } }
            } }
        }
    }
}
