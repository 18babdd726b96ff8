// SPDX-License-Identifier: GPL-2.0-only
//! `scx_kin explain`: watches the machine, or one task, and has the story told.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;

use crate::client::{Client, wait};
use crate::explain::explain as story;
use crate::explain_task::explain_task;
use crate::metrics::Sample;
use crate::output::{print, print_json};
use crate::run::stop_on_signal;
use crate::task::Task;
use crate::topology::Machine;

/// What the scheduler does from now on for so long, or until Ctrl-C; warns if it
/// is not all of one setting.
pub fn watch_machine(client: &mut Client, time: Duration) -> Result<Sample> {
    let stop = stop_on_signal()?;
    let before = client.total()?;
    wait(time, || stop.load(Ordering::Relaxed));
    let after = client.total()?;
    warn_of_change(before.epoch != after.epoch || before.load != after.load);
    Ok(after.since(&before))
}

fn warn_of_change(changed: bool) {
    if changed {
        eprintln!("scx_kin: warning: settings or CPUs changed meanwhile");
    }
}

/// `explain`.
pub fn explain(time: Duration, json: bool) -> Result<()> {
    let mut client = Client::connect()?;
    let machine = Machine::read()?;
    let sample = watch_machine(&mut client, time)?;
    if json {
        return print_json(&sample);
    }
    print(&story(&sample, &client.get()?, &machine))
}

/// `explain --pid`.
pub fn explain_pid(pid: u32, time: Duration, json: bool) -> Result<()> {
    // First of all: whether there is such a task needs no scheduler.
    Task::read(pid)?;
    let mut client = Client::connect()?;
    let machine = Machine::read()?;
    let before = client.get()?;
    let stop = stop_on_signal()?;
    let watch = client.watch(pid, time)?;
    // Within the watch, or what it ran before and after would seem unseen.
    let task = Task::read(pid)?;
    // One that has ended will not run again.
    wait(time, || stop.load(Ordering::Relaxed) || !task.is_there());
    let after = task
        .is_there()
        .then(|| Task::read(pid))
        .and_then(Result::ok);
    let seen = client.watched(watch)?;
    let settings = client.get()?;
    warn_of_change(before.epoch != settings.epoch);
    if json {
        return print_json(&seen);
    }
    let text = explain_task(&seen, &task, after.as_ref(), &settings, &machine);
    print(&text)
}
