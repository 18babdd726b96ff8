// SPDX-License-Identifier: GPL-2.0-only
//! The subcommands: everything but running the scheduler.

use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;

use crate::bench::bench;
use crate::cli::{Sub, command};
use crate::client::{Client, monitor};
use crate::inquiry::{explain, explain_pid, watch_machine};
use crate::manual::manual;
use crate::metrics::wrap;
use crate::output::{print, print_json};
use crate::presets;
use crate::run::stop_on_signal;
use crate::scaling::{SCALED, Scaling};
use crate::server::describe;
use crate::settings::{SCALING, Settings, rival};
use crate::tables::{DOMAIN_FLAGS, FEATURES, LEVELS, TUNABLES};
use crate::topology::{Machine, online_cpus};
use crate::whatif;
use crate::words::BadWord;

/// Columns that text is wrapped at.
const WIDTH: usize = 76;

/// Does what a subcommand says.
pub fn run(sub: Sub) -> Result<()> {
    match sub {
        Sub::Set { words } => set(&words),
        Sub::Get { json } => get(json),
        Sub::Features => print(&features()),
        Sub::Tunables => print(&tunables()),
        Sub::Presets { name: None } => print(&presets::list()),
        Sub::Presets { name: Some(name) } => print(&presets::show(&name, online_cpus())?),
        Sub::Counters {
            seconds,
            since_start,
            all,
            json,
        } => counters(seconds, since_start, all, json),
        Sub::Explain {
            seconds,
            pid: None,
            json,
        } => explain(seconds, json),
        Sub::Explain {
            seconds,
            pid: Some(pid),
            json,
        } => explain_pid(pid, seconds, json),
        Sub::Bench(args) => bench(&args),
        Sub::Topology { json } => {
            let machine = Machine::read()?;
            if json {
                print_json(&machine)
            } else {
                print(&machine.tree())
            }
        }
        Sub::Completions { shell } => {
            let mut out = vec![];
            clap_complete::generate(shell, &mut command(), "scx_kin", &mut out);
            print(&String::from_utf8_lossy(&out))
        }
        Sub::Man => print(&manual()?),
    }
}

/// --monitor.
pub fn watch(interval: Duration) -> Result<()> {
    let stop = stop_on_signal()?;
    monitor(
        interval,
        || stop.load(Ordering::Relaxed),
        |sample| print(&sample.brief()),
    )
}

/// --help-stats.
pub fn help_stats() -> Result<()> {
    let mut out = vec![];
    describe(&mut out)?;
    print(&String::from_utf8_lossy(&out))
}

fn set(words: &[String]) -> Result<()> {
    // Here first: a wrong word is wrong whether or not a scheduler runs.
    let words = presets::expand(words)?;
    Settings::default().apply(&words)?;
    let reply = Client::connect()?.set(&words)?;
    if let Some(wrong) = reply.bad_word {
        return Err(BadWord(wrong).into());
    }
    for warning in &reply.warnings {
        eprintln!("scx_kin: warning: {warning}");
    }
    match reply.changes.as_slice() {
        [] => print("nothing to change: it is so already\n"),
        changes => print(&(changes.join("\n") + "\n")),
    }
}

fn get(json: bool) -> Result<()> {
    let settings = Client::connect()?.get()?;
    if json {
        print_json(&settings)
    } else {
        print(&show_settings(&settings))
    }
}

fn counters(seconds: Option<Duration>, since_start: bool, all: bool, json: bool) -> Result<()> {
    let mut client = Client::connect()?;
    let (sample, which) = match seconds {
        Some(seconds) => (watch_machine(&mut client, seconds)?, "watched"),
        None if since_start => (client.total()?, "since the load"),
        None => match client.since_set()? {
            sample if sample.epoch == 0 => (sample, "since the load"),
            sample => (sample, "since the last set"),
        },
    };
    if json {
        return print_json(&sample);
    }
    let settings = client.get()?;
    let head = format!(
        "setting {}, {:.1} s {which}\n\n",
        sample.epoch, sample.seconds
    );
    let whatif = whatif::table(&sample, &settings);
    let gap = if whatif.is_empty() { "" } else { "\n" };
    print(&(head + &sample.table(&settings, all) + gap + &whatif))
}

/// The settings of a scheduler that runs and may be asked; its absence is no
/// error for those who list what there is.
fn live() -> Option<Settings> {
    Client::connect().ok()?.get().ok()
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// A mark for what is not as it was by default.
fn mark(changed: bool) -> &'static str {
    if changed { "*" } else { " " }
}

fn show_settings(settings: &Settings) -> String {
    let dfl = settings.defaults();
    let mut out = format!(
        "setting {} (* differs from the default)\n\n",
        settings.epoch
    );
    for (i, f) in FEATURES.iter().enumerate() {
        let on = settings.feature(i);
        let _ = writeln!(out, "{} {:<24} {}", mark(on != f.dfl), f.name, on_off(on));
    }
    let _ = writeln!(out);
    let scaling = (settings.scaling.name(), settings.cpus);
    let changed = mark(settings.scaling != dfl.scaling);
    let _ = writeln!(
        out,
        "{changed} {SCALING:<24} {} (CPUs: {})",
        scaling.0, scaling.1
    );
    for (i, (t, &value)) in TUNABLES.iter().zip(&settings.tunables).enumerate() {
        let changed = mark(value != dfl.tunables[i]);
        let _ = writeln!(out, "{changed} {:<24} {}", t.name, t.show(value));
    }
    let heads: String = LEVELS
        .iter()
        .map(|level| format!("{:<8}", level.name))
        .collect();
    let _ = write!(out, "\n  {:<24}{}", "", heads.trim_end());
    for (i, f) in DOMAIN_FLAGS.iter().enumerate() {
        let mut cells = String::new();
        let mut changed = false;
        for level in 0..LEVELS.len() {
            let on = settings.flag(level, i);
            let differs = on != dfl.flag(level, i);
            changed |= differs;
            let cell = if f.applies_at(level) { on_off(on) } else { "-" };
            let star = if differs { "*" } else { "" };
            let _ = write!(cells, "{:<8}", format!("{cell}{star}"));
        }
        let _ = write!(
            out,
            "\n{} {:<24}{}",
            mark(changed),
            f.name,
            cells.trim_end()
        );
    }
    out + "\n"
}

fn features() -> String {
    let live = live();
    let mut out = String::from("Switches: `scx_kin set NAME` turns one on, `set NO_NAME` off\n");
    for (i, f) in FEATURES.iter().enumerate() {
        let now = live
            .as_ref()
            .map_or(String::new(), |s| format!(", now {}", on_off(s.feature(i))));
        let _ = writeln!(
            out,
            "\n{} (default {}{now}; {})",
            f.name,
            on_off(f.dfl),
            f.from
        );
        indent(&mut out, f.help);
        if let Some(other) = rival(f.name) {
            let _ = writeln!(out, "    never on together with {other}");
        }
    }
    out += "\nDomain flags: `scx_kin set LEVEL:+NAME` turns one on, `set LEVEL:-NAME` off\n";
    for l in LEVELS.iter() {
        let _ = writeln!(out, "  {:<7} {}", l.name, l.help);
    }
    for (i, f) in DOMAIN_FLAGS.iter().enumerate() {
        let at = |on: &dyn Fn(usize) -> bool| {
            let on = |(level, l): (usize, &crate::tables::Level)| on(level).then_some(l.name);
            let names: Vec<_> = LEVELS.iter().enumerate().filter_map(on).collect();
            if names.is_empty() {
                "nowhere".into()
            } else {
                names.join(" ")
            }
        };
        let dfl = Settings::default();
        let _ = writeln!(out, "\n{}", f.name);
        let _ = writeln!(out, "    possible at {}", at(&|level| f.applies_at(level)));
        let _ = writeln!(out, "    default on at {}", at(&|level| dfl.flag(level, i)));
        if let Some(live) = &live {
            let _ = writeln!(out, "    now on at {}", at(&|level| live.flag(level, i)));
        }
        indent(&mut out, f.help);
    }
    out
}

fn tunables() -> String {
    let live = live();
    let cpus = live.as_ref().map_or_else(online_cpus, |s| s.cpus);
    let dfl = Settings::default_for(cpus);
    let mut out = String::from("Numbers: `scx_kin set NAME=VALUE`; times take ns, us, ms or s\n");
    for (i, t) in TUNABLES.iter().enumerate() {
        let now = live.as_ref().map_or(String::new(), |s| {
            format!(", now {}", t.show(s.tunables[i]))
        });
        let (unit, here) = (t.spaced_unit(), t.show(dfl.tunables[i]));
        let _ = writeln!(out, "\n{} (default {here}{unit}{now})", t.name);
        let _ = writeln!(out, "    from {}", t.range());
        let scaled = if SCALED.contains(&t.name) {
            format!(
                " ({}), scaled for the CPUs online here ({cpus})",
                t.show(t.dfl)
            )
        } else {
            String::new()
        };
        indent(&mut out, &format!("default after {}{scaled}", t.from));
        indent(&mut out, t.help);
    }
    let now = live.map_or(String::new(), |s| format!(", now {}", s.scaling.name()));
    let _ = writeln!(out, "\n{SCALING} (default log{now})");
    let text = "how the first three follow the number of CPUs online at the start; a change \
                scales them anew";
    indent(&mut out, text);
    for s in Scaling::ALL {
        indent(&mut out, &format!("{}: {}", s.name(), s.help()));
    }
    out
}

fn indent(out: &mut String, text: &str) {
    for line in wrap(text, WIDTH) {
        let _ = writeln!(out, "    {line}");
    }
}
