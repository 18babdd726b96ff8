// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF side into a skeleton, intf.h into Rust constants, and
//! policy.h for the host, for tests/policy.rs.

use std::env::{set_var, var, var_os};
use std::process::{Command, exit};

use scx_cargo::BpfBuilder;

const TOOLS: &str = ".cargo/rustc";
const CLANG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.cargo/clang");

fn main() {
    println!("cargo::rerun-if-changed=.cargo");
    println!("cargo::rerun-if-changed=tests/native");
    println!("cargo::rerun-if-changed=src/bpf");
    check_tools();
    if var_os("BPF_CLANG").is_none() {
        // SAFETY: this program has one thread.
        unsafe { set_var("BPF_CLANG", CLANG) };
    }
    let built = BpfBuilder::new().and_then(|mut builder| {
        builder
            .enable_intf("src/bpf/intf.h", "intf.rs")
            .enable_skel("src/bpf/main.bpf.c", "bpf")
            .build()
    });
    if let Err(error) = built {
        fail(&format!("{error:#}"));
    }
    build_policy();
}

/// What is missing, in one line. Cargo has asked the same before it built the
/// first crate (.cargo/config.toml), unless it was started elsewhere.
fn check_tools() {
    let checked = Command::new("sh").args([TOOLS, "--check"]).output();
    match checked {
        Ok(output) if output.status.success() => {}
        Ok(output) => fail(String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => fail(&format!("cannot run sh: {error}")),
    }
}

/// The arithmetic as a static library that only tests/policy.rs names; undefined
/// behaviour ends the test that meets it.
fn build_policy() {
    let mut build = cc::Build::new();
    build.file("tests/native/policy.c").include("src/bpf");
    build
        .std("gnu11")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true);
    build.flag_if_supported("-fsanitize=undefined");
    build.flag_if_supported("-fsanitize-trap=undefined");
    build.flag_if_supported("-fsanitize-undefined-trap-on-error");
    build
        .flag("-Wno-unused-parameter")
        .flag("-Werror=implicit-function-declaration");
    build
        .flag("-Wno-unused-const-variable")
        .flag("-Wno-unused-variable");
    build.cargo_metadata(false);
    if let Err(error) = build.try_compile("policy_host") {
        fail(&format!("{error}"));
    }
    println!(
        "cargo::rustc-link-search=native={}",
        var("OUT_DIR").unwrap_or_default()
    );
}

/// One line is cargo's to print; a compiler's report goes as it is.
fn fail(message: &str) -> ! {
    if message.contains('\n') {
        eprintln!("{message}");
    } else {
        println!("cargo::error={message}");
    }
    exit(1);
}
