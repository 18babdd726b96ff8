// SPDX-License-Identifier: GPL-2.0-only
//! The words that people change settings with: `IDLE_SIBLING`, `NO_IDLE_SIBLING`,
//! `wakeup_granularity_ns=4ms`, `NODE:-SD_BALANCE_WAKE`. Pure.
//!
//! A list of words is taken whole or not at all; of two words for the same
//! thing the later one counts. A wrong word is answered with the nearest right
//! one.

use std::fmt;
use std::sync::LazyLock;

use crate::scaling::Scaling;
use crate::settings::{Change, NEVER_BOTH, SCALING, Settings};
use crate::tables::{
    DOMAIN_FLAGS, FEATURES, LEVELS, TUNABLES, Tunable, UNITS, feature_index, flag_index,
    level_index, tunable_index,
};

/// Presets are expanded before their words come here (presets.rs).
const PRESET_ELSEWHERE: &str =
    "a preset goes with --preset NAME at the start, or with `scx_kin set preset=NAME`";

/// A word that is none, with one line on what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadWord(pub String);

impl fmt::Display for BadWord {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadWord {}

impl Settings {
    /// Applies all words, or none if one of them is wrong or if they ask for two
    /// forms of one rule. Commas separate words as spaces do.
    pub fn apply<S: AsRef<str>>(&mut self, words: &[S]) -> Result<(), BadWord> {
        let split = words.iter().flat_map(|w| w.as_ref().split([',', ' ']));
        let changes = split.filter(|w| !w.is_empty()).map(parse);
        let changes: Vec<Change> = changes.collect::<Result<_, _>>().map_err(BadWord)?;
        only_one_form(&changes).map_err(BadWord)?;
        changes.into_iter().for_each(|change| self.make(change));
        Ok(())
    }
}

/// Refuses changes that turn two forms of one rule on; of two words for one
/// switch the later one counts here too.
fn only_one_form(changes: &[Change]) -> Result<(), String> {
    let asked = |name: &str| {
        let mut last_first = changes.iter().rev();
        last_first.find_map(|change| match change {
            Change::Feature(index, on) if FEATURES[*index].name == name => Some(*on),
            _ => None,
        })
    };
    let both = |(a, b): &(&str, &str)| asked(a) == Some(true) && asked(b) == Some(true);
    match NEVER_BOTH.iter().find(|pair| both(pair)) {
        Some((a, b)) => Err(format!(
            "{a} and {b} are two forms of one rule: only one of them can be on"
        )),
        None => Ok(()),
    }
}

/// Every word there is; a tunable ends in `=`.
pub static VOCABULARY: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut all = vec![];
    for f in FEATURES.iter() {
        all.push(f.name.to_string());
        all.push(format!("NO_{}", f.name));
    }
    all.extend(TUNABLES.iter().map(|t| format!("{}=", t.name)));
    all.extend(Scaling::ALL.map(|s| format!("{SCALING}={}", s.name())));
    for (level, l) in LEVELS.iter().enumerate() {
        for f in DOMAIN_FLAGS.iter().filter(|f| f.applies_at(level)) {
            all.extend(["+", "-"].map(|sign| format!("{}:{sign}{}", l.name, f.name)));
        }
    }
    all
});

fn parse(word: &str) -> Result<Change, String> {
    match word.split_once('=') {
        Some((SCALING, value)) => return parse_scaling(value),
        Some(("preset", _)) => return Err(PRESET_ELSEWHERE.into()),
        Some((name, value)) => return parse_tunable(word, name, value),
        None => {}
    }
    if let Some((level, flag)) = word.split_once(':') {
        return parse_flag(word, level, flag);
    }
    // The whole word first: a name could itself begin with NO_.
    if let Some(index) = feature_index(word) {
        return Ok(Change::Feature(index, true));
    }
    if let Some(index) = word.strip_prefix("NO_").and_then(feature_index) {
        return Ok(Change::Feature(index, false));
    }
    Err(explain(word))
}

fn parse_scaling(value: &str) -> Result<Change, String> {
    Scaling::named(value).map(Change::Scaling).ok_or_else(|| {
        let names = Scaling::ALL.map(Scaling::name).join(", ");
        format!("{SCALING}={value}: it takes one of {names}")
    })
}

fn parse_tunable(word: &str, name: &str, value: &str) -> Result<Change, String> {
    let Some(index) = tunable_index(name) else {
        if let Some(f) = feature_index(name.trim_start_matches("NO_")) {
            let name = FEATURES[f].name;
            return Err(format!(
                "{name} is a switch: write {name} or NO_{name}, not {word:?}"
            ));
        }
        let names = TUNABLES.iter().map(|t| t.name);
        return Err(match nearest(name, names.chain([SCALING, "preset"])) {
            Some(near) => format!("no tunable is called {name:?}; did you mean {near}={value}?"),
            None => format!("no tunable is called {name:?}; `scx_kin tunables` lists them"),
        });
    };
    let tunable = &TUNABLES[index];
    let (name, range) = (tunable.name, tunable.range());
    let value_is = |what| format!("{name}={value}: {what}; it takes {range}");
    match parse_value(tunable, value) {
        None if tunable.unit == "ns" => Err(value_is("not a time such as 4ms, 500us or 1s")),
        None => Err(value_is("not a whole number")),
        Some(n) if n < tunable.min => Err(value_is("too small")),
        Some(n) if n > tunable.max => Err(value_is("too large")),
        Some(n) => Ok(Change::Tunable(index, n)),
    }
}

/// A value with or without its unit. `None` if it is not a number at all; one
/// that does not fit is the largest there is, which no range includes.
fn parse_value(tunable: &Tunable, text: &str) -> Option<u64> {
    let text = text.trim();
    if tunable.unit != "ns" {
        return parse_decimal(text.trim_end_matches(tunable.unit), 1);
    }
    // "ms" ends in "s" too: the longest unit that fits is the right one
    let fits = UNITS.iter().filter(|(unit, _)| text.ends_with(unit));
    let (unit, size) = *fits.max_by_key(|(unit, _)| unit.len()).unwrap_or(&("", 1));
    parse_decimal(text.strip_suffix(unit)?, size)
}

/// `text` times `size`, where `text` may have a fraction that comes out even.
fn parse_decimal(text: &str, size: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || text.ends_with('.') {
        return None;
    }
    let whole = whole
        .parse::<u64>()
        .unwrap_or(u64::MAX)
        .saturating_mul(size);
    let mut part = 0;
    let mut place = size;
    for digit in fraction.bytes().map(|b| u64::from(b - b'0')) {
        if place < 10 && digit != 0 {
            return None;
        }
        place /= 10;
        part += digit * place;
    }
    Some(whole.saturating_add(part))
}

fn parse_flag(word: &str, level: &str, flag: &str) -> Result<Change, String> {
    let levels = || LEVELS.iter().map(|l| l.name).collect::<Vec<_>>().join(", ");
    let at = level_index(level).ok_or_else(|| {
        format!(
            "no level is called {level:?} (in {word:?}); they are {}",
            levels()
        )
    })?;
    let name = flag.trim_start_matches(['+', '-']);
    let Some(index) = flag_index(name) else {
        return Err(match nearest(name, DOMAIN_FLAGS.iter().map(|f| f.name)) {
            Some(near) => {
                format!("no domain flag is called {name:?}; did you mean {level}:+{near}?")
            }
            None => format!("no domain flag is called {name:?}; `scx_kin features` lists them"),
        });
    };
    let f = &DOMAIN_FLAGS[index];
    if !f.applies_at(at) {
        let where_ = f.level_names();
        return Err(format!(
            "{name} has no meaning at {level}; it has at {where_}"
        ));
    }
    match flag.strip_suffix(name) {
        Some("+") => Ok(Change::Flag(at, index, true)),
        Some("-") => Ok(Change::Flag(at, index, false)),
        _ => Err(format!(
            "write {level}:+{name} or {level}:-{name}, not {word:?}"
        )),
    }
}

/// Why a word that stands alone is none.
fn explain(word: &str) -> String {
    if let Some(t) = TUNABLES.iter().find(|t| t.name.eq_ignore_ascii_case(word)) {
        let (name, range) = (t.name, t.range());
        return format!(
            "{name} needs a value, such as {name}={}; it takes {range}",
            t.show(t.dfl)
        );
    }
    let bare = word.trim_start_matches(['+', '-']);
    if let Some(f) = DOMAIN_FLAGS
        .iter()
        .find(|f| f.name.eq_ignore_ascii_case(bare))
    {
        let levels = f.level_names();
        let first = levels.split(',').next().unwrap_or_default();
        let name = f.name;
        return format!(
            "{name} belongs to a level: write {first}:+{name} or {first}:-{name} ({levels})"
        );
    }
    match nearest(word, VOCABULARY.iter().map(String::as_str)) {
        Some(near) => format!("no setting is called {word:?}; did you mean {near}?"),
        None => format!(
            "no setting is called {word:?}; `scx_kin features` and `scx_kin tunables` list them"
        ),
    }
}

/// The word that `wrong` most likely stands for, if any comes near.
pub(crate) fn nearest<'a>(wrong: &str, right: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let distance = |word: &&str| strsim::damerau_levenshtein(&wrong, &word.to_lowercase());
    let best = right.min_by_key(distance)?;
    (distance(&best) <= wrong.len().max(best.len()) / 2).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::with as set;

    fn wrong(word: &str) -> String {
        let mut set = Settings::default();
        let error = set.apply(&[word]).expect_err(word);
        assert_eq!(set, Settings::default());
        error.0
    }

    fn tunable(set: &Settings, name: &str) -> u64 {
        set.tunables[tunable_index(name).expect(name)]
    }

    #[test]
    fn every_word_of_the_vocabulary_is_understood() {
        for word in VOCABULARY.iter() {
            let word = match word.strip_suffix('=') {
                Some(name) => {
                    let t = &TUNABLES[tunable_index(name).expect(name)];
                    format!("{name}={}", t.show(t.max))
                }
                None => word.clone(),
            };
            set(&[&word]);
        }
    }

    #[test]
    fn a_time_is_the_same_in_every_unit() {
        for text in ["4ms", "4000us", "4000000", "4000000ns", "0.004s", "4.0ms"] {
            let set = set(&[&format!("wakeup_granularity_ns={text}")]);
            assert_eq!(tunable(&set, "wakeup_granularity_ns"), 4_000_000, "{text}");
        }
        assert_eq!(
            tunable(&set(&["sched_latency_ns=1.5ms"]), "sched_latency_ns"),
            1_500_000
        );
        assert_eq!(tunable(&set(&["imbalance_pct=150"]), "imbalance_pct"), 150);
        assert_eq!(tunable(&set(&["imbalance_pct=150%"]), "imbalance_pct"), 150);
    }

    #[test]
    fn what_is_no_number_or_does_not_fit_names_the_range() {
        let range = TUNABLES[tunable_index("wakeup_granularity_ns").expect("row")].range();
        for text in [
            "", "ms", "4m", "-1", "4ms ms", "1.", ".5ms", "0x10", "1.5", "1e3", "4 ms", "+4",
        ] {
            let error = wrong(&format!("wakeup_granularity_ns={text}"));
            assert!(
                error.contains(&range) || error.contains("no setting"),
                "{text}: {error}"
            );
        }
        for text in [
            "2s",
            "99999999999999999999s",
            "18446744073709551615",
            "18446744073709551616",
        ] {
            let error = wrong(&format!("wakeup_granularity_ns={text}"));
            assert!(
                error.contains("too large") && error.contains(&range),
                "{text}: {error}"
            );
        }
        assert!(wrong("sched_latency_ns=1us").contains("too small"));
        assert!(wrong("imbalance_pct=4ms").contains("100 to 400 %"));
    }

    #[test]
    fn all_or_nothing() {
        let mut set = Settings::default();
        let words = [
            "NO_IDLE_SIBLING",
            "wakeup_granularity_ns=8ms",
            "NO_SUCH_THING",
        ];
        assert!(set.apply(&words).is_err());
        assert_eq!(set, Settings::default());
    }

    #[test]
    fn of_two_words_for_one_thing_the_later_counts() {
        assert_eq!(
            set(&["NO_IDLE_SIBLING", "IDLE_SIBLING"]),
            Settings::default()
        );
        assert_ne!(set(&["IDLE_SIBLING,NO_IDLE_SIBLING"]), Settings::default());
    }

    #[test]
    fn two_forms_of_one_rule_are_refused_and_a_later_word_counts() {
        let error = wrong("IDLE_SIBLING,IDLE_SHARED_CACHE");
        assert!(error.contains("only one of them can be on"), "{error}");
        let set = set(&["IDLE_SIBLING IDLE_SHARED_CACHE NO_IDLE_SIBLING"]);
        assert!(set.provides("IDLE_SHARED_CACHE") && !set.provides("IDLE_SIBLING"));
    }

    #[test]
    fn a_wrong_word_is_answered_with_the_nearest_right_one() {
        assert!(wrong("WAKEUP_PREMPTION").contains("did you mean WAKEUP_PREEMPTION?"));
        assert!(wrong("NO_WAKEUP_PREEMPT").contains("did you mean NO_WAKEUP_PREEMPTION?"));
        assert!(wrong("idle_sibling").contains("did you mean IDLE_SIBLING?"));
        assert!(wrong("wakeup_gran_ns=4ms").contains("did you mean wakeup_granularity_ns=4ms?"));
        assert!(wrong("NODE:+SD_BALANCE_WAK").contains("did you mean NODE:+SD_BALANCE_WAKE?"));
        assert!(wrong("qqqqqqqqqqqqqqqqqqqqqqq").contains("scx_kin features"));
        assert!(wrong("tunable_scalin=log").contains("did you mean tunable_scaling=log?"));
        assert!(wrong("tunable_scaling=cubic").contains("none, log, linear, log-uncapped"));
        assert!(wrong("tunable_scaling").contains("did you mean tunable_scaling="));
        assert!(wrong("preset=off").contains("--preset NAME"));
    }

    #[test]
    fn a_word_of_the_wrong_kind_is_told_its_kind() {
        let needs_value = wrong("wakeup_granularity_ns");
        assert!(needs_value.contains("needs a value") && needs_value.contains("0ns to 1s"));
        assert!(wrong("IDLE_SIBLING=1").contains("IDLE_SIBLING or NO_IDLE_SIBLING"));
        assert!(wrong("SD_LOAD_BALANCE").contains("LLC:+SD_LOAD_BALANCE"));
        assert!(wrong("SMT:+SD_LOAD_BALANCE").contains("it has at LLC, NODE, SYSTEM"));
        assert!(wrong("NODE:SD_BALANCE_WAKE").contains("NODE:+SD_BALANCE_WAKE or"));
        assert!(wrong("NODE:+-SD_BALANCE_WAKE").contains("NODE:+SD_BALANCE_WAKE or"));
        assert!(wrong("CORE:+SD_BALANCE_WAKE").contains("SMT, LLC, NODE, SYSTEM"));
    }

    #[test]
    fn no_word_is_long_enough_to_break_the_parser() {
        let long = "9".repeat(10_000);
        assert!(wrong(&format!("sched_latency_ns={long}")).contains("too large"));
        assert!(wrong(&format!("sched_latency_ns=1.{long}s")).contains("not a time"));
        assert!(wrong("sched_latency_ns=0.10000000000000001s").contains("not a time"));
    }
}
