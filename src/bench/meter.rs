// SPDX-License-Identifier: GPL-2.0-only
//! Reads what the BPF programs of the attached scheduler have cost so far.

use std::collections::BTreeMap;
use std::os::fd::{FromRawFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_rs::ProgramType;
use libbpf_rs::libbpf_sys::{BPF_STATS_RUN_TIME, bpf_enable_stats};
use libbpf_rs::query::ProgInfoIter;

use crate::bench::cost::callback_of;
use crate::bench::data::Cost;

/// The kernel counts and times BPF programs for as long as this is there.
pub struct Meter {
    _counting: OwnedFd,
}

impl Meter {
    /// Has the kernel begin.
    pub fn start() -> Result<Meter> {
        // SAFETY: a plain number; the descriptor that it may return is owned from here on.
        let counting = unsafe {
            match bpf_enable_stats(BPF_STATS_RUN_TIME) {
                fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
                error => Err(std::io::Error::from_raw_os_error(-error)),
            }
        };
        let counting =
            counting.context("--cost: the kernel does not count what BPF programs cost")?;
        Ok(Meter {
            _counting: counting,
        })
    }

    /// By callback; see `cost::callback_of`. Programs that are not a scheduler's (of
    /// struct_ops there is TCP's too) have not run in the time between two readings,
    /// or show under their own names.
    pub fn read(&self) -> BTreeMap<String, Cost> {
        let mut all: BTreeMap<String, Cost> = BTreeMap::new();
        for program in ProgInfoIter::default().filter(|p| p.ty == ProgramType::StructOps) {
            let name = program.name.to_string_lossy();
            let cost = all.entry(callback_of(&name).to_string()).or_default();
            cost.calls += program.run_cnt;
            cost.ns += program.run_time_ns;
        }
        all
    }
}

/// What came between two readings.
pub fn since(
    now: BTreeMap<String, Cost>,
    before: &BTreeMap<String, Cost>,
) -> BTreeMap<String, Cost> {
    let came = |(name, cost): (String, Cost)| {
        let then = before.get(&name).copied().unwrap_or_default();
        let calls = cost.calls.saturating_sub(then.calls);
        let ns = cost.ns.saturating_sub(then.ns);
        (calls > 0).then_some((name, Cost { calls, ns }))
    };
    now.into_iter().filter_map(came).collect()
}
