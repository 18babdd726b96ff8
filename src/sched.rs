// SPDX-License-Identifier: GPL-2.0-only
//! The skeleton: open, configure, load, attach, change settings, read counters,
//! detach. The only file that names it.

use std::mem::{MaybeUninit, size_of};
use std::ptr::{addr_of, addr_of_mut};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::{Link, OpenObject};
use scx_utils::libbpf_clap_opts::LibbpfOpts;
use scx_utils::{UserExitInfo, scx_ops_attach, scx_ops_load, scx_ops_open};
use scx_utils::{uei_exited, uei_report};

use crate::bpf::intf;
use crate::bpf::skel::{BpfSkel, BpfSkelBuilder, OpenBpfSkel, types};
use crate::hist::Hist;
use crate::metrics::{Counted, Sample};
use crate::preflight::{kernel_version, running_scheduler};
use crate::settings::Settings;
use crate::tables::{MAX_LLCS, WHATIF_ROWS};
use crate::topology::Machine;
use crate::watch::Watched;

/// No BPF op lasts as long as this, so after it none still reads the settings
/// that were current before a change.
const GRACE: Duration = Duration::from_millis(10);

/// From here on the kernel complains about ops.cpu_release, and gives ext tasks a
/// share of a CPU that realtime tasks occupy (ext_server) by itself.
const NO_CPU_RELEASE: (u32, u32) = (7, 1);

// Settings::words() relies on it.
const _: () = assert!(
    size_of::<types::settings>()
        == size_of::<u64>() * (2 + intf::level_NR_LEVELS + intf::tunable_NR_TUNABLES) as usize
);

/// How to load.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Bytes of the kernel's dump when it ends the scheduler; 0: the kernel's
    /// own default.
    pub exit_dump_len: u32,
    /// Options for libbpf.
    pub libbpf: LibbpfOpts,
    /// Number of this load; part of every sample.
    pub load: u64,
}

/// A scheduler that is attached.
pub struct Scheduler<'a> {
    skel: BpfSkel<'a>,
    link: Option<Link>,
    nr_cpus: usize,
    load: u64,
    settings: Settings,
    loaded_at: Instant,
    /// Counters at the last change.
    base: Sample,
    watch: Option<Watch>,
    nr_watches: u64,
}

/// A task or process that is watched now.
struct Watch {
    id: u64,
    pid: u32,
    since: Instant,
    until: Instant,
}

impl<'a> Scheduler<'a> {
    /// Loads and attaches the BPF part with these settings.
    pub fn start(
        object: &'a mut MaybeUninit<OpenObject>,
        machine: &Machine,
        settings: &Settings,
        options: &LoadOptions,
    ) -> Result<Scheduler<'a>> {
        scx_utils::try_set_rlimit_infinity();
        let builder = BpfSkelBuilder::default();
        let open_opts = options.libbpf.clone().into_bpf_open_opts();
        let mut open = scx_ops_open!(builder, object, kin_ops, open_opts)?;
        let ops = open.struct_ops.kin_ops_mut();
        ops.exit_dump_len = options.exit_dump_len;
        if kernel_version().is_some_and(|version| version >= NO_CPU_RELEASE) {
            ops.cpu_release = std::ptr::null_mut();
        }
        describe_machine(&mut open, machine)?;
        let data = open.maps.data_data.as_mut().ok_or_else(no_section)?;
        for copy in data.live.iter_mut() {
            write_settings(copy, settings);
        }
        let mut skel = scx_ops_load!(open, kin_ops, uei).context(
            "the kernel refused the BPF part; -v shows what libbpf and the verifier say",
        )?;
        let link = match scx_ops_attach!(skel, kin_ops) {
            Ok(link) => link,
            Err(error) => match running_scheduler() {
                Some(name) => bail!("another sched_ext scheduler is running: {name}"),
                None => return Err(error),
            },
        };
        Ok(Scheduler {
            skel,
            link: Some(link),
            nr_cpus: machine.nr_cpus,
            load: options.load,
            settings: settings.clone(),
            loaded_at: Instant::now(),
            base: Sample {
                load: options.load,
                ..Sample::default()
            },
            watch: None,
            nr_watches: 0,
        })
    }

    /// The settings that are live.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Makes other settings live, all at once: fills the copy that is not in use
    /// and then points to it (paired with settings() in bpf/state.bpf.h). The
    /// epoch grows by one. When this returns no op acts by the old settings any
    /// more, and what is counted from then on belongs to the new ones alone.
    pub fn change(&mut self, settings: Settings) -> Result<()> {
        let next = Settings {
            epoch: self.settings.epoch + 1,
            ..settings
        };
        let data = self.data()?;
        // SAFETY: the section stays mapped as long as the skeleton lives. Only
        // this function writes live_slot; BPF reads the copy it points to, and
        // the other one went out of use GRACE before the last change returned.
        unsafe {
            let slot = AtomicU32::from_ptr(addr_of_mut!((*data).live_slot));
            let unused = (slot.load(Ordering::Relaxed) + 1) & 1;
            write_settings(addr_of_mut!((*data).live[unused as usize]), &next);
            slot.store(unused, Ordering::Release);
        }
        sleep(GRACE);
        self.settings = next;
        self.base = self.total();
        Ok(())
    }

    /// Counters and histograms since the load, over all CPUs.
    pub fn total(&self) -> Sample {
        let mut counters = vec![0; intf::counter_NR_COUNTERS as usize];
        let mut whatif = vec![0; WHATIF_ROWS * intf::whatif_NR_WHATIFS as usize];
        let mut hists = [[0; intf::limits_HIST_BUCKETS as usize]; intf::hist_NR_HISTS as usize];
        if let Some(bss) = self.skel.maps.bss_data.as_deref() {
            for cpu in &bss.stats[..self.nr_cpus] {
                add_all(&mut counters, &cpu.counters);
                add_all(&mut whatif, cpu.whatif.as_flattened());
                for (sum, hist) in hists.iter_mut().zip(&cpu.hists) {
                    add_all(sum, hist);
                }
            }
        }
        let seconds = self.loaded_at.elapsed().as_secs_f64();
        let read = Counted {
            counters,
            hists: hists.map(|hist| Hist(hist.to_vec())).to_vec(),
            whatif,
        };
        Sample::new(self.load, self.settings.epoch, seconds, read)
    }

    /// Counters and histograms since the last change of a setting.
    pub fn since_change(&self) -> Sample {
        self.total().since(&self.base)
    }

    /// Starts to watch a task (pid) or a process (tgid), for `most` at the
    /// longest. Answers a number that no other watch has, of another load
    /// neither; an error if somebody is watched already.
    pub fn watch(&mut self, pid: u32, most: Duration) -> Result<u64> {
        self.end_old_watch();
        if let Some(Watch { pid, until, .. }) = &self.watch {
            let left = until.saturating_duration_since(Instant::now());
            let left = left.as_secs() + 1;
            bail!("pid {pid} is being watched, for {left} s more at most");
        }
        self.name_watched(0)?;
        // Ops that began before may still add to the old watch.
        sleep(GRACE);
        let bss = self.skel.maps.bss_data.as_deref_mut();
        let watch: *mut types::watch = &mut bss.ok_or_else(no_section)?.watch;
        for i in 0..size_of::<types::watch>() / size_of::<u64>() {
            // SAFETY: inside the struct, which is made of 64-bit fields alone;
            // volatile because the kernel's programs write it too.
            unsafe { watch.cast::<u64>().add(i).write_volatile(0) };
        }
        self.name_watched(pid)?;
        self.nr_watches += 1;
        let since = Instant::now();
        let watch = self.watch.insert(Watch {
            id: self.load << 32 | self.nr_watches,
            pid,
            since,
            until: since + most,
        });
        Ok(watch.id)
    }

    /// Ends a watch, and answers what was seen; an error if it has ended before.
    pub fn watched(&mut self, id: u64) -> Result<Watched> {
        let Some(watch) = self.watch.take_if(|watch| watch.id == id) else {
            if id >> 32 != self.load {
                bail!("the watch ended early: CPUs came or went, so scx_kin loaded again");
            }
            bail!("the watch is over: its time ran out before it was asked for");
        };
        let seconds = watch.since.elapsed().as_secs_f64();
        self.name_watched(0)?;
        sleep(GRACE);
        let bss = self.skel.maps.bss_data.as_deref();
        Ok(read_watch(
            &bss.ok_or_else(no_section)?.watch,
            watch.pid,
            seconds,
        ))
    }

    /// Ends a watch whose client did not come back in time.
    pub fn end_old_watch(&mut self) {
        let over = |watch: &mut Watch| Instant::now() >= watch.until;
        if self.watch.take_if(over).is_some() {
            // Fails without a section alone; then nothing was ever watched.
            let _ = self.name_watched(0);
        }
    }

    /// The section that the loader writes while BPF reads it.
    fn data(&mut self) -> Result<*mut types::data> {
        let data = self.skel.maps.data_data.as_deref_mut();
        Ok(data.ok_or_else(no_section)?)
    }

    /// Tells BPF whom to watch; 0: nobody.
    fn name_watched(&mut self, pid: u32) -> Result<()> {
        let data = self.data()?;
        // SAFETY: as in change(); nothing else writes this word.
        let watched = unsafe { AtomicU32::from_ptr(addr_of_mut!((*data).watched_pid)) };
        watched.store(pid, Ordering::Release);
        Ok(())
    }

    /// Whether the kernel has ended the scheduler.
    pub fn exited(&self) -> bool {
        uei_exited!(&self.skel, uei)
    }

    /// Detaches, and prints why the scheduler ended; an error if the kernel ended
    /// it for one.
    pub fn stop(mut self) -> Result<UserExitInfo> {
        drop(self.link.take());
        self.clean_report();
        uei_report!(&self.skel, uei)
    }

    /// The kernel's report names tasks, and a task's name may be any bytes, or be
    /// cut inside a character; scx_utils takes nothing but UTF-8 without a panic.
    fn clean_report(&mut self) {
        let dump_len = self
            .skel
            .maps
            .rodata_data
            .as_ref()
            .map_or(0, |ro| ro.uei_dump_len);
        let dump = scx_utils::UEI_DUMP_PTR_MUTEX.lock();
        let dump = dump.map_or(std::ptr::null(), |pointer| pointer.ptr);
        if let Some(data) = self.skel.maps.data_data.as_deref_mut() {
            to_ascii(&mut data.uei.reason);
            to_ascii(&mut data.uei.msg);
        }
        if !dump.is_null() {
            // SAFETY: the section of that length that scx_ops_load! has made for
            // the dump; the scheduler is detached, so nobody else touches it.
            to_ascii(unsafe {
                slice::from_raw_parts_mut(dump.cast_mut().cast(), dump_len as usize)
            });
        }
    }
}

fn to_ascii(text: &mut [i8]) {
    for c in text.iter_mut().filter(|c| **c < 0) {
        *c = b'?'.cast_signed();
    }
}

fn no_section() -> anyhow::Error {
    anyhow!("the BPF object lacks a data section")
}

/// Volatile, for the kernel's BPF programs read and write the same memory.
fn write_settings(copy: *mut types::settings, settings: &Settings) {
    for (i, word) in settings.words().into_iter().enumerate() {
        // SAFETY: the caller hands over a whole struct settings, which has as
        // many words as Settings::words() (asserted above).
        unsafe { copy.cast::<u64>().add(i).write_volatile(word) };
    }
}

fn add_all(sums: &mut [u64], counts: &[u64]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        // SAFETY: a valid reference; volatile because BPF counts on meanwhile.
        *sum += unsafe { addr_of!(*count).read_volatile() };
    }
}

fn read_watch(watch: &types::watch, pid: u32, seconds: f64) -> Watched {
    let read = |counts: &[u64]| {
        let mut sums = vec![0; counts.len()];
        add_all(&mut sums, counts);
        sums
    };
    let on_cpus = read(&watch.cpu_runs).into_iter().zip(read(&watch.cpu_ns));
    let hists = watch.hists.iter().map(|hist| Hist(read(hist)));
    let mut seen = Watched::new(pid, seconds, on_cpus, read(&watch.counters), hists);
    seen.slept = watch.slept;
    seen.expired = watch.expired;
    seen.preempted = watch.preempted;
    seen.outranked = watch.outranked;
    seen
}

/// Fills the tables of bpf/topo.bpf.h.
fn describe_machine(open: &mut OpenBpfSkel, machine: &Machine) -> Result<()> {
    let rodata = open.maps.rodata_data.as_mut().ok_or_else(no_section)?;
    rodata.nr_cpus = machine.nr_cpus as u32;
    rodata.nr_words = machine.nr_words() as u32;
    rodata.nr_llcs = machine.llcs.len() as u32;
    for cpu in &machine.cpus {
        rodata.cpu_llc[cpu.id] = cpu.llc as u16;
        rodata.cpu_node[cpu.id] = cpu.node as u16;
        rodata.cpu_smt_next[cpu.id] = cpu.smt_next as u16;
    }
    // Spans of clusters stand behind those of LLCs.
    let mut next_cluster = MAX_LLCS;
    for llc in &machine.llcs {
        for core in &llc.cores {
            for cpu in core {
                rodata.span[llc.id][cpu / 64] |= 1 << (cpu % 64);
                rodata.llc_cpus[llc.id] += 1;
                rodata.cpu_core[*cpu] = core[0] as u16;
            }
        }
        for cluster in &llc.clusters {
            for cpu in cluster {
                rodata.span[next_cluster][cpu / 64] |= 1 << (cpu % 64);
                rodata.cpu_cluster[*cpu] = next_cluster as u16;
            }
            next_cluster += 1;
        }
        for (place, other) in llc.order.iter().enumerate() {
            rodata.llc_order[llc.id][place] = *other as u16;
        }
        rodata.llc_order_node[llc.id] = llc.order_node as u16;
    }
    rodata.has_clusters = u8::from(next_cluster > MAX_LLCS);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_with_a_name_cut_inside_a_character_becomes_text() {
        let mut name: Vec<i8> = "caf\u{e9}s".bytes().take(4).map(u8::cast_signed).collect();
        to_ascii(&mut name);
        let bytes: Vec<u8> = name.into_iter().map(i8::cast_unsigned).collect();
        assert_eq!(String::from_utf8(bytes).as_deref(), Ok("caf?"));
    }
}
