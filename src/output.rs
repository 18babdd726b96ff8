// SPDX-License-Identifier: GPL-2.0-only
//! Standard output, and the log on standard error.

use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};

use anyhow::{Context, Result};
use libbpf_rs::PrintLevel;
use log::{Level, LevelFilter, log};
use serde::Serialize;
use simplelog::{ColorChoice, ConfigBuilder, TermLogger, TerminalMode};

/// Prints a text. A reader that has had enough (`| head`) is no error.
pub fn print(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("writing to standard output")
        }
        _ => Ok(()),
    }
}

/// Prints a value as JSON, for people and programs.
pub fn print_json<T: Serialize>(value: &T) -> Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Starts the log on standard error. What the libraries say is for those who ask for it.
pub fn start_log(verbose: bool) {
    let mut config = ConfigBuilder::new();
    config.set_target_level(LevelFilter::Off);
    config.set_thread_level(LevelFilter::Off);
    config.set_location_level(LevelFilter::Off);
    let _ = config.set_time_offset_to_local();
    if verbose {
        libbpf_rs::set_print(Some((PrintLevel::Debug, log_libbpf)));
    } else {
        config.add_filter_allow_str("scx_kin");
        silence_libbpf();
    }
    let level = if verbose {
        LevelFilter::Debug
    } else {
        LevelFilter::Info
    };
    let color = if stderr().is_terminal() {
        ColorChoice::Auto
    } else {
        ColorChoice::Never
    };
    // A logger that cannot be had is no reason not to schedule.
    let _ = TermLogger::init(level, config.build(), TerminalMode::Stderr, color);
}

/// libbpf prints to standard error unless told not to.
pub fn silence_libbpf() {
    libbpf_rs::set_print(None);
}

fn log_libbpf(level: PrintLevel, text: String) {
    let level = match level {
        PrintLevel::Debug => Level::Debug,
        PrintLevel::Info => Level::Info,
        PrintLevel::Warn => Level::Warn,
    };
    log!(level, "{}", text.trim_end());
}
