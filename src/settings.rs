// SPDX-License-Identifier: GPL-2.0-only
//! A whole setting (switches, domain flags, numbers) and the changes to it.
//! Pure: words.rs reads what a person writes, sched.rs makes it live.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::scaling::{PARTS, SCALED, Scaling, TABLE_CPUS};
use crate::tables::{
    DOMAIN_FLAGS, FEATURES, LEVELS, TUNABLES, feature_index, flag_index, level_index, tunable_index,
};

/// The setting that is no number, but a word: one of scaling::Scaling.
pub const SCALING: &str = "tunable_scaling";

/// Pairs of switches that are two forms of one rule: to turn one on turns the
/// other off.
pub const NEVER_BOTH: [(&str, &str); 1] = [("IDLE_SHARED_CACHE", "IDLE_SIBLING")];

/// The switch that may not be on together with this one, if there is one.
pub fn rival(name: &str) -> Option<&'static str> {
    NEVER_BOTH.into_iter().find_map(|pair| match pair {
        (one, other) if one == name => Some(other),
        (other, one) if one == name => Some(other),
        _ => None,
    })
}

/// What a user may change while the scheduler runs: `struct settings` of intf.h,
/// and how its numbers were scaled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "ByName", try_from = "ByName")]
pub struct Settings {
    /// Counts the changes; 0 is what the scheduler started with.
    pub epoch: u64,
    /// Bit numbers: tables::FEATURES.
    pub features: u64,
    /// One mask for each level; bit numbers: tables::DOMAIN_FLAGS.
    pub sd: Vec<u64>,
    /// In the order of tables::TUNABLES.
    pub tunables: Vec<u64>,
    /// How the numbers of scaling::SCALED follow the number of CPUs.
    pub scaling: Scaling,
    /// Online CPUs that they are scaled for: those of when the scheduler started.
    pub cpus: usize,
    /// They before scaling, in 1/scaling::PARTS ns.
    pub base: Vec<u64>,
}

/// One change of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A switch, by index, on or off.
    Feature(usize, bool),
    /// A domain flag: level, flag, on or off.
    Flag(usize, usize, bool),
    /// A number, by index.
    Tunable(usize, u64),
    /// How numbers follow the number of CPUs; the scaled ones change with it.
    Scaling(Scaling),
}

/// The defaults as intf.h has them, those of 8 CPUs and more.
impl Default for Settings {
    fn default() -> Self {
        Settings::default_for(TABLE_CPUS)
    }
}

impl Settings {
    /// The defaults on a machine with so many CPUs online.
    pub fn default_for(cpus: usize) -> Settings {
        let bit = |(i, on): (usize, bool)| u64::from(on) << i;
        let sd_of = |level: usize| {
            let on = DOMAIN_FLAGS.iter().map(|f| f.dfl >> level & 1 == 1);
            on.enumerate().map(bit).sum()
        };
        let tunables: Vec<u64> = TUNABLES.iter().map(|t| t.dfl).collect();
        let factor = Scaling::Log.factor(TABLE_CPUS);
        let base = scaled().map(|(_, index)| tunables[index] * PARTS / factor);
        let mut set = Settings {
            epoch: 0,
            features: FEATURES.iter().map(|f| f.dfl).enumerate().map(bit).sum(),
            sd: (0..LEVELS.len()).map(sd_of).collect(),
            base: base.collect(),
            tunables,
            scaling: Scaling::Log,
            cpus,
        };
        set.rescale();
        set
    }

    /// The defaults of the machine that these are for.
    pub fn defaults(&self) -> Settings {
        Settings::default_for(self.cpus)
    }

    /// Whether a switch is on.
    pub fn feature(&self, index: usize) -> bool {
        self.features >> index & 1 == 1
    }

    /// Whether a domain flag is on at a level.
    pub fn flag(&self, level: usize, flag: usize) -> bool {
        self.sd[level] >> flag & 1 == 1
    }

    /// Makes one change.
    pub fn make(&mut self, change: Change) {
        let put = |mask: &mut u64, bit: usize, on: bool| {
            *mask = *mask & !(1 << bit) | u64::from(on) << bit;
        };
        match change {
            Change::Feature(index, on) => {
                put(&mut self.features, index, on);
                let rival = rival(FEATURES[index].name).and_then(feature_index);
                if let Some(other) = rival.filter(|_| on) {
                    put(&mut self.features, other, false);
                }
            }
            Change::Flag(level, flag, on) => put(&mut self.sd[level], flag, on),
            Change::Tunable(index, value) => {
                self.tunables[index] = value;
                if let Some((place, _)) = scaled().find(|(_, scaled)| *scaled == index) {
                    self.base[place] = value.saturating_mul(PARTS) / self.scaling.factor(self.cpus);
                }
            }
            Change::Scaling(scaling) => {
                self.scaling = scaling;
                self.rescale();
            }
        }
    }

    /// Works the scaled numbers out anew, to the nearest ns within their bounds.
    fn rescale(&mut self) {
        let factor = self.scaling.factor(self.cpus);
        for (place, index) in scaled() {
            let t = &TUNABLES[index];
            let parts = self.base[place].saturating_mul(factor);
            let value = parts.saturating_add(PARTS / 2) / PARTS;
            self.tunables[index] = value.clamp(t.min, t.max);
        }
    }

    /// Whether what a counter needs is on; see `tables::Counter::needs`.
    pub fn provides(&self, needs: &str) -> bool {
        match needs.split_once(':') {
            Some((level, flag)) => level_index(level)
                .zip(flag_index(flag))
                .is_some_and(|(level, flag)| self.flag(level, flag)),
            None => feature_index(needs).is_none_or(|index| self.feature(index)),
        }
    }

    /// As `struct settings` lies in memory: all fields are 64 bits wide.
    pub fn words(&self) -> Vec<u64> {
        let head = [self.epoch, self.features];
        [&head[..], &self.sd, &self.tunables].concat()
    }

    /// Every item as (name, value), values in the words that `set` takes.
    fn items(&self) -> Vec<(String, String)> {
        let on_off = |on| String::from(if on { "on" } else { "off" });
        let mut items = vec![];
        for (i, f) in FEATURES.iter().enumerate() {
            items.push((f.name.into(), on_off(self.feature(i))));
        }
        for (level, l) in LEVELS.iter().enumerate() {
            let here = DOMAIN_FLAGS
                .iter()
                .enumerate()
                .filter(|(_, f)| f.applies_at(level));
            for (flag, f) in here {
                let name = format!("{}:{}", l.name, f.name);
                items.push((name, on_off(self.flag(level, flag))));
            }
        }
        // Before the numbers that change with it.
        items.push((SCALING.into(), self.scaling.name().into()));
        for (t, value) in TUNABLES.iter().zip(&self.tunables) {
            items.push((t.name.into(), t.show(*value)));
        }
        items
    }

    /// What changed since `old`, one line for each item.
    pub fn changes_since(&self, old: &Settings) -> Vec<String> {
        let pairs = old.items().into_iter().zip(self.items());
        let line = |((name, from), (_, to)): ((String, String), (String, String))| {
            (from != to).then(|| format!("{name} {from} -> {to}"))
        };
        pairs.filter_map(line).collect()
    }

    /// The words that lead from `old` to this setting.
    pub fn words_since(&self, old: &Settings) -> Vec<String> {
        let rescaled = old.scaling != self.scaling;
        let mut old = old.clone();
        if rescaled {
            old.make(Change::Scaling(self.scaling));
        }
        let pairs = old.items().into_iter().zip(self.items());
        let changed = pairs.filter(|(from, to)| from != to || rescaled && to.0 == SCALING);
        changed.map(|(_, item)| word(item)).collect()
    }
}

/// The word that makes an item so.
fn word((name, value): (String, String)) -> String {
    match (value.as_str(), name.split_once(':')) {
        ("on", None) => name,
        ("off", None) => format!("NO_{name}"),
        ("on", Some((level, flag))) => format!("{level}:+{flag}"),
        ("off", Some((level, flag))) => format!("{level}:-{flag}"),
        _ => format!("{name}={value}"),
    }
}

/// The numbers that are scaled: place in scaling::SCALED, index in TUNABLES.
fn scaled() -> impl Iterator<Item = (usize, usize)> {
    let index = |(place, name): (usize, &&str)| Some((place, tunable_index(name)?));
    SCALED.iter().enumerate().filter_map(index)
}

/// All words that make this setting from any other.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let words: Vec<String> = self.items().into_iter().map(word).collect();
        f.write_str(&words.join(" "))
    }
}

/// How settings travel: by name, since the program that asks may be another
/// version than the one that answers.
#[derive(Clone, Serialize, Deserialize)]
struct ByName {
    epoch: u64,
    features: BTreeMap<String, bool>,
    domain_flags: BTreeMap<String, BTreeMap<String, bool>>,
    tunables: BTreeMap<String, u64>,
    tunable_scaling: String,
    cpus: usize,
}

impl From<Settings> for ByName {
    fn from(set: Settings) -> Self {
        let flags_of = |level: usize| {
            let here = DOMAIN_FLAGS
                .iter()
                .enumerate()
                .filter(|(_, f)| f.applies_at(level));
            here.map(|(i, f)| (f.name.into(), set.flag(level, i)))
                .collect()
        };
        let levels = LEVELS.iter().enumerate();
        let features = FEATURES.iter().enumerate();
        let tunables = TUNABLES.iter().zip(&set.tunables);
        ByName {
            epoch: set.epoch,
            features: features
                .map(|(i, f)| (f.name.into(), set.feature(i)))
                .collect(),
            domain_flags: levels.map(|(i, l)| (l.name.into(), flags_of(i))).collect(),
            tunables: tunables.map(|(t, value)| (t.name.into(), *value)).collect(),
            tunable_scaling: set.scaling.name().into(),
            cpus: set.cpus,
        }
    }
}

impl TryFrom<ByName> for Settings {
    type Error = String;

    fn try_from(named: ByName) -> Result<Self, String> {
        let unknown = |name: &str| format!("unknown setting {name}: another version of scx_kin?");
        let mut set = Settings {
            epoch: named.epoch,
            ..Settings::default_for(named.cpus)
        };
        let scaling = Scaling::named(&named.tunable_scaling);
        let scaling = scaling.ok_or_else(|| unknown(&named.tunable_scaling))?;
        set.make(Change::Scaling(scaling));
        for (name, on) in &named.features {
            let index = feature_index(name).ok_or_else(|| unknown(name))?;
            set.make(Change::Feature(index, *on));
        }
        for (level, flags) in &named.domain_flags {
            let at = level_index(level).ok_or_else(|| unknown(level))?;
            for (name, on) in flags {
                let index = flag_index(name).ok_or_else(|| unknown(name))?;
                set.make(Change::Flag(at, index, *on));
            }
        }
        for (name, value) in &named.tunables {
            let index = tunable_index(name).ok_or_else(|| unknown(name))?;
            set.make(Change::Tunable(index, *value));
        }
        Ok(set)
    }
}

/// The defaults with some words applied.
#[cfg(test)]
pub fn with(words: &[&str]) -> Settings {
    let mut set = Settings::default();
    set.apply(words).expect("words");
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_setting_make_it_again() {
        let set = with(&[
            "NO_IDLE_SIBLING",
            "sched_latency_ns=7ms",
            "SMT:-SD_BALANCE_NEWIDLE",
        ]);
        let mut other = with(&["NO_START_DEBIT", "imbalance_pct=200"]);
        other.apply(&[set.to_string()]).expect("its own words");
        assert_eq!(other, set);
        let words = set.words_since(&Settings::default());
        assert_eq!(
            with(&words.iter().map(String::as_str).collect::<Vec<_>>()),
            set
        );
        assert_eq!(words.len(), 3);
    }

    #[test]
    fn changes_name_what_changed_and_nothing_else() {
        let dfl = Settings::default();
        let set = with(&[
            "NO_WAKEUP_PREEMPTION",
            "wakeup_granularity_ns=8ms",
            "NODE:-SD_BALANCE_WAKE",
        ]);
        let changes = set.changes_since(&dfl);
        assert_eq!(changes.len(), 3);
        assert!(changes.contains(&"WAKEUP_PREEMPTION on -> off".into()));
        assert!(changes.contains(&"NODE:SD_BALANCE_WAKE on -> off".into()));
        assert!(dfl.changes_since(&dfl).is_empty());
    }

    #[test]
    fn settings_survive_the_wire_and_strangers_are_refused() {
        let set = Settings {
            epoch: 7,
            ..with(&["NO_IDLE_CORE", "imbalance_pct=130"])
        };
        let json = serde_json::to_string(&set).expect("json");
        assert_eq!(
            serde_json::from_str::<Settings>(&json).expect("settings"),
            set
        );
        let stranger = json.replace("IDLE_CORE", "IDLE_MOON");
        assert!(serde_json::from_str::<Settings>(&stranger).is_err());
    }

    #[test]
    fn the_memory_image_has_every_field_in_order() {
        let set = Settings {
            epoch: 9,
            ..Settings::default()
        };
        let words = set.words();
        assert_eq!(words.len(), 2 + LEVELS.len() + TUNABLES.len());
        assert_eq!(words[..2], [9, set.features]);
        assert_eq!(words[2..2 + LEVELS.len()], set.sd);
        assert_eq!(words[2 + LEVELS.len()..], set.tunables);
    }

    #[test]
    fn what_a_counter_needs_is_looked_up() {
        let set = with(&["NO_IDLE_CORE", "NODE:-SD_BALANCE_WAKE"]);
        assert!(set.provides("-") && set.provides("IDLE_SIBLING"));
        assert!(!set.provides("IDLE_CORE") && !set.provides("NODE:SD_BALANCE_WAKE"));
        assert!(set.provides("LLC:SD_BALANCE_NEWIDLE"));
    }
}
