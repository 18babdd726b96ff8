/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The machine: which CPU belongs to which core, LLC and node, and which LLCs
 * are near. Written by the loader from sysfs before load (topology.rs), constant
 * after: a CPU that comes or goes ends the scheduler with a request to restart.
 *
 * A set of CPUs is an array of 64-bit words in the numbering of the kernel, so
 * that "idle, in this LLC, allowed" is an AND of three words and the first hit
 * one bit search, whatever the size of the LLC. Machines of up to 64 CPUs use
 * one word. Where this is wrong: it knows nothing of CPUs of unequal capacity.
 */
#ifndef __TOPO_BPF_H
#define __TOPO_BPF_H

#include "policy.h"

const volatile u32 nr_cpus = 1;	 /* highest possible CPU number + 1 */
const volatile u32 nr_words = 1; /* words of a mask that are in use */
const volatile u32 nr_llcs = 1;

const volatile u16 cpu_llc[MAX_CPUS];
const volatile u16 cpu_node[MAX_CPUS];
const volatile u16 cpu_core[MAX_CPUS];	   /* first CPU of the core */
const volatile u16 cpu_smt_next[MAX_CPUS]; /* ring of a core's hardware threads */

/* The CPUs of each LLC, and behind those of each cluster. */
const volatile u64 span[2 * MAX_LLCS][MAX_WORDS];
/*
 * A cluster is a group of cores in an LLC that share a cache below it: number of its
 * span, 0 if there is none.
 */
const volatile u16 cpu_cluster[MAX_CPUS];
const volatile u8 has_clusters;
const volatile u16 llc_cpus[MAX_LLCS]; /* how many are online */
/*
 * The LLCs as seen from each LLC, nearest first: itself, then the rest of its
 * node, then other nodes by distance. llc_order_node is where the own node ends.
 */
const volatile u16 llc_order[MAX_LLCS][MAX_LLCS];
const volatile u16 llc_order_node[MAX_LLCS];

/* Masking an index costs one instruction and satisfies the verifier. */
static __always_inline u32 llc_of(s32 cpu)
{
	return cpu_llc[cpu & (MAX_CPUS - 1)] & (MAX_LLCS - 1);
}

static __always_inline u32 node_of(s32 cpu)
{
	return cpu_node[cpu & (MAX_CPUS - 1)];
}

static __always_inline s32 smt_next(s32 cpu)
{
	return cpu_smt_next[cpu & (MAX_CPUS - 1)] & (MAX_CPUS - 1);
}

static __always_inline bool shares_llc(s32 a, s32 b)
{
	return llc_of(a) == llc_of(b);
}

static __always_inline bool shares_core(s32 a, s32 b)
{
	return cpu_core[a & (MAX_CPUS - 1)] == cpu_core[b & (MAX_CPUS - 1)];
}

static __always_inline u32 llc_size(u32 llc)
{
	return llc_cpus[llc & (MAX_LLCS - 1)];
}

/* Word @w of the CPUs of an LLC, or of a cluster. */
static __always_inline u64 llc_word(u32 llc, u32 w)
{
	return span[llc & (2 * MAX_LLCS - 1)][w & (MAX_WORDS - 1)];
}

/* The span of a CPU's cluster, or 0. */
static __always_inline u32 cluster_of(s32 cpu)
{
	return has_clusters ? cpu_cluster[cpu & (MAX_CPUS - 1)] : 0;
}

/* Only CPUs that are online are in the span of an LLC. */
static __always_inline bool is_online(s32 cpu)
{
	return llc_word(llc_of(cpu), cpu / 64) & (1ULL << (cpu & 63));
}

/* The @i-th nearest LLC as seen from @llc. */
static __always_inline u32 llc_at(u32 llc, u32 i)
{
	barrier_var(i); /* or clang proves away the mask */
	return llc_order[llc & (MAX_LLCS - 1)][i & (MAX_LLCS - 1)];
}

/* LLCs of the node of @llc: how many entries of its order they take. */
static __always_inline u32 llcs_of_node(u32 llc)
{
	return llc_order_node[llc & (MAX_LLCS - 1)];
}

/* The part of the order seen from @llc that makes up a level above SMT. */
static __always_inline u32 level_begin(u32 llc, u32 level)
{
	return level == LEVEL_LLC ? 0 : level == LEVEL_NODE ? 1 : llcs_of_node(llc);
}

static __always_inline u32 level_end(u32 llc, u32 level)
{
	return level == LEVEL_LLC ? 1 : level == LEVEL_NODE ? llcs_of_node(llc) : nr_llcs;
}

/* Level of the @i-th nearest LLC as seen from @llc. */
static __always_inline u32 level_at(u32 llc, u32 i)
{
	return i == 0 ? LEVEL_LLC : i < llcs_of_node(llc) ? LEVEL_NODE : LEVEL_SYSTEM;
}

/* The innermost level that holds both CPUs. */
static __always_inline u32 level_between(s32 a, s32 b)
{
	if (shares_core(a, b))
		return LEVEL_SMT;
	if (shares_llc(a, b))
		return LEVEL_LLC;
	return node_of(a) == node_of(b) ? LEVEL_NODE : LEVEL_SYSTEM;
}

/*
 * Word @w of a kernel mask. The first is a plain load. The others have a variable
 * offset, which the verifier allows to no pointer into a kernel object: the
 * address is taken as a number first, by a copy, and then what it points to.
 */
static __always_inline u64 mask_word(const struct cpumask *mask, u32 w)
{
	u64 address = 0, word = 0;

	if (!w) {
		word = mask->bits[0];
		barrier_var(word); /* or clang makes one load of two kinds of pointer */
		return word;
	}
	bpf_probe_read_kernel(&address, sizeof(address), &mask);
	bpf_probe_read_kernel(&word, sizeof(word), (void *)(address + w * sizeof(word)));
	return word;
}

#endif
