/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The slow path: the idlest CPU of all the levels that a flag allows, for new
 * tasks (SD_BALANCE_FORK), at exec() (SD_BALANCE_EXEC), and for wakeups that found
 * nothing near (SD_BALANCE_WAKE).
 *
 * 1. A CPU is a candidate if the innermost level that holds both it and the task's
 *    home carries the flag. So without LLC:SD_BALANCE_FORK a new task leaves its
 *    core only for another LLC.
 * 2. The group is the LLC with most idle candidates; of equals the nearest. An LLC
 *    of the home's node counts before one of another node unless that has twice as
 *    many: memory is where the home is.
 * 3. In it, the first CPU of a wholly idle core (IDLE_CORE), else an idle CPU.
 * 4. None being idle anywhere: the candidate with the lightest queue, home first.
 *    Not one that runs no task of ours: a higher class has it, or a task that was
 *    just claimed it and is not counted yet.
 *
 * 2.6.32 find_idlest_group() and _cpu() compare loads level by level; here idle
 * CPUs are counted instead, as 7.3 sched_balance_find_dst_group() does as long as
 * there are any, and a weight is read off each queue, not estimated for a group.
 */
#ifndef __IDLEST_BPF_H
#define __IDLEST_BPF_H

#include "affine.bpf.h"

/* An LLC of another node must have so many times the idle CPUs of the nearest. */
#define REMOTE_FACTOR 2

/* Word @w of the CPUs of the home's core, which rule 1 tells from the others. */
static __always_inline u64 home_core_word(s32 home, u32 w)
{
	u64 core = 0;
	s32 cpu = home;
	u32 i;

	bpf_for(i, 0, MAX_SMT) {
		if (cpu / 64 == w)
			core |= 1ULL << (cpu & 63);
		cpu = smt_next(cpu);
		if (cpu == home)
			break;
	}
	return core;
}

/* Idle candidates of word @w of the @i-th nearest LLC. */
static __always_inline u64 candidates(struct search *search, const struct task_struct *p, s32 home,
				      u32 i, u32 w, u64 levels)
{
	u32 llc = llc_at(llc_of(home), i);
	u64 word = idle_word(search, p, llc, w);
	u64 core;

	if (i || !word)
		return word;
	if ((levels & (ON_SMT | ON_LLC)) == (ON_SMT | ON_LLC))
		return word;
	core = home_core_word(home, w);
	return word & (((levels & ON_SMT) ? core : 0) | ((levels & ON_LLC) ? ~core : 0));
}

/* The levels that carry a flag, as ON_* bits. */
static __always_inline u64 levels_with(const struct settings *set, u32 flag)
{
	u64 levels = 0;
	u32 level;

	bpf_for(level, 0, NR_LEVELS)
		levels |= (sd_flags(set, level) >> flag & 1) << level;
	return levels;
}

/* How many idle candidates the @i-th nearest LLC has. */
__noinline u32 nr_candidates(const struct task_struct *p __arg_trusted, s32 home, u32 i, u64 levels,
			     bool dry)
{
	struct search search;
	u32 nr = 0, w;

	search_begin(&search, IDLE_CPUS, dry);
	bpf_for(w, 0, nr_words)
		nr += count_bits(candidates(&search, p, home, i, w, levels));
	search_end(&search);
	return nr;
}

/*
 * Rule 2: place of the idlest LLC in the order seen from home; MAX_LLCS if nothing is
 * idle anywhere.
 */
__noinline u32 idlest_llc(const struct task_struct *p __arg_trusted, s32 home, u64 levels, bool dry)
{
	u32 llc = llc_of(home), best = MAX_LLCS, most = 0;
	u32 i;

	bpf_for(i, 0, nr_llcs) {
		u32 level = level_at(llc, i), idle, factor;

		if (i ? !(levels >> level & 1) : !(levels & (ON_SMT | ON_LLC)))
			continue;
		idle = nr_candidates(p, home, i, levels, dry);
		/* Nodes that are not the home's compete on equal terms. */
		factor = level == LEVEL_SYSTEM && best < llcs_of_node(llc) ? REMOTE_FACTOR : 1;
		if (idle > most * factor) {
			most = idle;
			best = i;
		}
	}
	return best;
}

__noinline s32 claim_candidate(const struct task_struct *p __arg_trusted, s32 home, u32 i,
			       u64 levels, u32 mask_and_dry)
{
	struct search search;
	s32 found = NO_CPU;
	u32 w;

	search_begin(&search, mask_and_dry & 1 ? IDLE_CORES : IDLE_CPUS, mask_and_dry & 2);
	bpf_for(w, 0, nr_words) {
		u64 word = candidates(&search, p, home, i, w, levels);

		if (word)
			found = claim_from(word, w, search.dry);
		if (found != NO_CPU)
			break;
	}
	search_end(&search);
	return found;
}

/* Rules 2 and 3: an idle candidate, claimed, or NO_CPU. */
static __always_inline s32 claim_idlest(const struct settings *set, const struct task_struct *p,
					s32 home, u64 levels, bool dry)
{
	u32 i = idlest_llc(p, home, levels, dry);
	s32 cpu = NO_CPU;

	if (i >= MAX_LLCS)
		return NO_CPU;
	if (feat(set, IDLE_CORE))
		cpu = claim_candidate(p, home, i, levels, 1 | (dry ? 2 : 0));
	return cpu != NO_CPU ? cpu : claim_candidate(p, home, i, levels, dry ? 2 : 0);
}

/*
 * Rule 4. Looks at every CPU, but only when a task is forked, calls exec() or wakes
 * many others, and no CPU at all is idle.
 */
__noinline s32 lightest_cpu(const struct task_struct *p __arg_trusted, s32 home, u64 levels)
{
	u64 best_load = queue_load(cpu_ctx(home));
	s32 best = home;
	s32 cpu;

	bpf_for(cpu, 0, nr_cpus) {
		u64 load = queue_load(cpu_ctx(cpu));

		if (load >= best_load || !cpu_ctx(cpu)->curr_start || !is_online(cpu) ||
		    !(levels >> level_between(home, cpu) & 1) || !is_allowed(p, cpu))
			continue;
		best_load = load;
		best = cpu;
	}
	return best;
}

#endif
