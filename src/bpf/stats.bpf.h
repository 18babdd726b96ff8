/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters and histograms: one cache-aligned block for each CPU in .bss, which
 * the loader maps and sums. Plain increments, no atomics: an op runs on one CPU
 * with preemption off and only touches the block of the CPU it runs on. (An
 * interrupt that wakes a task between load and store may lose one increment;
 * nothing depends on the last digit.) A bump is a dozen instructions, measured
 * as the cheapest way there is.
 */
#ifndef __STATS_BPF_H
#define __STATS_BPF_H

#include "policy.h"

struct cpu_stats {
	u64 counters[NR_COUNTERS];
	u64 hists[NR_HISTS][HIST_BUCKETS];
	u64 whatif[NR_WHATIF_ROWS][NR_WHATIFS];
} __attribute__((aligned(64)));

struct cpu_stats stats[MAX_CPUS];

#define stats_here() (&stats[bpf_get_smp_processor_id() & (MAX_CPUS - 1)])

/* Every use names its row, so that tests/layout.rs finds rows nobody bumps. */
#define count(name) (stats_here()->counters[CNT_##name]++)

/* The same for a row that was worked out, and for more than one event. */
#define count_row(row) count_add(row, 1)
static __always_inline void count_add(u32 row, u64 n)
{
	barrier_var(row); /* or clang proves away the verifier's check */
	if (row < NR_COUNTERS)
		stats_here()->counters[row] += n;
}

/* For rows that stand in the order of the levels: @first is the one of LLC. */
#define count_level(first, level) count_row(CNT_##first + (level) - LEVEL_LLC)
_Static_assert(CNT_dispatch_pull_system - CNT_dispatch_pull_smt == LEVEL_SYSTEM - LEVEL_SMT,
	       "dispatch_pull_smt, _llc, _node, _system stand in the order of the levels");
_Static_assert(CNT_select_idle_system - CNT_select_idle_llc == LEVEL_SYSTEM - LEVEL_LLC,
	       "select_idle_llc, _node, _system stand in the order of the levels");
_Static_assert(CNT_balance_system - CNT_balance_llc == LEVEL_SYSTEM - LEVEL_LLC,
	       "balance_llc, _node, _system stand in the order of the levels");

#define hist_add(name, ns) (stats_here()->hists[HIST_##name][hist_bucket(ns)]++)

/* ------------------------------------------------------- one task, watched */

/*
 * Whom `scx_kin explain --pid` asks about: a task or a process; 0: nobody, and then
 * all this costs one test. Atomics, since the threads of a process run anywhere.
 */
volatile u32 watched_pid SEC(".data") = 0;
struct watch watch;

static __always_inline bool is_watched(const struct task_struct *p)
{
	u32 pid = watched_pid;

	return pid && (p->pid == pid || p->tgid == pid);
}

#define watch_add(field, n) __sync_fetch_and_add(&watch.field, n)

static __always_inline void watch_row(u32 row)
{
	barrier_var(row);
	if (row < NR_COUNTERS)
		watch_add(counters[row], 1);
}

#endif
