/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What C and Rust both know. Every feature, tunable, domain flag, counter and
 * histogram is one row of one list, in rules.h or counts.h: C makes its enums,
 * masks and structs of it, Rust reads names, defaults, bounds and help from the
 * same row (the *_doc texts at the end, which bindgen evaluates). Nothing else may
 * repeat a row: the help, the man page, `scx_kin features` and the tests come from
 * there.
 *
 * To add one: add the row, and the line of BPF that reads or bumps it.
 * tests/layout.rs fails for a row that nothing uses.
 */
#ifndef __INTF_H
#define __INTF_H

#ifndef __VMLINUX_H__
#include <stdbool.h>
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
#endif

#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_SEC 1000000000ULL

enum limits {
	MAX_CPUS = 1024,	   /* a power of two: an index is masked, not checked */
	MAX_WORDS = MAX_CPUS / 64, /* 64-bit words of a CPU mask */
	MAX_LLCS = 256,		   /* a power of two, for the same reason */
	HIST_BUCKETS = 40,	   /* log2 of ns: the last one starts at 9 minutes */
};

#include "rules.h"
#include "counts.h"

struct tunables {
#define X(name, dfl, min, max, unit, from, help) u64 name;
	TUNABLES(X)
#undef X
};

enum tunable {
#define X(name, dfl, min, max, unit, from, help) TUN_##name,
	TUNABLES(X)
#undef X
		NR_TUNABLES
};

/*
 * What a user may change while the scheduler runs. The loader fills the copy
 * that is not in use and then flips live_slot, so that no reader ever sees half
 * of a change (state.bpf.h).
 */
struct settings {
	u64 epoch;	   /* counts the changes; 0 is what the scheduler started with */
	u64 features;	   /* bit numbers: enum feature */
	u64 sd[NR_LEVELS]; /* bit numbers: enum domain_flag */
	struct tunables tun;
};

/* Rows: features by number, then level * NR_DOMAIN_FLAGS + flag. */
enum whatif_row {
	WHATIF_FLAGS = NR_FEATURES,
	NR_WHATIF_ROWS = NR_FEATURES + NR_LEVELS * NR_DOMAIN_FLAGS
};

/*
 * One task or process that is watched (`scx_kin explain --pid`): what is counted
 * about it alone, by any CPU, from the moment the loader names it.
 */
struct watch {
	u64 cpu_runs[MAX_CPUS];	   /* times it came onto each CPU */
	u64 cpu_ns[MAX_CPUS];	   /* how long it ran there */
	u64 counters[NR_COUNTERS]; /* decisions about it; the rows that stand for some */
	u64 hists[NR_HISTS][HIST_BUCKETS];
	u64 slept;     /* runs that ended because it went to sleep ... */
	u64 expired;   /* ... because its slice was over ... */
	u64 preempted; /* ... because a wakee preempted it ... */
	u64 outranked; /* ... because a higher class took the CPU */
};

/* ------------------------------------------------- the lists as text, for Rust */

/*
 * Values cross as the row spells them ("24 * NSEC_PER_MSEC", "ON_LLC | ON_NODE");
 * tables.rs evaluates these two forms, and tests/policy.rs compares what it
 * makes of every row with what the C compiler makes of it.
 */
static const char level_doc[] =
#define X(name, help) #name "\t" help "\n"
	LEVELS(X)
#undef X
	;
static const char domain_flag_doc[] =
#define X(name, levels, dfl, help) #name "\t" #levels "\t" #dfl "\t" help "\n"
	DOMAIN_FLAGS(X)
#undef X
	;
static const char feature_doc[] =
#define X(name, dfl, from, help) #name "\t" #dfl "\t" from "\t" help "\n"
	FEATURES(X)
#undef X
	;
static const char tunable_doc[] =
#define X(name, dfl, min, max, unit, from, help) \
	#name "\t" #dfl "\t" #min "\t" #max "\t" unit "\t" from "\t" help "\n"
	TUNABLES(X)
#undef X
	;
static const char counter_doc[] =
#define X(name, needs, help) #name "\t" needs "\t" help "\n"
	COUNTERS(X)
#undef X
	;
static const char whatif_doc[] =
#define X(name, help) #name "\t" help "\n"
	WHATIFS(X)
#undef X
	;
static const char hist_doc[] =
#define X(name, unit, help) #name "\t" unit "\t" help "\n"
	HISTS(X)
#undef X
	;
#endif
