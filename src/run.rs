// SPDX-License-Identifier: GPL-2.0-only
//! Runs the scheduler: load, serve requests, print statistics, until a signal or
//! the kernel ends it; over and over while CPUs come and go.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use log::{info, warn};
use serde_json::Value;

use crate::cli::RunArgs;
use crate::output::print;
use crate::preflight;
use crate::presets;
use crate::sched::{LoadOptions, Scheduler};
use crate::server::{Reply, Request, Server};
use crate::settings::Settings;
use crate::topology::{Machine, online_cpus};
use crate::wire::SetReply;

/// How soon a signal or the kernel's exit is noticed.
const TICK: Duration = Duration::from_millis(250);

/// How much later than it said a client may end its watch before it is taken for
/// dead.
const WATCH_GRACE: Duration = Duration::from_secs(5);
/// Whatever a client says: the longest that cli.rs lets a person ask for.
const LONGEST_WATCH: Duration = Duration::from_secs(86_405);

/// Why a load of the BPF part ended.
enum End {
    /// A signal asked for it.
    Asked,
    /// CPUs came or went: load again.
    Restart,
}

/// A flag that SIGINT, SIGTERM and SIGHUP set.
pub fn stop_on_signal() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .context("installing a signal handler")?;
    Ok(stop)
}

/// The setting that the command line asks for.
pub fn first_settings(args: &RunArgs) -> Result<Settings> {
    let mut settings = Settings::default_for(online_cpus());
    if let Some(name) = &args.preset {
        settings.apply(&presets::words_of(name)?)?;
    }
    settings.apply(&[&args.features[..], &args.set, &args.sd].concat())?;
    Ok(settings)
}

/// Runs the scheduler.
pub fn run(args: &RunArgs) -> Result<()> {
    let mut settings = first_settings(args)?;
    if let Some(path) = &args.libbpf.kconfig {
        std::fs::metadata(path).with_context(|| format!("--kconfig {path}"))?;
    }
    preflight::check()?;
    let mut machine = Machine::read()?;
    let stop = stop_on_signal()?;
    info!("scx_kin {}", version());
    info!("{}", machine.summary());
    settings
        .warnings_since(&settings.defaults())
        .iter()
        .for_each(|warning| warn!("{warning}"));

    let mut server = None;
    for load in 1.. {
        let options = LoadOptions {
            exit_dump_len: args.exit_dump_len,
            libbpf: args.libbpf.clone(),
            load,
        };
        let mut object = MaybeUninit::uninit();
        let mut sched = Scheduler::start(&mut object, &machine, &settings, &options)?;
        // After attach: then no other scheduler can be the one that answers. It
        // outlives a restart, so that nobody who asks is turned away.
        let server = match &server {
            Some(server) => server,
            None => server.insert(Server::launch()?),
        };
        info!("attached; {}", changed_from_default(&settings));
        let end = serve(&mut sched, server, args, &stop)?;
        settings = sched.settings().clone();
        match end_of(sched, end)? {
            End::Asked => break,
            End::Restart => machine = Machine::read()?,
        }
        info!("CPUs came or went: loading again for {}", machine.summary());
    }
    Ok(())
}

/// The version with the commit, if known, and the target.
pub fn version() -> String {
    scx_utils::build_id::full_version(env!("CARGO_PKG_VERSION"))
}

/// Answers requests and prints statistics; true if a signal ended it, false if
/// the kernel did.
fn serve(
    sched: &mut Scheduler,
    server: &Server,
    args: &RunArgs,
    stop: &AtomicBool,
) -> Result<bool> {
    let mut shown = sched.total();
    let mut shown_at = Instant::now();
    while !sched.exited() {
        if stop.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let due = args
            .stats
            .map(|every| every.saturating_sub(shown_at.elapsed()));
        sched.end_old_watch();
        server.serve(due.unwrap_or(TICK).min(TICK), |request| {
            answer(sched, request)
        });
        if args.stats.is_some_and(|every| shown_at.elapsed() >= every) {
            let now = sched.total();
            print(&now.since(&shown).brief())?;
            (shown, shown_at) = (now, Instant::now());
        }
    }
    Ok(false)
}

fn answer(sched: &mut Scheduler, request: Request) -> Reply {
    fulfil(sched, request).map_err(|error| format!("{error:#}"))
}

fn fulfil(sched: &mut Scheduler, request: Request) -> Result<Value> {
    let value = match request {
        Request::Get => serde_json::to_value(sched.settings()),
        Request::Total => serde_json::to_value(sched.total()),
        Request::SinceSet => serde_json::to_value(sched.since_change()),
        Request::Set(words) => return set(sched, &words),
        Request::Watch(pid, seconds) => {
            let most = Duration::from_secs(seconds).saturating_add(WATCH_GRACE);
            serde_json::to_value(sched.watch(pid, most.min(LONGEST_WATCH))?)
        }
        Request::Watched(watch) => serde_json::to_value(sched.watched(watch)?),
    };
    Ok(value?)
}

fn set(sched: &mut Scheduler, words: &[String]) -> Result<Value> {
    let old = sched.settings().clone();
    let mut new = old.clone();
    let mut reply = SetReply::default();
    match new.apply(words) {
        Err(wrong) => reply.bad_word = Some(wrong.0),
        Ok(()) => {
            reply.changes = new.changes_since(&old);
            reply.warnings = new.warnings_since(&old);
        }
    }
    if !reply.changes.is_empty() {
        sched.change(new)?;
        info!(
            "setting {}: {}",
            sched.settings().epoch,
            reply.changes.join(", ")
        );
        reply.warnings.iter().for_each(|warning| warn!("{warning}"));
    }
    Ok(serde_json::to_value(reply)?)
}

/// Detaches, and finds out why it ended.
fn end_of(sched: Scheduler, asked: bool) -> Result<End> {
    let info = sched.stop()?;
    if asked {
        return Ok(End::Asked);
    }
    if info.should_restart() {
        return Ok(End::Restart);
    }
    bail!("the scheduler was ended from outside")
}

fn changed_from_default(settings: &Settings) -> String {
    let words = settings.words_since(&settings.defaults());
    if words.is_empty() {
        return "all settings are the defaults".into();
    }
    format!("changed from the defaults: {}", words.join(" "))
}
