// SPDX-License-Identifier: GPL-2.0-only
//! The real binary, where no scheduler runs: help, wrong words, exit codes.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const DONE: i32 = 0;
const FAILED: i32 = 1;
const BAD_USAGE: i32 = 2;
const NOBODY: u32 = 65534;

struct Outcome {
    code: i32,
    out: String,
    err: String,
}

fn outcome(command: &mut Command) -> Outcome {
    let done = command.env("COLUMNS", "80").output().expect("scx_kin runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Outcome {
        code: done.status.code().expect("an exit code"),
        out: text(done.stdout),
        err: text(done.stderr),
    }
}

fn scx_kin(args: &[&str]) -> Outcome {
    outcome(Command::new(env!("CARGO_BIN_EXE_scx_kin")).args(args))
}

/// A failure is one line, says so much, and leaves standard output alone.
fn fails(args: &[&str], code: i32, says: &str) {
    let done = scx_kin(args);
    assert_eq!(done.code, code, "{args:?}: {}", done.err);
    assert!(done.err.starts_with("scx_kin: "), "{args:?}: {}", done.err);
    assert_eq!(done.err.lines().count(), 1, "{args:?}: {}", done.err);
    assert!(done.err.contains(says), "{args:?}: {}", done.err);
    assert_eq!(done.out, "");
}

#[test]
fn wrong_words_are_exit_code_2_with_the_nearest_right_one() {
    fails(
        &["set", "NO_WAKEUP_PREEMPT"],
        BAD_USAGE,
        "did you mean NO_WAKEUP_PREEMPTION?",
    );
    fails(
        &["set", "wakeup_granularity=4ms"],
        BAD_USAGE,
        "did you mean wakeup_granularity_ns=4ms?",
    );
    fails(
        &["set", "IDLE_SIBLING", "wakeup_granularity_ns"],
        BAD_USAGE,
        "needs a value",
    );
    fails(&["set", "wakeup_granularity_ns=2s"], BAD_USAGE, "0ns to 1s");
    fails(
        &["set", "SMT:+SD_LOAD_BALANCE"],
        BAD_USAGE,
        "LLC, NODE, SYSTEM",
    );
    fails(
        &["set", "IDLE_SIBLING", "IDLE_SHARED_CACHE"],
        BAD_USAGE,
        "two forms of one rule",
    );
    fails(&["set", "tunable_scaling=cubic"], BAD_USAGE, "none, log,");
}

#[test]
fn wrong_words_of_options_are_found_before_anything_else() {
    fails(
        &["--features", "IDLE_SIBLINGS"],
        BAD_USAGE,
        "did you mean IDLE_SIBLING?",
    );
    fails(&["--set", "imbalance_pct=1"], BAD_USAGE, "100 to 400 %");
    fails(
        &["--features", "IDLE_SHARED_CACHE,IDLE_SIBLING"],
        BAD_USAGE,
        "two forms of one rule",
    );
    fails(&["--preset", "cfs-6.2"], BAD_USAGE, "did you mean cfs-6.1?");
    fails(
        &["--sd", "NODE:SD_BALANCE_WAKE"],
        BAD_USAGE,
        "NODE:+SD_BALANCE_WAKE",
    );
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for args in [
        &["--no-such-option"][..],
        &["no-such-subcommand"],
        &["set"],
        &["--stats", "0"],
        &["--stats", "abc"],
        &["--stats", "nan"],
        &["--monitor", "-1"],
        &["--verbose", "get"],
        &["counters", "1", "--since-start"],
        &["explain", "0"],
        &["explain", "86401"],
        &["explain", "1", "2"],
        &["explain", "--pid"],
        &["explain", "--pid", "0"],
        &["explain", "--pid", "-1"],
        &["explain", "--pid", "init"],
        &["completions", "no-such-shell"],
    ] {
        assert_eq!(scx_kin(args).code, BAD_USAGE, "{args:?}");
    }
}

#[test]
fn where_no_scheduler_runs_the_client_says_how_to_start_one() {
    for args in [
        &["get"][..],
        &["counters"],
        &["explain"],
        &["explain", "--json", "0.1"],
        &["explain", "--pid", "1", "0.1"],
        &["set", "IDLE_SIBLING"],
        &["set", "preset=cfs-2.6.32", "IDLE_SIBLING"],
        &["--monitor", "1"],
    ] {
        fails(args, FAILED, "`sudo scx_kin` starts it");
    }
}

#[test]
fn a_pid_that_nobody_has_is_found_before_anything_is_started() {
    let pid = u32::MAX.to_string();
    let says = format!("no task or process has the pid {pid}");
    fails(&["explain", "--pid", &pid], FAILED, &says);
}

#[test]
fn an_ordinary_user_is_told_that_it_takes_root() {
    // nobody may not enter the folder of the build
    let dir = std::env::temp_dir().join(format!("scx_kin-cli-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let binary = dir.join("scx_kin");
    // By another program: a file open for writing here would be inherited by what
    // the other tests start meanwhile, and could not be run ("text file busy").
    let mut cp = Command::new("cp");
    let copied = cp.arg(env!("CARGO_BIN_EXE_scx_kin")).arg(&binary).status();
    assert!(copied.expect("cp runs").success());
    for path in [dir.as_path(), &binary] {
        set_permissions(path, Permissions::from_mode(0o755)).expect("rights");
    }
    let mut command = Command::new(&binary);
    command.current_dir("/");
    // SAFETY: geteuid cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let done = outcome(&mut command);
    std::fs::remove_dir_all(&dir).expect("cleaned up");
    assert_eq!(done.code, FAILED, "{}", done.err);
    assert_eq!(
        done.err,
        "scx_kin: only root may load a scheduler: start it with sudo\n"
    );
}

#[test]
fn a_kernel_without_sched_ext_is_named() {
    // SAFETY: geteuid cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    if root && !Path::new("/sys/kernel/sched_ext").exists() {
        fails(&[], FAILED, "kernel ");
    }
}

#[test]
fn lists_need_neither_root_nor_a_scheduler_and_fit_80_columns() {
    for args in [
        &["features"][..],
        &["tunables"],
        &["presets"],
        &["presets", "default"],
        &["presets", "off"],
        &["presets", "cfs-2.6.32"],
        &["presets", "cfs-6.1"],
        &["presets", "tuned-virtual-host"],
        &["topology"],
        &["--help"],
        &["-h"],
        &["set", "--help"],
        &["explain", "--help"],
    ] {
        let done = scx_kin(args);
        assert_eq!((done.code, done.err.as_str()), (DONE, ""), "{args:?}");
        let long = done.out.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{args:?}");
    }
    let features = scx_kin(&["features"]).out;
    assert!(features.contains("IDLE_SIBLING (default on; "));
    assert!(
        scx_kin(&["tunables"])
            .out
            .contains("migration_cost_ns (default 500us)")
    );
}

#[test]
fn a_preset_is_worked_out_for_the_cpus_online_and_printed_as_a_file_is() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-presets");
    let cpus = root.join("sys/devices/system/cpu");
    std::fs::create_dir_all(&cpus).expect("a folder");
    let on = |online: &str, args: &[&str]| {
        std::fs::write(cpus.join("online"), online).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_scx_kin"));
        let done = outcome(command.env("SCX_SYSFS_PREFIX", &root).args(args));
        assert_eq!((done.code, done.err.as_str()), (DONE, ""), "{args:?}");
        done.out
    };
    // 5 ms times 1 + log2(64), 1 ms times 1 + log2(4)
    assert!(on("0-63", &["presets", "cfs-2.6.32"]).contains("#   sched_latency_ns=35ms"));
    assert!(on("0-3", &["presets", "cfs-6.1"]).contains("#   wakeup_granularity_ns=3ms"));
    assert!(on("0", &["tunables"]).contains("sched_latency_ns (default 6ms)"));

    let printed = on("0-7", &["presets", "tuned-virtual-host"]);
    let file = root.join("my.preset");
    std::fs::write(&file, &printed).expect("a file");
    let file = file.to_str().expect("UTF-8");
    assert!(on("0-7", &["presets", file]).starts_with(&printed));
    let word = format!("preset={file}");
    fails(&["set", &word, "START_DEBIT"], FAILED, "starts it");

    std::fs::write(file, "# mine\nNO_START_DEBT\n").expect("a file");
    let says = format!("{file}:2: no setting is called \"NO_START_DEBT\"; did you mean NO_START");
    fails(&["set", &word], BAD_USAGE, &says);
    fails(&["--preset", file], BAD_USAGE, &says);
    fails(&["presets", file], BAD_USAGE, &says);
    fails(&["presets", "./none"], BAD_USAGE, "./none: No such file");
}

#[test]
fn help_names_the_exit_codes_and_every_setting() {
    let help = scx_kin(&["--help"]).out;
    assert!(help.contains("Exit codes:") && help.contains("Examples:"));
    let set = scx_kin(&["set", "--help"]).out;
    for f in scx_kin::tables::FEATURES.iter() {
        assert!(set.contains(f.name), "{}", f.name);
    }
    for t in scx_kin::tables::TUNABLES.iter() {
        assert!(set.contains(t.name), "{}", t.name);
    }
}

#[test]
fn statistics_are_described_one_by_one() {
    let done = scx_kin(&["--help-stats"]);
    assert_eq!((done.code, done.err.as_str()), (DONE, ""));
    for c in scx_kin::tables::COUNTERS.iter() {
        assert!(done.out.contains(c.name), "{}", c.name);
    }
    assert!(done.out.contains("wakeup_latency_p99_ns"));
}

#[test]
fn the_version_is_that_of_the_package() {
    for option in ["-V", "--version"] {
        let done = scx_kin(&[option]);
        assert_eq!(done.code, DONE);
        assert!(
            done.out
                .starts_with(concat!("scx_kin ", env!("CARGO_PKG_VERSION"), " "))
        );
    }
}

#[test]
fn completions_know_the_words_and_the_manual_page_is_one() {
    for shell in ["bash", "zsh", "fish"] {
        let done = scx_kin(&["completions", shell]);
        assert_eq!(done.code, DONE);
        assert!(
            done.out.contains("NO_IDLE_SIBLING") && done.out.contains("cfs-6.1"),
            "{shell}"
        );
    }
    let man = scx_kin(&["man"]);
    assert_eq!(man.code, DONE);
    assert!(man.out.contains(".TH scx_kin") && man.out.contains(".SH \"EXIT STATUS\""));
}

#[test]
fn a_reader_that_has_had_enough_is_no_error() {
    let program = env!("CARGO_BIN_EXE_scx_kin");
    let script = format!("{program} features | head -n 1; exit ${{PIPESTATUS[0]}}");
    let done = outcome(Command::new("bash").args(["-c", &script]));
    assert_eq!((done.code, done.err.as_str()), (DONE, ""));
}
