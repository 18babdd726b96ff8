// SPDX-License-Identifier: GPL-2.0-only
//! What the rules that are off would have changed: out of the decisions that the
//! scheduler worked out a second time with such a rule on. Pure.

use std::fmt::Write;

use crate::metrics::{Sample, WIDTH};
use crate::prose::{Report, capital, percent, things};
use crate::settings::Settings;
use crate::tables::{WHATIF_ROWS, WHATIFS, WhatIf, tunable_index, whatif_row};

/// With fewer decisions than this nothing is said about a rule: one that changes
/// a tenth of them would show as none once in 24 times.
pub const ENOUGH: u64 = 30;
/// Columns of the table before "where to".
const NAME: usize = 27;
const LEFT: usize = NAME + 1 + 10 + 2 + 8 + 2;

/// A rule that is off.
#[derive(Debug)]
pub struct OffRule {
    /// Its name; also the word that turns it on, but for a `+` before SD_.
    pub name: String,
    /// What it does.
    pub help: &'static str,
    /// Decisions that were worked out a second time with it on.
    pub asked: u64,
    /// How many of them came out otherwise.
    pub differed: u64,
    /// What they came out as, most frequent first; those that did not are left out.
    pub to: Vec<(&'static WhatIf, u64)>,
}

impl OffRule {
    /// The word that `set` takes to turn it on.
    pub fn word(&self) -> String {
        self.name.replacen(':', ":+", 1)
    }
}

/// All rules that are off, those that would have changed most decisions first.
/// (All are tried equally often, so the number of changes compares them; their
/// shares do not, as one rule is asked at each wakeup and another at each fork.)
pub fn off_rules(sample: &Sample, settings: &Settings) -> Vec<OffRule> {
    let rows = (0..WHATIF_ROWS).filter_map(whatif_row);
    let off = rows.filter(|(name, _)| !settings.provides(name));
    let mut rules: Vec<_> = off
        .map(|(name, help)| off_rule(sample, name, help))
        .collect();
    rules.sort_by_key(|rule| std::cmp::Reverse((rule.differed, rule.asked)));
    rules
}

fn off_rule(sample: &Sample, name: String, help: &'static str) -> OffRule {
    let columns = sample.whatif.get(&name);
    let count = |column: &str| columns.and_then(|c| c.get(column)).copied().unwrap_or(0);
    let where_to = WHATIFS.iter().skip(2).map(|c| (c, count(c.name)));
    let mut to: Vec<_> = where_to.filter(|(_, n)| *n > 0).collect();
    to.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    OffRule {
        help,
        asked: count("asked"),
        differed: count("differed"),
        to,
        name,
    }
}

/// The table for `counters`; empty if no rule that is off was tried.
pub fn table(sample: &Sample, settings: &Settings) -> String {
    let rules = off_rules(sample, settings);
    let mut out = String::new();
    for rule in rules.iter().filter(|rule| rule.asked > 0) {
        let share = |(c, n): &(&WhatIf, u64)| {
            let share = percent(*n, rule.differed);
            format!("{} {}", c.name, share)
        };
        let all: Vec<String> = rule.to.iter().map(share).collect();
        let (asked, differed) = (rule.asked, percent(rule.differed, rule.asked));
        let _ = write!(out, "{:<NAME$} {asked:>10}  {differed:>8}  ", rule.name);
        let fits = |n: &usize| all[..*n].join(", ").len() <= WIDTH - LEFT;
        let n = (0..=all.len()).rev().find(fits).unwrap_or(0);
        let _ = writeln!(out, "{}", all[..n].join(", "));
    }
    if out.is_empty() {
        return out;
    }
    let head = format!(
        "{:<NAME$} {:>10}  {:>8}  where to\n",
        "what if it were on", "asked", "differed"
    );
    // No line ends in spaces.
    let lines = head.lines().chain(out.lines());
    lines
        .map(|line| line.trim_end().to_string() + "\n")
        .collect()
}

/// What a report says of them, and which one to try.
pub fn tell(report: &mut Report, sample: &Sample, settings: &Settings) {
    let rules = off_rules(sample, settings);
    if rules.is_empty() {
        return;
    }
    report.heading("What the rules that are off would have changed");
    if tunable_index("whatif_interval").is_some_and(|i| settings.tunables[i] == 0) {
        report.say("whatif_interval is 0: they are not tried.");
    }
    let (known, few): (Vec<_>, Vec<_>) = rules.into_iter().partition(|r| r.asked >= ENOUGH);
    let (moved, still): (Vec<_>, Vec<_>) = known.into_iter().partition(|r| r.differed > 0);
    let is_large = |rule: &OffRule| rule.differed * 100 >= rule.asked;
    let (large, small): (Vec<_>, Vec<_>) = moved.into_iter().partition(is_large);
    large.iter().for_each(|rule| report.say(&effect(rule)));
    let list = |report: &mut Report, what: &str, rules: &[OffRule]| {
        let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
        if !names.is_empty() {
            report.say(&format!("{what}: {}.", names.join(", ")));
        }
    };
    list(report, "Less than 1 % of what they were asked", &small);
    list(report, "Nothing at all", &still);
    let few_of = format!("Too few decisions to tell (fewer than {ENOUGH})");
    list(report, &few_of, &few);
    if let Some(rule) = large.first() {
        report.heading("Something to try");
        report.say(&hint(rule, settings));
    }
}

fn effect(rule: &OffRule) -> String {
    let to = rule.to.first().map(|(column, n)| {
        let how = match *n {
            n if n >= rule.differed => "",
            n if n * 2 >= rule.differed => "mostly ",
            _ => "most often ",
        };
        let what = match column.name {
            "yes" => "by doing what was left undone",
            "no" => "by not doing what was done",
            _ => column.help,
        };
        format!(": {how}{what}")
    });
    format!(
        "{}, now off, would have decided {} of {} otherwise{}. ({}.)",
        rule.name,
        percent(rule.differed, rule.asked),
        things(rule.asked, "sampled decision"),
        to.unwrap_or_default(),
        capital(rule.help),
    )
}

/// What to do next about the rule that would have changed most.
fn hint(rule: &OffRule, settings: &Settings) -> String {
    let mut with = settings.clone();
    let word = rule.word();
    // The word is made of the tables' own names: it cannot be wrong.
    let _ = with.apply(&[&word]);
    let back = settings.words_since(&with).join(" ");
    let warnings = with.warnings_since(settings);
    let warning = warnings.first().map(|w| format!(" Note: {w}."));
    format!(
        "`sudo scx_kin set {word}`, then run your load again and compare its own figure (time, \
         requests/s), a few times in turn; `sudo scx_kin set {back}` takes it back. A decision \
         that comes out otherwise is not a better one until you have measured it.{}",
        warning.unwrap_or_default(),
    )
}
