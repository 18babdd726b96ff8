// SPDX-License-Identifier: GPL-2.0-only
//! What a reader must know before believing figures. Pure.

use crate::bench::compare::Cell;
use crate::bench::data::{Results, Run, VIRTUAL_MACHINE};
use crate::bench::show::{clients_text, floor, plain, same_place};

/// With so many, a difference that shows every time is beyond chance (1 in 20)
/// whatever the noise is like, as six heads in a row are.
pub const ENOUGH_ROUNDS: usize = 6;
/// Disturbed runs that the notes name one by one; the raw data has them all.
const NAMED_RUNS: usize = 5;
/// What figures from a virtual machine are worth, by what the machine record says of
/// it; see host.rs.
const VIRTUAL: [(&str, &str); 3] = [
    (
        "tcg",
        "The machine was emulated: cache misses and remote memory cost nothing there, a \
         switch between tasks far more than on hardware, and its CPUs take turns on the \
         host's. What was decided and counted is real; the ratios are the emulation's.",
    ),
    (
        "kvm",
        "The machine was virtual: its nodes and caches are an arrangement, and its CPUs \
         may have to wait for the host's.",
    ),
    (
        "yes",
        "The machine was virtual: its CPUs may have had to wait for the host's.",
    ),
];

/// What a reader must know before believing anything.
pub fn notes(results: &Results, cells: &[Cell]) -> Vec<String> {
    let mut notes = vec![];
    if let Some(why) = &results.ended_early {
        notes.push(format!(
            "It ended before its time: {}.",
            plain(why).trim_end_matches('.')
        ));
    }
    let rounds = cells.iter().map(|c| c.values.len()).min().unwrap_or(0);
    if rounds < ENOUGH_ROUNDS && !cells.is_empty() {
        let rounds = match rounds {
            0 => "Some settings have no figure at all.".into(),
            1 => "One round is a look, no measurement.".into(),
            n => format!("{n} rounds are a look, no measurement."),
        };
        notes.push(format!(
            "{rounds} With fewer than {ENOUGH_ROUNDS}, the intervals rest on the noise \
             being of the usual kind."
        ));
    }
    if !cells.is_empty() && cells.iter().all(|c| floor(c).is_none()) {
        notes.push(
            "The noise floor is not known: too few runs of the reference against itself.".into(),
        );
    }
    notes.extend(limits(results));
    notes.extend(disturbed(results));
    notes
}

fn disturbed(results: &Results) -> Vec<String> {
    let all: Vec<&Run> = results
        .runs
        .iter()
        .filter(|r| r.disturbed.is_some())
        .collect();
    let one = |run: &&Run| {
        let why = plain(run.disturbed.as_deref().unwrap_or_default());
        let repeated = |other: &Run| other.repeat && same_place(other, run);
        let fate = match run.repeat {
            true => "a repetition; it counts",
            false if results.runs.iter().any(repeated) => "made again",
            false => "it counts",
        };
        let clients = match run.clients {
            0 => String::new(),
            n => format!(" with {}", clients_text(n)),
        };
        let (setting, workload) = (plain(&run.setting), plain(&run.workload));
        let round = run.round;
        format!("Disturbed: round {round}, {setting}, {workload}{clients}: {why} ({fate}).")
    };
    let mut lines: Vec<String> = all.iter().take(NAMED_RUNS).map(one).collect();
    match all.len().saturating_sub(NAMED_RUNS) {
        0 => {}
        more => lines.push(format!(
            "Disturbed besides: {more} runs; the CSV has them all."
        )),
    }
    lines
}

fn limits(results: &Results) -> Option<String> {
    let mut record = results.machine.iter();
    let (_, how) = record.find(|(what, _)| what == VIRTUAL_MACHINE)?;
    let known = VIRTUAL.iter().find(|(name, _)| name == how);
    known.map(|(_, text)| (*text).to_string())
}
