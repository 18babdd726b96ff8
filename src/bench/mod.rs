// SPDX-License-Identifier: GPL-2.0-only
//! Which setting helps a load: settings x workloads x rounds, interleaved, and told
//! with the noise known.

pub mod data;

pub mod stats;

pub mod why;

pub mod compare;
