// SPDX-License-Identifier: GPL-2.0-only
//! What a bench is told (a spec) and what it brings home (results), as they stand
//! in TOML and JSON. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::Sample;

/// Version of the results' form: a reader refuses others.
pub const FORMAT: u32 = 1;

/// In the machine record: no, yes, or what scripts/vm calls it.
pub const VIRTUAL_MACHINE: &str = "virtual machine";

/// What to measure: settings x workloads x clients x rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The file's name without its ending.
    #[serde(default)]
    pub name: String,
    /// What it answers, in a sentence.
    pub about: String,
    /// The setting that all others are told against; the first, if not named.
    #[serde(default)]
    pub reference: String,
    /// Each setting's words come on top of those of the settings before it.
    #[serde(default)]
    pub ladder: bool,
    /// How often each cell is measured.
    #[serde(default = "default_rounds")]
    pub rounds: u32,
    /// How often each workload is run, unmeasured, before the first round.
    #[serde(default = "default_warmup")]
    pub warmup: u32,
    /// Length of a run, for commands that take one: `{seconds}`.
    #[serde(default = "default_seconds")]
    pub seconds: u32,
    /// Pause after each change of the setting, in ms.
    #[serde(default = "default_settle")]
    pub settle_ms: u32,
    /// In which order the settings of a round come.
    #[serde(default)]
    pub order: Order,
    /// What is compared.
    pub settings: Vec<Setting>,
    /// What it is compared with.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    /// What `--quick` makes of it.
    #[serde(default)]
    pub quick: Quick,
}

impl Spec {
    /// Name of the setting that all others are told against.
    pub fn reference_name(&self) -> &str {
        match self.reference.as_str() {
            "" => self.settings.first().map_or("", |s| &s.name),
            name => name,
        }
    }
}

fn default_rounds() -> u32 {
    7
}

fn default_warmup() -> u32 {
    1
}

fn default_seconds() -> u32 {
    10
}

fn default_settle() -> u32 {
    500
}

/// The order of the settings within a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By the seed, anew in each round: drift and habit hit all alike.
    #[default]
    Shuffled,
    /// As they are listed, every other round backwards.
    Listed,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SettingText")]
pub struct Setting {
    /// What it is called in the tables.
    pub name: String,
    /// `stock`, `other:COMMAND`, or words of scx_kin's `set`, of which the name of
    /// a preset is one.
    pub is: String,
}

/// A setting in a spec: its words, or words with a name.
#[derive(Deserialize)]
#[serde(untagged)]
enum SettingText {
    Words(String),
    Named { name: String, is: String },
}

impl From<SettingText> for Setting {
    fn from(text: SettingText) -> Setting {
        match text {
            SettingText::Words(is) => Setting::unnamed(&is),
            SettingText::Named { name, is } => Setting { name, is },
        }
    }
}

impl Setting {
    /// A setting that goes by its own words; another scheduler by its program's name.
    pub fn unnamed(is: &str) -> Setting {
        let program = |command: &str| {
            let path = command.split_whitespace().next().unwrap_or_default();
            path.rsplit('/').next().unwrap_or_default().to_string()
        };
        Setting {
            name: is.strip_prefix("other:").map_or(is.into(), program),
            is: is.into(),
        }
    }
}

/// What puts load on the machine, and what is read from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What it is called in the tables.
    pub name: String,
    /// A shell command, in which `{clients}`, `{seconds}`, `{cpus}` and `{db}` (how
    /// sysbench reaches the database) are replaced.
    pub command: String,
    /// A second command, started before the first and ended after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// Which database server it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<Database>,
    /// Values of `{clients}`; one run without any if empty.
    #[serde(default, with = "clients")]
    pub clients: Vec<u32>,
    /// Programs that must be there, and the Debian package that brings each.
    #[serde(default)]
    pub needs: BTreeMap<String, String>,
    /// What is read from its output, or from the clock.
    #[serde(rename = "metric")]
    pub metrics: Vec<Metric>,
}

/// A database server that the bench itself starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Database {
    /// PostgreSQL.
    Pgsql,
    /// MariaDB.
    Mysql,
}

/// A figure of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// What it is called in the tables.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// A regular expression whose first group is the figure; of several matches the
    /// last counts. Without one, the run's wall time in seconds is the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// In whose output it is looked for.
    #[serde(default)]
    pub from: Source,
    /// Which way is good.
    pub better: Better,
}

/// Whose output holds a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The workload's command.
    #[default]
    Command,
    /// The command beside it.
    Beside,
}

/// Which way a figure is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A rate.
    Higher,
    /// A time.
    Lower,
}

/// What `--quick` makes of a spec: a look, not a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quick {
    /// Instead of the spec's rounds.
    pub rounds: u32,
    /// Instead of the spec's seconds.
    pub seconds: u32,
    /// Instead of each sweep's clients; empty keeps the first and the last of each.
    #[serde(with = "clients")]
    pub clients: Vec<u32>,
}

impl Default for Quick {
    fn default() -> Quick {
        Quick {
            rounds: 3,
            seconds: 1,
            clients: vec![],
        }
    }
}

/// Everything that a bench brings home; `bench report` makes all its outputs of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// See [`FORMAT`].
    pub format: u32,
    /// The spec as it was run: whatever the command line changed is in it.
    pub spec: Spec,
    /// Seed of the order and of the bootstrap.
    pub seed: u64,
    /// Start, UTC, as RFC 3339 has it.
    pub started: String,
    /// The machine, as (what, value) in the order of telling.
    pub machine: Vec<(String, String)>,
    /// Why it ended before its time, if it did.
    pub ended_early: Option<String>,
    /// All runs in the order in which they were made.
    pub runs: Vec<Run>,
}

/// One run of one workload under one setting.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    /// From 1.
    pub round: u32,
    /// Name of the setting.
    pub setting: String,
    /// The reference's second run of a round: it is compared with the first to
    /// learn what difference comes from nothing at all.
    #[serde(default)]
    pub twin: bool,
    /// Name of the workload.
    pub workload: String,
    /// Value of `{clients}`; 0 if the workload has none.
    pub clients: u32,
    /// By the metric's name.
    pub figures: BTreeMap<String, f64>,
    /// When it started, in seconds since the bench's start.
    pub at: f64,
    /// How long it took.
    pub seconds: f64,
    /// What disturbed it, if anything did.
    pub disturbed: Option<String>,
    /// It is the repetition of a disturbed run, and counts in its place.
    #[serde(default)]
    pub repeat: bool,
    /// What scx_kin counted meanwhile; none under another scheduler.
    pub sample: Option<Sample>,
    /// With `--cost`: what each callback of the attached scheduler cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<BTreeMap<String, Cost>>,
}

/// What a callback cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// How often it was called.
    pub calls: u64,
    /// Its time, in ns.
    pub ns: u64,
}

/// A sweep: a list of numbers, or "1..256", which doubles.
mod clients {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Text {
        List(Vec<u32>),
        One(u32),
        Range(String),
    }

    pub fn serialize<S: Serializer>(list: &[u32], to: S) -> Result<S::Ok, S::Error> {
        list.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
        match Text::deserialize(from)? {
            Text::List(list) => Ok(list),
            Text::One(n) => Ok(vec![n]),
            Text::Range(text) => super::sweep(&text).map_err(D::Error::custom),
        }
    }
}

/// The clients that a text means: numbers and ranges such as `1..256`, which
/// double, between commas.
pub fn sweep(text: &str) -> Result<Vec<u32>, String> {
    let wrong =
        || format!("clients {text:?}: give numbers such as 1,2,4 or a range such as 1..256");
    let number = |word: &str| match word.trim().parse() {
        Ok(n) if (1..=MOST_CLIENTS).contains(&n) => Ok(n),
        _ => Err(format!("{}, each from 1 to {MOST_CLIENTS}", wrong())),
    };
    let mut all = vec![];
    for part in text.split(',') {
        match part.split_once("..") {
            None => all.push(number(part)?),
            Some((from, to)) => {
                let (from, to): (u32, u32) = (number(from)?, number(to)?);
                let doubled = std::iter::successors(Some(from), |n| n.checked_mul(2));
                all.extend(doubled.take_while(|n| *n <= to));
                if to < from {
                    return Err(wrong());
                }
            }
        }
    }
    Ok(all)
}

/// More than any machine of today has a use for.
const MOST_CLIENTS: u32 = 65_536;
