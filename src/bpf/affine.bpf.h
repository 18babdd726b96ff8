/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wake-affine: is the waker's CPU a candidate for the wakee, and is it better than
 * the previous one?
 *
 * 1. WAKE_WIDE: not if waker and wakees are many to many (record_wakee, wake_wide).
 * 2. SD_WAKE_AFFINE: only if a level that has it holds both CPUs.
 * 3. SYNC_WAKEUPS: a waker says that it is about to sleep. SYNC_LESS believes only
 *    one that did not run on for long after it had said so before (avg_overlap).
 * 4. WA_IDLE: the one that is idle; the waker's also if it is alone there and is
 *    believed to sleep.
 * 5. WA_WEIGHT: the waker's if it carries less, by WA_BIAS more or less.
 *
 * Where it is wrong: load is what waits and runs now, not an average, so a CPU that
 * is busy only for a moment counts as busy; an interrupt's wakeup is put down to
 * the task it interrupted; all CPUs count as equally strong.
 */
#ifndef __AFFINE_BPF_H
#define __AFFINE_BPF_H

#include "state.bpf.h"

/* What a wakeup is about; gathered once, the same for a decision and its what-if. */
struct wakeup {
	u64 now;
	u32 weight; /* of the wakee */
	u32 flips;  /* of the wakee: how often it woke another one than before */
	s32 this;   /* the waker's CPU */
	s32 prev;
	s32 recent;
	bool sync; /* the waker says so */
	bool dry;
};

/*
 * Where it ends, and what was found on the way. All of it in memory: booleans in
 * registers are constants to the verifier, which then follows each combination of
 * them by itself.
 */
struct choice {
	s32 cpu;
	u32 row;      /* counter of the way out */
	bool claimed; /* the CPU is idle and ours to use */
	bool sync;    /* the waker was believed */
	bool wide, affine, walk, prev_tried;
};

/*
 * The two of the op that runs on a CPU. select_cpu runs with interrupts off, so one
 * for each CPU will do; not on the stack, of which BPF's 512 bytes are soon gone.
 */
struct selection {
	struct wakeup wake;
	struct choice choice;
} __attribute__((aligned(64)));

struct selection selections[MAX_CPUS];

#define selection_here(this) (&selections[(this) & (MAX_CPUS - 1)])

static __always_inline void choose(struct choice *choice, s32 cpu, u32 row, bool claimed)
{
	choice->cpu = cpu;
	choice->row = row;
	choice->claimed = claimed;
}

/* The same if a search found a CPU. */
static __always_inline bool choose_found(struct choice *choice, s32 cpu, u32 row)
{
	if (cpu == NO_CPU)
		return false;
	choose(choice, cpu, row, true);
	return true;
}

/* Chooses a CPU if it is idle and can be claimed. */
static __always_inline bool choose_idle(struct choice *choice, const struct wakeup *wake, s32 cpu,
					u32 row)
{
	if (!claim_cpu(cpu, wake->dry))
		return false;
	choose(choice, cpu, row, true);
	return true;
}

static __always_inline bool choose_prev_idle(struct choice *choice, const struct wakeup *wake)
{
	return choose_idle(choice, wake, wake->prev, CNT_select_prev_idle);
}

/* Rule 1. The waker's flips stand in its CPU's context while it runs. */
static __always_inline bool wake_wide(const struct settings *set, const struct wakeup *wake,
				      const struct cpu_ctx *wakerc)
{
	return feat(set, WAKE_WIDE) && wakerc->curr_start &&
	       wake_is_wide(wakerc->curr_wakees.flips, wake->flips, llc_size(llc_of(wake->this)));
}

/* Rule 2: a level's span holds those of the levels below it. */
static __always_inline bool affine_level(const struct settings *set, s32 this, s32 prev)
{
	u32 level;

	bpf_for(level, level_between(this, prev), NR_LEVELS) {
		if (sd_flag(set, level, SD_WAKE_AFFINE))
			return true;
	}
	return false;
}

/* Rule 3. */
static __always_inline bool sync_believed(const struct settings *set, const struct wakeup *wake,
					  const struct cpu_ctx *wakerc)
{
	if (!wake->sync || !feat(set, SYNC_WAKEUPS) || !wakerc->curr_start)
		return false;
	if (!feat(set, SYNC_LESS) || wakerc->curr_overlap <= set->tun.sync_overlap_ns)
		return true;
	if (!wake->dry)
		count(sync_doubted);
	return false;
}

/* Rule 5: is the waker's CPU the lighter one? */
static __always_inline bool waker_is_lighter(const struct settings *set, const struct wakeup *wake,
					     const struct cpu_ctx *wakerc, bool sync)
{
	u64 this_load = wakerc->queued_weight;
	u64 prev_load = queue_load(cpu_ctx(wake->prev));

	if (!sync && wakerc->curr_start)
		this_load += wakerc->curr_weight;
	return wake_affine_weight(this_load, prev_load, wake->weight,
				  feat(set, WA_BIAS) ? set->tun.imbalance_pct : 100);
}

#endif
