// SPDX-License-Identifier: GPL-2.0-only
//! The manual page: clap's part of it, and the settings out of the tables.

use std::fmt::Write;

use anyhow::Result;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::cli::{Cli, EXAMPLES, EXIT_CODES};
use crate::scaling::Scaling;
use crate::tables::{COUNTERS, DOMAIN_FLAGS, FEATURES, TUNABLES};

/// What clap adds to every command by itself.
const HELP: &str = "help";

/// The page, as roff.
pub fn manual() -> Result<String> {
    let cmd = Cli::command();
    let man = Man::new(cmd.clone());
    let mut head = vec![];
    man.render_title(&mut head)?;
    man.render_name_section(&mut head)?;
    man.render_synopsis_section(&mut head)?;
    man.render_description_section(&mut head)?;
    man.render_options_section(&mut head)?;
    let mut page = String::from_utf8(head)?;

    section(&mut page, "SUBCOMMANDS");
    // Options have names to print only then.
    let mut built = cmd.clone();
    built.build();
    for sub in built.get_subcommands().filter(|sub| sub.get_name() != HELP) {
        let usage = sub
            .clone()
            .bin_name(sub.get_name())
            .render_usage()
            .to_string();
        let usage = usage.lines().next().unwrap_or_default();
        let usage = usage.trim_start_matches("Usage: ").to_string();
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        item(&mut page, &usage, &about);
        options(&mut page, sub);
    }
    settings(&mut page);
    section(&mut page, "COUNTERS");
    for c in COUNTERS.iter() {
        item(&mut page, c.name, c.help);
    }
    section(&mut page, "EXIT STATUS");
    for (code, meaning) in EXIT_CODES {
        item(&mut page, &code.to_string(), meaning);
    }
    section(&mut page, "EXAMPLES");
    let _ = writeln!(page, ".nf\n{}.fi", escape(EXAMPLES));
    Ok(page)
}

/// What a subcommand takes, further to the right.
fn options(page: &mut String, sub: &Command) {
    page.push_str(".RS\n");
    for arg in sub.get_arguments().filter(|arg| arg.get_id() != HELP) {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        item(page, &arg.to_string(), &help);
    }
    page.push_str(".RE\n");
}

fn settings(page: &mut String) {
    let default = |on: bool| if on { "on" } else { "off" };
    section(page, "SWITCHES");
    for f in FEATURES.iter() {
        let what = format!("{} (default: {}; after {})", f.help, default(f.dfl), f.from);
        item(page, f.name, &what);
    }
    section(page, "NUMBERS");
    for t in TUNABLES.iter() {
        let (dfl, range) = (t.show(t.dfl), t.range());
        let what = format!("{} (default: {dfl}, after {}; {range})", t.help, t.from);
        item(page, t.name, &what);
    }
    for s in Scaling::ALL {
        let name = format!("tunable_scaling={}", s.name());
        let what = format!("the first three numbers: {}", s.help());
        item(page, &name, &what);
    }
    section(page, "DOMAIN FLAGS");
    for f in DOMAIN_FLAGS.iter() {
        item(
            page,
            f.name,
            &format!("{} (at {})", f.help, f.level_names()),
        );
    }
}

fn section(page: &mut String, title: &str) {
    let _ = writeln!(page, ".SH \"{title}\"");
}

fn item(page: &mut String, name: &str, text: &str) {
    let _ = writeln!(page, ".TP\n\\fB{}\\fR\n{}", escape(name), escape(text));
}

/// Text that roff prints as it stands.
fn escape(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq");
    escaped.replace("\n.", "\n\\&.")
}
