// SPDX-License-Identifier: GPL-2.0-only
//! Which setting helps a load: settings x workloads x rounds, interleaved, and told
//! with the noise known.

pub mod data;

pub mod stats;

pub mod compare;

pub mod show;

pub mod export;
pub mod table;

pub mod axis;

pub mod plot;

pub mod figures;

pub mod html;

pub mod across;
