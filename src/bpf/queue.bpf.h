/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queue of a CPU: a user DSQ in vruntime order, one for each CPU, since the
 * balancing switches of CFS mean nothing where queues are shared.
 *
 * 1. min_vruntime of a CPU is monotonic: it follows the running task while
 *    nobody waits, and the first in line when that one is picked.
 * 2. A task carries lag, not absolute vruntime, from CPU to CPU.
 * 3. It enters a queue with at most the sleeper's credit and at most
 *    debt_limit() of debt, whatever brought it there. Unclamped lag starved a
 *    kernel thread for 23 s in a prototype under an affinity storm.
 * 4. A sleeper is placed at most its credit before min_vruntime, a new task one
 *    slice after it.
 * 5. How many wait, and how heavy they are, is counted here, so that nobody has
 *    to ask the kernel: scx_bpf_dsq_nr_queued() on each CPU was 60 % of the
 *    cost of dispatch.
 *
 * Where it is wrong: while others wait, min_vruntime stands still between two
 * picks or ticks, so a wakee is placed up to a tick too early.
 */
#ifndef __QUEUE_BPF_H
#define __QUEUE_BPF_H

#include "state.bpf.h"

enum place_kind { PLACE_WAKEUP, PLACE_NEW, PLACE_REQUEUE };

/* min_vruntime as of now (rule 1). */
static __always_inline u64 queue_min(const struct cpu_ctx *cpuc, u64 now)
{
	if (cpuc->nr_queued || !cpuc->curr_start)
		return cpuc->min_vruntime;
	return time_max(cpuc->min_vruntime, curr_vruntime(cpuc, now));
}

static __always_inline void queue_advance_min(struct cpu_ctx *cpuc, u64 v)
{
	cpuc->min_vruntime = time_max(cpuc->min_vruntime, v);
}

/* Slice of a task of weight @w on a CPU, among those that wait there. */
static __always_inline u64 queue_slice(const struct settings *set, const struct cpu_ctx *cpuc,
				       u32 w)
{
	return sched_slice(&set->tun, cpuc->nr_queued + 1, w, cpuc->queued_weight + w);
}

static __always_inline u64 queue_credit(const struct settings *set, u32 weight)
{
	return sleeper_credit(&set->tun, weight, feat(set, FAIR_SLEEPERS),
			      feat(set, GENTLE_FAIR_SLEEPERS), feat(set, NORMALIZED_SLEEPER));
}

/* Rules 2 and 3 for a task that runs or waits on. */
static __always_inline u64 queue_clamp(const struct settings *set, u64 v, u64 min_v, u32 weight)
{
	u64 lo = clamp_credit(v, min_v, queue_credit(set, weight));
	u64 hi = clamp_debt(lo, min_v, debt_limit(set->tun.sched_latency_ns, weight));

	if (lo != v)
		count(clamp_credit);
	if (hi != lo)
		count(clamp_debt);
	return hi;
}

/* Bring a task's vruntime into the clock of @cpu (rule 2). */
static __always_inline u64 queue_rebased(const struct task_ctx *taskc, s32 cpu, u64 min_v)
{
	if (taskc->vcpu == cpu)
		return taskc->vruntime;
	return rebase(taskc->vruntime, cpu_ctx(taskc->vcpu)->min_vruntime, min_v);
}

/* vruntime of a wakee (rule 4), before the clamps. */
static __always_inline u64 queue_placed_wakee(const struct settings *set, u64 v, u64 min_v,
					      u32 weight)
{
	return clamp_credit(v, min_v, queue_credit(set, weight));
}

/* The same of a new task. */
static __always_inline u64 queue_placed_new(const struct settings *set, const struct cpu_ctx *cpuc,
					    u64 v, u64 min_v, u32 weight)
{
	u64 slice;

	if (!feat(set, START_DEBIT))
		return v;
	/* Among those that run and wait: its parent is mostly one of them. */
	slice = sched_slice(&set->tun, queue_running(cpuc) + 1, weight, queue_load(cpuc) + weight);
	return place_new(min_v, v, calc_delta_fair(slice, weight));
}

/*
 * Set the vruntime with which a task enters @cpu (rules 2 to 4), from what it is in
 * the clock of that CPU.
 */
static __always_inline void queue_place(const struct settings *set, struct task_ctx *taskc, s32 cpu,
					enum place_kind kind, u64 v, u64 min_v)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	u64 placed = v;

	if (kind == PLACE_WAKEUP) {
		placed = queue_placed_wakee(set, v, min_v, taskc->weight);
		if (placed != v && feat(set, FAIR_SLEEPERS))
			count(place_credit);
	} else if (kind == PLACE_NEW) {
		placed = queue_placed_new(set, cpuc, v, min_v, taskc->weight);
		if (placed != v)
			count(place_debit);
	}
	taskc->vruntime = queue_clamp(set, placed, min_v, taskc->weight);
	taskc->vcpu = cpu;
}

/* ------------------------------------------------------------ who waits where */

/*
 * taskc->queued_on says which queue a task is counted in. Ops for one task are
 * serialized by its runqueue's lock, so each gain has exactly one loss; the
 * counts of a CPU are changed by any CPU, hence atomics. A pulled task is
 * uncounted when it runs: until then its old queue looks one task longer, and a
 * pull from there finds nothing.
 */
static __always_inline u64 *queue_word(s32 cpu)
{
	return &llc_ctx(llc_of(cpu))->queued[(cpu / 64) & (MAX_WORDS - 1)];
}

static __always_inline void queue_uncount(s32 cpu, u32 weight)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	u64 bit = 1ULL << (cpu & 63);
	u64 *word = queue_word(cpu);

	__sync_fetch_and_sub(&cpuc->queued_weight, (u64)weight);
	if (__sync_fetch_and_sub(&cpuc->nr_queued, 1) != 1)
		return;
	/* A task may be queued between the two; then its bit must stay. */
	__sync_fetch_and_and(word, ~bit);
	if (cpuc->nr_queued)
		__sync_fetch_and_or(word, bit);
}

static __always_inline void queue_leave(struct task_ctx *taskc)
{
	s32 cpu = taskc->queued_on;

	if (cpu == NO_CPU)
		return;
	taskc->queued_on = NO_CPU;
	queue_uncount(cpu, taskc->queued_weight);
}

static __always_inline void queue_enter(struct task_ctx *taskc, s32 cpu)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);

	queue_leave(taskc);
	taskc->queued_on = cpu;
	taskc->queued_weight = taskc->weight;
	__sync_fetch_and_add(&cpuc->queued_weight, (u64)taskc->weight);
	if (!__sync_fetch_and_add(&cpuc->nr_queued, 1))
		__sync_fetch_and_or(queue_word(cpu), 1ULL << (cpu & 63));
}

/* Put a placed task into the queue of @cpu. The id of a CPU's DSQ is its number. */
static __always_inline void queue_insert(const struct settings *set, struct task_struct *p,
					 struct task_ctx *taskc, s32 cpu, u64 enq_flags)
{
	u64 slice = queue_slice(set, cpu_ctx(cpu), taskc->weight);

	queue_enter(taskc, cpu);
	scx_bpf_dsq_insert_vtime(p, cpu, slice, taskc->vruntime, enq_flags);
}

/* Straight onto the CPU that p is on, or was selected for. */
static __always_inline void queue_insert_local(const struct settings *set, struct task_struct *p,
					       struct task_ctx *taskc, s32 cpu, u64 enq_flags)
{
	queue_leave(taskc);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, queue_slice(set, cpu_ctx(cpu), taskc->weight),
			   enq_flags);
}

#endif
