// SPDX-License-Identifier: GPL-2.0-only
//! Presets: lists of words under a name. Those that are built in are texts of
//! the form that a user's own file has, a word a line and comments from `#` on.
//!
//! Only who asks expands a preset, never the scheduler's process: that one opens
//! no file that a client names.

use std::fmt::Write;
use std::fs::{File, read_dir};
use std::io::Read;
use std::sync::LazyLock;

use crate::scaling::{SCALED, Scaling};
use crate::settings::{Change, Settings, rival};
use crate::tables::{DOMAIN_FLAGS, FEATURES, LEVELS, TUNABLES, tunable_index};
use crate::words::{BadWord, nearest};

/// Where presets lie that are found by name: NAME.preset.
pub const FOLDER: &str = "/etc/scx_kin/presets";

const ENDING: &str = ".preset";
/// What stands before the name in a list of words.
const WORD: &str = "preset=";
/// No preset is longer, in bytes.
const LONGEST: u64 = 64 * 1024;
/// How many presets may include each other in a row.
const DEEPEST: usize = 8;
/// Column at which the source of a word begins.
const SOURCE_AT: usize = 29;

/// Presets that are texts; `default` and `off` are made from the tables.
const TEXTS: [(&str, &str); 5] = [
    ("cfs-2.6.32", include_str!("presets/cfs-2.6.32.preset")),
    ("cfs-6.1", include_str!("presets/cfs-6.1.preset")),
    (
        "tuned-throughput-performance",
        include_str!("presets/tuned-throughput-performance.preset"),
    ),
    (
        "tuned-latency-performance",
        include_str!("presets/tuned-latency-performance.preset"),
    ),
    (
        "tuned-virtual-host",
        include_str!("presets/tuned-virtual-host.preset"),
    ),
];

/// Names of the presets that are built in.
pub fn names() -> Vec<&'static str> {
    let texts = TEXTS.iter().map(|(name, _)| *name);
    ["default", "off"].into_iter().chain(texts).collect()
}

/// The built-in presets as words of `set`.
pub static VOCABULARY: LazyLock<Vec<String>> =
    LazyLock::new(|| names().iter().map(|name| format!("{WORD}{name}")).collect());

/// The words of a preset, in the order in which they count. A name with a `/` in
/// it, or that ends in `.preset`, is a file; any other is built in or else a file
/// in [`FOLDER`].
pub fn words_of(name: &str) -> Result<Vec<String>, BadWord> {
    read(name, &text_of(name)?, 0)
}

/// A list of words with the words of the presets in it instead of `preset=NAME`.
pub fn expand<S: AsRef<str>>(words: &[S]) -> Result<Vec<String>, BadWord> {
    let path = |word: &&str| word.starts_with(WORD) && is_path(word);
    let split = |word| match Some(word).filter(path) {
        // May have commas and spaces in it.
        Some(path) => vec![path],
        None => word.split([',', ' ']).filter(|w| !w.is_empty()).collect(),
    };
    let words = words.iter().map(AsRef::as_ref).flat_map(split);
    let mut all = Words::default();
    for (at, word) in words.enumerate() {
        match word.strip_prefix(WORD) {
            Some(name) => all.extend(at + 1, words_of(name)?),
            None => all.push(0, word.into()),
        }
    }
    Ok(all.into_words())
}

/// All presets that have a name, a line each.
pub fn list() -> String {
    let mut out = String::new();
    for name in names()
        .into_iter()
        .map(String::from)
        .chain(names_in_folder())
    {
        let text = text_of(&name).unwrap_or_default();
        let first = text.lines().next().unwrap_or_default();
        let what = first.strip_prefix('#').unwrap_or_default().trim();
        let line = format!("{name:<SOURCE_AT$} {what}");
        let short: String = line.trim_end().chars().take(80).collect();
        let _ = writeln!(out, "{short}");
    }
    out
}

/// A preset's text, once it is known to be right, and what its numbers come to on
/// a machine with so many CPUs online.
pub fn show(name: &str, cpus: usize) -> Result<String, BadWord> {
    let text = text_of(name)?;
    let mut set = Settings::default_for(cpus);
    set.apply(&read(name, &text, 0)?)?;
    let mut out = text;
    if !out.ends_with('\n') {
        out.push('\n');
    }
    let plural = if cpus == 1 { "CPU" } else { "CPUs" };
    let _ = writeln!(out, "\n# Worked out for {cpus} online {plural}:");
    for index in SCALED.iter().filter_map(|name| tunable_index(name)) {
        let t = &TUNABLES[index];
        let _ = writeln!(out, "#   {}={}", t.name, t.show(set.tunables[index]));
    }
    Ok(out)
}

/// Words, each with a number of the list that it comes from.
#[derive(Default)]
struct Words(Vec<(usize, String)>);

impl Words {
    /// Adds a word. It counts over the words of other lists before it, also over
    /// one that turns on what may not be on together with it; two such words of
    /// one list stay, to be refused.
    fn push(&mut self, list: usize, word: String) {
        if let Some(rival) = rival(&word) {
            self.0.retain(|(from, w)| *from == list || w != rival);
        }
        self.0.push((list, word));
    }

    fn extend(&mut self, list: usize, words: Vec<String>) {
        words.into_iter().for_each(|word| self.push(list, word));
    }

    fn into_words(self) -> Vec<String> {
        self.0.into_iter().map(|(_, word)| word).collect()
    }
}

fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(ENDING)
}

/// The words of a text. Errors name it and the line.
fn read(name: &str, text: &str, depth: usize) -> Result<Vec<String>, BadWord> {
    let mut all = Words::default();
    let mut own = vec![];
    for (line, text) in text.lines().enumerate() {
        let at = |error: BadWord| BadWord(format!("{name}:{}: {error}", line + 1));
        let word = text.split('#').next().unwrap_or_default().trim();
        match word.strip_prefix(WORD) {
            _ if word.is_empty() => {}
            Some(other) => all.extend(line + 1, include(other, depth).map_err(at)?),
            None => {
                check(word, &mut own).map_err(at)?;
                all.push(0, word.into());
            }
        }
    }
    Ok(all.into_words())
}

/// Whether a line of a preset is one word that is right, also after those above.
fn check<'a>(word: &'a str, own: &mut Vec<&'a str>) -> Result<(), BadWord> {
    if word.contains([',', ' ', '\t']) {
        return Err(BadWord(format!("one word a line, not {word:?}")));
    }
    own.push(word);
    Settings::default().apply(own)
}

/// A preset within a preset.
fn include(name: &str, depth: usize) -> Result<Vec<String>, BadWord> {
    if is_path(name) {
        return Err(BadWord(format!(
            "a preset takes in another one by name, not by path {name:?}"
        )));
    }
    if depth == DEEPEST {
        return Err(BadWord("presets take in each other without end".into()));
    }
    read(name, &text_of(name)?, depth + 1)
}

fn text_of(name: &str) -> Result<String, BadWord> {
    let texts = TEXTS.iter().find(|(known, _)| *known == name);
    match (name, texts) {
        (_, Some((_, text))) => Ok((*text).into()),
        ("default", _) => Ok(default_text()),
        ("off", _) => Ok(off_text()),
        _ if is_path(name) => read_file(name),
        _ if names_in_folder().iter().any(|known| known == name) => {
            read_file(&format!("{FOLDER}/{name}{ENDING}"))
        }
        _ => Err(BadWord(unknown(name))),
    }
}

fn unknown(name: &str) -> String {
    let known: Vec<String> = names_in_folder();
    let all = names().into_iter().chain(known.iter().map(String::as_str));
    match nearest(name, all) {
        Some(near) => format!("no preset is called {name:?}; did you mean {near}?"),
        None => format!("no preset is called {name:?}; `scx_kin presets` lists them"),
    }
}

fn names_in_folder() -> Vec<String> {
    let files = read_dir(FOLDER).into_iter().flatten().flatten();
    let name = |file: std::fs::DirEntry| {
        let name = file.file_name().into_string().ok()?;
        name.strip_suffix(ENDING).map(String::from)
    };
    let mut found: Vec<String> = files.filter_map(name).collect();
    found.retain(|name| !names().contains(&name.as_str()));
    found.sort_unstable();
    found
}

fn read_file(path: &str) -> Result<String, BadWord> {
    let because = |why: &dyn std::fmt::Display| BadWord(format!("preset {path}: {why}"));
    let mut bytes = vec![];
    let file = File::open(path).map_err(|error| because(&error))?;
    let read = file.take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| because(&error))?;
    if bytes.len() as u64 > LONGEST {
        return Err(because(&"longer than 64 KiB"));
    }
    String::from_utf8(bytes).map_err(|_| because(&"not a text"))
}

fn default_text() -> String {
    let mut out = String::from("# scx_kin's own setting\n\n");
    for f in FEATURES.iter() {
        line(&mut out, &switch(f.name, f.dfl), f.from);
    }
    flags_and_numbers(&mut out, &Settings::default(), "scx_kin's default");
    out
}

fn off_text() -> String {
    let mut out = String::from("# plain vruntime queues: every rule off\n\n");
    for f in FEATURES.iter() {
        line(&mut out, &switch(f.name, false), "off");
    }
    let mut set = Settings::default();
    set.sd.fill(0);
    flags_and_numbers(&mut out, &set, "off");
    out
}

/// The part that `default` and `off` share. Numbers that are scaled stand there as
/// for one CPU.
fn flags_and_numbers(out: &mut String, set: &Settings, flags_from: &str) {
    out.push('\n');
    for (flag, f) in DOMAIN_FLAGS.iter().enumerate() {
        let levels = LEVELS.iter().enumerate();
        for (level, l) in levels.filter(|(level, _)| f.applies_at(*level)) {
            let sign = if set.flag(level, flag) { '+' } else { '-' };
            line(out, &format!("{}:{sign}{}", l.name, f.name), flags_from);
        }
    }
    out.push('\n');
    let mut one = set.clone();
    one.make(Change::Scaling(Scaling::None));
    line(
        out,
        "tunable_scaling=none",
        "for one CPU, as the next three are",
    );
    let (scaled, fixed): (Vec<_>, Vec<_>) = TUNABLES
        .iter()
        .zip(&one.tunables)
        .partition(|(t, _)| SCALED.contains(&t.name));
    for (t, value) in scaled {
        let from = t.from.trim_end_matches(" on 8 CPUs");
        line(out, &format!("{}={}", t.name, t.show(*value)), from);
    }
    let log = format!("tunable_scaling={}", set.scaling.name());
    line(out, &log, "6.1 get_update_sysctl_factor");
    for (t, value) in fixed {
        line(out, &format!("{}={}", t.name, t.show(*value)), t.from);
    }
}

fn switch(name: &str, on: bool) -> String {
    let no = if on { "" } else { "NO_" };
    format!("{no}{name}")
}

fn line(out: &mut String, word: &str, source: &str) {
    let _ = writeln!(out, "{word:<SOURCE_AT$} # {source}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(text: &str) -> String {
        read("my.preset", text, 0).expect_err(text).0
    }

    #[test]
    fn an_error_names_the_file_the_line_and_the_nearest_word() {
        let error = fails("# mine\n\nNO_WAKEUP_PREEMPT # typo\n");
        let says = "my.preset:3: no setting is called \"NO_WAKEUP_PREEMPT\"; did you mean";
        assert!(error.starts_with(says), "{error}");
        assert!(fails("START_DEBIT\nimbalance_pct=1").starts_with("my.preset:2: imbalance_pct=1"));
        assert!(fails("START_DEBIT NO_CACHE_HOT").starts_with("my.preset:1: one word a line"));
        assert!(fails("preset=cfs-6.2").contains("1: no preset is called \"cfs-6.2\"; did you"));
        assert!(fails("preset=./other.preset").contains("by name, not by path"));
        let both = fails("IDLE_SIBLING\nSTART_DEBIT\nIDLE_SHARED_CACHE");
        assert!(both.starts_with("my.preset:3: ") && both.contains("only one"));
        let endless = include("off", DEEPEST).expect_err("too deep");
        assert!(endless.0.contains("without end"));
    }

    #[test]
    fn comments_and_empty_lines_are_no_words() {
        let text = "# one\n  NO_START_DEBIT  # two\n\n\timbalance_pct=150\r\n#";
        let words = read("x", text, 0).expect("words");
        assert_eq!(words, ["NO_START_DEBIT", "imbalance_pct=150"]);
        assert!(read("x", "", 0).expect("nothing").is_empty());
    }

    #[test]
    fn words_after_a_preset_count_over_it() {
        let mut set = Settings::default();
        let words = expand(&["preset=cfs-2.6.32,IDLE_SIBLING", "min_granularity_ns=9ms"]);
        set.apply(&words.expect("words")).expect("they fit");
        assert!(set.provides("IDLE_SIBLING") && !set.provides("IDLE_SHARED_CACHE"));
        assert!(set.to_string().contains("min_granularity_ns=9ms"));

        let words = expand(&["IDLE_SHARED_CACHE", "preset=cfs-6.1"]).expect("words");
        set.apply(&words).expect("they fit");
        assert!(set.provides("IDLE_SIBLING") && !set.provides("IDLE_SHARED_CACHE"));

        let both = expand(&["IDLE_SIBLING", "preset=cfs-6.1", "IDLE_SHARED_CACHE"]);
        assert!(set.apply(&both.expect("words")).is_err(), "asked for both");
    }

    #[test]
    fn a_preset_takes_in_another_one() {
        let text = "IDLE_SHARED_CACHE\npreset=off\nIDLE_SIBLING\npreset=cfs-2.6.32";
        let error = fails(text);
        assert!(error.starts_with("my.preset:3: "), "{error}");
        let words = read("x", "preset=cfs-2.6.32\nIDLE_SIBLING", 0).expect("words");
        let mut set = Settings::default();
        set.apply(&words).expect("they fit");
        assert!(set.provides("IDLE_SIBLING"));
    }

    #[test]
    fn files_are_bounded_and_must_be_text() {
        assert!(
            read_file("/dev/zero")
                .expect_err("endless")
                .0
                .contains("64 KiB")
        );
        assert!(
            read_file("/no/such")
                .expect_err("none")
                .0
                .contains("/no/such: No such")
        );
    }
}
