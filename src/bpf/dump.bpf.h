/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an exit dump adds to the kernel's own words: the settings, and for each
 * CPU and task the numbers by which it is ordered. The way to read it: a task
 * that stalled has a large negative lag (it is in debt), or stands in a queue
 * whose CPU runs others; "DSQ" beside "queued" shows a count that went wrong.
 */
#ifndef __DUMP_BPF_H
#define __DUMP_BPF_H

#include "state.bpf.h"

static const char counter_name[NR_COUNTERS][24] = {
#define X(name, needs, help) #name,
	COUNTERS(X)
#undef X
};

void BPF_STRUCT_OPS(kin_dump, struct scx_dump_ctx *dctx)
{
	const struct settings *set = settings();

	scx_bpf_dump("kin: epoch %llu features 0x%llx sd %llx/%llx/%llx/%llx\n", set->epoch,
		     set->features, set->sd[LEVEL_SMT], set->sd[LEVEL_LLC], set->sd[LEVEL_NODE],
		     set->sd[LEVEL_SYSTEM]);
}

void BPF_STRUCT_OPS(kin_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	const struct cpu_ctx *cpuc = cpu_ctx(cpu);

	if (idle && !cpuc->nr_queued)
		return;
	scx_bpf_dump("kin: queued %u (weight %llu, DSQ %d) min_vruntime %llu\n", cpuc->nr_queued,
		     cpuc->queued_weight, scx_bpf_dsq_nr_queued(cpu), cpuc->min_vruntime);
	scx_bpf_dump(
		"kin: curr lead %lld us weight %u avg_idle %llu us offered_by %d pull_from %d\n",
		(s64)(cpuc->curr_vruntime - cpuc->min_vruntime) / 1000, cpuc->curr_weight,
		cpuc->avg_idle / 1000, (s32)cpuc->offered_by - 1, (s32)cpuc->pull_from - 1);
}

void BPF_STRUCT_OPS(kin_dump_task, struct scx_dump_ctx *dctx, struct task_struct *p)
{
	struct task_ctx *taskc = try_lookup_task(p);
	u32 decision;

	if (!taskc)
		return;
	decision = taskc->decision;
	/* Positive lag: it is owed CPU time. */
	scx_bpf_dump(
		"kin: lag %lld us on cpu %d weight %u queued_on %d last_cpu %d last wakeup %s\n",
		(s64)(cpu_ctx(taskc->vcpu)->min_vruntime - taskc->vruntime) / 1000, taskc->vcpu,
		taskc->weight, taskc->queued_on, taskc->last_cpu,
		counter_name[decision < NR_COUNTERS ? decision : 0]);
}

#endif
