// SPDX-License-Identifier: GPL-2.0-only
//! `explain` of a machine and of one task.

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::watched;
use crate::kin::{scx_kin, text, wait_for};
use crate::load::{PingPong, pin};

const CPU: usize = 1;
/// Above any pid that a kernel gives (PID_MAX_LIMIT is 2^22).
const NOBODY: &str = "4194305";
/// Until a watcher has connected and named its task.
const CONNECTED: Duration = Duration::from_secs(1);

fn watcher(pid: &str, seconds: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_scx_kin"))
        .args(["explain", "--pid", pid, seconds])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a watcher")
}

/// What a watcher of a pinned task says, and a second one meanwhile.
fn one_watcher_at_a_time(pid: &str) {
    let first = watcher(pid, "3");
    sleep(CONNECTED);
    let second = scx_kin(&["explain", "--pid", pid, "1"]);
    let said = text(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("is being watched"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let out = first.wait_with_output().expect("its output");
    let story = text(&out.stdout);
    println!("{story}{}", text(&out.stderr));
    assert!(out.status.success(), "{}", text(&out.stderr));
    for part in ["On 1 CPU:", &format!("CPU {CPU}"), "runs", "never left"] {
        assert!(story.contains(part), "no {part:?}: {story}");
    }
}

fn a_killed_watcher_leaves_room(tid: i32) {
    let mut first = watcher(&tid.to_string(), "600");
    sleep(CONNECTED);
    first.kill().expect("SIGKILL");
    first.wait().expect("a child");
    // The server sees the end of the connection, not of the process.
    wait_for("the watch to end", || {
        let out = scx_kin(&["explain", "--pid", &tid.to_string(), "0.1"]);
        out.status.success()
    });
    let seen = watched(tid);
    assert_eq!(seen.cpus.keys().copied().collect::<Vec<_>>(), [CPU]);
    assert!(seen.runs() > 0 && seen.slept > 0, "{seen:?}");
}

fn others() {
    let out = scx_kin(&["explain", "--pid", NOBODY, "1"]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains(NOBODY), "{said}");
    let out = scx_kin(&["explain", "1", "--json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let sample: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert!(sample["counters"].is_object(), "{sample}");
}

pub fn check() {
    let pair = PingPong::start(|| pin(0, [CPU]));
    let tid = pair.tids()[0];
    one_watcher_at_a_time(&tid.to_string());
    a_killed_watcher_leaves_room(tid);
    others();
}
