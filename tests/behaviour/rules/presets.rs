// SPDX-License-Identifier: GPL-2.0-only
//! Whole presets, thrown live.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use scx_kin::tables::COUNTERS;
use serde_json::Value;

use super::{WATCH, counted, moved};
use crate::kin::{Kin, scx_kin};
use crate::load::{Crew, nr_cpus, pin, run};
use crate::{EVEN, spread};

/// Until hogs that were all on one CPU are evened out: one task moves at a time. And
/// how long their shares are measured then.
const SETTLE: Duration = Duration::from_secs(2);

/// All settings but the number of changes.
fn settings() -> Value {
    let out = scx_kin(&["get", "--json"]);
    let mut all: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let epoch = all.as_object_mut().and_then(|all| all.remove("epoch"));
    assert!(epoch.is_some(), "no epoch");
    all
}

fn hogs_of_one_cpu_spread_evenly(kin: &Kin, preset: &str) {
    kin.set(&format!("preset={preset}"));
    let n = nr_cpus();
    let hogs = Crew::hogs(2 * n, |_| pin(0, [0]));
    hogs.pin_all(0..n);
    sleep(SETTLE);
    let shares = hogs.shares(SETTLE);
    println!("{preset}: {shares:.2?}");
    assert!(spread(&shares) < EVEN, "{preset}: {shares:.2?}");
}

fn what_is_off_does_nothing(kin: &Kin) {
    let counts = counted(kin, || drop(run("hackbench -g 2 -f 8 -l 40"))).counters;
    let rules = COUNTERS.iter().filter(|row| row.needs != "-");
    let acted = rules.filter(|row| counts[row.name] > 0).map(|row| row.name);
    let acted: Vec<_> = acted.collect();
    assert!(acted.is_empty(), "{acted:?} moved: {:?}", moved(&counts));
}

fn thrown_under_load(kin: &Kin, presets: &[&str]) {
    let mut hackbench = Command::new("hackbench")
        .args(["-g", "2", "-f", "8", "-l", "80"])
        .stdout(Stdio::null())
        .spawn()
        .expect("hackbench");
    for preset in presets {
        kin.set(&format!("preset={preset}"));
        sleep(WATCH / 8);
    }
    assert!(hackbench.wait().expect("a child").success());
}

pub fn check(kin: &Kin) {
    kin.set("preset=default");
    let before = settings();
    thrown_under_load(kin, &["cfs-2.6.32", "off", "cfs-6.1", "off", "default"]);
    assert_eq!(settings(), before, "default is not what it began with");
    for preset in ["cfs-2.6.32", "cfs-6.1"] {
        hogs_of_one_cpu_spread_evenly(kin, preset);
    }
    kin.set("preset=off");
    assert_ne!(settings(), before);
    what_is_off_does_nothing(kin);
}
