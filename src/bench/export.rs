// SPDX-License-Identifier: GPL-2.0-only
//! A bench for other programs and for mails: all runs as CSV, the comparison as
//! GitHub's Markdown. Pure.

use std::fmt::Write;

use crate::bench::compare::Cell;
use crate::bench::cost;
use crate::bench::data::{Results, Run};
use crate::bench::notes::notes;
use crate::bench::show::{
    Block, blocks, clients_text, differs, explained, figure, interval, legend, percent, plain,
    times, word,
};

/// One row a run and figure, as measured; a run without a figure has one row with
/// none. Quoted as RFC 4180 has it.
pub fn csv(results: &Results, cells: &[Cell]) -> String {
    let head = [
        "round",
        "setting",
        "twin",
        "workload",
        "clients",
        "metric",
        "unit",
        "value",
        "disturbed",
        "repeat",
        "at",
        "seconds",
    ];
    let mut out = csv::Writer::from_writer(vec![]);
    // Into memory: there is nothing that could fail.
    let _ = out.write_record(head);
    for run in &results.runs {
        for (metric, value) in &run.figures {
            let _ = out.write_record(record(
                run,
                metric,
                unit(results, run, metric, cells),
                *value,
            ));
        }
        if run.figures.is_empty() {
            let _ = out.write_record(record(run, "", "", f64::NAN));
        }
    }
    let bytes = out.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn record(run: &Run, metric: &str, unit: &str, value: f64) -> [String; 12] {
    [
        run.round.to_string(),
        run.setting.clone(),
        run.twin.to_string(),
        run.workload.clone(),
        run.clients.to_string(),
        metric.into(),
        unit.into(),
        if value.is_nan() {
            String::new()
        } else {
            value.to_string()
        },
        run.disturbed.clone().unwrap_or_default(),
        run.repeat.to_string(),
        format!("{:.3}", run.at),
        format!("{:.3}", run.seconds),
    ]
}

fn unit<'a>(results: &'a Results, run: &Run, metric: &str, cells: &'a [Cell]) -> &'a str {
    let specs = results
        .spec
        .workloads
        .iter()
        .filter(|w| w.name == run.workload);
    let specs = specs.flat_map(|w| &w.metrics);
    let cells = cells.iter().filter(|c| c.workload == run.workload);
    let mut metrics = specs.chain(cells.map(|c| &c.metric));
    metrics.find(|m| m.name == metric).map_or("", |m| &m.unit)
}

/// A table a workload and metric, then what it takes to judge them and to do it again.
pub fn markdown(results: &Results, cells: &[Cell]) -> String {
    let spec = &results.spec;
    let mut out = String::new();
    let _ = writeln!(out, "## {}\n\n{}", text(&spec.name), text(&spec.about));
    for block in blocks(cells) {
        let _ = writeln!(out, "\n### {}\n", text(&block.title()));
        rows(results, &block, &mut out);
        floor(results, &block, &mut out);
        for (i, (cell, because)) in explained(&block, false).iter().enumerate() {
            let start = if i == 0 { "\n" } else { "" };
            let name = place(&block, cell);
            let verdict = cell.verdict.map_or("", word);
            let _ = writeln!(out, "{start}- {name}, {verdict}: {}", text(because));
        }
    }
    let costs = cost::text(results).join("\n");
    if !costs.is_empty() {
        let _ = writeln!(out, "\n```\n{}\n```", costs.trim_end());
    }
    let _ = writeln!(out, "\n{}", text(&legend(results)));
    for (i, note) in notes(results, cells).iter().enumerate() {
        let start = if i == 0 { "\n" } else { "" };
        let _ = writeln!(out, "{start}- {}", text(note));
    }
    machine(results, &mut out);
    out
}

fn place(block: &Block, cell: &Cell) -> String {
    match block.is_sweep() {
        true => format!("{}, {}", text(&cell.setting), clients_text(cell.clients)),
        false => text(&cell.setting),
    }
}

fn rows(results: &Results, block: &Block, out: &mut String) {
    let sweep = block.is_sweep();
    let ladder = results.spec.ladder;
    let (clients, rule) = if sweep {
        ("| clients ", "|---:")
    } else {
        ("", "")
    };
    let (step, last) = if ladder {
        (" step |", "---:|")
    } else {
        ("", "")
    };
    let head = "| setting | median | ratio | 95 % interval | verdict |";
    let _ = writeln!(
        out,
        "{clients}{head}{step}\n{rule}|:---|---:|---:|:---:|:---|{last}"
    );
    for n in &block.clients {
        for setting in &block.settings {
            let Some(cell) = block.at(*n, setting) else {
                continue;
            };
            let clients = if sweep {
                format!("| {n} ")
            } else {
                String::new()
            };
            let ratio = cell.ratio.map_or("".into(), |r| times(r.value));
            let ends = cell.ratio.map_or("".into(), |r| interval(&r));
            let verdict = match cell.verdict {
                _ if *setting == results.spec.reference_name() => "reference".into(),
                Some(_) if differs(cell) => format!("**{}**", cell.verdict.map_or("", word)),
                verdict => verdict.map_or("", word).to_string(),
            };
            let step = match ladder {
                true => format!(" {} |", block.step(*n, setting).map_or("".into(), times)),
                false => String::new(),
            };
            let (setting, median) = (text(setting), figure(cell.median));
            let row = format!("{clients}| {setting} | {median} | {ratio} | {ends} | {verdict} |");
            let _ = writeln!(out, "{row}{step}");
        }
    }
}

fn floor(results: &Results, block: &Block, out: &mut String) {
    let one = |n: &u32| {
        let floor = percent(block.floor(*n)?);
        Some(match block.is_sweep() {
            true => format!("{floor} ({n})"),
            false => floor,
        })
    };
    let floors: Vec<String> = block.clients.iter().filter_map(one).collect();
    if !floors.is_empty() {
        let clients = if block.is_sweep() { " (clients)" } else { "" };
        let reference = text(results.spec.reference_name());
        let _ = writeln!(
            out,
            "\n{reference} against itself: within {}{clients}.",
            floors.join(", ")
        );
    }
}

fn machine(results: &Results, out: &mut String) {
    let _ = writeln!(out, "\n| machine | |\n|:---|:---|");
    let started = [
        ("started".to_string(), results.started.clone()),
        ("rounds".into(), results.spec.rounds.to_string()),
        ("seed".into(), results.seed.to_string()),
    ];
    for (what, value) in results.machine.iter().chain(&started) {
        let _ = writeln!(out, "| {} | {} |", text(what), text(value));
    }
    let _ = writeln!(out, "\n| setting | is |\n|:---|:---|");
    for setting in &results.spec.settings {
        let _ = writeln!(out, "| {} | {} |", text(&setting.name), text(&setting.is));
    }
    let _ = writeln!(out, "\n| workload | command |\n|:---|:---|");
    for workload in &results.spec.workloads {
        let _ = writeln!(
            out,
            "| {} | {} |",
            text(&workload.name),
            text(&workload.command)
        );
    }
}

/// Anybody's text as Markdown that means nothing but the text. An underscore
/// means something at a word's start alone.
fn text(raw: &str) -> String {
    let mut out = String::new();
    let mut last = ' ';
    for c in plain(raw).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '|' | '*' | '`' | '[' | ']' | '~' => out.extend(['\\', c]),
            '_' if !last.is_alphanumeric() && last != '_' => out.extend(['\\', c]),
            c => out.push(c),
        }
        last = c;
    }
    out
}
