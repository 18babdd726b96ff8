// SPDX-License-Identifier: GPL-2.0-only
//! What can be wrong with a spec and be known before anything starts: a wrong word
//! changes nothing and costs no time.

use std::collections::HashSet;

use anyhow::Result;
use regex::Regex;

use crate::bench::data::{Source, Spec, Workload};
use crate::bench::setting::{OTHER, STOCK, cumulative, is_kin, words_of};
use crate::presets;
use crate::settings::Settings;
use crate::words::{BadWord, nearest};

/// More rounds than anybody waits for.
const MOST_ROUNDS: u32 = 1000;

pub(super) fn bad(text: String) -> anyhow::Error {
    BadWord(text).into()
}

/// Fails with the first thing that is wrong.
pub(super) fn check(spec: &Spec) -> Result<()> {
    check_size(spec)?;
    let mut names = HashSet::new();
    for (setting, is) in spec.settings.iter().zip(cumulative(spec)) {
        if !names.insert(&setting.name) {
            return Err(bad(format!("two settings are called {:?}", setting.name)));
        }
        if is_kin(&is) {
            Settings::default()
                .apply(&words_of(&is)?)
                .map_err(|wrong| bad(wrong_setting(&setting.name, &wrong.0)))?;
        } else if is != STOCK && is[OTHER.len()..].trim().is_empty() {
            return Err(bad(
                "other: needs the command of a scheduler behind it".into()
            ));
        }
    }
    if !names.contains(&spec.reference) {
        let known: Vec<&str> = spec.settings.iter().map(|s| s.name.as_str()).collect();
        let text = format!(
            "the reference {:?} is none of the settings: {}",
            spec.reference,
            known.join(", ")
        );
        return Err(bad(text));
    }
    spec.workloads.iter().try_for_each(check_workload)
}

/// What is no word may have been meant for something else that a setting can be.
fn wrong_setting(name: &str, wrong: &str) -> String {
    let others = presets::names().into_iter().chain([STOCK]);
    match nearest(name, others) {
        Some(near) => format!("setting {name:?}: did you mean {near}?"),
        None => format!("setting {name:?}: {wrong}"),
    }
}

fn check_size(spec: &Spec) -> Result<()> {
    let sizes = [
        ("rounds", spec.rounds, MOST_ROUNDS),
        ("seconds", spec.seconds, 86_400),
    ];
    for (what, n, most) in sizes {
        if !(1..=most).contains(&n) {
            return Err(bad(format!("{what} {n}: from 1 to {most}")));
        }
    }
    if spec.settings.is_empty() || spec.workloads.is_empty() {
        return Err(bad(format!(
            "spec {} needs a setting and a workload at least",
            spec.name
        )));
    }
    let mut names = HashSet::new();
    match spec.workloads.iter().find(|w| !names.insert(&w.name)) {
        Some(twice) => Err(bad(format!("two workloads are called {:?}", twice.name))),
        None => Ok(()),
    }
}

fn check_workload(workload: &Workload) -> Result<()> {
    let name = &workload.name;
    let swept = workload.command.contains("{clients}");
    if swept == workload.clients.is_empty() {
        let text = format!("workload {name}: `clients` and {{clients}} in its command go together");
        return Err(bad(text));
    }
    if workload.metrics.is_empty() {
        return Err(bad(format!("workload {name} has no metric")));
    }
    for metric in &workload.metrics {
        let Some(pattern) = &metric.pattern else {
            continue;
        };
        let groups = Regex::new(pattern).map(|r| r.captures_len() - 1);
        match groups {
            Ok(1..) => {}
            Ok(_) => {
                let text =
                    format!("metric pattern {pattern:?} has no group: put ( ) around the figure");
                return Err(bad(text));
            }
            Err(error) => {
                let last = error
                    .to_string()
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .to_string();
                return Err(bad(format!("metric pattern {pattern:?}: {last}")));
            }
        }
        if metric.from == Source::Beside && workload.beside.is_none() {
            return Err(bad(format!(
                "metric {} is read from a command beside, of which {name} has none",
                metric.name
            )));
        }
    }
    Ok(())
}
