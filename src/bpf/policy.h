/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arithmetic of the scheduler: pure functions of numbers. No map, kfunc,
 * global or clock, so that the same text is compiled for BPF and, for the tests
 * (tests/policy.rs), for the host. The mechanisms gather numbers, ask here, and
 * act.
 *
 * Units: ns, but for weights (nice 0 is 1024) and vruntime, which is ns of a
 * nice 0 task. Sources name the kernel version and function they follow.
 */
#ifndef __POLICY_H
#define __POLICY_H

#include "intf.h"

#define NICE_0_WEIGHT 1024U
#define WEIGHT_IDLEPRIO 3U /* SCHED_IDLE; kernel/sched/sched.h */
#define MAX_RT_PRIO 100

/* Debt of a moved or requeued task is cut at so many weighted latencies ... */
#define DEBT_LATENCIES 4
/*
 * ... and at this much vruntime. A task in debt waits until every other one of
 * the CPU has run that long, so this also bounds starvation: by itself times
 * the weight of the queue. 4 ms of nice 19 cost 273 ms, which fits.
 */
#define DEBT_MAX_NS (500 * NSEC_PER_MSEC)

/* sched_prio_to_weight, kernel/sched/core.c: one step is 10 % of CPU time. */
static inline u32 nice_weight(s32 nice)
{
	static const u32 weight[40] = {
		88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
		9548,  7620,  6100,  4904,  3906,  3121,  2501,	 1991,	1586,  1277,
		1024,  820,   655,   526,   423,   335,	  272,	 215,	172,   137,
		110,   87,    70,    56,    45,	   36,	  29,	 23,	18,    15,
	};
	u32 i = (u32)(nice + 20);

	return weight[i < 40 ? i : 39];
}

/* Weight of a task; static_prio is 100 (nice -20) to 139 (nice 19). */
static inline u32 task_weight(s32 static_prio, bool idle_policy)
{
	return idle_policy ? WEIGHT_IDLEPRIO : nice_weight(static_prio - MAX_RT_PRIO - 20);
}

/* true if a is before b; right while they are less than 2^63 ns apart */
static inline bool time_is_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline u64 time_max(u64 a, u64 b)
{
	return time_is_before(a, b) ? b : a;
}

static inline u64 time_min(u64 a, u64 b)
{
	return time_is_before(a, b) ? a : b;
}

/*
 * Number of the one bit that is set in a word: its product with a de Bruijn
 * sequence has six different top bits for each. BPF has no instruction for it,
 * and a chain of tests would double the verifier's paths at each of its steps.
 */
static inline u32 bit_number(u64 one_bit)
{
	static const u8 number[64] = {
		0,  1,	48, 2,	57, 49, 28, 3,	61, 58, 50, 42, 38, 29, 17, 4,
		62, 55, 59, 36, 53, 51, 43, 22, 45, 39, 33, 30, 24, 18, 12, 5,
		63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21, 44, 32, 23, 11,
		46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9,	13, 8,	7,  6,
	};

	return number[(one_bit * 0x03f79d71b4cb0a89ULL) >> 58];
}

/* How many bits are set in a word: sums of 2, 4, 8 bits side by side, then all. */
static inline u32 count_bits(u64 word)
{
	word -= (word >> 1) & 0x5555555555555555ULL;
	word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (word * 0x0101010101010101ULL) >> 56;
}

/* First CPU of a mask word that is not 0. */
static inline u32 first_bit(u64 word)
{
	return bit_number(word & -word);
}

/* log2 bucket of a duration: 0 and 1 ns share bucket 0, the last is open */
static inline u32 hist_bucket(u64 ns)
{
	u32 b;

	ns |= ns >> 1;
	ns |= ns >> 2;
	ns |= ns >> 4;
	ns |= ns >> 8;
	ns |= ns >> 16;
	ns |= ns >> 32;
	b = bit_number(ns - (ns >> 1));
	return b < HIST_BUCKETS ? b : HIST_BUCKETS - 1;
}

/* ------------------------------------------------------ vruntime and slices */

/*
 * Real to virtual time: delta x 1024 / w. Fits: 2^10 x 2^53 ns (104 days).
 * kernel/sched/fair.c calc_delta_fair().
 */
static inline u64 calc_delta_fair(u64 delta, u32 weight)
{
	return weight == NICE_0_WEIGHT ? delta : delta * NICE_0_WEIGHT / (weight ? weight : 1);
}

/*
 * Period in which each of @nr tasks runs once; beyond latency / min_granularity
 * tasks it grows, so that no slice falls below min_granularity.
 * 2.6.32 __sched_period().
 */
static inline u64 sched_period(const struct tunables *tun, u32 nr)
{
	u64 stretched = tun->min_granularity_ns * nr;

	return stretched > tun->sched_latency_ns ? stretched : tun->sched_latency_ns;
}

/*
 * Slice of a task of weight @w where @nr tasks weigh @total, itself included:
 * period x w / total, and never below min_granularity (6.1 sched_slice() with
 * BASE_SLICE). Fits: period < 2^41 at 2,000 tasks of 1 s, w < 2^17.
 */
static inline u64 sched_slice(const struct tunables *tun, u32 nr, u32 w, u64 total)
{
	u64 period = sched_period(tun, nr);
	u64 slice = total > w ? period * w / total : period;

	return slice > tun->min_granularity_ns ? slice : tun->min_granularity_ns;
}

/*
 * How far behind min_vruntime a sleeper may be placed: the latency, half of it if
 * @gentle, as vruntime of the sleeper if @normalized (a heavy one then gets less,
 * for it needs less). 2.6.32 place_entity(). A SCHED_IDLE task gets no more than
 * min_granularity, and is never normalized: it would be thrown back by 341
 * latencies. 6.1 place_entity().
 */
static inline u64 sleeper_credit(const struct tunables *tun, u32 weight, bool fair, bool gentle,
				 bool normalized)
{
	bool idle_policy = weight == WEIGHT_IDLEPRIO;
	u64 credit = idle_policy ? tun->min_granularity_ns : tun->sched_latency_ns;

	if (!fair)
		return 0;
	if (normalized && !idle_policy)
		credit = calc_delta_fair(credit, weight);
	return gentle ? credit / 2 : credit;
}

/* How far ahead of min_vruntime a task may be; see DEBT_MAX_NS. */
static inline u64 debt_limit(u64 latency, u32 weight)
{
	u64 debt = calc_delta_fair(DEBT_LATENCIES * latency, weight);

	return debt < DEBT_MAX_NS ? debt : DEBT_MAX_NS;
}

/*
 * vruntime of a new task: its parent's, but at least one (virtual) slice after
 * min_vruntime with START_DEBIT. 2.6.32 task_new_fair(), place_entity().
 */
static inline u64 place_new(u64 min_v, u64 parent_v, u64 vslice)
{
	return time_max(parent_v, min_v + vslice);
}

/* Carry lag, not absolute vruntime, from one CPU's clock to another's. */
static inline u64 rebase(u64 v, u64 min_from, u64 min_to)
{
	return v - min_from + min_to;
}

/* Lowest and highest vruntime a task may enter a queue with. */
static inline u64 clamp_credit(u64 v, u64 min_v, u64 credit)
{
	return time_max(v, min_v - credit);
}

static inline u64 clamp_debt(u64 v, u64 min_v, u64 debt)
{
	return time_min(v, min_v + debt);
}

/* ------------------------------------------------------------- preemption */

/*
 * wakeup_granularity in virtual time of the task whose weight counts: with ASYM_GRAN
 * the wakee's, so that a light one needs a larger lead and preempts less, else the
 * running task's. 2.6.32 wakeup_gran(), 6.1 (always the wakee's).
 */
static inline u64 wakeup_gran(u64 granularity, u32 weight)
{
	return calc_delta_fair(granularity, weight);
}

/*
 * ADAPTIVE_GRAN: what is left of twice the time after which the wakee will wake
 * somebody itself, if each of @nr has a turn before; at most wakeup_granularity.
 * A task that wakes others often preempts easily. 2.6.32 adaptive_gran().
 */
static inline u64 adaptive_gran(u64 granularity, u64 avg_wakeup, u32 nr, u64 ran)
{
	u64 expected = 2 * avg_wakeup * nr;
	u64 gran = ran < expected ? expected - ran : 0;

	return gran < granularity ? gran : granularity;
}

/*
 * Do buddies matter? Only where at least latency / min_granularity tasks, rounded up,
 * share a CPU. 2.6.32 check_preempt_wakeup(), sched_nr_latency.
 */
static inline bool buddy_scale(const struct tunables *tun, u32 nr)
{
	return nr * tun->min_granularity_ns >= tun->sched_latency_ns;
}

/*
 * 1: the wakee leads by more than @gran and preempts; 0: it leads, but not by
 * enough; -1: it does not lead. 2.6.32 wakeup_preempt_entity().
 */
static inline s32 wakeup_preempt_entity(u64 curr_v, u64 wakee_v, u64 gran)
{
	s64 vdiff = (s64)(curr_v - wakee_v);

	if (vdiff <= 0)
		return -1;
	return vdiff > (s64)gran ? 1 : 0;
}

/* -------------------------------------------------------------- balancing */

/*
 * Moving average of weight 1/8, as the kernel's update_avg(). A sample far
 * above moves it by no more than the caller's own cap.
 */
static inline u64 update_avg(u64 avg, u64 sample)
{
	return sample >= avg ? avg + (sample - avg) / 8 : avg - (avg - sample) / 8;
}

/*
 * Average idle time: one long idle period sets it to twice the migration cost
 * at once, short ones pull it down by 1/8. 2.6.32 ttwu_activate().
 */
static inline u64 update_avg_idle(u64 avg, u64 idle, u64 migration_cost)
{
	u64 max = 2 * migration_cost;

	return idle > max ? max : update_avg(avg < max ? avg : max, idle);
}

/*
 * wake_affine by weight: should the wakee (@w) go to the waker's CPU rather than
 * to its previous one? Only if that CPU with the wakee carries less than the
 * previous one without it, the latter raised by half of imbalance_pct's excess
 * (@pct 100: not raised). 7.3 wake_affine_weight() with equal capacities; loads
 * are of now and do not hold the wakee, so its share is not taken off the previous
 * CPU's.
 */
static inline bool wake_affine_weight(u64 this_load, u64 prev_load, u32 w, u32 pct)
{
	return (this_load + w) * 100 < prev_load * (100 + (pct - 100) / 2);
}

/* Whom a task woke last, and how often that was another one than before. */
struct wakees {
	u64 decay_at; /* clock of the next halving */
	u32 last;     /* pid */
	u32 flips;
};

/* Count a wakeup; halve the flips once a second. 7.3 record_wakee(). */
static inline void record_wakee(struct wakees *wakees, u32 pid, u64 now)
{
	if (!time_is_before(now, wakees->decay_at)) {
		wakees->flips /= 2;
		wakees->decay_at = now + NSEC_PER_SEC;
	}
	if (wakees->last != pid) {
		wakees->last = pid;
		wakees->flips++;
	}
}

/*
 * Is the relation of waker and wakee wide: one wakes many, and those many are busy
 * wakers themselves, so that one LLC of @cpus would not hold them? 7.3 wake_wide().
 */
static inline bool wake_is_wide(u32 waker_flips, u32 wakee_flips, u32 cpus)
{
	u32 master = waker_flips > wakee_flips ? waker_flips : wakee_flips;
	u32 slave = waker_flips > wakee_flips ? wakee_flips : waker_flips;

	return slave >= cpus && master >= (u64)slave * cpus;
}

/*
 * SIS_UTIL: how many of an LLC's @cpus to look at while @busy of them are: y of
 * 1024 shares, y = 1024 - x^2 pct^2 / (10000 x 1024), x = 1024 busy / cpus. At pct
 * 117 that is 0 from 85.5 % on. 7.3 update_idle_cpu_scan(); x there is a decaying
 * average of utilization, here what is busy at this moment.
 */
static inline u32 sis_util_scan(u32 cpus, u32 busy, u32 pct)
{
	u64 x = busy * 1024ULL / (cpus ? cpus : 1);
	u64 off = x * x * pct * pct / (10000ULL * 1024);

	return off < 1024 ? cpus * (1024 - off) / 1024 : 0;
}

/*
 * Is a task's data still in the cache of where it ran @since ns ago?
 * 2.6.32 task_hot().
 */
static inline bool task_is_hot(u64 since, u64 migration_cost)
{
	return since < migration_cost;
}

/*
 * Should a CPU that carries @mine pull one of @nr tasks that weigh @theirs
 * together? Only if theirs exceeds mine by imbalance_pct, and if an average
 * task's move makes the difference smaller, not merely turns it round.
 */
static inline bool load_imbalanced(u64 mine, u64 theirs, u32 nr, u32 imbalance_pct)
{
	u64 task = theirs / (nr ? nr : 1);

	return theirs * 100 > mine * imbalance_pct && theirs > mine + task;
}

#endif
