// SPDX-License-Identifier: GPL-2.0-only
//! What was seen of one task or process that was watched: `struct watch` of
//! intf.h, by name, as it travels and as JSON shows it. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hist::Hist;
use crate::tables::{COUNTERS, HISTS};

/// What was seen of one task or process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Watched {
    /// The pid, or tgid, that was watched.
    pub pid: u32,
    /// For how long.
    pub seconds: f64,
    /// The CPUs that it ran on, by number.
    pub cpus: BTreeMap<usize, OnCpu>,
    /// Decisions about it, by name; see tables::COUNTERS. Rows that are not
    /// counted for single tasks stay 0.
    pub counters: BTreeMap<String, u64>,
    /// By name; see tables::HISTS.
    pub hists: BTreeMap<String, Hist>,
    /// Runs that ended because it went to sleep.
    pub slept: u64,
    /// Runs that ended because its slice was over.
    pub expired: u64,
    /// Runs that ended because a wakee preempted it.
    pub preempted: u64,
    /// Runs that ended because a higher class took the CPU.
    pub outranked: u64,
}

/// What was seen of it on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnCpu {
    /// How often it came onto the CPU.
    pub runs: u64,
    /// How long it ran there, in ns.
    pub ns: u64,
}

impl Watched {
    /// Names what was read in the order of the tables; `on_cpus` is runs and ns of
    /// each CPU, from CPU 0 on. How the runs ended is left at 0.
    pub fn new(
        pid: u32,
        seconds: f64,
        on_cpus: impl Iterator<Item = (u64, u64)>,
        counters: Vec<u64>,
        hists: impl Iterator<Item = Hist>,
    ) -> Watched {
        let cpus = on_cpus.enumerate().filter(|(_, on)| *on != (0, 0));
        let counters = COUNTERS.iter().zip(counters);
        let hists = HISTS.iter().zip(hists);
        Watched {
            pid,
            seconds,
            cpus: cpus
                .map(|(cpu, (runs, ns))| (cpu, OnCpu { runs, ns }))
                .collect(),
            counters: counters.map(|(row, n)| (row.name.into(), n)).collect(),
            hists: hists.map(|(row, h)| (row.name.into(), h)).collect(),
            ..Watched::default()
        }
    }

    /// How often it came onto a CPU.
    pub fn runs(&self) -> u64 {
        self.cpus.values().map(|cpu| cpu.runs).sum()
    }

    /// How long it ran, in ns; all threads of a process together.
    pub fn ns(&self) -> u64 {
        self.cpus.values().map(|cpu| cpu.ns).sum()
    }
}
