// SPDX-License-Identifier: GPL-2.0-only
//! scx_kin: parse, do, and print an error once.

use std::process::ExitCode;

use anyhow::Result;
use clap::FromArgMatches;
use scx_kin::bench::TooBad;
use scx_kin::bench::command::Interrupted;
use scx_kin::words::BadWord;
use scx_kin::{cli, commands, output, run};

const FAILED: u8 = 1;
const BAD_USAGE: u8 = 2;
const TOO_BAD: u8 = 3;
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let matches = cli::command().get_matches();
    let cli = cli::Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match act(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scx_kin: {error:#}");
            ExitCode::from(code_of(&error))
        }
    }
}

fn code_of(error: &anyhow::Error) -> u8 {
    if error.is::<BadWord>() {
        BAD_USAGE
    } else if error.is::<TooBad>() {
        TOO_BAD
    } else if error.is::<Interrupted>() {
        INTERRUPTED
    } else {
        FAILED
    }
}

fn act(cli: cli::Cli) -> Result<()> {
    if let Some(sub) = cli.command {
        output::silence_libbpf();
        return commands::run(sub);
    }
    let args = cli.run;
    if args.version {
        return output::print(&format!("scx_kin {}\n", run::version()));
    }
    if args.help_stats {
        return commands::help_stats();
    }
    output::start_log(args.verbose);
    match args.monitor {
        Some(interval) => commands::watch(interval),
        None => run::run(&args),
    }
}
