// SPDX-License-Identifier: GPL-2.0-only
//! What /proc tells of a task or process: whether it is there, its name, its
//! threads, and whether sched_ext may schedule them at all.

use std::fs::{read_dir, read_to_string};

use anyhow::{Result, bail};

/// A task, or a process with all of its threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// As it was asked for.
    pub pid: u32,
    /// Its name, unprintable characters replaced.
    pub name: String,
    /// 0 for a thread that is not the first of its process; else how many threads
    /// the process has.
    pub threads: usize,
    /// How many of them, or of this one thread, are realtime or deadline tasks.
    pub realtime: usize,
    /// CPU time by /proc, in ns, to a hundredth of a second: it includes a run
    /// that has not ended.
    pub cpu_ns: u64,
    /// When it began, in ticks from boot: tells it from a later one of the same
    /// pid.
    pub started: u64,
}

/// ns of a tick of /proc/PID/stat: USER_HZ is 100 wherever sched_ext runs.
const TICK_NS: u64 = 10_000_000;
/// include/uapi/linux/sched.h: SCHED_FIFO, SCHED_RR, SCHED_DEADLINE
const REALTIME: [u64; 3] = [1, 2, 6];

impl Task {
    /// Reads it; an error of one line if there is none.
    pub fn read(pid: u32) -> Result<Task> {
        let dir = format!("/proc/{pid}");
        let Ok(status) = read_to_string(format!("{dir}/status")) else {
            bail!("no task or process has the pid {pid}");
        };
        let is_process = field(&status, "Tgid") == pid.to_string();
        let tids = match read_dir(format!("{dir}/task")) {
            Ok(entries) if is_process => {
                let names = entries.flatten().map(|entry| entry.file_name());
                names.filter_map(|n| n.to_str()?.parse().ok()).collect()
            }
            _ => vec![pid],
        };
        let stat_of = |tid: &u32| Stat::read(&format!("{dir}/task/{tid}/stat"));
        let realtime = tids.iter().filter_map(stat_of).filter(Stat::is_realtime);
        let whole = match is_process {
            true => Stat::read(&format!("{dir}/stat")),
            false => stat_of(&pid),
        };
        let Some(whole) = whole.filter(|stat| !stat.has_ended()) else {
            bail!("the process {pid} has ended; its parent has not noticed yet");
        };
        Ok(Task {
            pid,
            name: field(&status, "Name").replace(|c: char| !c.is_ascii_graphic(), "?"),
            threads: if is_process { tids.len() } else { 0 },
            realtime: realtime.count(),
            cpu_ns: (whole.number(UTIME) + whole.number(STIME)) * TICK_NS,
            started: whole.number(STARTED),
        })
    }

    /// Whether it is still there.
    pub fn is_there(&self) -> bool {
        let stat = Stat::read(&format!("/proc/{}/stat", self.pid));
        stat.is_some_and(|now| now.number(STARTED) == self.started && !now.has_ended())
    }

    /// Whether none of it is sched_ext's to schedule.
    pub fn is_out_of_reach(&self) -> bool {
        self.realtime >= self.threads.max(1)
    }
}

/// Fields of /proc/PID/stat, as proc_pid_stat(5) numbers them.
const STATE: usize = 3;
const UTIME: usize = 14;
const STIME: usize = 15;
const THREADS: usize = 20;
const STARTED: usize = 22;
const POLICY: usize = 41;

/// The fields of /proc/PID/stat from the state on.
struct Stat(Vec<String>);

impl Stat {
    fn read(path: &str) -> Option<Stat> {
        read_to_string(path).ok().map(|text| Stat::parse(&text))
    }

    /// A name may hold spaces and brackets: what counts begins after the last one.
    fn parse(text: &str) -> Stat {
        let fields = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
        Stat(fields.split_whitespace().map(str::to_string).collect())
    }

    fn number(&self, field: usize) -> u64 {
        let text = self.0.get(field - STATE);
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    fn is_realtime(&self) -> bool {
        REALTIME.contains(&self.number(POLICY))
    }

    /// The first thread of a process may end before the others.
    fn has_ended(&self) -> bool {
        let state = self.0.first().map_or("X", String::as_str);
        ["Z", "X"].contains(&state) && self.number(THREADS) <= 1
    }
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
    status.lines().find_map(value).unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_there_and_within_reach() {
        let me = Task::read(std::process::id()).expect("my own process");
        assert!(me.threads >= 1 && me.is_there() && !me.is_out_of_reach());
        assert!(!me.name.is_empty() && !me.name.contains(' '));
        let later = Task {
            started: me.started + 1,
            ..me
        };
        assert!(!later.is_there(), "the same pid, but another process");
    }

    #[test]
    fn a_pid_that_nobody_has_is_an_error_of_one_line() {
        let error = Task::read(u32::MAX).expect_err("nobody").to_string();
        assert!(error.contains("4294967295") && error.lines().count() == 1);
    }

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat = |state: &str, threads: u64, policy: u64| {
            let mut fields = vec!["0".to_string(); POLICY - STATE + 3];
            fields[0] = state.into();
            fields[THREADS - STATE] = threads.to_string();
            fields[POLICY - STATE] = policy.to_string();
            Stat::parse(&format!("7 (a) S (b) {}\n", fields.join(" ")))
        };
        assert!(stat("S", 1, REALTIME[0]).is_realtime());
        assert!(!stat("S", 1, 0).is_realtime() && !stat("S", 1, 7).is_realtime());
        assert!(!stat("S", 1, 0).has_ended() && !stat("Z", 2, 0).has_ended());
        assert!(stat("Z", 1, 0).has_ended() && Stat::parse("").has_ended());
    }
}
