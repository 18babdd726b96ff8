// SPDX-License-Identifier: GPL-2.0-only
//! A running scx_kin, as its user sees it: the binary, its exit code, its socket.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use scx_kin::metrics::Sample;

/// Loading takes the verifier several seconds on an emulated machine.
const PATIENCE: Duration = Duration::from_secs(90);
const STATE: &str = "/sys/kernel/sched_ext/state";
pub const SOCKET: &str = "/var/run/scx/root/stats";

/// Runs the binary to its end.
pub fn scx_kin(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_kin"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("scx_kin starts")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn state() -> String {
    fs::read_to_string(STATE).expect(STATE).trim().to_string()
}

/// Waits until something is so; fails with `what` if it does not come about.
#[track_caller]
pub fn wait_for(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        sleep(Duration::from_millis(100));
    }
}

/// The scheduler, loaded. Dropping it unloads it, whatever the test came to.
pub struct Kin {
    child: Child,
    log: String,
}

impl Kin {
    /// Starts it and waits until it answers.
    #[track_caller]
    pub fn start(args: &[&str]) -> Kin {
        Kin::start_with_timeout(args, "30000")
    }

    /// The same with a watchdog of so many milliseconds (the kernel's is 30 s).
    #[track_caller]
    pub fn start_with_timeout(args: &[&str], watchdog_ms: &str) -> Kin {
        let log = format!("/tmp/scx_kin.{}.log", std::process::id());
        let stderr = File::create(&log).expect("a log file");
        let child = Command::new(env!("CARGO_BIN_EXE_scx_kin"))
            .args(args)
            .env("SCX_TIMEOUT_MS", watchdog_ms)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("scx_kin starts");
        let mut kin = Kin { child, log };
        kin.wait_until_up();
        kin
    }

    #[track_caller]
    pub fn wait_until_up(&mut self) {
        let start = Instant::now();
        while !(state() == "enabled" && scx_kin(&["get"]).status.success()) {
            if let Some(status) = self.child.try_wait().expect("a child") {
                panic!("scx_kin ended with {status}:\n{}", self.log());
            }
            assert!(start.elapsed() < PATIENCE, "no answer:\n{}", self.log());
            sleep(Duration::from_millis(200));
        }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    #[track_caller]
    pub fn set(&self, words: &str) {
        let mut args = vec!["set"];
        args.extend(words.split_whitespace());
        let out = scx_kin(&args);
        assert!(out.status.success(), "set {words}: {}", text(&out.stderr));
    }

    /// What was counted since the start.
    #[track_caller]
    pub fn total(&self) -> Sample {
        let out = scx_kin(&["counters", "--since-start", "--json"]);
        assert!(out.status.success(), "{}", text(&out.stderr));
        serde_json::from_slice(&out.stdout).expect("counters as JSON")
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: no memory is involved; the child has not been waited for.
        unsafe { libc::kill(self.pid(), signal) };
    }

    /// Waits for its end: exit code, or 128 and the signal; and what it logged.
    #[track_caller]
    pub fn end(mut self) -> (i32, String) {
        let mut status = None;
        wait_for("scx_kin to end", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        let status = status.expect("an exit status");
        let code = status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        (code, self.log())
    }

    /// Ctrl-C, and all must be as it was.
    #[track_caller]
    pub fn stop(self) {
        assert_eq!(state(), "enabled", "ejected:\n{}", self.log());
        self.signal(libc::SIGINT);
        let (code, log) = self.end();
        assert_eq!(code, 0, "{log}");
        assert_eq!(state(), "disabled");
        assert!(
            !fs::exists(SOCKET).expect("a path"),
            "the socket is left behind"
        );
    }
}

impl Drop for Kin {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(libc::SIGKILL);
            let _ = self.child.wait();
        }
        let _ = fs::remove_file(&self.log);
    }
}
