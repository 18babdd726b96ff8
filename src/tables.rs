// SPDX-License-Identifier: GPL-2.0-only
//! The lists of `bpf/intf.h` as Rust reads them: out of the `*_doc` texts, which
//! hold each row as it is spelled there. Pure.
//!
//! A row's place in its list is its bit number, or its index, in C too.
//! tests/policy.rs compares every number with what the C compiler makes of it.

use std::str::from_utf8;
use std::sync::LazyLock;

use crate::bpf::intf;

/// Nanoseconds of the unit names that values may be written with, largest first.
pub const UNITS: [(&str, u64); 4] = [
    ("s", intf::NSEC_PER_SEC as u64),
    ("ms", intf::NSEC_PER_MSEC as u64),
    ("us", intf::NSEC_PER_USEC as u64),
    ("ns", 1),
];

/// Highest number of CPUs, and of last-level caches, that the BPF side can hold.
pub const MAX_CPUS: usize = intf::limits_MAX_CPUS as usize;
/// See [`MAX_CPUS`].
pub const MAX_LLCS: usize = intf::limits_MAX_LLCS as usize;
/// Rows of the what-if table.
pub const WHATIF_ROWS: usize = intf::whatif_row_NR_WHATIF_ROWS as usize;
/// Buckets of a histogram.
pub const HIST_BUCKETS: usize = intf::limits_HIST_BUCKETS as usize;

/// A level of scheduling domains, from the inside out.
#[derive(Debug)]
pub struct Level {
    /// Its name: SMT, LLC, ...
    pub name: &'static str,
    /// Which CPUs it holds.
    pub help: &'static str,
}

/// A switch of a domain level.
#[derive(Debug)]
pub struct DomainFlag {
    /// Its name: SD_...
    pub name: &'static str,
    /// Levels at which it has a meaning; bit numbers of [`LEVELS`].
    pub levels: u64,
    /// Levels at which it is on by default.
    pub dfl: u64,
    /// What it does.
    pub help: &'static str,
}

impl DomainFlag {
    /// Whether the flag has a meaning at this level.
    pub fn applies_at(&self, level: usize) -> bool {
        self.levels >> level & 1 == 1
    }

    /// The levels at which it has a meaning, as text.
    pub fn level_names(&self) -> String {
        let on = |(i, l): (usize, &Level)| self.applies_at(i).then_some(l.name);
        let names: Vec<_> = LEVELS.iter().enumerate().filter_map(on).collect();
        names.join(", ")
    }
}

/// A switch.
#[derive(Debug)]
pub struct Feature {
    /// Its name; NO_ in front turns it off.
    pub name: &'static str,
    /// On by default.
    pub dfl: bool,
    /// Where the rule comes from.
    pub from: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// A number.
#[derive(Debug)]
pub struct Tunable {
    /// Its name.
    pub name: &'static str,
    /// Default.
    pub dfl: u64,
    /// Lowest value allowed.
    pub min: u64,
    /// Highest value allowed.
    pub max: u64,
    /// "ns", "%" or what is counted.
    pub unit: &'static str,
    /// Where the default comes from.
    pub from: &'static str,
    /// What it does, and what larger means.
    pub help: &'static str,
}

impl Tunable {
    /// A value of this tunable as a person writes it, and as `set` reads it.
    pub fn show(&self, value: u64) -> String {
        match self.unit {
            "ns" => show_ns(value),
            _ => value.to_string(),
        }
    }

    /// The range of values with its unit.
    pub fn range(&self) -> String {
        let unit = self.spaced_unit();
        format!("{} to {}{unit}", self.show(self.min), self.show(self.max))
    }

    /// What stands after [`Tunable::show`] to make its unit clear.
    pub fn spaced_unit(&self) -> String {
        match self.unit {
            "ns" => String::new(),
            unit => format!(" {unit}"),
        }
    }
}

/// A counter.
#[derive(Debug)]
pub struct Counter {
    /// Its name; the part before the first `_` is its group.
    pub name: &'static str,
    /// What must be on for it to move: "-", a feature, or LEVEL:SD_FLAG.
    pub needs: &'static str,
    /// Which event it counts.
    pub help: &'static str,
}

impl Counter {
    /// The group it belongs to, and its name within it.
    pub fn split(&self) -> (&'static str, &'static str) {
        self.name.split_once('_').unwrap_or((self.name, ""))
    }
}

/// A column of the what-if table.
#[derive(Debug)]
pub struct WhatIf {
    /// Its name.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
}

/// A log2 histogram.
#[derive(Debug)]
pub struct HistRow {
    /// Its name.
    pub name: &'static str,
    /// Unit of its values.
    pub unit: &'static str,
    /// What it measures.
    pub help: &'static str,
}

/// Scheduling domain levels; the index is the level's number.
pub static LEVELS: LazyLock<Vec<Level>> =
    LazyLock::new(|| rows(intf::level_doc, |[name, help]| Level { name, help }));

/// Domain flags; the index is the bit number.
pub static DOMAIN_FLAGS: LazyLock<Vec<DomainFlag>> = LazyLock::new(|| {
    rows(intf::domain_flag_doc, |[name, levels, dfl, help]| {
        DomainFlag {
            name,
            levels: eval_levels(levels),
            dfl: eval_levels(dfl),
            help,
        }
    })
});

/// Switches; the index is the bit number.
pub static FEATURES: LazyLock<Vec<Feature>> = LazyLock::new(|| {
    rows(intf::feature_doc, |[name, dfl, from, help]| Feature {
        name,
        dfl: dfl == "true",
        from,
        help,
    })
});

/// Numbers; the index is the place in `struct tunables`.
pub static TUNABLES: LazyLock<Vec<Tunable>> = LazyLock::new(|| {
    let row = |[name, dfl, min, max, unit, from, help]: [&'static str; 7]| Tunable {
        name,
        dfl: eval(dfl),
        min: eval(min),
        max: eval(max),
        unit,
        from,
        help,
    };
    rows(intf::tunable_doc, row)
});

/// Counters; the index is the place in `struct cpu_stats`.
pub static COUNTERS: LazyLock<Vec<Counter>> = LazyLock::new(|| {
    rows(intf::counter_doc, |[name, needs, help]| Counter {
        name,
        needs,
        help,
    })
});

/// Columns of the what-if table; its rows are the switches and then the domain
/// flags of each level, as enum whatif_row of intf.h has them.
pub static WHATIFS: LazyLock<Vec<WhatIf>> =
    LazyLock::new(|| rows(intf::whatif_doc, |[name, help]| WhatIf { name, help }));

/// Histograms; the index is the place in `struct cpu_stats`.
pub static HISTS: LazyLock<Vec<HistRow>> = LazyLock::new(|| {
    rows(intf::hist_doc, |[name, unit, help]| HistRow {
        name,
        unit,
        help,
    })
});

/// A row of the what-if table: its name as `set` knows it (a switch, or
/// LEVEL:SD_FLAG) and the rule's help; none for a flag that has no meaning at
/// that level. See enum whatif_row of intf.h.
pub fn whatif_row(row: usize) -> Option<(String, &'static str)> {
    let Some(place) = row.checked_sub(FEATURES.len()) else {
        return Some((FEATURES[row].name.into(), FEATURES[row].help));
    };
    let level = place / DOMAIN_FLAGS.len();
    let flag = &DOMAIN_FLAGS[place % DOMAIN_FLAGS.len()];
    let name = || format!("{}:{}", LEVELS[level].name, flag.name);
    flag.applies_at(level).then(|| (name(), flag.help))
}

/// Index of a level, by name.
pub fn level_index(name: &str) -> Option<usize> {
    LEVELS.iter().position(|l| l.name == name)
}

/// Index of a switch, by name.
pub fn feature_index(name: &str) -> Option<usize> {
    FEATURES.iter().position(|f| f.name == name)
}

/// Index of a number, by name.
pub fn tunable_index(name: &str) -> Option<usize> {
    TUNABLES.iter().position(|t| t.name == name)
}

/// Index of a domain flag, by name.
pub fn flag_index(name: &str) -> Option<usize> {
    DOMAIN_FLAGS.iter().position(|f| f.name == name)
}

/// A duration in the largest unit that shows it exactly.
pub fn show_ns(ns: u64) -> String {
    let exact = |&&(_, size): &&(&str, u64)| ns > 0 && ns.is_multiple_of(size);
    match UNITS.iter().find(exact) {
        Some((unit, size)) => format!("{}{unit}", ns / size),
        None => format!("{ns}ns"),
    }
}

/// The rows of a `*_doc` text: one a line, fields between tabs, a NUL at the end.
fn rows<const N: usize, T>(doc: &'static [u8], row: impl Fn([&'static str; N]) -> T) -> Vec<T> {
    let text = from_utf8(doc).unwrap_or_default();
    let fields = |line: &'static str| {
        let mut fields = line.split('\t');
        std::array::from_fn(|_| fields.next().unwrap_or_default())
    };
    let lines = text.trim_end_matches('\0').lines();
    lines.map(|line| row(fields(line))).collect()
}

/// A number as intf.h spells it: a product of numbers and NSEC_PER_*.
fn eval(text: &str) -> u64 {
    let factor = |word: &str| match word.trim() {
        "NSEC_PER_SEC" => intf::NSEC_PER_SEC as u64,
        "NSEC_PER_MSEC" => intf::NSEC_PER_MSEC as u64,
        "NSEC_PER_USEC" => intf::NSEC_PER_USEC as u64,
        number => number.parse().unwrap_or(u64::MAX),
    };
    text.split('*').map(factor).fold(1, u64::saturating_mul)
}

/// A set of levels as intf.h spells it: `ON_LLC | ON_NODE`, `ON_ALL`, or 0.
fn eval_levels(text: &str) -> u64 {
    let bit = |word: &str| match word.trim().strip_prefix("ON_").unwrap_or_default() {
        "ALL" => (1 << LEVELS.len()) - 1,
        name => level_index(name).map_or(0, |level| 1 << level),
    };
    text.split('|').map(bit).fold(0, |all, one| all | one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_has_as_many_rows_as_its_enum() {
        assert_eq!(LEVELS.len(), intf::level_NR_LEVELS as usize);
        assert_eq!(
            DOMAIN_FLAGS.len(),
            intf::domain_flag_NR_DOMAIN_FLAGS as usize
        );
        assert_eq!(FEATURES.len(), intf::feature_NR_FEATURES as usize);
        assert_eq!(TUNABLES.len(), intf::tunable_NR_TUNABLES as usize);
        assert_eq!(COUNTERS.len(), intf::counter_NR_COUNTERS as usize);
        assert_eq!(WHATIFS.len(), intf::whatif_NR_WHATIFS as usize);
        assert_eq!(HISTS.len(), intf::hist_NR_HISTS as usize);
    }

    #[test]
    fn every_row_of_the_what_if_table_has_a_name() {
        assert_eq!(
            intf::whatif_row_WHATIF_FLAGS as usize,
            FEATURES.len(),
            "features come first"
        );
        let name = |row| whatif_row(row).map(|(name, _)| name);
        let first = FEATURES.len();
        assert_eq!(name(0).as_deref(), Some(FEATURES[0].name));
        assert_eq!(name(first).as_deref(), Some("SMT:SD_WAKE_AFFINE"));
        assert_eq!(
            name(WHATIF_ROWS - 1).as_deref(),
            Some("SYSTEM:SD_LOAD_BALANCE")
        );
        assert_eq!(name(first + DOMAIN_FLAGS.len() - 1), None, "not at SMT");
    }

    #[test]
    fn every_row_has_a_help_text_and_a_counter_names_what_it_needs() {
        assert!(
            FEATURES
                .iter()
                .all(|f| !f.help.is_empty() && !f.from.is_empty())
        );
        assert!(
            TUNABLES
                .iter()
                .all(|t| !t.help.is_empty() && !t.from.is_empty())
        );
        assert!(DOMAIN_FLAGS.iter().all(|f| !f.help.is_empty()));
        for c in COUNTERS.iter() {
            assert!(!c.help.is_empty(), "{}", c.name);
            let known = match c.needs.split_once(':') {
                Some((level, flag)) => level_index(level).is_some() && flag_index(flag).is_some(),
                None => c.needs == "-" || feature_index(c.needs).is_some(),
            };
            assert!(known, "{} needs {:?}", c.name, c.needs);
        }
    }

    #[test]
    fn defaults_lie_within_their_bounds() {
        for t in TUNABLES.iter() {
            assert!(t.min <= t.dfl && t.dfl <= t.max, "{}", t.name);
        }
        for f in DOMAIN_FLAGS.iter() {
            assert_eq!(f.dfl & !f.levels, 0, "{}", f.name);
        }
    }

    #[test]
    fn a_product_and_a_set_are_evaluated() {
        assert_eq!(eval("24 * NSEC_PER_MSEC"), 24_000_000);
        assert_eq!(eval("117"), 117);
        assert_eq!(eval_levels("ON_SMT | ON_SYSTEM"), 0b1001);
        assert_eq!(eval_levels("ON_ALL"), 0b1111);
        assert_eq!(eval_levels("0"), 0);
    }

    #[test]
    fn a_duration_is_shown_in_the_largest_unit_that_is_exact() {
        assert_eq!(show_ns(0), "0ns");
        assert_eq!(show_ns(4_000_000), "4ms");
        assert_eq!(show_ns(1_500_000), "1500us");
        assert_eq!(show_ns(1_000_000_000), "1s");
        assert_eq!(show_ns(1_000_001), "1000001ns");
    }
}
