/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moving tasks that wait. Three occasions, never a fourth:
 *
 * 1. New-idle: a CPU whose task sleeps and whose queue is empty pulls from the
 *    sibling thread, the LLC, the node, the system, as far as SD_BALANCE_NEWIDLE
 *    goes, from the heaviest queue of the nearest level that has one. Not if its
 *    idle times are shorter on average than migration_cost_ns: the own next task
 *    will be back sooner than a foreign one is warm; with NI_RANDOM, not if they
 *    are shorter than what such pulls cost here, and not more often than they
 *    succeed. A CPU never pulls while its
 *    own task could run on: that is what costs others half of `sysbench threads`,
 *    whose lock holders yield.
 * 2. Hand-over: at its tick a CPU with waiting tasks wakes an idle CPU of its LLC
 *    and offers them to it, every balance_interval_ns one of the node or system.
 *    Whatever flags and averages say, nobody waits beside an idle CPU for longer.
 * 3. Periodic: every balance_interval_ns a busy CPU compares the weight it
 *    carries with the heaviest queue of its LLC, every second time of the node,
 *    every fourth of the system (SD_LOAD_BALANCE), and pulls one task if that
 *    makes the two more equal. No CPU is idle then, so 1 and 2 do not help.
 *
 * What is pulled is the first of the victim's queue that may run here, and with
 * CACHE_HOT has not just run there.
 * Where it is wrong: it moves one task at a time.
 */
#ifndef __BALANCE_BPF_H
#define __BALANCE_BPF_H

#include "newidle.h"
#include "state.bpf.h"

enum { PULL_LOOKS = 8 }; /* tasks of a victim's queue that a pull looks at */

/*
 * CACHE_HOT: did p run so shortly ago that its data is still in the victim's cache?
 * The threads of a core share theirs.
 */
static __always_inline bool is_hot(const struct settings *set, struct task_struct *p, s32 victim,
				   s32 cpu, u64 now)
{
	struct task_ctx *taskc;

	if (!feat(set, CACHE_HOT) || shares_core(victim, cpu))
		return false;
	taskc = try_lookup_task(p);
	if (!taskc || !taskc->stopped_at ||
	    !task_is_hot(time_is_before(taskc->stopped_at, now) ? now - taskc->stopped_at : 0,
			 set->tun.migration_cost_ns))
		return false;
	count(pull_hot);
	return true;
}

/* CACHE_HOT_BUDDY: would the victim run p next, and has the puller work of its own? */
static __always_inline bool is_their_buddy(const struct settings *set, const struct task_struct *p,
					   s32 victim, bool busy)
{
	const struct cpu_ctx *cpuc = cpu_ctx(victim);

	if (!busy || !feat(set, CACHE_HOT_BUDDY) ||
	    (p->pid != cpuc->next_buddy && p->pid != cpuc->last_buddy))
		return false;
	count(pull_buddy);
	return true;
}

/* The first of a victim's queue that is neither hot nor a buddy. */
static __always_inline bool pull_cold(const struct settings *set, s32 victim, s32 cpu, bool busy)
{
	u64 now = scx_bpf_now();
	struct task_struct *p;
	bool pulled = false;
	u32 looks = 0;

	bpf_for_each(scx_dsq, p, victim, 0)
	{
		if (looks++ >= PULL_LOOKS)
			break;
		if (!is_allowed(p, cpu) || is_hot(set, p, victim, cpu, now) ||
		    is_their_buddy(set, p, victim, busy))
			continue;
		pulled = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
		if (pulled)
			break;
	}
	return pulled;
}

/* Take the first task of a CPU's queue that may run here. @busy: this CPU has work. */
__noinline bool pull_from(const struct settings *set __arg_nonnull, s32 victim, s32 cpu, bool busy)
{
	if (feat_any(set, FEAT(CACHE_HOT) | FEAT(CACHE_HOT_BUDDY)))
		return pull_cold(set, victim, cpu, busy);
	return scx_bpf_dsq_move_to_local(victim, 0);
}

struct victim {
	s32 cpu; /* or NO_CPU */
	u64 load;
};

/*
 * Load of a CPU as a victim. One that a higher class has taken serves nobody: its
 * waiters come before any queue that moves.
 */
#define NOT_SERVED (1ULL << 40)

static __always_inline u64 victim_load(const struct cpu_ctx *cpuc)
{
	return queue_load(cpuc) + (cpuc->curr_start ? 0 : NOT_SERVED);
}

/* The heaviest CPU among those of @llc that have somebody waiting. */
static __always_inline void heaviest_in_llc(u32 llc, s32 self, struct victim *best)
{
	u32 w, i;

	bpf_for(w, 0, nr_words) {
		u64 word = llc_ctx(llc)->queued[w & (MAX_WORDS - 1)];

		bpf_for(i, 0, 64) {
			u64 load;
			s32 cpu;

			if (!word)
				break;
			cpu = w * 64 + first_bit(word);
			word &= word - 1;
			load = victim_load(cpu_ctx(cpu));
			if (cpu == self || (best->cpu != NO_CPU && load <= best->load))
				continue;
			best->cpu = cpu;
			best->load = load;
		}
	}
}

/* The same for a level around @cpu, which is not a victim itself. */
static __always_inline struct victim heaviest_in_level(s32 cpu, u32 level)
{
	struct victim best = { .cpu = NO_CPU };
	u32 llc = llc_of(cpu);
	u32 i;

	bpf_for(i, level_begin(llc, level), level_end(llc, level))
		heaviest_in_llc(llc_at(llc, i), cpu, &best);
	return best;
}

static __always_inline bool pull_from_siblings(const struct settings *set, s32 cpu)
{
	s32 sibling = cpu;
	u32 i;

	bpf_for(i, 0, MAX_SMT) {
		sibling = smt_next(sibling);
		if (sibling == cpu)
			break;
		if (cpu_ctx(sibling)->nr_queued && pull_from(set, sibling, cpu, false))
			return true;
	}
	return false;
}

static __always_inline bool pull_from_level(const struct settings *set, s32 cpu, u32 level)
{
	struct victim victim;

	if (level == LEVEL_SMT)
		return pull_from_siblings(set, cpu);
	victim = heaviest_in_level(cpu, level);
	return victim.cpu != NO_CPU && pull_from(set, victim.cpu, cpu, false);
}

/* What pulls cost and how often they succeed, for NI_RANDOM; this CPU's own. */
struct newidle newidles[MAX_CPUS][NR_LEVELS];

static __always_inline struct newidle *newidle_of(s32 cpu, u32 level)
{
	barrier_var(level);
	return &newidles[cpu & (MAX_CPUS - 1)][level & (NR_LEVELS - 1)];
}

/*
 * NI_RANDOM for one level: a pull whose cost is noted, unless the dice throw it
 * out, which counts as one that found nothing. @spent: on the levels before.
 */
static __always_inline bool pull_by_dice(const struct settings *set, s32 cpu, u32 level, u64 *spent)
{
	struct newidle *ni = newidle_of(cpu, level);
	u64 start, now;
	bool pulled;

	if (!newidle_dice(ni, bpf_get_prandom_u32() % NEWIDLE_WINDOW)) {
		count(newidle_ratio);
		newidle_note(ni, 0);
		return false;
	}
	start = bpf_ktime_get_ns();
	pulled = pull_from_level(set, cpu, level);
	now = bpf_ktime_get_ns();
	newidle_note(ni, pulled ? newidle_weight(ni->ratio) : 0);
	newidle_cost(ni, now - start, set->tun.migration_cost_ns, now);
	*spent += now - start;
	return pulled;
}

/*
 * Occasion 1, level by level. Returns whether a task is on its way; counts if it
 * looked and there was nothing.
 */
static __always_inline bool pull_newidle(const struct settings *set, s32 cpu)
{
	bool dice = feat(set, NI_RANDOM);
	u64 spent = 0;
	u32 level;

	bpf_for(level, 0, NR_LEVELS) {
		bool pulled;

		if (!sd_flag(set, level, SD_BALANCE_NEWIDLE))
			continue;
		if (dice && cpu_ctx(cpu)->avg_idle < spent + newidle_of(cpu, level)->max_cost) {
			count(newidle_cost);
			return false;
		}
		pulled = dice ? pull_by_dice(set, cpu, level, &spent) :
				pull_from_level(set, cpu, level);
		if (pulled) {
			count_row(CNT_dispatch_pull_smt + level);
			return true;
		}
	}
	if (!dice || spent)
		count(newidle_nothing);
	return false;
}

/* Do this CPU's idle times allow to look at others' queues? 2009's gate. */
static __always_inline bool newidle_worth_it(const struct settings *set, const struct cpu_ctx *cpuc)
{
	if (feat(set, NI_RANDOM) || cpuc->avg_idle >= set->tun.migration_cost_ns)
		return true;
	count(newidle_short);
	return false;
}

/*
 * Wake an idle CPU of a level and offer it what waits on @cpu; one that may run p,
 * if that is known. Two may offer to the same CPU: the later one wins, and the
 * other's next tick offers again.
 */
static __always_inline bool offer_to_idle(const struct task_struct *p, s32 cpu, u32 level)
{
	struct search search = { .idle = scx_bpf_get_idle_cpumask() };
	s32 found = claim_in_level(&search, p, llc_of(cpu), level);

	scx_bpf_put_idle_cpumask(search.idle);
	if (found == NO_CPU)
		return false;
	cpu_ctx(found)->offered_by = cpu + 1;
	scx_bpf_kick_cpu(found, SCX_KICK_IDLE);
	return true;
}

static __always_inline bool hand_over(s32 cpu, u32 level)
{
	if (!offer_to_idle(NULL, cpu, level))
		return false;
	count(handover_kick);
	return true;
}

/*
 * p was queued behind a busy CPU: if another CPU of that LLC has become idle
 * meanwhile, wake it, so that it pulls. (Between select_cpu's look and the
 * insertion it may have gone to sleep; without this 2 % of ticks saw work queued
 * beside an idle CPU.)
 */
static __always_inline void kick_idle_near(const struct task_struct *p, s32 cpu)
{
	if (offer_to_idle(p, cpu, LEVEL_LLC))
		count(enqueue_kick_idle);
}

/* Occasion 3: the CPU of a level that is too heavy beside this one, or NO_CPU. */
static __always_inline s32 balance_victim(const struct settings *set, s32 cpu, u32 level)
{
	struct victim victim = heaviest_in_level(cpu, level);

	if (victim.cpu == NO_CPU ||
	    !load_imbalanced(queue_load(cpu_ctx(cpu)), victim.load,
			     cpu_ctx(victim.cpu)->nr_queued + 1, set->tun.imbalance_pct))
		return NO_CPU;
	return victim.cpu;
}

static __always_inline s32 balance_look(const struct settings *set, s32 cpu, u32 level)
{
	s32 victim;

	if (!sd_flag(set, level, SD_LOAD_BALANCE))
		return NO_CPU;
	victim = balance_victim(set, cpu, level);
	if (victim == NO_CPU)
		count(balance_even);
	else
		count_level(balance_llc, level);
	return victim;
}

/* Is a level due at this look? LLC each time, NODE every 2nd, SYSTEM every 4th. */
static __always_inline bool balance_level_due(u32 level, u32 looks)
{
	return !(looks & ((1U << (level - LEVEL_LLC)) - 1));
}

/*
 * The periodic look of a busy CPU (occasions 2 and 3). Returns whether it is to
 * pull at its next dispatch.
 */
static __always_inline bool balance_due(const struct settings *set, struct cpu_ctx *cpuc, s32 cpu,
					u64 now)
{
	s32 victim = NO_CPU;
	u32 level;

	if (time_is_before(now, cpuc->next_balance))
		return false;
	cpuc->nr_looks++;
	/* CPUs would otherwise look in step and all choose the same victim. */
	cpuc->next_balance =
		now + set->tun.balance_interval_ns + bpf_get_prandom_u32() % NSEC_PER_MSEC;
	if (cpuc->nr_queued && !hand_over(cpu, LEVEL_NODE))
		hand_over(cpu, LEVEL_SYSTEM);
	bpf_for(level, LEVEL_LLC, NR_LEVELS) {
		if (victim == NO_CPU && balance_level_due(level, cpuc->nr_looks))
			victim = balance_look(set, cpu, level);
	}
	if (victim == NO_CPU)
		return false;
	cpuc->pull_from = victim + 1;
	return true;
}

#endif
