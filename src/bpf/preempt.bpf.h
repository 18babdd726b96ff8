/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * May a wakee that is queued on a busy CPU preempt what runs there?
 *
 * 1. No task of ours runs there (a higher class, or the CPU is between two):
 *    nothing to compare with, the wakee waits its turn.
 * 2. The running task is SCHED_IDLE and the wakee is not: yes.
 * 3. The wakee is SCHED_BATCH or SCHED_IDLE: no.
 * 4. WAKEUP_SYNC, and the waker is believed to sleep soon: yes, at once.
 * 5. Its waker runs there and left its CPU to it (SYNC_STACK): no, the CPU is free
 *    in a moment, and a switch back and forth is what sync is to avoid.
 * 6. WAKEUP_OVERLAP, and both run on for less than migration_cost after they woke
 *    others: yes. WAKEUP_RUNNING, and the wakee's runs are the shorter: yes.
 * 7. WAKEUP_PREEMPTION off: no.
 * 8. The running task has run for less than min_granularity (RUN_TO_PARITY), and
 *    the wakee was not woken by a hardware interrupt: no. Without this each
 *    message of a hackbench costs two switches: the credit of a sleeper exceeds
 *    the granularity, so every wakee preempts its waker. But a timer or a device
 *    tells of something outside, which batching does not make cheaper.
 * 9. The wakee's vruntime is smaller by more than wakeup_granularity: yes.
 *
 * Per-CPU kernel threads are not asked: they preempt whatever the granularity, for
 * what waits for their work must not wait for a slice's end (main.bpf.c).
 * A preemptor that nobody waits before goes straight onto the CPU; otherwise it
 * is queued and the CPU made to pick again, so that order decides. The running
 * task may have changed by the time the preemption arrives. Then dispatch
 * compares the two once more and keeps the one that is first.
 */
#ifndef __PREEMPT_BPF_H
#define __PREEMPT_BPF_H

#include "state.bpf.h"

#define NO_VERDICT NR_COUNTERS /* not asked: no counter */

/* Is a verdict, the counter of a way out, a yes? preempt_local stands for rule 9. */
static __always_inline bool preempts(u32 verdict)
{
	return verdict == CNT_preempt_local || verdict == CNT_preempt_idle_policy ||
	       verdict == CNT_preempt_wakeup_sync || verdict == CNT_preempt_overlap ||
	       verdict == CNT_preempt_running;
}

/* A wakee that is to be queued, as the rules see it; the same for a what-if. */
struct queued_wakee {
	s32 cpu;
	u32 weight;
	u64 now;
	u64 v_before; /* vruntime before it was placed, in the clock of the CPU */
	u64 min_v;
	u64 vruntime;
	u64 avg_overlap, avg_wakeup, avg_running;
	bool idle_policy, batch_policy;
	bool woken_sync; /* its waker is believed to sleep soon */
	bool sync_here;	 /* ... on this CPU, which it left to it */
};

/* Rules 8 and 9. */
static __always_inline u32 preempt_by_vruntime(const struct settings *set,
					       const struct queued_wakee *wakee,
					       const struct cpu_ctx *cpuc)
{
	u64 start = cpuc->curr_start, gran = set->tun.wakeup_granularity_ns;
	u64 ran = time_is_before(start, wakee->now) ? wakee->now - start : 0;
	s32 lead;

	if (!feat(set, WAKEUP_PREEMPTION))
		return NO_VERDICT;
	if (feat(set, RUN_TO_PARITY) && ran < set->tun.min_granularity_ns && !in_hardirq())
		return CNT_preempt_protected;
	if (feat(set, ADAPTIVE_GRAN))
		gran = adaptive_gran(gran, wakee->avg_wakeup, queue_running(cpuc) + 1, ran);
	gran = wakeup_gran(gran, feat(set, ASYM_GRAN) ? wakee->weight : cpuc->curr_weight);
	lead = wakeup_preempt_entity(curr_vruntime(cpuc, wakee->now), wakee->vruntime, gran);
	return lead > 0 ? CNT_preempt_local :
	       lead	? CNT_preempt_not_ahead :
			  CNT_preempt_granularity;
}

/* Rules 1 to 9. */
static __always_inline u32 preempt_verdict(const struct settings *set,
					   const struct queued_wakee *wakee)
{
	const struct cpu_ctx *cpuc = cpu_ctx(wakee->cpu);
	u64 cost = set->tun.migration_cost_ns;

	if (!cpuc->curr_start)
		return CNT_preempt_not_ours;
	if (cpuc->curr_idle_policy && !wakee->idle_policy)
		return CNT_preempt_idle_policy;
	if (wakee->batch_policy || wakee->idle_policy)
		return CNT_preempt_batch;
	if (feat(set, WAKEUP_SYNC) && wakee->woken_sync)
		return CNT_preempt_wakeup_sync;
	if (wakee->sync_here)
		return CNT_preempt_sync;
	if (feat(set, WAKEUP_OVERLAP) && wakee->avg_overlap < cost && cpuc->curr_overlap < cost)
		return CNT_preempt_overlap;
	if (feat(set, WAKEUP_RUNNING) && wakee->avg_running < cpuc->curr_running)
		return CNT_preempt_running;
	return preempt_by_vruntime(set, wakee, cpuc);
}

/*
 * TICK_PREEMPT: a run ends when it exceeds the slice that the queue of now allows,
 * or, once it had min_granularity, when it is ahead of the first in line by more
 * than such a slice of vruntime. 2.6.32 check_preempt_tick().
 */
static __always_inline bool tick_preempts(const struct settings *set, const struct cpu_ctx *cpuc,
					  u64 ran, u64 slice, s64 lead)
{
	if (!feat(set, TICK_PREEMPT) || !cpuc->nr_queued)
		return false;
	return ran > slice || (ran >= set->tun.min_granularity_ns && lead > (s64)slice);
}

#endif
