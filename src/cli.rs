// SPDX-License-Identifier: GPL-2.0-only
//! The command line: definitions only.

use std::fmt::Write;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use scx_utils::libbpf_clap_opts::LibbpfOpts;

use crate::bench::args::{BenchArgs, EXAMPLES as EXAMPLES_OF_BENCH};
use crate::presets;
use crate::scaling::Scaling;
use crate::tables::{DOMAIN_FLAGS, FEATURES, TUNABLES};
use crate::words::VOCABULARY;

const ABOUT: &str = "A sched_ext scheduler with CFS's rules as switches that can be thrown live";

const LONG_ABOUT: &str = "\
scx_kin places a task with its kin: on the sibling thread, in the shared cache,
on the node. It does so by the rules that CFS became known for, and each rule is
a switch that can be thrown while the scheduler runs, so that anybody can find
out on their own machine which rule helps a load and which one hurts it.

Alone, scx_kin loads the scheduler and runs it until Ctrl-C. From another
terminal, its subcommands change the rules and show what they did.";

/// What a user types.
pub const EXAMPLES: &str = "\
  sudo scx_kin                                  run it with its defaults
  sudo scx_kin --features NO_IDLE_CORE --stats 5
  sudo scx_kin set NO_WAKEUP_PREEMPTION         throw a switch, live
  sudo scx_kin set preset=cfs-6.1               all rules as Linux 6.1 had them
  sudo scx_kin set wakeup_granularity_ns=8ms NODE:-SD_BALANCE_WAKE
  sudo scx_kin counters 10                      why tasks went where they went
  sudo scx_kin explain                          the same, in plain English
  sudo scx_kin bench hackbench                  is it faster than stock?
  scx_kin features                              the switches, and what they do
";

/// What the program ends with.
pub const EXIT_CODES: [(u8, &str); 5] = [
    (0, "done, or ended by SIGINT or SIGTERM"),
    (
        1,
        "failed: something is missing, no scheduler answers, or the kernel ended it",
    ),
    (
        2,
        "wrong usage, or a word or value that does not exist; nothing was changed",
    ),
    (3, "bench: a setting is worse than --fail-if-worse allows"),
    (130, "bench: ended by a signal; what was measured is kept"),
];

/// What was asked for.
#[derive(Debug, Parser)]
#[command(name = "scx_kin", about = ABOUT, long_about = LONG_ABOUT)]
#[command(args_conflicts_with_subcommands = true, disable_version_flag = true)]
#[command(max_term_width = 80, subcommand_help_heading = "Subcommands")]
pub struct Cli {
    /// How to run the scheduler, if no subcommand is given.
    #[command(flatten)]
    pub run: RunArgs,
    /// What to do instead of running the scheduler.
    #[command(subcommand)]
    pub command: Option<Sub>,
}

/// Options of running the scheduler.
#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// A whole setting to start with, before what the next three change: one that
    /// `scx_kin presets` lists, or a file of your own, with a / or .preset in it
    #[arg(long, value_name = "NAME", hide_possible_values = true, value_parser = Word::Preset)]
    pub preset: Option<String>,

    /// Switches to start with, comma-separated; NO_ in front turns one off.
    /// `scx_kin features` lists them
    #[arg(long, value_name = "NAME,NO_NAME", value_delimiter = ',', hide_possible_values = true, value_parser = Word::Feature)]
    pub features: Vec<String>,

    /// Numbers to start with, comma-separated or one at a time; times take ns,
    /// us, ms or s. `scx_kin tunables` lists them and says what larger means
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', hide_possible_values = true, value_parser = Word::Tunable)]
    pub set: Vec<String>,

    /// Domain flags to start with, such as NODE:-SD_BALANCE_WAKE, comma-separated
    /// or one at a time. `scx_kin features` lists them
    #[arg(long, value_name = "LEVEL:+FLAG", value_delimiter = ',', hide_possible_values = true, value_parser = Word::Flag)]
    pub sd: Vec<String>,

    /// Also print statistics every SEC seconds; a larger value averages over a
    /// longer time
    #[arg(long, value_name = "SEC", value_parser = seconds)]
    pub stats: Option<Duration>,

    /// Only print the statistics of a scx_kin that runs, every SEC seconds
    #[arg(long, value_name = "SEC", value_parser = seconds, conflicts_with = "stats")]
    pub monitor: Option<Duration>,

    /// Describe the statistics that the stats socket hands out
    #[arg(long)]
    pub help_stats: bool,

    /// Bytes of the kernel's dump when it ends the scheduler for an error; 0 is
    /// the kernel's own 32768. A larger one holds more CPUs and tasks
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub exit_dump_len: u32,

    /// Also log debug messages, and what libbpf and the verifier say
    #[arg(short, long)]
    pub verbose: bool,

    /// Print the version
    #[arg(short = 'V', long)]
    pub version: bool,

    /// For libbpf.
    #[command(flatten, next_help_heading = "Libbpf options")]
    pub libbpf: LibbpfOpts,
}

/// What can be done without running the scheduler.
#[derive(Debug, Subcommand)]
pub enum Sub {
    /// Change settings of the running scheduler: all words or, if one is wrong,
    /// none
    Set {
        /// NAME or NO_NAME for a switch, NAME=VALUE for a number,
        /// LEVEL:+SD_FLAG or LEVEL:-SD_FLAG for a domain flag, preset=NAME for all
        /// that a preset sets
        #[arg(required = true, value_name = "WORD", hide_possible_values = true, value_parser = Word::Any)]
        words: Vec<String>,
    },
    /// Show the settings of the running scheduler
    Get {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// List the switches and domain flags, with their defaults
    Features,
    /// List the numbers, with their defaults and ranges, and what larger means
    Tunables,
    /// List the presets, or print what one of them sets, each word with its source
    Presets {
        /// A name from the list, or a file of your own; what is printed is a file
        /// that --preset and `set preset=` take
        #[arg(hide_possible_values = true, value_parser = Word::Preset)]
        name: Option<String>,
    },
    /// Show what the running scheduler decided, and why: since the last `set`,
    /// unless told otherwise
    Counters {
        /// Watch for this many seconds and show what came meanwhile
        #[arg(value_parser = seconds, conflicts_with = "since_start")]
        seconds: Option<Duration>,
        /// Show all since the scheduler was loaded
        #[arg(long)]
        since_start: bool,
        /// Also show the counters that did not move
        #[arg(long)]
        all: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Tell in plain English what the running scheduler did and why, and what the
    /// rules that are off would have changed
    Explain {
        /// Watch for this many seconds, or until Ctrl-C
        #[arg(value_parser = seconds, default_value = "5")]
        seconds: Duration,
        /// Watch one task, or one process with all of its threads
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        pid: Option<u32>,
        /// The numbers, as JSON
        #[arg(long)]
        json: bool,
    },
    /// Measure which setting helps a load: settings against each other, in turns,
    /// with the noise known
    #[command(after_help = EXAMPLES_OF_BENCH)]
    Bench(Box<BenchArgs>),
    /// Show nodes, caches, cores and CPUs as the scheduler sees them
    Topology {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

/// The whole command, with the words of `set` explained.
pub fn command() -> Command {
    let brief = [
        "relaxed_maps",
        "pin_root_path",
        "kconfig",
        "btf_custom_path",
        "bpf_token_path",
    ];
    let hide = |cmd: Command, id: &&str| cmd.mut_arg(*id, |arg| arg.hide_short_help(true));
    let cmd = brief.iter().fold(Cli::command(), hide);
    let mut after = format!("Examples:\n{EXAMPLES}\nExit codes:\n");
    for (code, meaning) in EXIT_CODES {
        let _ = writeln!(after, "  {code}  {meaning}");
    }
    cmd.after_help(after)
        .mut_subcommand("set", |set| set.after_long_help(all_words()))
}

/// A list of all words, for the help of `set` and the manual page.
fn all_words() -> String {
    let mut out = String::from("Switches:\n");
    for f in FEATURES.iter() {
        let _ = writeln!(out, "  {}\n      {}", f.name, f.help);
    }
    out += "\nNumbers, with their defaults on 8 CPUs and more:\n";
    for t in TUNABLES.iter() {
        let (dfl, range) = (t.show(t.dfl), t.range());
        let _ = writeln!(out, "  {}={dfl} ({range})\n      {}", t.name, t.help);
    }
    out += "\nHow the first three of them follow the number of online CPUs:\n";
    for s in Scaling::ALL {
        let _ = writeln!(out, "  tunable_scaling={}\n      {}", s.name(), s.help());
    }
    out += "\nDomain flags, and the levels at which they have a meaning:\n";
    for f in DOMAIN_FLAGS.iter() {
        let _ = writeln!(out, "  {} ({})\n      {}", f.name, f.level_names(), f.help);
    }
    out
}

/// Any text, completed from the words that there are. What is right and what is
/// nearest is for words.rs to say, in one way for all places.
#[derive(Clone, Copy, Debug)]
enum Word {
    Any,
    Feature,
    Tunable,
    Flag,
    Preset,
}

impl TypedValueParser for Word {
    type Value = String;

    fn parse_ref(
        &self,
        cmd: &Command,
        arg: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(cmd, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        if let Word::Preset = self {
            let names = presets::names().into_iter();
            return Some(Box::new(names.map(PossibleValue::new)));
        }
        let fits = |word: &&String| match self {
            Word::Any | Word::Preset => true,
            Word::Feature => !word.contains(['=', ':']),
            Word::Tunable => word.contains('='),
            Word::Flag => word.contains(':'),
        };
        let words = VOCABULARY.iter().filter(fits);
        let presets = presets::VOCABULARY.iter();
        let presets = presets.filter(|_| matches!(self, Word::Any));
        let all = words.chain(presets).map(String::as_str);
        Some(Box::new(all.map(PossibleValue::new)))
    }
}

/// Seconds, with a fraction if wanted.
fn seconds(text: &str) -> Result<Duration, String> {
    let most = 86_400.0;
    match text.parse::<f64>() {
        Ok(n) if (0.1..=most).contains(&n) => Ok(Duration::from_secs_f64(n)),
        _ => Err("takes seconds, from 0.1 to 86400".into()),
    }
}
