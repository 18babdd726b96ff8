// SPDX-License-Identifier: GPL-2.0-only
//! The machine as the scheduler sees it: scx_utils::Topology flattened into the
//! tables of bpf/topo.bpf.h, and the tree that `scx_kin topology` prints.
//!
//! Only CPUs that are online belong to a core, an LLC and a node. The others get
//! values that are safe to index with (LLC 0, a ring of themselves), and are in
//! no span, so nothing is ever placed there: a CPU that comes or goes restarts
//! the scheduler.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::read_to_string;

use anyhow::{Context, Result, bail, ensure};
use scx_utils::compat::ROOT_PREFIX;
use scx_utils::{NR_CPU_IDS, Topology, read_cpulist};
use serde::Serialize;

use crate::tables::{MAX_CPUS, MAX_LLCS};

/// A hardware thread.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cpu {
    /// The kernel's number of it.
    pub id: usize,
    /// Whether it is online.
    pub online: bool,
    /// Core, numbered in order of the lowest CPU.
    pub core: usize,
    /// Last-level cache, numbered likewise.
    pub llc: usize,
    /// The kernel's number of its NUMA node.
    pub node: usize,
    /// The next hardware thread of the same core, round in a ring.
    pub smt_next: usize,
}

/// The CPUs that share a last-level cache.
#[derive(Clone, Debug, Serialize)]
pub struct Llc {
    /// Dense number, in order of the lowest CPU.
    pub id: usize,
    /// The kernel's number of its NUMA node.
    pub node: usize,
    /// Its cores, each a list of CPUs.
    pub cores: Vec<Vec<usize>>,
    /// Groups of cores in it that share a cache below it, each a list of CPUs; none
    /// if it has no such groups.
    pub clusters: Vec<Vec<usize>>,
    /// All LLCs, nearest first: this one, its node's, then by distance.
    pub order: Vec<usize>,
    /// How many of `order` are of its own node.
    pub order_node: usize,
}

impl Llc {
    /// Its CPUs in order.
    pub fn cpus(&self) -> Vec<usize> {
        let mut cpus = self.cores.concat();
        cpus.sort_unstable();
        cpus
    }
}

/// A NUMA node that has CPUs.
#[derive(Clone, Debug, Serialize)]
pub struct Node {
    /// The kernel's number of it.
    pub id: usize,
    /// Distance to each node of `Machine::nodes`, in their order.
    pub distance: Vec<usize>,
}

/// The whole machine.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Highest possible CPU number + 1.
    pub nr_cpus: usize,
    /// By number, gaps and offline CPUs included.
    pub cpus: Vec<Cpu>,
    /// By dense number.
    pub llcs: Vec<Llc>,
    /// Nodes that have CPUs, by number.
    pub nodes: Vec<Node>,
}

const SYS_CPU: &str = "/sys/devices/system/cpu";
/// What the kernel calls the distance of a node to itself.
const LOCAL_DISTANCE: usize = 10;

/// The clusters of an LLC: more than one, and each more than a core. The kernel
/// numbers them -1 where it knows none.
fn clusters_of(llc: &scx_utils::Llc, cores: usize) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<isize, Vec<usize>> = BTreeMap::new();
    for (id, cpu) in &llc.all_cpus {
        groups.entry(cpu.cluster_id).or_default().push(*id);
    }
    if groups.len() < 2 || groups.len() >= cores || groups.contains_key(&-1) {
        return vec![];
    }
    groups.into_values().collect()
}

impl Machine {
    /// Reads this machine from sysfs, or from the tree under SCX_SYSFS_PREFIX.
    pub fn read() -> Result<Machine> {
        let nr_cpus = cpu_list("possible")?
            .into_iter()
            .max()
            .map_or(1, |last| last + 1);
        ensure!(
            nr_cpus <= MAX_CPUS,
            "this machine can have {nr_cpus} CPUs, and scx_kin is built for {MAX_CPUS} (MAX_CPUS in intf.h)"
        );
        // scx_utils counts the CPUs once per process and passes over later ones.
        if let Some(new) = cpu_list("online")?
            .into_iter()
            .find(|cpu| *cpu >= *NR_CPU_IDS)
        {
            bail!("CPU {new} was added to the machine since scx_kin started: start it again");
        }
        let topo = Topology::new().context("reading the CPU topology from sysfs")?;
        Machine::flatten(&topo, nr_cpus)
    }

    fn flatten(topo: &Topology, nr_cpus: usize) -> Result<Machine> {
        let nodes = read_nodes(topo);
        let mut llcs: Vec<Llc> = vec![];
        for node in topo.nodes.values() {
            for llc in node.llcs.values() {
                let cpus_of = |core: &scx_utils::Core| core.cpus.keys().copied().collect();
                let mut cores: Vec<Vec<usize>> = llc.cores.values().map(|c| cpus_of(c)).collect();
                cores.sort_unstable();
                llcs.push(Llc {
                    id: 0,
                    node: node.id,
                    clusters: clusters_of(llc, cores.len()),
                    cores,
                    order: vec![],
                    order_node: 0,
                });
            }
        }
        ensure!(!llcs.is_empty(), "sysfs shows no online CPU");
        let found = llcs.len();
        ensure!(
            found <= MAX_LLCS,
            "this machine has {found} last-level caches, and scx_kin is built for {MAX_LLCS} (MAX_LLCS in intf.h)"
        );
        let clusters: usize = llcs.iter().map(|llc| llc.clusters.len()).sum();
        ensure!(
            clusters <= MAX_LLCS,
            "this machine has {clusters} clusters, and scx_kin is built for {MAX_LLCS} (MAX_LLCS in intf.h)"
        );
        llcs.sort_unstable_by_key(|llc| llc.cores[0][0]);
        llcs.iter_mut().enumerate().for_each(|(i, llc)| llc.id = i);
        order_llcs(&mut llcs, &nodes);
        let cpus = place_cpus(&llcs, nr_cpus);
        Ok(Machine {
            nr_cpus,
            cpus,
            llcs,
            nodes,
        })
    }

    /// Words of a CPU mask that are in use.
    pub fn nr_words(&self) -> usize {
        self.nr_cpus.div_ceil(64)
    }

    /// Whether any core has more than one hardware thread.
    pub fn smt(&self) -> bool {
        self.llcs
            .iter()
            .flat_map(|llc| &llc.cores)
            .any(|core| core.len() > 1)
    }

    /// Numbers of the CPUs that are online.
    pub fn online(&self) -> Vec<usize> {
        self.cpus
            .iter()
            .filter(|cpu| cpu.online)
            .map(|cpu| cpu.id)
            .collect()
    }

    /// One line: how many of each.
    pub fn summary(&self) -> String {
        let cores: usize = self.llcs.iter().map(|llc| llc.cores.len()).sum();
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        [
            count(self.nodes.len(), "node"),
            count(self.llcs.len(), "LLC"),
            count(cores, "core"),
            count(self.online().len(), "CPU"),
        ]
        .join(", ")
    }

    /// The tree of nodes, LLCs, cores and CPUs, with the distances of the nodes.
    pub fn tree(&self) -> String {
        let mut out = self.summary() + "\n";
        for node in &self.nodes {
            let _ = writeln!(out, "node {}", node.id);
            for llc in self.llcs.iter().filter(|llc| llc.node == node.id) {
                let _ = writeln!(out, "  LLC {}: CPUs {}", llc.id, show_list(&llc.cpus()));
                for core in &llc.cores {
                    let _ = writeln!(
                        out,
                        "    core {}: CPUs {}",
                        self.cpus[core[0]].core,
                        show_list(core)
                    );
                }
                for cluster in &llc.clusters {
                    let _ = writeln!(out, "    cluster: CPUs {}", show_list(cluster));
                }
                if self.llcs.len() > 1 {
                    let (near, far) = llc.order.split_at(llc.order_node);
                    let _ = write!(out, "    searches LLCs {}", join(near));
                    let _ = writeln!(
                        out,
                        "{}",
                        if far.is_empty() {
                            String::new()
                        } else {
                            format!(" | {}", join(far))
                        }
                    );
                }
            }
        }
        if self.nodes.len() > 1 {
            let _ = writeln!(out, "distance from node to node");
            let ids: Vec<usize> = self.nodes.iter().map(|n| n.id).collect();
            let row = |row: &[usize]| row.iter().map(|d| format!("{d:>5}")).collect::<String>();
            let _ = writeln!(out, "       {}", row(&ids));
            for node in &self.nodes {
                let _ = writeln!(out, "  {:>5}{}", node.id, row(&node.distance));
            }
        }
        let online = self.online();
        let offline: Vec<usize> = (0..self.nr_cpus)
            .filter(|cpu| !online.contains(cpu))
            .collect();
        if !offline.is_empty() {
            let _ = writeln!(out, "not online: CPUs {}", show_list(&offline));
        }
        out
    }
}

/// How many CPUs are online; 1 if sysfs does not tell.
pub fn online_cpus() -> usize {
    cpu_list("online").map_or(1, |cpus| cpus.len().max(1))
}

fn cpu_list(which: &str) -> Result<Vec<usize>> {
    let path = format!("{}{SYS_CPU}/{which}", *ROOT_PREFIX);
    let text = read_to_string(&path).with_context(|| format!("reading {path}"))?;
    read_cpulist(text.trim()).with_context(|| format!("understanding {path}"))
}

/// Nodes with CPUs. The kernel prints a node's distances in the order of the
/// online nodes, CPU-less ones included, whatever their numbers.
fn read_nodes(topo: &Topology) -> Vec<Node> {
    let with_cpus = || {
        topo.nodes
            .values()
            .enumerate()
            .filter(|(_, n)| !n.llcs.is_empty())
    };
    let distance = |from: &scx_utils::Node, (column, to): (usize, &scx_utils::Node)| {
        let known = from.distance.get(column).copied();
        known.unwrap_or(if from.id == to.id {
            LOCAL_DISTANCE
        } else {
            2 * LOCAL_DISTANCE
        })
    };
    let node = |(_, from): (usize, &scx_utils::Node)| Node {
        id: from.id,
        distance: with_cpus().map(|to| distance(from, to)).collect(),
    };
    with_cpus().map(node).collect()
}

fn order_llcs(llcs: &mut [Llc], nodes: &[Node]) {
    let place = |id: usize| nodes.iter().position(|n| n.id == id);
    let far = |from: usize, to: usize| {
        let (from, to) = place(from).zip(place(to))?;
        nodes[from].distance.get(to).copied()
    };
    let all: Vec<(usize, usize)> = llcs.iter().map(|llc| (llc.id, llc.node)).collect();
    for own in llcs {
        let mut order = all.clone();
        order.sort_by_key(|&(id, node)| (id != own.id, node != own.node, far(own.node, node), id));
        own.order_node = order.iter().filter(|(_, node)| *node == own.node).count();
        own.order = order.into_iter().map(|(id, _)| id).collect();
    }
}

fn place_cpus(llcs: &[Llc], nr_cpus: usize) -> Vec<Cpu> {
    let home = llcs[0].node;
    let offline = |id| Cpu {
        id,
        smt_next: id,
        node: home,
        ..Cpu::default()
    };
    let mut cpus: Vec<Cpu> = (0..nr_cpus).map(offline).collect();
    let mut cores: Vec<(usize, usize, &[usize])> = vec![];
    for llc in llcs {
        cores.extend(
            llc.cores
                .iter()
                .map(|core| (llc.id, llc.node, core.as_slice())),
        );
    }
    cores.sort_by_key(|(_, _, core)| core[0]);
    for (number, (llc, node, core)) in cores.into_iter().enumerate() {
        let next = core.iter().cycle().skip(1);
        for (&id, &smt_next) in core.iter().zip(next).filter(|(id, _)| **id < nr_cpus) {
            cpus[id] = Cpu {
                id,
                online: true,
                core: number,
                llc,
                node,
                smt_next,
            };
        }
    }
    cpus
}

/// CPU numbers the way the kernel lists them: 0-3,8.
fn show_list(cpus: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = vec![];
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let show = |(a, b): &(usize, usize)| {
        if a == b {
            a.to_string()
        } else {
            format!("{a}-{b}")
        }
    };
    runs.iter().map(show).collect::<Vec<_>>().join(",")
}

fn join(numbers: &[usize]) -> String {
    numbers
        .iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_numbers_are_joined() {
        assert_eq!(show_list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(show_list(&[]), "");
    }
}
