// SPDX-License-Identifier: GPL-2.0-only
//! Counters and histograms of a stretch of time, and how they are printed.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::hist::{Hist, bounds, show_rounded};
use crate::settings::Settings;
use crate::tables::{COUNTERS, Counter, HISTS, WHATIFS, whatif_row};

/// Columns of a terminal that output has to fit.
pub const WIDTH: usize = 80;
/// Percentiles that are shown.
const PERCENTILES: [f64; 3] = [50.0, 90.0, 99.0];

/// What the scheduler did in a stretch of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Counts the loads of the BPF part: a hotplug restart starts from 0.
    pub load: u64,
    /// The setting at its end; tells whether two samples are of one setting.
    pub epoch: u64,
    /// Its length; from load, in a sample as the server takes it.
    pub seconds: f64,
    /// By name; see tables::COUNTERS.
    pub counters: BTreeMap<String, u64>,
    /// By name; see tables::HISTS.
    pub hists: BTreeMap<String, Hist>,
    /// What rules that are off would have done: by rule (a switch, or
    /// LEVEL:SD_FLAG), then by column; see tables::WHATIFS. Rules that were
    /// never tried have no entry.
    #[serde(default)]
    pub whatif: BTreeMap<String, BTreeMap<String, u64>>,
}

/// What was counted, in the order of the tables.
#[derive(Debug, Default)]
pub struct Counted {
    /// See tables::COUNTERS.
    pub counters: Vec<u64>,
    /// See tables::HISTS.
    pub hists: Vec<Hist>,
    /// See tables::whatif_row; one column of tables::WHATIFS after the other.
    pub whatif: Vec<u64>,
}

impl Sample {
    /// Names what was read in the order of the tables.
    pub fn new(load: u64, epoch: u64, seconds: f64, read: Counted) -> Sample {
        let counters = COUNTERS.iter().zip(read.counters);
        let hists = HISTS.iter().zip(read.hists);
        Sample {
            load,
            epoch,
            seconds,
            whatif: name_whatif(&read.whatif),
            counters: counters.map(|(row, n)| (row.name.into(), n)).collect(),
            hists: hists.map(|(row, h)| (row.name.into(), h)).collect(),
        }
    }

    /// What came since an earlier sample. One of an earlier load says nothing
    /// about this one: then all of it came since.
    pub fn since(&self, earlier: &Sample) -> Sample {
        if self.load != earlier.load {
            return self.clone();
        }
        let before = |name: &str| earlier.counters.get(name).copied().unwrap_or(0);
        let counters = self.counters.iter();
        let hists = self.hists.iter();
        let none = Hist::default();
        Sample {
            load: self.load,
            epoch: self.epoch,
            seconds: self.seconds - earlier.seconds,
            counters: counters
                .map(|(k, n)| (k.clone(), n.saturating_sub(before(k))))
                .collect(),
            hists: hists
                .map(|(k, h)| (k.clone(), h.since(earlier.hists.get(k).unwrap_or(&none))))
                .collect(),
            whatif: whatif_since(&self.whatif, &earlier.whatif),
        }
    }

    /// A counter by its row.
    pub fn count(&self, row: &Counter) -> u64 {
        self.counters.get(row.name).copied().unwrap_or(0)
    }

    fn rate(&self, n: u64) -> f64 {
        if self.seconds > 0.0 {
            n as f64 / self.seconds
        } else {
            0.0
        }
    }

    /// Rows by group, each with the sum of the group; groups that did nothing
    /// are left out unless `all` is asked for.
    fn groups(&self, all: bool) -> Vec<(&'static str, u64, Vec<&'static Counter>)> {
        let mut groups: Vec<(&str, u64, Vec<&Counter>)> = vec![];
        for row in COUNTERS.iter() {
            let (group, _) = row.split();
            if groups.last().is_none_or(|(name, _, _)| *name != group) {
                groups.push((group, 0, vec![]));
            }
            if let Some((_, sum, rows)) = groups.last_mut() {
                *sum += self.count(row);
                if all || self.count(row) > 0 {
                    rows.push(row);
                }
            }
        }
        groups.retain(|(_, _, rows)| !rows.is_empty());
        groups
    }

    /// The full table: every counter that moved (or `all`), by group, with rate,
    /// share of the group, and what it counts; then the histograms.
    pub fn table(&self, settings: &Settings, all: bool) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{:<22} {:>12} {:>9} {:>5}",
            "counter", "count", "per s", "share"
        );
        for (_, sum, rows) in self.groups(all) {
            let _ = writeln!(out);
            for row in rows {
                let n = self.count(row);
                let share = if sum > 0 {
                    n as f64 * 100.0 / sum as f64
                } else {
                    0.0
                };
                let off = if settings.provides(row.needs) {
                    ""
                } else {
                    "  (off)"
                };
                let rate = show_count(self.rate(n));
                let _ = writeln!(out, "{:<22} {n:>12} {rate:>9} {share:>4.0}%{off}", row.name);
                for line in wrap(row.help, WIDTH - 4) {
                    let _ = writeln!(out, "    {line}");
                }
            }
        }
        for row in HISTS.iter() {
            let hist = self.hists.get(row.name).cloned().unwrap_or_default();
            let _ = writeln!(out, "\n{}: {}", row.name, row.help);
            let _ = writeln!(out, "    {}", percentiles(&hist));
            for bar in hist.bars(WIDTH - 30) {
                let _ = writeln!(out, "    {bar}");
            }
        }
        out
    }

    /// A few lines, for --stats and --monitor: each group's rate and how it
    /// splits, then the percentiles.
    pub fn brief(&self) -> String {
        let mut out = format!("setting {}, {:.1} s\n", self.epoch, self.seconds);
        for (group, sum, mut rows) in self.groups(false) {
            rows.sort_by_key(|row| std::cmp::Reverse(self.count(row)));
            let share = |row: &&Counter| {
                let percent = self.count(row) as f64 * 100.0 / sum as f64;
                format!("{}={percent:.0}%", row.split().1)
            };
            let shares: Vec<String> = rows.iter().map(share).collect();
            let head = format!("  {group:<9} {:>7}/s ", show_count(self.rate(sum)));
            for (i, line) in wrap(&shares.join(" "), WIDTH - head.len())
                .iter()
                .enumerate()
            {
                let _ = match i {
                    0 => writeln!(out, "{head}{line}"),
                    _ => writeln!(out, "{:1$}{line}", "", head.len()),
                };
            }
        }
        for row in HISTS.iter() {
            let hist = self.hists.get(row.name).cloned().unwrap_or_default();
            let _ = writeln!(out, "  {:<14} {}", row.name, percentiles(&hist));
        }
        out
    }

    /// Percentiles of all histograms, by flat name, rounded to whole units.
    pub fn percentiles(&self) -> BTreeMap<String, u64> {
        let of = |(name, hist): (&String, &Hist)| {
            let value = |p: f64| hist.percentile(p).unwrap_or(0.0).round() as u64;
            PERCENTILES.map(|p| (percentile_name(name, p), value(p)))
        };
        self.hists.iter().flat_map(of).collect()
    }
}

type WhatIfTable = BTreeMap<String, BTreeMap<String, u64>>;

/// Rows that were tried at all: the first column is how often.
fn name_whatif(numbers: &[u64]) -> WhatIfTable {
    let named = |(row, numbers): (usize, &[u64])| {
        let columns = WHATIFS.iter().zip(numbers);
        let columns = columns.map(|(c, n)| (c.name.into(), *n)).collect();
        whatif_row(row).map(|(name, _)| (name, columns))
    };
    let rows = numbers.chunks(WHATIFS.len()).enumerate();
    let tried = rows.filter(|(_, numbers)| numbers[0] > 0);
    tried.filter_map(named).collect()
}

fn whatif_since(now: &WhatIfTable, earlier: &WhatIfTable) -> WhatIfTable {
    let none = BTreeMap::new();
    let mut since = now.clone();
    for (rule, columns) in &mut since {
        let before = earlier.get(rule).unwrap_or(&none);
        for (name, n) in columns.iter_mut() {
            *n = n.saturating_sub(before.get(name).copied().unwrap_or(0));
        }
    }
    since.retain(|_, columns| columns.values().any(|n| *n > 0));
    since
}

/// Name of a percentile among the flat metrics.
pub fn percentile_name(hist: &str, percent: f64) -> String {
    format!("{hist}_p{percent:.0}_ns")
}

/// All percentiles of all histograms: flat name and help.
pub fn percentile_fields() -> Vec<(String, String)> {
    let of = |row: &'static crate::tables::HistRow| {
        let field = move |p: f64| {
            let help = format!("{}, {p:.0}th percentile, in {}", row.help, row.unit);
            (percentile_name(row.name, p), help)
        };
        PERCENTILES.map(field)
    };
    HISTS.iter().flat_map(of).collect()
}

/// The percentiles of a histogram and its highest value, in one line.
pub fn percentiles(hist: &Hist) -> String {
    let Some(max) = hist.max_bucket() else {
        return "nothing yet".into();
    };
    let one = |p: f64| {
        format!(
            "p{p:.0} {}",
            show_rounded(hist.percentile(p).unwrap_or(0.0))
        )
    };
    let all = PERCENTILES.map(one).join(", ");
    format!("{all}, max below {}", show_rounded(bounds(max).1))
}

/// A count or rate with at most four digits and a suffix.
pub fn show_count(n: f64) -> String {
    match n {
        n if n >= 9_999_500.0 => format!("{:.1}M", n / 1e6),
        n if n >= 9_999.5 => format!("{:.1}k", n / 1e3),
        n if n >= 99.95 || n == 0.0 => format!("{n:.0}"),
        n => format!("{n:.1}"),
    }
}

/// Breaks a text at its spaces.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}
