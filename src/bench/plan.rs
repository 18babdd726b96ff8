// SPDX-License-Identifier: GPL-2.0-only
//! In which order things are measured. Pure: the same seed, the same order.
//!
//! 1. A round measures each setting once, and the reference a second time: its twin.
//! 2. Within a round the settings come in random order (or as listed, every other
//!    round backwards), so that what drifts meanwhile hits all of them alike. Also
//!    the twin: one that always ran right after the reference would find too little
//!    noise.
//! 3. All settings of a round see the workloads in the same random order: what one
//!    leaves behind for the next is the same for all.

use fastrand::Rng;

use crate::bench::data::{Order, Spec};

/// A setting in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Its place in the spec.
    pub setting: usize,
    /// Whether it is the reference's second run.
    pub twin: bool,
}

/// One round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// From 1.
    pub number: u32,
    /// The settings, in order.
    pub arms: Vec<Arm>,
    /// What each of them runs: place of the workload in the spec, clients.
    pub cells: Vec<(usize, u32)>,
}

/// All cells of a spec, in its order.
pub fn cells(spec: &Spec) -> Vec<(usize, u32)> {
    let of = |(index, clients): (usize, &Vec<u32>)| match clients.as_slice() {
        [] => vec![(index, 0)],
        some => some.iter().map(|n| (index, *n)).collect(),
    };
    let clients = spec.workloads.iter().map(|w| &w.clients);
    clients.enumerate().flat_map(of).collect()
}

/// The rounds of a spec.
pub fn rounds(spec: &Spec, seed: u64) -> Vec<Round> {
    let mut rng = Rng::with_seed(seed);
    let round = |number| {
        let mut arms: Vec<Arm> = (0..spec.settings.len())
            .map(|setting| Arm {
                setting,
                twin: false,
            })
            .collect();
        let reference = spec.settings.iter().position(|s| s.name == spec.reference);
        arms.extend(reference.map(|setting| Arm {
            setting,
            twin: true,
        }));
        match spec.order {
            Order::Shuffled => rng.shuffle(&mut arms),
            Order::Listed if number % 2 == 0 => arms.reverse(),
            Order::Listed => {}
        }
        let mut cells = cells(spec);
        rng.shuffle(&mut cells);
        Round {
            number,
            arms,
            cells,
        }
    };
    (1..=spec.rounds).map(round).collect()
}
