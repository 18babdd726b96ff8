// SPDX-License-Identifier: GPL-2.0-only
//! The Rust half of scx_kin, as a library so that the tests can reach its parts.
//! A file imports only from those above it in this list (tests/layout.rs).

pub mod bpf;

pub mod hist;
pub mod output;
pub mod scaling;
pub mod tables;

pub mod settings;
pub mod warnings;
pub mod wire;
pub mod words;

pub mod metrics;
pub mod preflight;
pub mod task;
pub mod topology;
pub mod watch;

pub mod presets;

pub mod client;
pub mod prose;
pub mod sched;
pub mod server;

pub mod cli;

pub mod manual;
pub mod run;
pub mod whatif;

pub mod explain;

pub mod explain_task;

pub mod inquiry;

pub mod bench;

pub mod commands;
