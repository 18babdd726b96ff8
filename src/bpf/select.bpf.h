/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a wakee or a new task goes. For a wakeup, in this order; the functions
 * bear the same numbers:
 *
 * 1. Affinity: the previous CPU if still allowed, else the first that is.
 * 2. SYNC_STACK: the waker is believed to sleep soon (SYNC_WAKEUPS) and nobody
 *    waits on its CPU: that CPU.
 * 3. Which is the target, the waker's CPU or the previous one (affine.bpf.h)? On
 *    the way, whichever of them is idle and may be taken, is taken.
 * 4. One of two ways to an idle CPU near: IDLE_SIBLING (sibling.bpf.h; not for wide
 *    wakeups if 5 covers the LLC), or IDLE_SHARED_CACHE in place of 3 and 4: the
 *    walk of "idle shared cache".
 * 5. SD_BALANCE_WAKE: the slow path through the levels that carry it (idlest.bpf.h),
 *    for an idle CPU; for wide wakeups also for the lightest queue.
 * 6. The target, busy as it is.
 *
 * A new task goes the slow path with SD_BALANCE_FORK at once: it has nothing in any
 * cache yet, and a core of its own is worth more than a near one. So does a task
 * at exec() with SD_BALANCE_EXEC, if others wait where it runs.
 */
#ifndef __SELECT_BPF_H
#define __SELECT_BPF_H

#include "idlest.bpf.h"
#include "sibling.bpf.h"

/*
 * Step 4, the other form: up the levels of the waker's CPU that have SD_WAKE_AFFINE.
 * The waker's CPU is the candidate once the previous one is in the level; where
 * SD_PREFER_SIBLING is set, an idle previous CPU comes before it, and so does the
 * first idle one of the level. The first level with a candidate ends the walk.
 */
static __always_inline bool walk_shared_cache(const struct settings *set,
					      const struct task_struct *p,
					      const struct wakeup *wake, struct choice *choice)
{
	u32 level;

	bpf_for(level, 0, NR_LEVELS) {
		bool holds_prev = level >= level_between(wake->this, wake->prev);
		s32 cpu;

		if (!sd_flag(set, level, SD_WAKE_AFFINE))
			continue;
		if (level == LEVEL_SMT && smt_next(wake->this) == wake->this)
			continue; /* no such level on this machine */
		if (sd_flag(set, level, SD_PREFER_SIBLING)) {
			if (holds_prev && choose_prev_idle(choice, wake))
				return true;
			cpu = level == LEVEL_SMT ?
				      claim_idle_sibling(p, wake->this, wake->dry) :
				      claim_idle_in_level(p, llc_of(wake->this), level, wake->dry);
			if (choose_found(choice, cpu, CNT_select_shared_cache))
				return true;
		}
		if (holds_prev)
			return false;
	}
	return false;
}

/*
 * Step 3 for wakeups whose waker's CPU is a candidate: true if it ends here, with an
 * idle CPU; else choice->cpu is the target.
 */
static __always_inline bool choose_target(const struct settings *set, const struct wakeup *wake,
					  const struct cpu_ctx *wakerc, struct choice *choice)
{
	if (feat(set, WA_IDLE)) {
		if (shares_llc(wake->this, wake->prev) &&
		    choose_idle(choice, wake, wake->this, CNT_select_waker_idle))
			return true;
		if (choice->sync && !wakerc->nr_queued) {
			choose(choice, wake->this, CNT_select_busy_waker, false);
			return false;
		}
		/* Without sync it was tried before. */
		if (choice->sync && choose_prev_idle(choice, wake))
			return true;
	}
	if (feat(set, WA_WEIGHT) && waker_is_lighter(set, wake, wakerc, choice->sync))
		choose(choice, wake->this, CNT_select_busy_waker, false);
	return false;
}

/* Is the target itself idle, if that has not been asked yet? */
static __always_inline bool choose_if_idle(const struct settings *set, const struct wakeup *wake,
					   struct choice *choice)
{
	s32 target = choice->cpu;

	if (target == wake->prev)
		return !choice->prev_tried && choose_prev_idle(choice, wake);
	/* With WA_IDLE the waker's was asked on the way, if it shares the LLC. */
	if (feat(set, WA_IDLE) && shares_llc(target, wake->prev))
		return false;
	return choose_idle(choice, wake, target, CNT_select_waker_idle);
}

/* Step 4: near the target, which is busy. */
static __always_inline bool choose_sibling(const struct settings *set, const struct task_struct *p,
					   const struct wakeup *wake, struct choice *choice)
{
	s32 target = choice->cpu;

	if (!choice->prev_tried && target != wake->prev && shares_llc(wake->prev, target) &&
	    choose_prev_idle(choice, wake))
		return true;
	if (kthread_stacks(set, wake, cpu_ctx(wake->this))) {
		choose(choice, wake->prev, CNT_select_kthread, false);
		return true;
	}
	if (choose_recent(set, p, wake, target, choice))
		return true;
	if (scan_llc(set, p, wake, target, choice))
		return true;
	if (feat(set, SCHED_IDLE_CPU)) {
		s32 cpu = claim_sched_idle(p, target, wake->dry);

		if (cpu != NO_CPU) {
			choose(choice, cpu, CNT_select_sched_idle, false);
			return true;
		}
	}
	return false;
}

/* Step 5: whatever is idle; for a wide wakeup also what is lightest. */
static __always_inline void choose_idlest(const struct settings *set, const struct task_struct *p,
					  const struct wakeup *wake, struct choice *choice)
{
	u64 levels = levels_with(set, FLAG_SD_BALANCE_WAKE);
	s32 target = choice->cpu, cpu;
	u32 level;

	if (!levels)
		return;
	cpu = claim_idlest(set, p, target, levels, wake->dry);
	if (cpu != NO_CPU) {
		level = level_between(target, cpu);
		choose(choice, cpu,
		       CNT_select_idle_llc + (level < LEVEL_NODE ? 0 : level - LEVEL_LLC), true);
	} else if (choice->wide) {
		choose(choice, lightest_cpu(p, target, levels), CNT_select_wide_load, false);
	}
}

/* Does the slow path take a wide wakeup over, its own LLC included? */
static __always_inline bool wide_goes_on(const struct settings *set, const struct choice *choice)
{
	return choice->wide && (levels_with(set, FLAG_SD_BALANCE_WAKE) & (ON_SMT | ON_LLC));
}

/* Step 3: which is the target? True if it is idle and that is the end of it. */
static __always_inline bool find_target(const struct settings *set, const struct wakeup *wake,
					struct choice *choice)
{
	const struct cpu_ctx *wakerc = cpu_ctx(wake->this);
	bool walk_form = feat(set, IDLE_SHARED_CACHE);

	choose(choice, wake->prev, CNT_select_busy_prev, false);
	choice->walk = choice->affine && walk_form;
	if (wake->this == wake->prev || !affine_level(set, wake->this, wake->prev))
		choice->affine = false;
	if (choice->walk && choice->affine) {
		if (!feat(set, WA_WEIGHT) || waker_is_lighter(set, wake, wakerc, choice->sync)) {
			choose(choice, wake->this, CNT_select_busy_waker, false);
			return false;
		}
		choice->walk = false;
	}
	if (choice->walk && wake->this != wake->prev)
		return false;
	if (!choice->affine || walk_form || (feat(set, WA_IDLE) && !choice->sync)) {
		choice->prev_tried = true;
		if (choose_prev_idle(choice, wake))
			return true;
	}
	return choice->affine && !walk_form && choose_target(set, wake, wakerc, choice);
}

/* Steps 2 to 6, or with wake->dry what they would come to. Returns 0. */
__noinline int choose_for_wakeup(const struct settings *set __arg_nonnull,
				 const struct task_struct *p __arg_trusted,
				 const struct wakeup *wake __arg_nonnull,
				 struct choice *choice __arg_nonnull)
{
	const struct cpu_ctx *wakerc = cpu_ctx(wake->this);

	choice->sync = sync_believed(set, wake, wakerc);
	choice->wide = wake_wide(set, wake, wakerc);
	choice->affine = feat(set, AFFINE_WAKEUPS) && !choice->wide && is_allowed(p, wake->this);
	choice->prev_tried = false;
	if (choice->wide && !wake->dry)
		count(wake_wide);
	/* 2 */
	if (choice->sync && choice->affine && feat(set, SYNC_STACK) && !wakerc->nr_queued) {
		choose(choice, wake->this, CNT_select_sync, false);
		return 0;
	}
	/* 3 */
	if (find_target(set, wake, choice))
		return 0;
	/* 4 */
	if (choice->walk) {
		if (walk_shared_cache(set, p, wake, choice))
			return 0;
	} else {
		if (choose_if_idle(set, wake, choice))
			return 0;
		if (feat(set, IDLE_SIBLING) && !feat(set, IDLE_SHARED_CACHE) &&
		    !wide_goes_on(set, choice) && choose_sibling(set, p, wake, choice))
			return 0;
	}
	/* 5, else 6 */
	choose_idlest(set, p, wake, choice);
	return 0;
}

/* A new task: the slow path from its home. */
static __always_inline void choose_for_fork(const struct settings *set, const struct task_struct *p,
					    s32 home, bool dry, struct choice *choice)
{
	u64 levels = levels_with(set, FLAG_SD_BALANCE_FORK);
	s32 cpu = home;

	/* Home itself is a candidate whatever the flags say. */
	if ((levels & ON_SMT) || !claim_cpu(home, dry))
		cpu = claim_idlest(set, p, home, levels, dry);
	if (choose_found(choice, cpu, CNT_select_fork_idle))
		return;
	choose(choice, lightest_cpu(p, home, levels), CNT_select_fork_load, false);
}

/* A task that called exec(): another CPU that is idle, or lighter; or home. */
static __always_inline s32 choose_for_exec(const struct settings *set, const struct task_struct *p,
					   s32 home)
{
	u64 levels = levels_with(set, FLAG_SD_BALANCE_EXEC);
	s32 cpu = claim_idlest(set, p, home, levels, false);

	return cpu != NO_CPU ? cpu : lightest_cpu(p, home, levels);
}

#endif
