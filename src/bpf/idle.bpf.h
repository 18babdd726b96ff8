/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finding idle CPUs. The kernel keeps the masks of idle CPUs and of wholly idle
 * cores; a search is an AND of mask words, not a walk over CPUs, so it needs no
 * budget as the kernel's own scan does.
 *
 * Reading a mask is a hint. A CPU is claimed by test-and-clear, which only one
 * of several searchers gets; on a lost race the search goes on.
 */
#ifndef __IDLE_BPF_H
#define __IDLE_BPF_H

#include "stats.bpf.h"
#include "topo.bpf.h"

#define NO_CPU (-1)

enum {
	CLAIM_TRIES = 4, /* lost races in one mask word before giving it up */
	MAX_SMT = 8,	 /* hardware threads of a core looked at; POWER has 8 */
};

/* A search through one of the two masks, and what it cost. */
struct search {
	const struct cpumask *idle;
	u32 words; /* mask words read so far */
	bool dry;  /* only look, claim nothing: what-if */
};

enum idle_mask {
	IDLE_CPUS,
	IDLE_CORES, /* CPUs whose whole core is idle */
};

static __always_inline void search_begin(struct search *search, enum idle_mask mask, bool dry)
{
	search->idle = mask == IDLE_CORES ? scx_bpf_get_idle_smtmask() : scx_bpf_get_idle_cpumask();
	search->words = 0;
	search->dry = dry;
}

static __always_inline void search_end(struct search *search)
{
	scx_bpf_put_idle_cpumask(search->idle);
	if (!search->dry)
		count_add(CNT_scan_words, search->words);
}

/*
 * Functions without `static` are global ones to BPF: the verifier goes through them
 * once, not once for each state of each caller, which would be a matter of minutes.
 */
__noinline bool looks_idle(s32 cpu)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool is_idle = bpf_cpumask_test_cpu(cpu, idle);

	scx_bpf_put_idle_cpumask(idle);
	return is_idle;
}

/* Is a CPU idle, and if so, ours? Only looks if @dry. */
static __always_inline bool claim_cpu(s32 cpu, bool dry)
{
	return dry ? looks_idle(cpu) : scx_bpf_test_and_clear_cpu_idle(cpu);
}

static __always_inline bool is_allowed(const struct task_struct *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

__noinline s32 search_allowed(const struct task_struct *p __arg_trusted, s32 home)
{
	u32 llc = llc_of(home);
	u32 i, w;

	bpf_for(i, 0, nr_llcs) {
		bpf_for(w, 0, nr_words) {
			u64 word = llc_word(llc_at(llc, i), w);

			if (word)
				word &= mask_word(p->cpus_ptr, w);
			if (word)
				return w * 64 + first_bit(word);
		}
	}
	return home;
}

/* The nearest CPU that p may use at all; @home itself if it may. */
static __always_inline s32 nearest_allowed(const struct task_struct *p, s32 home)
{
	return is_allowed(p, home) ? home : search_allowed(p, home);
}

/* Claim the first CPU of @word (CPUs @w * 64 ...) that is still idle. */
static __always_inline s32 claim_from(u64 word, u32 w, bool dry)
{
	u32 i;

	bpf_for(i, 0, CLAIM_TRIES) {
		s32 cpu;

		if (!word)
			break;
		cpu = w * 64 + first_bit(word);
		if (dry || scx_bpf_test_and_clear_cpu_idle(cpu))
			return cpu;
		word &= word - 1;
	}
	return NO_CPU;
}

/* Word @w of the idle CPUs of @llc that p may use; any if p is NULL. */
static __always_inline u64 idle_word(struct search *search, const struct task_struct *p, u32 llc,
				     u32 w)
{
	u64 word = llc_word(llc, w);

	if (!word)
		return 0;
	search->words++;
	word &= mask_word(search->idle, w);
	if (word && p)
		word &= mask_word(p->cpus_ptr, w);
	return word;
}

/* First idle CPU of an LLC, in order, that p may use. */
static __always_inline s32 claim_in_llc(struct search *search, const struct task_struct *p, u32 llc)
{
	u32 w;

	bpf_for(w, 0, nr_words) {
		u64 word = idle_word(search, p, llc, w);
		s32 cpu = word ? claim_from(word, w, search->dry) : NO_CPU;

		if (cpu != NO_CPU)
			return cpu;
	}
	return NO_CPU;
}

/* First idle CPU of a level around @llc. */
static __always_inline s32 claim_in_level(struct search *search, const struct task_struct *p,
					  u32 llc, u32 level)
{
	u32 i;

	bpf_for(i, level_begin(llc, level), level_end(llc, level)) {
		s32 cpu = claim_in_llc(search, p, llc_at(llc, i));

		if (cpu != NO_CPU)
			return cpu;
	}
	return NO_CPU;
}

/* The same, each a search of its own. */
__noinline s32 claim_idle_in_llc(const struct task_struct *p __arg_trusted, u32 llc,
				 enum idle_mask mask, bool dry)
{
	struct search search;
	s32 cpu;

	search_begin(&search, mask, dry);
	cpu = claim_in_llc(&search, p, llc);
	search_end(&search);
	return cpu;
}

__noinline s32 claim_idle_in_level(const struct task_struct *p __arg_trusted, u32 llc, u32 level,
				   bool dry)
{
	struct search search;
	s32 cpu;

	search_begin(&search, IDLE_CPUS, dry);
	cpu = claim_in_level(&search, p, llc, level);
	search_end(&search);
	return cpu;
}

/* The first idle one of the other hardware threads of a core. */
__noinline s32 claim_idle_sibling(const struct task_struct *p __arg_trusted, s32 home, bool dry)
{
	s32 cpu = home;
	u32 i;

	bpf_for(i, 0, MAX_SMT) {
		cpu = smt_next(cpu);
		if (cpu == home)
			break;
		if (is_allowed(p, cpu) && claim_cpu(cpu, dry))
			return cpu;
	}
	return NO_CPU;
}

#endif
