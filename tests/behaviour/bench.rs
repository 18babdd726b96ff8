// SPDX-License-Identifier: GPL-2.0-only
//! `scx_kin bench` with the real thing: real schedulers, real databases, real
//! loads. scripts/test runs these on one kernel only: what they show is not about
//! kernels.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};

use scx_kin::bench::data::Results;
use tempfile::TempDir;

use crate::kin::{SOCKET, state, text, wait_for};

/// A load whose figure says which scheduler it ran under: 10 % less under any
/// sched_ext scheduler.
const TELLTALE: &str = "hackbench -g 1 -f 5 -l 20 >/dev/null; test $(cat /sys/kernel/sched_ext/state) = enabled && echo rate 90 || echo rate 100";

/// A bench in a folder of its own, which is removed with it.
struct Bench {
    folder: TempDir,
    child: Child,
}

impl Bench {
    fn start(args: &[&str]) -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name| File::create(folder.path().join(name)).expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_scx_kin"))
            .arg("bench")
            .args(args)
            .args(["--out", "results.json"])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(file("out"))
            .stderr(file("err"))
            .spawn()
            .expect("a bench");
        Bench { folder, child }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// Its exit code, once all that it started is gone.
    #[track_caller]
    fn end(&mut self) -> i32 {
        let status = self.child.wait().expect("a child");
        let code = status.code().unwrap_or(128 + status.signal().unwrap_or(0));
        let said = self.read("err");
        assert_eq!(state(), "disabled", "{said}");
        assert!(!fs::exists(SOCKET).expect("a path"), "the socket is left");
        assert_eq!(left_behind(), "", "{said}");
        code
    }

    #[track_caller]
    fn results(&self) -> Results {
        let text = self.read("results.json");
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {}", self.read("err")))
    }
}

fn sh(words: &str) -> Output {
    Command::new("sh").args(["-c", words]).output().expect("sh")
}

/// Database servers, their folders, loads: none outlives a bench.
fn left_behind() -> String {
    let list = "ps -eo pid,args | grep -E 'postgres|mariadbd|sysbench|hackbench|tbench|cyclictest' \
                | grep -v grep; ls -d /tmp/scx_kin-bench-* /dev/shm/scx_kin-bench-* 2>/dev/null";
    text(&sh(list).stdout)
}

#[test]
#[ignore = "needs root on a sched_ext kernel"]
fn each_shipped_spec_runs_at_its_smallest() {
    for spec in scx_kin::bench::spec::shipped().expect("specs") {
        let mut args = vec![
            spec.name.as_str(),
            "--quick",
            "--rounds",
            "1",
            "--seed",
            "1",
        ];
        if !spec.ladder {
            args.extend(["--settings", "default"]);
        }
        if spec.workloads.iter().any(|w| !w.clients.is_empty()) {
            args.extend(["--clients", "2"]);
        }
        let mut bench = Bench::start(&args);
        let code = bench.end();
        println!("{}\n{}{}", spec.name, bench.read("err"), bench.read("out"));
        assert_eq!(code, 0, "{}", spec.name);
        let results = bench.results();
        assert_eq!(results.ended_early, None);
        for run in &results.runs {
            let workload = spec.workloads.iter().find(|w| w.name == run.workload);
            for metric in &workload.expect("a workload of the spec").metrics {
                let figure = run.figures[&metric.name];
                assert!(figure > 0.0, "{} {}: {figure}", run.workload, metric.name);
            }
            let sample = run.sample.as_ref().expect("counters");
            assert!(
                sample.counters.values().sum::<u64>() > 0,
                "{}",
                run.workload
            );
        }
        let measured = |w: &&str| results.runs.iter().any(|r| r.workload == **w);
        let workloads: Vec<&str> = spec.workloads.iter().map(|w| w.name.as_str()).collect();
        assert!(workloads.iter().all(measured), "{}", spec.name);
        for line in bench.read("out").lines() {
            assert!(line.chars().count() <= 80, "{}: {line}", spec.name);
        }
    }
}

#[test]
#[ignore = "needs root on a sched_ext kernel"]
fn stock_scx_kin_and_another_scheduler_take_turns() {
    let other = format!(
        "other:{} --features NO_IDLE_CORE",
        env!("CARGO_BIN_EXE_scx_kin")
    );
    let settings = format!("stock,default,NO_IDLE_CORE,{other}");
    let load = [
        "--cmd",
        TELLTALE,
        "--metric",
        "rate ([0-9]+)",
        "--better",
        "higher",
    ];
    let more = [
        "--settings",
        &settings,
        "--rounds",
        "3",
        "--fail-if-worse",
        "5",
        "--cost",
    ];
    let mut bench = Bench::start(&[&load[..], &more].concat());
    assert_eq!(bench.end(), 3, "{}", bench.read("err"));
    let (said, table) = (bench.read("err"), bench.read("out"));
    assert!(said.contains("worse by more than 5 %"), "{said}");
    assert!(table.contains("worse"), "{table}");
    assert!(
        table.contains("What its callbacks cost, default"),
        "{table}"
    );
    let results = bench.results();
    assert_eq!(results.runs.iter().filter(|r| !r.repeat).count(), 3 * 5);
    for run in &results.runs {
        let stock = run.setting == "stock";
        assert_eq!(
            run.figures["rate"],
            if stock { 100.0 } else { 90.0 },
            "{run:?}"
        );
        let cost = run.cost.as_ref().expect("what callbacks cost");
        for name in ["select_cpu", "enqueue", "dispatch", "running", "stopping"] {
            let cost = cost.get(name).copied().unwrap_or_default();
            assert_eq!(cost.calls > 0 && cost.ns > 0, !stock, "{name}: {run:?}");
        }
        let kin = ["default", "NO_IDLE_CORE"].contains(&run.setting.as_str());
        assert_eq!(run.sample.is_some(), kin, "{run:?}");
    }
}

#[test]
#[ignore = "needs root on a sched_ext kernel"]
fn ctrl_c_leaves_nothing_but_what_was_measured() {
    for spec in ["oltp-pgsql", "oltp-mysql"] {
        let args = [
            spec,
            "--clients",
            "2",
            "--seconds",
            "1",
            "--settings",
            "default",
        ];
        let mut bench = Bench::start(&[&args[..], &["--rounds", "50"]].concat());
        wait_for("the second round", || bench.read("err").contains("round 2"));
        // SAFETY: no memory is involved; the child has not been waited for.
        unsafe { libc::kill(bench.child.id() as i32, libc::SIGINT) };
        assert_eq!(bench.end(), 130, "{}", bench.read("err"));
        let results = bench.results();
        assert!(results.runs.len() >= 2, "{}", bench.read("err"));
        let why = results.ended_early.expect("a reason");
        assert!(why.contains("interrupted"), "{why}");
        assert!(
            bench.read("out").contains("interrupted"),
            "the table says so"
        );
    }
}

#[test]
#[ignore = "needs root on a sched_ext kernel"]
fn a_scheduler_that_goes_away_ends_the_bench() {
    let args = [
        "--cmd",
        "sleep 0.2",
        "--settings",
        "default",
        "--rounds",
        "500",
    ];
    let mut bench = Bench::start(&args);
    wait_for("the second round", || bench.read("err").contains("round 2"));
    fs::write("/proc/sysrq-trigger", "S").expect("SysRq-S");
    assert_eq!(bench.end(), 1);
    let said = bench.read("err");
    assert!(said.contains("the scheduler has ended"), "{said}");
    assert!(!bench.results().runs.is_empty());
}
