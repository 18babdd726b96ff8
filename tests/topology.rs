// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler makes of a machine: `scx_kin topology --json` on sysfs
//! trees of machines that are not here. (SCX_SYSFS_PREFIX is read once for each
//! process, so each tree takes one.)

use std::fs::{create_dir_all, remove_dir_all, write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A hardware thread of a tree to be made: number, core, LLC, node.
struct Thread(usize, usize, usize, usize);

/// Ascending numbers the way the kernel lists them: 0-3,8.
fn cpu_list(cpus: &[usize]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b);
    let show = |run: &[usize]| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    };
    runs.map(show).collect::<Vec<_>>().join(",")
}

struct Tree {
    root: PathBuf,
}

impl Tree {
    /// A machine whose CPUs are all online; one row of distances for each node.
    fn new(name: &str, threads: &[Thread], distances: &[&str]) -> Tree {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("topology-{name}"));
        let _ = remove_dir_all(&root);
        let tree = Tree { root };
        let last = threads.iter().map(|t| t.0).max().expect("a CPU");
        for list in ["possible", "present", "online"] {
            tree.file(&format!("cpu/{list}"), &format!("0-{last}"));
        }
        for (node, distance) in distances.iter().enumerate() {
            tree.file(&format!("node/node{node}/distance"), distance);
        }
        for Thread(cpu, core, llc, node) in threads {
            let dir = format!("cpu/cpu{cpu}");
            tree.file(&format!("{dir}/topology/core_id"), &core.to_string());
            tree.file(
                &format!("{dir}/topology/physical_package_id"),
                &node.to_string(),
            );
            tree.file(&format!("{dir}/topology/cluster_id"), "-1");
            let shared = threads.iter().filter(|t| t.2 == *llc).map(|t| t.0);
            let shared = cpu_list(&shared.collect::<Vec<_>>());
            tree.file(&format!("{dir}/cache/index3/shared_cpu_list"), &shared);
            tree.file(&format!("{dir}/cache/index3/id"), &llc.to_string());
            if !distances.is_empty() {
                create_dir_all(tree.path(&format!("node/node{node}/cpu{cpu}"))).expect("dir");
            }
        }
        tree
    }

    fn path(&self, file: &str) -> PathBuf {
        self.root.join("sys/devices/system").join(file)
    }

    fn file(&self, file: &str, text: &str) {
        let path = self.path(file);
        create_dir_all(path.parent().expect("parent")).expect("dir");
        write(path, format!("{text}\n")).expect("file");
    }

    fn scx_kin(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scx_kin"));
        command.env("SCX_SYSFS_PREFIX", &self.root).args(args);
        command.output().expect("scx_kin runs")
    }

    fn json(&self) -> Value {
        let out = self.scx_kin(&["topology", "--json"]);
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
        serde_json::from_slice(&out.stdout).expect("json")
    }
}

/// One field of every element of a list.
fn column(machine: &Value, list: &str, field: &str) -> Vec<usize> {
    let rows = machine[list].as_array().expect(list);
    rows.iter()
        .map(|row| row[field].as_u64().expect(field) as usize)
        .collect()
}

fn numbers(value: &Value) -> Vec<usize> {
    let list = value.as_array().expect("list");
    list.iter()
        .map(|n| n.as_u64().expect("number") as usize)
        .collect()
}

#[test]
fn one_cache_four_cores() {
    let threads: Vec<Thread> = (0..4).map(|cpu| Thread(cpu, cpu, 0, 0)).collect();
    let machine = Tree::new("1llc", &threads, &["10"]).json();
    assert_eq!(machine["nr_cpus"], 4);
    assert_eq!(column(&machine, "cpus", "llc"), [0; 4]);
    assert_eq!(column(&machine, "cpus", "core"), [0, 1, 2, 3]);
    assert_eq!(column(&machine, "cpus", "smt_next"), [0, 1, 2, 3]);
    assert_eq!(machine["llcs"].as_array().map(Vec::len), Some(1));
    assert_eq!(numbers(&machine["llcs"][0]["order"]), [0]);
    assert_eq!(machine["llcs"][0]["order_node"], 1);
}

#[test]
fn two_caches_in_one_node_see_themselves_first() {
    let threads: Vec<Thread> = (0..4).map(|cpu| Thread(cpu, cpu, cpu / 2, 0)).collect();
    let machine = Tree::new("2llc", &threads, &["10"]).json();
    assert_eq!(column(&machine, "cpus", "llc"), [0, 0, 1, 1]);
    assert_eq!(numbers(&machine["llcs"][0]["order"]), [0, 1]);
    assert_eq!(numbers(&machine["llcs"][1]["order"]), [1, 0]);
    assert_eq!(column(&machine, "llcs", "order_node"), [2, 2]);
}

#[test]
fn two_nodes_of_two_caches_with_smt() {
    // sibling threads next to each other: 0-1, 2-3, ...
    let threads: Vec<Thread> = (0..16).map(|c| Thread(c, c / 2, c / 4, c / 8)).collect();
    let machine = Tree::new("2x2smt", &threads, &["10 20", "20 10"]).json();
    assert_eq!(column(&machine, "llcs", "node"), [0, 0, 1, 1]);
    assert_eq!(numbers(&machine["llcs"][1]["order"]), [1, 0, 2, 3]);
    assert_eq!(numbers(&machine["llcs"][3]["order"]), [3, 2, 0, 1]);
    assert_eq!(column(&machine, "llcs", "order_node"), [2; 4]);
    let ring = column(&machine, "cpus", "smt_next");
    assert_eq!(ring[..6], [1, 0, 3, 2, 5, 4]);
    assert_eq!(column(&machine, "cpus", "core")[14..], [7, 7]);
}

#[test]
fn siblings_may_be_numbered_half_the_machine_apart() {
    let threads: Vec<Thread> = (0..8).map(|c| Thread(c, c % 4, c % 4 / 2, 0)).collect();
    let machine = Tree::new("halves", &threads, &["10"]).json();
    assert_eq!(
        column(&machine, "cpus", "smt_next"),
        [4, 5, 6, 7, 0, 1, 2, 3]
    );
    assert_eq!(column(&machine, "cpus", "llc"), [0, 0, 1, 1, 0, 0, 1, 1]);
    assert_eq!(numbers(&machine["llcs"][0]["cores"][0]), [0, 4]);
}

#[test]
fn more_than_two_threads_of_a_core_form_one_ring() {
    let threads: Vec<Thread> = (0..8).map(|c| Thread(c, c / 4, 0, 0)).collect();
    let machine = Tree::new("smt4", &threads, &["10"]).json();
    assert_eq!(
        column(&machine, "cpus", "smt_next"),
        [1, 2, 3, 0, 5, 6, 7, 4]
    );
}

#[test]
fn clusters_are_groups_of_cores_below_a_cache() {
    let eight: Vec<Thread> = (0..8).map(|i| Thread(i, i, 0, 0)).collect();
    let tree = Tree::new("clusters", &eight, &["10"]);
    let clusters = |of: &dyn Fn(usize) -> isize| {
        for cpu in 0..8 {
            let file = format!("cpu/cpu{cpu}/topology/cluster_id");
            tree.file(&file, &of(cpu).to_string());
        }
        let machine = tree.json();
        let found = machine["llcs"][0]["clusters"].as_array().expect("a list");
        found.iter().map(numbers).collect::<Vec<_>>()
    };
    assert_eq!(
        clusters(&|cpu| cpu as isize / 4),
        [[0, 1, 2, 3], [4, 5, 6, 7]]
    );
    // The LLC itself, each core, and none at all are no clusters.
    assert!(clusters(&|_| 3).is_empty());
    assert!(clusters(&|cpu| cpu as isize).is_empty());
    assert!(clusters(&|_| -1).is_empty());
}

#[test]
fn an_offline_cpu_is_in_no_cache_but_safe_to_look_up() {
    let threads: Vec<Thread> = (0..4).map(|cpu| Thread(cpu, cpu / 2, 0, 0)).collect();
    let tree = Tree::new("offline", &threads, &["10"]);
    tree.file("cpu/online", "0-2");
    tree.file("cpu/possible", "0-7");
    let machine = tree.json();
    assert_eq!(machine["nr_cpus"], 8);
    let online = machine["cpus"].as_array().expect("cpus").iter();
    let online: Vec<bool> = online.map(|cpu| cpu["online"] == true).collect();
    assert_eq!(
        online,
        [true, true, true, false, false, false, false, false]
    );
    assert_eq!(
        column(&machine, "cpus", "smt_next"),
        [1, 0, 2, 3, 4, 5, 6, 7]
    );
    assert_eq!(column(&machine, "cpus", "llc"), [0; 8]);
    let text = tree.scx_kin(&["topology"]).stdout;
    assert!(String::from_utf8_lossy(&text).contains("not online: CPUs 3-7"));
}

#[test]
fn a_node_without_cpus_is_passed_over_and_distances_stay_right() {
    // node 1 has memory alone; node 2 is nearer to 3 than 0 is
    let threads: Vec<Thread> = [(0, 0), (1, 2), (2, 3)]
        .map(|(cpu, node)| Thread(cpu, cpu, cpu, node))
        .into();
    let rows = ["10 17 40 30", "17 10 40 30", "40 40 10 12", "30 30 12 10"];
    let machine = Tree::new("cpuless", &threads, &rows).json();
    assert_eq!(column(&machine, "nodes", "id"), [0, 2, 3]);
    assert_eq!(numbers(&machine["nodes"][0]["distance"]), [10, 40, 30]);
    assert_eq!(numbers(&machine["llcs"][0]["order"]), [0, 2, 1]);
    assert_eq!(numbers(&machine["llcs"][2]["order"]), [2, 1, 0]);
    assert_eq!(column(&machine, "llcs", "order_node"), [1; 3]);
}

#[test]
fn a_kernel_without_numa_has_one_node() {
    let threads: Vec<Thread> = (0..2).map(|cpu| Thread(cpu, cpu, 0, 0)).collect();
    let machine = Tree::new("nonuma", &threads, &[]).json();
    assert_eq!(column(&machine, "nodes", "id"), [0]);
    assert_eq!(numbers(&machine["nodes"][0]["distance"]), [10]);
}

#[test]
fn cpus_above_64_get_a_second_word() {
    let threads: Vec<Thread> = (0..96).map(|cpu| Thread(cpu, cpu, cpu / 48, 0)).collect();
    let machine = Tree::new("96cpus", &threads, &["10"]).json();
    assert_eq!(machine["nr_cpus"], 96);
    assert_eq!(column(&machine, "cpus", "llc")[95], 1);
}

#[test]
fn too_many_cpus_are_one_clear_line() {
    let tree = Tree::new("toomany", &[Thread(0, 0, 0, 0)], &["10"]);
    tree.file("cpu/possible", "0-4095");
    let out = tree.scx_kin(&["topology"]);
    assert_eq!(out.status.code(), Some(1));
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(
        error.contains("4096 CPUs") && error.lines().count() == 1,
        "{error}"
    );
}

#[test]
fn too_many_caches_are_one_clear_line() {
    let threads: Vec<Thread> = (0..257).map(|cpu| Thread(cpu, cpu, cpu, 0)).collect();
    let out = Tree::new("manyllcs", &threads, &["10"]).scx_kin(&["topology"]);
    assert_eq!(out.status.code(), Some(1));
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(
        error.contains("257 last-level caches") && error.lines().count() == 1,
        "{error}"
    );
}

#[test]
fn the_tree_shows_nodes_caches_cores_and_distances() {
    let threads: Vec<Thread> = (0..8).map(|c| Thread(c, c / 2, c / 4, c / 4)).collect();
    let out = Tree::new("tree", &threads, &["10 21", "21 10"]).scx_kin(&["topology"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        text.starts_with("2 nodes, 2 LLCs, 4 cores, 8 CPUs\n"),
        "{text}"
    );
    assert!(
        text.contains("LLC 1: CPUs 4-7") && text.contains("core 3: CPUs 6-7"),
        "{text}"
    );
    assert!(text.contains("   10   21\n"), "{text}");
}
