// SPDX-License-Identifier: GPL-2.0-only
//! The command line of `scx_kin bench`: definitions only.

use clap::{Args, Subcommand, ValueEnum};

use crate::bench::data::Better;

/// What a user types.
pub const EXAMPLES: &str = "\
Examples:
  sudo scx_kin bench hackbench                  stock against scx_kin's defaults
  sudo scx_kin bench oltp-pgsql --clients 1..16 --html sweep.html
  sudo scx_kin bench sysbench --settings 'stock,default,NO_WAKEUP_PREEMPTION'
  sudo scx_kin bench hackbench --settings 'default,cfs-6.1 NO_LAST_BUDDY'
  sudo scx_kin bench hackbench --settings 'stock,default,other:scx_rusty'
  sudo scx_kin bench --cmd './my-load' --metric 'tps = ([0-9.]+)' --better higher
  scx_kin bench report FILE.json --markdown     the same results, told otherwise
  scx_kin bench compare monday.json friday.json

A setting is stock (the kernel's own scheduler), words of `scx_kin set` between
spaces, of which the name of a preset is one, or other:COMMAND. Each round
measures all of them in random order, the first (or --reference) twice: what
comes out between it and itself is noise, and no smaller difference is believed.
";

/// Options of `scx_kin bench`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BenchArgs {
    /// Something else than to measure.
    #[command(subcommand)]
    pub action: Option<Action>,

    /// A spec that ships with scx_kin, or a file of your own that ends in .toml;
    /// none lists those that ship
    #[arg(conflicts_with = "cmd")]
    pub spec: Option<String>,

    /// Measure this shell command instead
    #[arg(long, value_name = "COMMAND")]
    pub cmd: Option<String>,

    /// Where the command's figure stands in its output: a regular expression with
    /// the figure in ( ). Without one, the time that it takes is measured
    #[arg(long, value_name = "REGEX", requires = "cmd")]
    pub metric: Vec<String>,

    /// Which way the figure is good
    #[arg(long, requires = "cmd")]
    pub better: Option<Better>,

    /// What to compare, comma-separated: settings of the spec by name, or others
    #[arg(long, value_name = "SETTING,..", value_delimiter = ',')]
    pub settings: Vec<String>,

    /// The setting that the others are told against
    #[arg(long, value_name = "SETTING")]
    pub reference: Option<String>,

    /// Only these workloads of the spec, comma-separated
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub workloads: Vec<String>,

    /// Numbers of clients, such as 1,2,4 or 1..256, which doubles
    #[arg(long, value_name = "N,..")]
    pub clients: Option<String>,

    /// How often each is measured. More make the intervals narrower
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,

    /// Length of each run, where the command takes one
    #[arg(long, value_name = "SEC")]
    pub seconds: Option<u32>,

    /// A look instead of a measurement: few rounds, short runs, few clients
    #[arg(long)]
    pub quick: bool,

    /// Also measure what each callback of the attached scheduler costs, scx_kin's or
    /// another's: calls, ns a call, share of a CPU. Counting them slows each call down
    /// by some 20 to 50 ns
    #[arg(long)]
    pub cost: bool,

    /// Seed of the random order, and of the intervals; a new one each time if none
    /// is given
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// End with code 3 if a setting is worse than the reference by more than so
    /// many percent
    #[arg(long, value_name = "PCT", value_parser = percent)]
    pub fail_if_worse: Option<f64>,

    /// Where to keep the results, from which `report` makes everything again; the
    /// default is scx_kin-bench-SPEC-TIME.json in the current folder. /dev/null keeps
    /// none
    #[arg(long, value_name = "FILE")]
    pub out: Option<String>,

    /// How to tell it.
    #[command(flatten)]
    pub show: Show,
}

/// Forms of output.
#[derive(Debug, Default, Args)]
pub struct Show {
    /// Print the results as JSON instead of a table
    #[arg(long, group = "form")]
    pub json: bool,

    /// Print each run as a line of CSV
    #[arg(long, group = "form")]
    pub csv: bool,

    /// Print tables for a mail or an issue
    #[arg(long, group = "form")]
    pub markdown: bool,

    /// Also write a page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<String>,
}

/// What `scx_kin bench` does with results that there are.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Tell results again, in any form
    Report {
        /// What a bench has kept
        file: String,
        /// How to tell it.
        #[command(flatten)]
        show: Show,
    },
    /// Set the results of two machines, or of two days, side by side
    Compare {
        /// The first
        a: String,
        /// The second
        b: String,
    },
}

impl ValueEnum for Better {
    fn value_variants<'a>() -> &'a [Better] {
        &[Better::Higher, Better::Lower]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let (name, help) = match self {
            Better::Higher => ("higher", "a rate"),
            Better::Lower => ("lower", "a time"),
        };
        Some(clap::builder::PossibleValue::new(name).help(help))
    }
}

/// Percent, with a fraction if wanted.
fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if (0.0..=1000.0).contains(&n) => Ok(n),
        _ => Err("takes percent, from 0 to 1000".into()),
    }
}
