/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Buddies: whom a CPU would run next although another one is first in line.
 *
 * 1. NEXT_BUDDY: the last wakee queued here, whether it preempts or not.
 * 2. LAST_BUDDY: the task that a wakee preempted here: once the wakee sleeps again,
 *    its data is still in the cache.
 * 3. Either is made only where at least sched_latency / min_granularity tasks run
 *    and wait (buddy_scale), and never a SCHED_IDLE task.
 * 4. A pick takes the next buddy, else the last one, unless the first in line is
 *    behind it by more than wakeup_granularity: fairness has the last word.
 * 5. A buddy is named once. One that is gone by then (asleep, pulled), or that the
 *    first in line may not be passed over for, is forgotten.
 *
 * 6.1 pick_next_entity(), check_preempt_wakeup(). (In 2.6.32 the last buddy came
 * before the next one.) Where it is wrong: a pid names the task; a new task of the
 * same pid in the same queue would be taken for it, which costs one pick.
 */
#ifndef __BUDDY_BPF_H
#define __BUDDY_BPF_H

#include "state.bpf.h"

enum { BUDDY_LOOKS = 64 }; /* tasks of a queue that are looked through for a buddy */

/* Rules 1 and 3: p was queued on a CPU. */
static __always_inline void buddy_next(const struct settings *set, const struct task_struct *p,
				       struct cpu_ctx *cpuc)
{
	if (feat(set, NEXT_BUDDY) && !is_idle_policy(p) &&
	    buddy_scale(&set->tun, queue_running(cpuc) + 1))
		cpuc->next_buddy = p->pid;
}

/* Rules 2 and 3: what runs on a CPU is preempted. */
static __always_inline void buddy_last(const struct settings *set, struct cpu_ctx *cpuc)
{
	if (feat(set, LAST_BUDDY) && cpuc->curr_start && !cpuc->curr_idle_policy &&
	    buddy_scale(&set->tun, queue_running(cpuc) + 1))
		cpuc->last_buddy = cpuc->curr_pid;
}

/*
 * Take the task called @pid from the queue of @cpu. @left_v: vruntime of the running
 * task if it could go on, which then may be the first in line. (rule 4)
 */
__noinline bool take_buddy(const struct settings *set __arg_nonnull, s32 cpu, u32 pid, u64 left_v,
			   bool has_left)
{
	struct task_struct *p;
	u32 looks = 0;
	bool taken = false;

	bpf_for_each(scx_dsq, p, cpu, 0)
	{
		u64 v = p->scx.dsq_vtime;

		if (!has_left || (!looks && time_is_before(v, left_v)))
			left_v = v;
		has_left = true;
		if (looks++ >= BUDDY_LOOKS)
			break;
		if (p->pid != pid)
			continue;
		if (wakeup_preempt_entity(v, left_v, set->tun.wakeup_granularity_ns) <= 0)
			taken = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
		break;
	}
	return taken;
}

/* Rules 4 and 5. @prev_v is vruntime of the running task if it @could_go_on. */
static __always_inline bool pick_buddy(const struct settings *set, struct cpu_ctx *cpuc, s32 cpu,
				       u64 prev_v, bool could_go_on)
{
	u32 next = cpuc->next_buddy, last = cpuc->last_buddy;

	cpuc->next_buddy = 0;
	if (feat(set, NEXT_BUDDY) && next && take_buddy(set, cpu, next, prev_v, could_go_on)) {
		count(dispatch_next_buddy);
		return true;
	}
	/* Just preempted: it is no queue's yet, and its turn comes after the preemptor's. */
	if (could_go_on && last == cpuc->curr_pid)
		return false;
	cpuc->last_buddy = 0;
	if (feat(set, LAST_BUDDY) && last && take_buddy(set, cpu, last, prev_v, could_go_on)) {
		count(dispatch_last_buddy);
		return true;
	}
	return false;
}

#endif
