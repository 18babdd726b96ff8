// SPDX-License-Identifier: GPL-2.0-only
//! The bench's databases with the real servers: they start, sysbench reaches them,
//! and nothing of them stays, however their bench ends. They need PostgreSQL,
//! MariaDB and sysbench (scripts/deps bench):
//!
//!     cargo test --release --test bench_database -- --ignored --test-threads=1

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use scx_kin::bench::data::Database;
use scx_kin::bench::database::{Server, missing};

const BOTH: [Database; 2] = [Database::Pgsql, Database::Mysql];
/// Tells the second process of a test which server to hold until it is killed.
const HOLD: &str = "SCX_KIN_TEST_HOLDS";
const PATIENCE: Duration = Duration::from_secs(60);

fn start(kind: Database) -> Server {
    assert_eq!(missing(kind), [], "scripts/deps bench installs it");
    Server::start(kind, &AtomicBool::new(false)).expect("a server")
}

/// Where its data are, from what sysbench is told.
fn folder(options: &str) -> PathBuf {
    let at = options.find("scx_kin-bench-").expect("a folder's name");
    let start = options[..at].rfind('\'').expect("a quote") + 1;
    let rest = &options[at..];
    let end = at + rest.find(['/', '\'']).expect("an end");
    PathBuf::from(&options[start..end])
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default();
    !state.trim().is_empty() && !state.trim().starts_with(['Z', 'X'])
}

#[track_caller]
fn all_leave(pids: &[u32]) {
    let start = Instant::now();
    while pids.iter().any(|pid| lives(*pid)) {
        assert!(start.elapsed() < PATIENCE, "still there: {pids:?}");
        sleep(Duration::from_millis(20));
    }
}

/// Transactions that a run of sysbench made.
fn transactions(server: &Server, test: &str, clients: u32) -> f64 {
    rate(server, test, clients, 1)
}

fn rate(server: &Server, test: &str, clients: u32, seconds: u32) -> f64 {
    let options = server.sysbench_options();
    let run = format!("sysbench {test} {options} --threads={clients} --time={seconds} run");
    let out = Command::new("sh")
        .args(["-c", &run])
        .output()
        .expect("sysbench");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}");
    let pattern = r"transactions: +[0-9]+ +\(([0-9.]+) per sec";
    let found = regex::Regex::new(pattern)
        .expect("a pattern")
        .captures(&text)
        .map(|c| c[1].parse());
    found.expect("a rate").expect("a number")
}

#[test]
#[ignore = "starts real database servers"]
fn a_server_answers_many_clients_and_leaves_nothing() {
    for kind in BOTH {
        let server = start(kind);
        let path = folder(&server.sysbench_options());
        assert!(path.is_dir(), "{path:?}");
        for test in ["oltp_read_only", "oltp_read_write"] {
            for clients in [1, 16, 256] {
                assert!(
                    transactions(&server, test, clients) > 0.0,
                    "{kind:?} {test} {clients}"
                );
            }
        }
        let pids = server.pids();
        // The others may be those of clients that are just leaving.
        assert!(lives(pids[0]));
        server.stop().expect("an end");
        assert!(
            !pids.iter().any(|pid| lives(*pid)) && !path.exists(),
            "{path:?}"
        );
    }
}

#[test]
#[ignore = "starts real database servers"]
fn no_server_runs_as_root_or_listens_to_the_network() {
    for kind in BOTH {
        let server = start(kind);
        for pid in server.pids() {
            let owner = std::os::unix::fs::MetadataExt::uid(
                &Path::new(&format!("/proc/{pid}"))
                    .metadata()
                    .expect("a process"),
            );
            assert_ne!(owner, 0, "{kind:?}");
            assert_eq!(listening(pid), 0, "{kind:?}");
        }
    }
}

/// TCP sockets of a process that listen.
fn listening(pid: u32) -> usize {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("its files")
        .flatten();
    let links = links.filter_map(|link| std::fs::read_link(link.path()).ok());
    let links: Vec<String> = links.map(|to| to.to_string_lossy().into_owned()).collect();
    let tables = ["tcp", "tcp6"].map(|t| std::fs::read_to_string(format!("/proc/net/{t}")));
    let tables = tables.into_iter().flatten().collect::<String>();
    let listens = tables
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    // Its state, 0A, and its inode.
    let listens = listens.filter(|fields| fields.len() > 9 && fields[3] == "0A");
    listens
        .filter(|f| links.contains(&format!("socket:[{}]", f[9])))
        .count()
}

#[test]
#[ignore = "starts real database servers"]
fn two_of_a_kind_and_one_of_each_run_at_the_same_time() {
    let all = [
        Database::Pgsql,
        Database::Mysql,
        Database::Pgsql,
        Database::Mysql,
    ]
    .map(start);
    for server in &all {
        assert!(transactions(server, "oltp_read_only", 4) > 0.0);
    }
    let paths = all
        .each_ref()
        .map(|server| folder(&server.sysbench_options()));
    let pids: Vec<u32> = all.iter().flat_map(Server::pids).collect();
    drop(all);
    assert!(!pids.iter().any(|pid| lives(*pid)) && !paths.iter().any(|path| path.exists()));
}

#[test]
#[ignore = "a part of the test below, which starts it as a process of its own"]
fn a_server_is_held_until_its_bench_is_killed() {
    let kind = match std::env::var(HOLD).as_deref() {
        Ok("pgsql") => Database::Pgsql,
        Ok("mysql") => Database::Mysql,
        _ => return,
    };
    let server = start(kind);
    let pids: Vec<String> = server.pids().iter().map(u32::to_string).collect();
    println!(
        "\nheld {} {}",
        folder(&server.sysbench_options()).display(),
        pids.join(" ")
    );
    // Clients that are there when it happens: they must not keep the server.
    rate(&server, "oltp_read_only", 4, 60);
}

#[test]
#[ignore = "starts real database servers"]
fn a_killed_bench_leaves_no_server_and_the_next_one_removes_its_folder() {
    for kind in ["pgsql", "mysql"] {
        let mut bench = Command::new(std::env::current_exe().expect("this program"))
            .args(["--ignored", "--exact", "--nocapture"])
            .arg("a_server_is_held_until_its_bench_is_killed")
            .env(HOLD, kind)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a second process");
        let lines = BufReader::new(bench.stdout.take().expect("its output")).lines();
        let held = lines
            .map_while(Result::ok)
            .find(|line| line.starts_with("held "));
        let held = held.expect("a server");
        let mut words = held.split(' ').skip(1);
        let path = PathBuf::from(words.next().expect("a folder"));
        let pids: Vec<u32> = words.map(|pid| pid.parse().expect("a number")).collect();
        assert!(pids.iter().all(|pid| lives(*pid)) && path.is_dir());
        bench.kill().expect("SIGKILL");
        bench.wait().expect("its end");
        all_leave(&pids);
        drop(start(Database::Pgsql));
        assert!(!path.exists(), "{path:?}");
    }
}

#[test]
#[ignore = "starts real database servers"]
fn a_start_that_is_interrupted_leaves_nothing() {
    for kind in BOTH {
        let error = Server::start(kind, &AtomicBool::new(true))
            .err()
            .expect("no server");
        assert!(format!("{error:#}").contains("interrupted"), "{error:#}");
        let mine = format!("scx_kin-bench-{}-", std::process::id());
        let left = std::fs::read_dir("/dev/shm").expect("a folder").flatten();
        let mut left = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
        assert!(!left.any(|name| name.starts_with(&mine)));
    }
}
