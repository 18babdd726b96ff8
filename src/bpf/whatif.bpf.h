/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What if a rule that is off were on? One decision in whatif_interval is worked
 * out with it, beside the real one, and a difference is counted with where it
 * would have led (WHATIFS of intf.h).
 *
 * 1. The setting of now is copied, with the one rule turned on, and the very
 *    functions that decide are asked with the copy. They only look (wakeup.dry).
 * 2. Each kind of decision has its own count of turns on each CPU, and turn N is
 *    row N's: so one decision is worked out for one rule at most, and an interval
 *    below the number of rows is as good as that number.
 * 3. It is worked out before the real decision, which claims a CPU; that would look
 *    busy afterwards. What becomes idle or busy between the two is counted as a
 *    difference that is none: a few hundred ns, so seldom.
 *
 * What cannot be told: rules that go by what is only kept while they are on
 * (averages, flips, buddies, costs: SYNC_LESS, WAKE_WIDE, ADAPTIVE_GRAN,
 * WAKEUP_OVERLAP, WAKEUP_RUNNING, NEXT_BUDDY, LAST_BUDDY, CACHE_HOT,
 * CACHE_HOT_BUDDY, NI_RANDOM); SD_BALANCE_EXEC, since no op sees an exec(); and what
 * one decision changes for the next.
 */
#ifndef __WHATIF_BPF_H
#define __WHATIF_BPF_H

#include "balance.bpf.h"
#include "preempt.bpf.h"
#include "queue.bpf.h"
#include "select.bpf.h"

_Static_assert(NR_WHATIF_ROWS <= 64, "a set of rows is one word");

#define ROW_OF(level, flag) (WHATIF_FLAGS + (level) * NR_DOMAIN_FLAGS + FLAG_##flag)
#define ROWS_OF(flag)                                                        \
	(1ULL << ROW_OF(LEVEL_SMT, flag) | 1ULL << ROW_OF(LEVEL_LLC, flag) | \
	 1ULL << ROW_OF(LEVEL_NODE, flag) | 1ULL << ROW_OF(LEVEL_SYSTEM, flag))

/* The kinds of decisions, and the rules that have a say in each. */
#define NO_ROW NR_WHATIF_ROWS

enum whatif_kind { WHATIF_WAKEUP, WHATIF_FORK, WHATIF_PREEMPT, WHATIF_NEWIDLE, WHATIF_TICK };

#define WAKEUP_ROWS                                                                             \
	(FEAT(AFFINE_WAKEUPS) | FEAT(WA_IDLE) | FEAT(WA_WEIGHT) | FEAT(WA_BIAS) |               \
	 FEAT(SYNC_WAKEUPS) | FEAT(SYNC_STACK) | FEAT(IDLE_SHARED_CACHE) | FEAT(IDLE_SIBLING) | \
	 FEAT(KTHREAD_STACK) | FEAT(RECENT_CPU) | FEAT(IDLE_CORE) | FEAT(IDLE_CLUSTER) |        \
	 FEAT(IDLE_SMT) | FEAT(SIS_UTIL) | FEAT(SCHED_IDLE_CPU) | ROWS_OF(SD_WAKE_AFFINE) |     \
	 ROWS_OF(SD_PREFER_SIBLING) | ROWS_OF(SD_BALANCE_WAKE))
/* Of these, what has a say only while IDLE_SHARED_CACHE is on. */
#define WALK_ROWS ROWS_OF(SD_PREFER_SIBLING)
#define FORK_ROWS (FEAT(START_DEBIT) | ROWS_OF(SD_BALANCE_FORK))
#define PREEMPT_ROWS                                                                           \
	(FEAT(WAKEUP_PREEMPTION) | FEAT(RUN_TO_PARITY) | FEAT(ASYM_GRAN) | FEAT(WAKEUP_SYNC) | \
	 FEAT(FAIR_SLEEPERS) | FEAT(GENTLE_FAIR_SLEEPERS) | FEAT(NORMALIZED_SLEEPER))
#define TICK_ROWS                                                          \
	(FEAT(TICK_PREEMPT) | 1ULL << ROW_OF(LEVEL_LLC, SD_LOAD_BALANCE) | \
	 1ULL << ROW_OF(LEVEL_NODE, SD_LOAD_BALANCE) |                     \
	 1ULL << ROW_OF(LEVEL_SYSTEM, SD_LOAD_BALANCE))

/*
 * The copies to work with. Ops that decide run with interrupts off, so one for each
 * CPU; not on the stack, which BPF has little of.
 */
struct whatif_scratch {
	struct settings set;
	struct wakeup wake;
	struct choice choice;
	struct queued_wakee wakee;
} __attribute__((aligned(64)));

struct whatif_scratch whatif_scratch[MAX_CPUS];

#define scratch_here() (&whatif_scratch[bpf_get_smp_processor_id() & (MAX_CPUS - 1)])

static __always_inline void whatif_count(u32 row, u32 column)
{
	barrier_var(row);
	if (row < NR_WHATIF_ROWS)
		stats_here()->whatif[row][column]++;
}

/* The rows that are on. */
static __always_inline u64 rows_on(const struct settings *set)
{
	const u64 flags = (1ULL << NR_DOMAIN_FLAGS) - 1;
	u64 on = set->features;
	u32 level;

	bpf_for(level, 0, NR_LEVELS)
		on |= (sd_flags(set, level) & flags) << (WHATIF_FLAGS + level * NR_DOMAIN_FLAGS);
	return on;
}

/* Takes a turn: the row of @rows that is off and due, or NO_ROW as mostly. */
static __always_inline u32 whatif_due(const struct settings *set, enum whatif_kind kind, u64 rows)
{
	u32 *turns = &cpu_ctx(bpf_get_smp_processor_id())->whatif_turns[kind];
	u32 interval = set->tun.whatif_interval, turn = *turns;

	if (!interval)
		return NO_ROW;
	*turns = turn + 1 < interval || turn + 1 < NR_WHATIF_ROWS ? turn + 1 : 0;
	if (turn >= NR_WHATIF_ROWS || !(rows >> turn & 1) || rows_on(set) >> turn & 1)
		return NO_ROW;
	return turn;
}

/* The level that the row of a domain flag belongs to. */
static __always_inline u32 level_of_row(u32 row)
{
	u32 level = (row - WHATIF_FLAGS) / NR_DOMAIN_FLAGS;

	barrier_var(level);
	return level & (NR_LEVELS - 1);
}

/* The settings with one row turned on. */
static __always_inline const struct settings *settings_with(const struct settings *set, u32 row)
{
	struct settings *other = &scratch_here()->set;

	*other = *set;
	if (row == FEAT_IDLE_SIBLING)
		other->features &= ~FEAT(IDLE_SHARED_CACHE); /* never both */
	if (row < WHATIF_FLAGS)
		other->features |= 1ULL << row;
	else
		other->sd[level_of_row(row)] |= 1ULL << (row - WHATIF_FLAGS) % NR_DOMAIN_FLAGS;
	return other;
}

/* Counts where to, if it came out otherwise. Returns 0. */
__noinline int whatif_place(u32 row, s32 real, s32 other, s32 this, s32 prev)
{
	u32 level = level_between(prev, other);

	whatif_count(row, WHATIF_asked);
	if (other == real)
		return 0;
	whatif_count(row, WHATIF_differed);
	if (other == this)
		whatif_count(row, WHATIF_waker);
	else if (other == prev)
		whatif_count(row, WHATIF_prev);
	else if (level == LEVEL_SYSTEM)
		whatif_count(row, WHATIF_system);
	else if (level == LEVEL_NODE)
		whatif_count(row, WHATIF_node);
	else
		whatif_count(row, WHATIF_llc);
	return 0;
}

static __always_inline void whatif_bool(u32 row, bool real, bool other)
{
	whatif_count(row, WHATIF_asked);
	if (other == real)
		return;
	whatif_count(row, WHATIF_differed);
	whatif_count(row, other ? WHATIF_yes : WHATIF_no);
}

/* ---------------------------------------------------------------- a wakeup */

/* Where a wakee would go with the rule of a row on. */
__noinline s32 whatif_wakeup(const struct settings *set __arg_nonnull,
			     const struct task_struct *p __arg_trusted,
			     const struct wakeup *real __arg_nonnull, u32 row)
{
	struct choice *choice = &scratch_here()->choice;
	struct wakeup *wake = &scratch_here()->wake;

	*wake = *real;
	wake->dry = true;
	choose_for_wakeup(settings_with(set, row), p, wake, choice);
	return choice->cpu;
}

/* -------------------------------------------------------------- a new task */

static __always_inline s32 dry_fork(const struct settings *set, const struct task_struct *p,
				    s32 home)
{
	struct choice *choice = &scratch_here()->choice;

	choose_for_fork(set, p, home, true, choice);
	return choice->cpu;
}

/* @v: vruntime of the new task before it is placed on @home. */
__noinline int whatif_fork(const struct settings *set __arg_nonnull,
			   const struct task_struct *p __arg_trusted, s32 home, u64 v)
{
	u32 row = whatif_due(set, WHATIF_FORK, FORK_ROWS);
	const struct cpu_ctx *cpuc = cpu_ctx(home);
	const struct settings *other;

	if (row == NO_ROW)
		return 0;
	other = settings_with(set, row);
	if (row == FEAT_START_DEBIT)
		whatif_bool(row, false,
			    queue_placed_new(other, cpuc, v, cpuc->min_vruntime, NICE_0_WEIGHT) !=
				    v);
	else
		whatif_place(row, dry_fork(set, p, home), dry_fork(other, p, home), home, home);
	return 0;
}

/* ------------------------------------------------------------- a preemption */

/* A wakee placed at its vruntime, from what it was before, as these settings have it. */
static __always_inline u64 dry_place(const struct settings *set, const struct queued_wakee *wakee)
{
	u64 v = queue_placed_wakee(set, wakee->v_before, wakee->min_v, wakee->weight);

	return clamp_debt(v, wakee->min_v, debt_limit(set->tun.sched_latency_ns, wakee->weight));
}

__noinline int whatif_preempt_row(const struct settings *set __arg_nonnull,
				  const struct queued_wakee *wakee __arg_nonnull, bool real,
				  u32 row)
{
	const struct settings *other = settings_with(set, row);
	struct queued_wakee *placed = &scratch_here()->wakee;

	*placed = *wakee;
	placed->vruntime = dry_place(other, wakee);
	whatif_bool(row, real, preempts(preempt_verdict(other, placed)));
	return 0;
}

static __always_inline void whatif_preempt(const struct settings *set,
					   const struct queued_wakee *wakee, bool real)
{
	u32 row = whatif_due(set, WHATIF_PREEMPT, PREEMPT_ROWS);

	if (row != NO_ROW)
		whatif_preempt_row(set, wakee, real, row);
}

/* ---------------------------------------------------- going idle, and the tick */

/* The CPU found nothing: would a level whose flag is off have had something? */
__noinline int whatif_newidle(const struct settings *set __arg_nonnull, s32 cpu)
{
	u32 row = whatif_due(set, WHATIF_NEWIDLE, ROWS_OF(SD_BALANCE_NEWIDLE));
	u32 level;

	if (row == NO_ROW)
		return 0;
	level = level_of_row(row);
	if (level == LEVEL_SMT)
		whatif_bool(row, false, smt_next(cpu) != cpu && cpu_ctx(smt_next(cpu))->nr_queued);
	else
		whatif_bool(row, false, heaviest_in_level(cpu, level).cpu != NO_CPU);
	return 0;
}

/*
 * A tick: would the run have been ended (it @ends anyway if its slice is over), or a
 * level's imbalance been seen?
 */
__noinline int whatif_tick(const struct settings *set __arg_nonnull, s32 cpu, u64 ran, s64 lead,
			   bool ends)
{
	u32 row = whatif_due(set, WHATIF_TICK, TICK_ROWS);
	const struct cpu_ctx *cpuc = cpu_ctx(cpu);

	if (row == NO_ROW)
		return 0;
	if (row == FEAT_TICK_PREEMPT)
		whatif_bool(row, ends,
			    ends || tick_preempts(settings_with(set, row), cpuc, ran,
						  queue_slice(set, cpuc, cpuc->curr_weight), lead));
	else
		whatif_bool(row, false, balance_victim(set, cpu, level_of_row(row)) != NO_CPU);
	return 0;
}

#endif
