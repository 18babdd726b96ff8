// SPDX-License-Identifier: GPL-2.0-only
//! Generated code: the constants and texts of `bpf/intf.h`, and the skeleton of
//! the BPF object. Only `sched.rs` names the skeleton.

/// What `bpf/intf.h` says, by bindgen.
#[allow(missing_docs, clippy::all, clippy::restriction)]
#[allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    dead_code
)]
pub mod intf {
    include!(concat!(env!("OUT_DIR"), "/intf.rs"));
}

/// The BPF object, by libbpf-cargo.
#[allow(missing_docs, clippy::all, clippy::restriction)]
pub(crate) mod skel {
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}
