// SPDX-License-Identifier: GPL-2.0-only
//! The machine: what is written down about it, and whether something else than the
//! bench had a share of it while a run was measured.
//!
//! 1. CPU time of processes that the bench did not start. Those that ended meanwhile
//!    are known by what their parents had added up.
//! 2. CPU time that the hypervisor took (steal).
//! 3. CPUs that throttled themselves because they were hot.
//!
//! Where it is wrong: kernel threads and interrupts count as nobody's, since the
//! load's own work is done in them too.

use std::collections::HashMap;
use std::fs::{read_dir, read_to_string};

use crate::bench::data::VIRTUAL_MACHINE;
use crate::preflight::running_scheduler;
use crate::topology::{Machine, online_cpus};

/// Others may use so much of a CPU, or of all, whichever is less: a daemon that
/// wakes up now and then is part of any machine, a compiler is not.
const OTHERS_CPUS: f64 = 0.5;
const OTHERS_SHARE: f64 = 0.05;
/// And so much in any case, in s: times are told in ticks of 10 ms.
const OTHERS_LEAST_S: f64 = 0.2;
/// Share of all CPU time that a hypervisor may take.
const STEAL_SHARE: f64 = 0.02;

const CPUS: &str = "/sys/devices/system/cpu";

/// Parent of all kernel threads.
const KTHREADD: u32 = 2;

/// What has been used so far.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Processes that are not the bench's.
    others: HashMap<u32, Process>,
    /// CPU seconds that a hypervisor took.
    steal: f64,
    /// How often CPUs were throttled.
    throttled: u64,
}

/// A process as /proc tells of it.
#[derive(Clone, Debug)]
struct Process {
    name: String,
    parent: u32,
    /// CPU seconds of its own and of the children that it has waited for.
    seconds: f64,
}

impl Usage {
    /// Reads it.
    pub fn now() -> Usage {
        Usage {
            others: others(),
            steal: steal(),
            throttled: throttled(),
        }
    }

    /// What disturbed the time since an earlier reading, if anything did.
    pub fn disturbed_since(&self, before: &Usage, seconds: f64) -> Option<String> {
        let cpus = online_cpus() as f64;
        let steal = self.steal - before.steal;
        if self.throttled > before.throttled {
            return Some("CPUs were throttled".into());
        }
        if steal > (STEAL_SHARE * cpus * seconds).max(OTHERS_LEAST_S) {
            return Some(format!("the hypervisor took {steal:.1} s of CPU"));
        }
        let most = (OTHERS_CPUS.min(OTHERS_SHARE * cpus) * seconds).max(OTHERS_LEAST_S);
        let (used, name) = self.used_by_others(before);
        (used > most).then(|| format!("others used {used:.1} s of CPU, {name} most"))
    }

    /// CPU seconds, and who used most of them.
    fn used_by_others(&self, before: &Usage) -> (f64, &str) {
        let mut all = 0.0;
        let mut most = (0.0, "");
        for (pid, process) in &self.others {
            let used = process.seconds - before.others.get(pid).map_or(0.0, |p| p.seconds);
            all += used;
            if used > most.0 {
                most = (used, &process.name);
            }
        }
        // Whoever waited for them has all of their time now.
        let gone = before
            .others
            .iter()
            .filter(|(pid, _)| !self.others.contains_key(pid));
        all -= gone.map(|(_, process)| process.seconds).sum::<f64>();
        (all, most.1)
    }
}

fn ticks_per_second() -> f64 {
    // SAFETY: a plain number.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}

/// From /proc/stat.
fn steal() -> f64 {
    let text = read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let field = line
        .split_whitespace()
        .nth(8)
        .and_then(|n| n.parse::<f64>().ok());
    field.unwrap_or(0.0) / ticks_per_second()
}

/// All processes but the bench, its descendants, and the kernel's threads.
fn others() -> HashMap<u32, Process> {
    let entries = read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    let mut all: HashMap<u32, Process> =
        pids.filter_map(|pid| Some((pid, process(pid)?))).collect();
    let parents: HashMap<u32, u32> = all.iter().map(|(pid, p)| (*pid, p.parent)).collect();
    let ours = [std::process::id(), KTHREADD];
    let is_ours = |pid: u32| {
        let up = |pid: &u32| parents.get(pid).copied();
        std::iter::successors(Some(pid), up).any(|pid| ours.contains(&pid))
    };
    all.retain(|pid, _| !is_ours(*pid));
    all
}

fn process(pid: u32) -> Option<Process> {
    let text = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the last ) may hold anything.
    let (head, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let times = fields
        .get(11..15)?
        .iter()
        .filter_map(|n| n.parse::<f64>().ok());
    Some(Process {
        name: head.split_once('(')?.1.into(),
        parent: fields.get(1)?.parse().ok()?,
        seconds: times.sum::<f64>() / ticks_per_second(),
    })
}

/// Has those whose parent ends become children of the bench, and not of init: they
/// are its own all the same.
pub fn adopt_orphans() {
    // SAFETY: plain numbers. A kernel that cannot do it only counts some as others.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

fn throttled() -> u64 {
    let count = |cpu: String| {
        let path = format!("{CPUS}/{cpu}/thermal_throttle/core_throttle_count");
        read_to_string(path).ok()?.trim().parse::<u64>().ok()
    };
    cpu_folders().into_iter().filter_map(count).sum()
}

fn cpu_folders() -> Vec<String> {
    let entries = read_dir(CPUS).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_cpu = |name: &String| {
        let number = name.strip_prefix("cpu").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    };
    names.filter(is_cpu).collect()
}

/// What is written down about the machine.
pub fn record() -> Vec<(String, String)> {
    let read = |path: &str| read_to_string(path).map_or(String::new(), |t| t.trim().to_string());
    let mut all: Vec<(String, String)> = vec![];
    let mut note = |what: &str, value: String| {
        let value = if value.is_empty() {
            "unknown".into()
        } else {
            value
        };
        all.push((what.into(), value));
    };
    note("scx_kin", crate::run::version());
    note("kernel", read("/proc/sys/kernel/osrelease"));
    note("CPU", cpu_model());
    note(
        "topology",
        Machine::read().map_or(String::new(), |m| m.summary()),
    );
    note("SMT", read(&format!("{CPUS}/smt/control")));
    note("governor", governors());
    note("turbo", turbo());
    note("memory", memory());
    note(
        "load at the start",
        read("/proc/loadavg")
            .split(' ')
            .take(3)
            .collect::<Vec<_>>()
            .join(" "),
    );
    note(VIRTUAL_MACHINE, virtual_machine());
    note("mitigations", mitigations());
    note(
        "scheduler before",
        running_scheduler().unwrap_or("the kernel's own".into()),
    );
    all
}

fn cpu_model() -> String {
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|l| l.split_once(": "))
        .map_or(String::new(), |(_, name)| name.trim().into())
}

fn governors() -> String {
    let one = |cpu: String| read_to_string(format!("{CPUS}/{cpu}/cpufreq/scaling_governor")).ok();
    let mut all: Vec<String> = cpu_folders().into_iter().filter_map(one).collect();
    all.iter_mut().for_each(|g| *g = g.trim().into());
    all.sort();
    all.dedup();
    match all.as_slice() {
        [] => "none: the frequency is not this kernel's to choose".into(),
        all => all.join(", "),
    }
}

fn turbo() -> String {
    let read = |path: &str| read_to_string(format!("{CPUS}/{path}")).ok();
    let on_off = |on: bool| String::from(if on { "on" } else { "off" });
    match (read("intel_pstate/no_turbo"), read("cpufreq/boost")) {
        (Some(no), _) => on_off(no.trim() == "0"),
        (None, Some(boost)) => on_off(boost.trim() == "1"),
        (None, None) => String::new(),
    }
}

fn memory() -> String {
    let text = read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .next()
        .and_then(|l| l.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.map_or(String::new(), |kib| format!("{:.1} GiB", kib / 1_048_576.0))
}

/// scripts/vm says in the environment what it boots; else the CPU tells.
fn virtual_machine() -> String {
    if let Ok(how) = std::env::var("SCX_KIN_VM") {
        return how;
    }
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags"));
    let guest = flags.is_some_and(|f| f.split_whitespace().any(|flag| flag == "hypervisor"));
    String::from(if guest { "yes" } else { "no" })
}

/// Names of the weaknesses that the kernel does something about.
fn mitigations() -> String {
    let entries = read_dir(format!("{CPUS}/vulnerabilities"))
        .into_iter()
        .flatten()
        .flatten();
    let mitigated = |entry: std::fs::DirEntry| {
        let text = read_to_string(entry.path()).ok()?;
        text.starts_with("Mitigation")
            .then(|| entry.file_name().to_string_lossy().into_owned())
    };
    let mut names: Vec<String> = entries.filter_map(mitigated).collect();
    names.sort();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(processes: &[(u32, &str, f64)]) -> Usage {
        let process = |(pid, name, seconds): &(u32, &str, f64)| {
            let process = Process {
                name: name.to_string(),
                parent: 1,
                seconds: *seconds,
            };
            (*pid, process)
        };
        Usage {
            others: processes.iter().map(process).collect(),
            ..Usage::default()
        }
    }

    #[test]
    fn what_others_used_is_counted_once_also_if_they_have_ended() {
        let before = usage(&[(10, "make", 1.0), (11, "cc", 3.0), (12, "sshd", 9.0)]);
        // cc has used another second, and make has waited for it: 3 + 1 and 0.5 of its own.
        let after = usage(&[(10, "make", 5.5), (12, "sshd", 9.0), (13, "cc", 0.25)]);
        let (used, most) = after.used_by_others(&before);
        assert_eq!((used, most), (1.75, "make"));
    }

    #[test]
    fn a_daemon_that_wakes_up_is_no_disturbance_and_a_compiler_is() {
        let before = usage(&[(10, "cron", 1.0)]);
        let after = |seconds| usage(&[(10, "cron", 1.0 + seconds)]);
        assert_eq!(after(0.01).disturbed_since(&before, 1.0), None);
        let said = after(9.0).disturbed_since(&before, 10.0);
        assert!(said.is_some_and(|text| text.contains("9.0 s") && text.contains("cron")));
    }

    #[test]
    fn the_bench_itself_is_none_of_the_others() {
        let others = others();
        assert!(!others.contains_key(&std::process::id()));
        assert!(process(std::process::id()).is_some());
    }
}
