// SPDX-License-Identifier: GPL-2.0-only
//! Sentences out of numbers: shares that name their base, lists, paragraphs that
//! fit a terminal. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::hist::{Hist, bounds, show_rounded};
use crate::metrics::{WIDTH, wrap};
use crate::settings::Settings;
use crate::tables::{COUNTERS, TUNABLES};

/// Counters by name, of the whole machine or of one task.
pub type Counts = BTreeMap<String, u64>;

/// A share below this many percent is summed with the others that are.
const SMALL: f64 = 1.0;
/// Columns of a share at the head of a line.
const SHARE: usize = 8;

/// A counter by name.
pub fn count_of(counts: &Counts, name: &str) -> u64 {
    counts.get(name).copied().unwrap_or(0)
}

/// The sum of some counters.
pub fn sum_of(counts: &Counts, names: &[&str]) -> u64 {
    names.iter().map(|name| count_of(counts, name)).sum()
}

/// Names of the counters that begin so, in their order.
pub fn counters_like(prefix: &str) -> Vec<&'static str> {
    let names = COUNTERS.iter().map(|row| row.name);
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// What a counter counts, with the values that the numbers it names have now, and
/// without the word that all of its group begin with.
pub fn help_of(name: &str, settings: &Settings) -> String {
    let row = COUNTERS.iter().find(|row| row.name == name);
    let help = row.map_or(name, |row| row.help);
    let lead = ["wakeups ", "wakees that "];
    let short = lead.iter().find_map(|lead| help.strip_prefix(lead));
    with_values(short.unwrap_or(help), settings)
}

/// A text, with the value of each number that it names.
pub fn with_values(text: &str, settings: &Settings) -> String {
    let rows = TUNABLES.iter().zip(&settings.tunables);
    rows.fold(text.to_string(), |text, (t, value)| {
        text.replace(t.name, &format!("{} ({})", t.name, t.show(*value)))
    })
}

/// How many percent `part` is of `base`; of nothing, none.
pub fn percent(part: u64, base: u64) -> String {
    let share = share(part, base);
    match share {
        _ if part == 0 || base == 0 => "0 %".into(),
        s if s < 0.1 => "<0.1 %".into(),
        s if s < 9.95 => format!("{s:.1} %"),
        s if s >= 99.5 && part < base => ">99 %".into(),
        s => format!("{s:.0} %"),
    }
}

fn share(part: u64, base: u64) -> f64 {
    if base == 0 {
        0.0
    } else {
        part as f64 * 100.0 / base as f64
    }
}

/// A number with its thousands apart.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// "1 wakeup", "2,000 wakeups", "2 searches".
pub fn things(n: u64, thing: &str) -> String {
    let ending = match n {
        1 => "",
        _ if thing.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {thing}{ending}", grouped(n))
}

/// A text as it stands at the head of a sentence.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

/// The percentiles of a histogram as a sentence that `what` begins.
pub fn percentiles(what: &str, hist: &Hist) -> Option<String> {
    let top = bounds(hist.max_bucket()?).1;
    let at = |p| hist.percentile(p).map(show_rounded);
    Some(format!(
        "{what}: half within {}, 90 % within {}, 99 % within {}, all within {} ({}).",
        at(50.0)?,
        at(90.0)?,
        at(99.0)?,
        show_rounded(top),
        things(hist.total(), "time")
    ))
}

/// Paragraphs under headings.
#[derive(Debug, Default)]
pub struct Report(String);

impl Report {
    /// Begins a part.
    pub fn heading(&mut self, title: &str) {
        let _ = writeln!(self.0, "\n{}", wrap(title, WIDTH).join("\n"));
    }

    /// A paragraph; nothing, of an empty text.
    pub fn say(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.indented("  ", text.trim());
        }
    }

    /// A list of shares of `base`, largest first, small ones summed at the end.
    pub fn shares(&mut self, base: u64, parts: impl IntoIterator<Item = (u64, String)>) {
        let parts = parts.into_iter().filter(|(n, _)| *n > 0);
        let (small, large): (Vec<_>, Vec<_>) = parts.partition(|(n, _)| share(*n, base) < SMALL);
        self.each_share(base, large);
        match small.len() {
            // A line for the rest would save none.
            0 | 1 => self.each_share(base, small),
            ways => {
                let sum = small.iter().map(|(n, _)| n).sum();
                self.share(base, sum, &format!("in {ways} other ways"));
            }
        }
    }

    /// The same with none summed.
    pub fn each_share(&mut self, base: u64, parts: impl IntoIterator<Item = (u64, String)>) {
        let mut parts: Vec<_> = parts.into_iter().filter(|(n, _)| *n > 0).collect();
        parts.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
        for (n, text) in parts {
            self.share(base, n, &text);
        }
    }

    /// One line of such a list.
    pub fn share(&mut self, base: u64, n: u64, text: &str) {
        let head = format!("{:>SHARE$}  ", percent(n, base));
        self.indented(&head, text);
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.0.trim_start().to_string()
    }

    fn indented(&mut self, head: &str, text: &str) {
        // A number and its % stay together.
        let glued = text.replace(" %", "\u{1}%");
        for (i, line) in wrap(&glued, WIDTH - head.len()).iter().enumerate() {
            let line = line.replace('\u{1}', " ");
            let _ = match i {
                0 => writeln!(self.0, "{head}{line}"),
                _ => writeln!(self.0, "{:1$}{line}", "", head.len()),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_never_of_nothing_and_never_rounded_to_all_or_none() {
        let texts = [
            (0, 0),
            (5, 0),
            (0, 5),
            (1, 5000),
            (31, 1000),
            (1, 8),
            (5, 5),
        ];
        let shown = texts.map(|(part, base)| percent(part, base));
        let right = ["0 %", "0 %", "0 %", "<0.1 %", "3.1 %", "12 %", "100 %"];
        assert_eq!(shown, right);
        assert_eq!(percent(9999, 10_000), ">99 %");
    }

    #[test]
    fn numbers_are_grouped_and_things_counted() {
        let shown = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(things(1, "search"), "1 search");
        assert_eq!(things(2000, "search"), "2,000 searches");
        assert_eq!(things(0, "run"), "0 runs");
    }

    #[test]
    fn a_number_stays_with_its_percent_sign_and_a_long_heading_is_wrapped() {
        let mut report = Report::default();
        report.heading(&"title ".repeat(20));
        report.say(&"7 % ".repeat(60));
        report.say(" ");
        let text = report.into_text();
        for line in text.lines() {
            assert!(line.len() <= WIDTH && !line.trim_start().starts_with('%'));
        }
        assert!(
            text.ends_with("7 %\n"),
            "an empty paragraph is none: {text}"
        );
    }

    #[test]
    fn a_help_text_has_the_values_of_the_numbers_it_names() {
        let help = help_of("preempt_granularity", &Settings::default());
        assert!(help.ends_with("wakeup_granularity_ns (4ms)"), "{help}");
        assert_eq!(
            help_of("no_such_counter", &Settings::default()),
            "no_such_counter"
        );
    }
}
