/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The idle CPU near a target: select_idle_sibling of today, step by step, each a
 * switch of its own.
 *
 * 1. The target, if idle; the previous CPU, if idle and in the target's LLC.
 * 2. KTHREAD_STACK: a per-CPU kernel thread wakes what it does work for, on their
 *    common CPU where nobody waits: there, for the thread is about to sleep.
 * 3. RECENT_CPU: the CPU before the previous one.
 * 4. SIS_UTIL: the busier the LLC, the fewer CPUs steps 5 to 7 may look at.
 * 5. IDLE_CORE: the first CPU of a wholly idle core.
 * 6. IDLE_SMT: the sibling thread of the previous CPU.
 * 7. The first idle CPU of the LLC in order.
 *    IDLE_CLUSTER, where an LLC has clusters: 5 and 7 in the target's first.
 * 8. SCHED_IDLE_CPU: one that runs nothing but a SCHED_IDLE task.
 *
 * Where it is wrong: the kernel starts its scan behind the target and goes round,
 * this one starts at the first CPU of the LLC unless SIS_UTIL limits it.
 */
#ifndef __SIBLING_BPF_H
#define __SIBLING_BPF_H

#include "affine.bpf.h"

/* Step 2. What interrupts and softirqs wake, they do not wake in the thread's name. */
static __always_inline bool kthread_stacks(const struct settings *set, const struct wakeup *wake,
					   const struct cpu_ctx *wakerc)
{
	const struct task_struct *waker;

	if (!feat(set, KTHREAD_STACK) || wake->this != wake->prev || wakerc->nr_queued ||
	    !wakerc->curr_start)
		return false;
	waker = bpf_get_current_task_btf();
	return is_percpu_kthread(waker) && in_task();
}

/* Step 3. */
static __always_inline bool choose_recent(const struct settings *set, const struct task_struct *p,
					  const struct wakeup *wake, s32 target,
					  struct choice *choice)
{
	s32 recent = wake->recent;

	return feat(set, RECENT_CPU) && recent != NO_CPU && recent != wake->prev &&
	       recent != target && shares_llc(recent, target) && is_allowed(p, recent) &&
	       choose_idle(choice, wake, recent, CNT_select_recent);
}

/* Step 4: how many CPUs to look at; all of the LLC without the switch. */
__noinline u32 scan_limit(const struct settings *set __arg_nonnull, u32 llc)
{
	u32 size = llc_size(llc), idle = 0;
	struct search search;
	u32 w;

	if (!feat(set, SIS_UTIL))
		return size;
	search_begin(&search, IDLE_CPUS, true);
	bpf_for(w, 0, nr_words)
		idle += count_bits(idle_word(&search, NULL, llc, w));
	search_end(&search);
	return sis_util_scan(size, size - (idle < size ? idle : size), set->tun.imbalance_pct);
}

/*
 * Step 7 limited: the first idle one of @limit CPUs behind the target, round the
 * LLC. Two rounds over the words: behind the target, then up to it. A lost race
 * gives up the rest of its word.
 */
__noinline s32 claim_limited(const struct task_struct *p __arg_trusted, s32 target, u32 limit,
			     bool dry)
{
	u32 llc = llc_of(target), at = target / 64;
	u64 behind = ~0ULL << 1 << (target & 63);
	struct search search;
	s32 found = NO_CPU;
	u32 i;

	search_begin(&search, IDLE_CPUS, dry);
	bpf_for(i, 0, 2 * nr_words) {
		bool first = i < nr_words;
		u32 w = first ? i : i - nr_words;
		u64 span = llc_word(llc, w), word;
		u32 cpus;

		if (span)
			span &= mask_word(p->cpus_ptr, w);

		if (w == at)
			span &= first ? behind : ~behind;
		else if ((w < at) == first)
			continue;
		if (!span)
			continue;
		word = span & idle_word(&search, p, llc, w);
		word &= -word; /* the first idle one ... */
		cpus = count_bits(word ? span & (word | (word - 1)) : span);
		if (cpus > limit) { /* ... lies too far off */
			if (!dry)
				count(scan_limited);
			break;
		}
		limit -= cpus;
		if (word && claim_cpu(w * 64 + first_bit(word), dry)) {
			found = w * 64 + first_bit(word);
			break;
		}
	}
	search_end(&search);
	return found;
}

/* Steps 5 and 7: the first CPU of a mask, in the target's cluster, then in its LLC. */
static __always_inline bool scan_mask(const struct settings *set, const struct task_struct *p,
				      const struct wakeup *wake, s32 target, enum idle_mask mask,
				      u32 row, struct choice *choice)
{
	u32 cluster = feat(set, IDLE_CLUSTER) ? cluster_of(target) : 0;
	s32 cpu = NO_CPU;

	if (cluster)
		cpu = claim_idle_in_llc(p, cluster, mask, wake->dry);
	if (choose_found(choice, cpu, CNT_select_idle_cluster))
		return true;
	cpu = claim_idle_in_llc(p, llc_of(target), mask, wake->dry);
	return choose_found(choice, cpu, row);
}

/* Steps 4 to 7. */
static __always_inline bool scan_llc(const struct settings *set, const struct task_struct *p,
				     const struct wakeup *wake, s32 target, struct choice *choice)
{
	u32 llc = llc_of(target);
	u32 limit = scan_limit(set, llc);
	s32 cpu;

	if (!limit && !wake->dry)
		count(scan_limited);
	if (feat(set, IDLE_CORE) && limit &&
	    scan_mask(set, p, wake, target, IDLE_CORES, CNT_select_idle_core, choice))
		return true;
	if (feat(set, IDLE_SMT) && shares_llc(wake->prev, target)) {
		cpu = claim_idle_sibling(p, wake->prev, wake->dry);
		if (choose_found(choice, cpu, CNT_select_idle_smt))
			return true;
	}
	if (limit >= llc_size(llc))
		return scan_mask(set, p, wake, target, IDLE_CPUS, CNT_select_idle_sibling, choice);
	cpu = limit ? claim_limited(p, target, limit, wake->dry) : NO_CPU;
	return choose_found(choice, cpu, CNT_select_idle_sibling);
}

/*
 * Step 8: the wakee is queued there, and preempts. Taking the bit is the claim, so
 * that the next wakee goes elsewhere; it is set again when a SCHED_IDLE task runs.
 */
__noinline s32 claim_sched_idle(const struct task_struct *p __arg_trusted, s32 target, bool dry)
{
	u32 llc = llc_of(target);
	u32 w, i;

	if (is_idle_policy(p))
		return NO_CPU;
	bpf_for(w, 0, nr_words) {
		u64 *mask = &llc_ctx(llc)->sched_idle[w & (MAX_WORDS - 1)];
		u64 word = *mask;

		if (word)
			word &= mask_word(p->cpus_ptr, w);
		bpf_for(i, 0, 64) {
			u64 bit = word & -word;
			const struct cpu_ctx *cpuc;

			if (!word)
				break;
			word &= ~bit;
			cpuc = cpu_ctx(w * 64 + bit_number(bit));
			/* Unless others wait there already. */
			if (cpuc->queued_weight > (u64)cpuc->nr_queued * WEIGHT_IDLEPRIO)
				continue;
			if (!dry)
				__sync_fetch_and_and(mask, ~bit);
			return w * 64 + bit_number(bit);
		}
	}
	return NO_CPU;
}

#endif
