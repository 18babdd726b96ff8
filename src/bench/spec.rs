// SPDX-License-Identifier: GPL-2.0-only
//! Specs: those that ship with scx_kin, a user's own, and one made of a command
//! line; and what is checked before anything starts.

use std::fs::read_to_string;

use anyhow::{Context, Result};

use crate::bench::args::BenchArgs;
use crate::bench::check::{bad, check};
use crate::bench::data::{Better, Metric, Setting, Source, Spec, Workload, sweep};
use crate::bench::setting::{STOCK, cumulative};
use crate::words::nearest;

/// Name of a spec that is made of `--cmd`.
const OWN: &str = "command";
/// What `--cmd` is compared under when no settings are named.
const OWN_SETTINGS: [&str; 2] = [STOCK, "default"];
/// The specs that ship, in the order of their list.
const SHIPPED: [(&str, &str); 11] = [
    (
        "hackbench",
        include_str!("../../scripts/bench/hackbench.toml"),
    ),
    (
        "sysbench",
        include_str!("../../scripts/bench/sysbench.toml"),
    ),
    (
        "oltp-pgsql",
        include_str!("../../scripts/bench/oltp-pgsql.toml"),
    ),
    (
        "oltp-mysql",
        include_str!("../../scripts/bench/oltp-mysql.toml"),
    ),
    ("ladder", include_str!("../../scripts/bench/ladder.toml")),
    ("tbench", include_str!("../../scripts/bench/tbench.toml")),
    (
        "sched-pipe",
        include_str!("../../scripts/bench/sched-pipe.toml"),
    ),
    (
        "wakeup-latency",
        include_str!("../../scripts/bench/wakeup-latency.toml"),
    ),
    ("numa", include_str!("../../scripts/bench/numa.toml")),
    ("mixed", include_str!("../../scripts/bench/mixed.toml")),
    ("demo", include_str!("../../scripts/bench/demo.toml")),
];

/// The shipped specs, read.
pub fn shipped() -> Result<Vec<Spec>> {
    SHIPPED
        .iter()
        .map(|(name, text)| read(name, text))
        .collect()
}

/// The spec that the command line asks for, with all that it changes, checked.
pub fn asked_for(args: &BenchArgs) -> Result<Spec> {
    let mut spec = match (&args.spec, &args.cmd) {
        (_, Some(command)) => own(command, args)?,
        (Some(name), None) => named(name)?,
        (None, None) => return Err(bad("name a spec, or give a command with --cmd".into())),
    };
    change(&mut spec, args)?;
    spec.reference = spec.reference_name().to_string();
    check(&spec)?;
    Ok(spec)
}

/// A spec by its name, or a file: with a `/` in it, or that ends in `.toml`.
fn named(name: &str) -> Result<Spec> {
    if name.contains('/') || name.ends_with(".toml") {
        let text = read_to_string(name).with_context(|| format!("spec {name}"))?;
        let stem = name
            .rsplit('/')
            .next()
            .unwrap_or(name)
            .trim_end_matches(".toml");
        return read(stem, &text);
    }
    if let Some((name, text)) = SHIPPED.iter().find(|(n, _)| *n == name) {
        return read(name, text);
    }
    let names = SHIPPED.iter().map(|(name, _)| *name);
    let hint = match nearest(name, names) {
        Some(near) => format!("did you mean {near}?"),
        None => "`scx_kin bench` lists them; a file of your own ends in .toml".into(),
    };
    Err(bad(format!("no spec {name}: {hint}")))
}

fn read(name: &str, text: &str) -> Result<Spec> {
    let mut spec: Spec = toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map_or(0, |at| text[..at.start].lines().count().max(1));
        bad(format!(
            "spec {name}, line {line}: {}",
            error.message().replace('\n', " ")
        ))
    })?;
    spec.name = name.into();
    Ok(spec)
}

/// `--cmd` with `--metric` and `--better`.
fn own(command: &str, args: &BenchArgs) -> Result<Spec> {
    let metrics = match args.metric.as_slice() {
        [] => vec![Metric {
            name: "time".into(),
            unit: "s".into(),
            pattern: None,
            from: Source::Command,
            better: args.better.unwrap_or(Better::Lower),
        }],
        patterns => patterns
            .iter()
            .map(|text| own_metric(text, args))
            .collect::<Result<_>>()?,
    };
    let mut spec: Spec =
        toml::from_str("about = 'a command of your own'\nsettings = []\nworkload = []")?;
    spec.name = OWN.into();
    spec.settings = OWN_SETTINGS.map(Setting::unnamed).to_vec();
    spec.workloads = vec![Workload {
        name: OWN.into(),
        command: command.into(),
        beside: None,
        database: None,
        clients: vec![],
        needs: Default::default(),
        metrics,
    }];
    Ok(spec)
}

/// `tps = ([0-9.]+)`: a pattern; what stands before its group names the figure.
fn own_metric(pattern: &str, args: &BenchArgs) -> Result<Metric> {
    let better = args.better.ok_or_else(|| {
        bad("--metric needs --better higher or --better lower: which way is good?".into())
    })?;
    let plain = |c: char| c.is_alphanumeric() || "_ /-".contains(c);
    let head = pattern.split('(').next().unwrap_or_default();
    let name: String = head.chars().take_while(|c| plain(*c)).collect();
    let name = if name.trim().is_empty() {
        "figure"
    } else {
        name.trim()
    };
    Ok(Metric {
        name: name.into(),
        unit: String::new(),
        pattern: Some(pattern.into()),
        from: Source::Command,
        better,
    })
}

/// What the command line changes.
fn change(spec: &mut Spec, args: &BenchArgs) -> Result<()> {
    if args.quick {
        spec.rounds = spec.quick.rounds.min(spec.rounds);
        spec.seconds = spec.quick.seconds.min(spec.seconds);
        for workload in &mut spec.workloads {
            workload.clients = fewer(&workload.clients, &spec.quick.clients);
        }
    }
    spec.rounds = args.rounds.unwrap_or(spec.rounds);
    spec.seconds = args.seconds.unwrap_or(spec.seconds);
    if let Some(text) = &args.clients {
        let clients = sweep(text).map_err(bad)?;
        let mut swept = false;
        for workload in &mut spec.workloads {
            if workload.command.contains("{clients}") {
                workload.clients = clients.clone();
                swept = true;
            }
        }
        if !swept {
            return Err(bad(format!(
                "--clients: no command of {} has {{clients}} in it",
                spec.name
            )));
        }
    }
    if !args.workloads.is_empty() {
        keep_workloads(spec, &args.workloads)?;
    }
    if !args.settings.is_empty() {
        change_settings(spec, &args.settings);
    }
    if let Some(name) = &args.reference {
        spec.reference = name.clone();
    }
    Ok(())
}

fn fewer(clients: &[u32], quick: &[u32]) -> Vec<u32> {
    match clients {
        [first, .., last] if quick.is_empty() => vec![*first, *last],
        [_, ..] if !quick.is_empty() => quick.to_vec(),
        all => all.to_vec(),
    }
}

fn keep_workloads(spec: &mut Spec, names: &[String]) -> Result<()> {
    let all: Vec<String> = spec.workloads.iter().map(|w| w.name.clone()).collect();
    if let Some(name) = names.iter().find(|name| !all.contains(name)) {
        return Err(bad(format!(
            "no workload {name} in {}: it has {}",
            spec.name,
            all.join(", ")
        )));
    }
    spec.workloads.retain(|w| names.contains(&w.name));
    Ok(())
}

/// Names of the spec's settings, or settings spelled out. A rung of a ladder stands
/// on those below it: once some are picked, none of them means what it did, so the
/// result is no ladder.
fn change_settings(spec: &mut Spec, names: &[String]) {
    let steps = cumulative(spec);
    let known = spec.settings.iter().zip(steps);
    let known: Vec<Setting> = known
        .map(|(s, is)| Setting {
            name: s.name.clone(),
            is,
        })
        .collect();
    let find = |name: &String| known.iter().find(|s| s.name == *name).cloned();
    spec.settings = names
        .iter()
        .map(|name| find(name).unwrap_or_else(|| Setting::unnamed(name)))
        .collect();
    spec.ladder = false;
    if !spec.settings.iter().any(|s| s.name == spec.reference) {
        spec.reference.clear();
    }
}

/// Text of the list of specs.
pub fn list() -> Result<String> {
    let mut out = String::from("Specs that ship with scx_kin; `scx_kin bench NAME` runs one:\n\n");
    for spec in shipped()? {
        out += &format!("{}\n", spec.name);
        for line in crate::metrics::wrap(&spec.about, 72) {
            out += &format!("    {line}\n");
        }
    }
    out += "\nOf your own: a FILE.toml, or --cmd './my-load' --metric 'tps = ([0-9.]+)'\n\
            --better higher. `scx_kin bench --help` says the rest.\n";
    Ok(out)
}
