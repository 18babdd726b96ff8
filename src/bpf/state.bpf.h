/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State: the live settings, and one context for each CPU, LLC and task.
 *
 * Who writes what: `live` and `live_slot` the loader alone; a task's context
 * only ops called for that task, which the kernel serializes (and the tracepoint of
 * its exec(), a flag); a CPU's context
 * ops that run on that CPU, but for the fields marked "any CPU", which take
 * atomics or tolerate a lost hint.
 */
#ifndef __STATE_BPF_H
#define __STATE_BPF_H

#include "idle.bpf.h"
#include "stats.bpf.h"
#include "topo.bpf.h"

/*
 * Two copies and an index, after the third of the posts this project started
 * from: work in private, publish by one store. An op takes the pointer once and
 * sees one whole setting to its end; the loader never changes the copy in use,
 * and leaves the other alone until no op can still hold it (sched.rs). It writes
 * the defaults too: they stand in intf.h alone.
 * A test of a feature is one load and one AND: in .data no dearer than in
 * .rodata, measured.
 *
 * What settings cost: instructions of a modelled 8-CPU machine for each wakeup with
 * all that belongs to it (system calls, switch, the ops), a pair over pipes:
 *   defaults                       8,105, of which what-if is 188
 *   every rule on but the one that excludes IDLE_SIBLING   7,324
 *   preset off                     9,418; without what-if 10,358
 * Less may cost more: what a rule decides outweighs what asking it costs. With all
 * off each of 1,600 wakeups goes its own way; with WAKEUP_SYNC on the wakee's switch
 * needs no dispatch.
 */
struct settings live[2] SEC(".data");
volatile u32 live_slot SEC(".data") = 0;

static __always_inline const struct settings *settings(void)
{
	return &live[live_slot & 1];
}

#define feat(set, name) ((set)->features & (1ULL << FEAT_##name))
#define sd_flag(set, level, flag) (sd_flags(set, level) & (1ULL << FLAG_##flag))

/*
 * All flags of a level. Masked, and hidden from clang, which would prove the mask
 * away and leave a verifier that did not follow the proof.
 */
static __always_inline u64 sd_flags(const struct settings *set, u32 level)
{
	_Static_assert(NR_LEVELS == 4, "the mask below");
	barrier_var(level);
	return set->sd[level & (NR_LEVELS - 1)];
}

/* Is one of several switches on? For what is kept while any of them asks for it. */
#define FEAT(name) (1ULL << FEAT_##name)
#define feat_any(set, mask) ((set)->features & (mask))

/* include/uapi/linux/sched.h; macros are not in BTF */
#define SCHED_BATCH 3
#define SCHED_IDLE 5

static __always_inline bool is_idle_policy(const struct task_struct *p)
{
	return p->policy == SCHED_IDLE;
}

static __always_inline bool is_percpu_kthread(const struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

/*
 * Does this op run in a hardware interrupt? (Wakeups are queued on the CPU that
 * wakes.) Only x86 is asked: there the count is a per-CPU variable, of which the
 * kernel's BTF knows nothing; so its address is taken from kallsyms, and where
 * there is none the answer is no.
 */
extern const void __preempt_count __ksym __weak;
extern const void __per_cpu_offset __ksym __weak;

/* include/linux/preempt.h; the last one is "serving a softirq" */
#define HARDIRQ_MASK 0x0f0000
#define NMI_MASK 0xf00000
#define SOFTIRQ_OFFSET 0x000100

/* The preempt count of this CPU; @unknown where it cannot be read. */
static __always_inline u32 preempt_count_or(u32 unknown)
{
	u64 counts = (u64)&__preempt_count, offsets = (u64)&__per_cpu_offset;
	u64 offset = 0;
	u32 in = 0;

	/* clang takes the address of a variable for never 0, even of a weak one. */
	barrier_var(counts);
	barrier_var(offsets);
	if (!counts || !offsets)
		return unknown;
	offsets += sizeof(offset) * bpf_get_smp_processor_id();
	bpf_probe_read_kernel(&offset, sizeof(offset), (void *)offsets);
	bpf_probe_read_kernel(&in, sizeof(in), (void *)(counts + offset));
	return in;
}

/* False where it cannot be told. */
static __always_inline bool in_hardirq(void)
{
	return preempt_count_or(0) & HARDIRQ_MASK;
}

/* False where it cannot be told, too. */
static __always_inline bool in_task(void)
{
	return !(preempt_count_or(HARDIRQ_MASK) & (HARDIRQ_MASK | NMI_MASK | SOFTIRQ_OFFSET));
}

/*
 * What is known of a CPU; the first cache line is what wakers read. The curr_*
 * fields hold between running() and stopping(): a CPU that runs a task of
 * another class, or none, has curr_start 0 and must not be compared with.
 */
struct cpu_ctx {
	u64 min_vruntime;  /* monotonic; any CPU may read */
	u64 curr_vruntime; /* of the running task when it started */
	u64 curr_start;	   /* clock at that moment; 0: no task of ours runs */
	u64 queued_weight; /* any CPU: weight of the tasks in its queue */
	u32 nr_queued;	   /* any CPU: how many they are */
	u32 curr_weight;
	u32 curr_idle_policy; /* the running task is SCHED_IDLE */
	u32 offered_by;	      /* any CPU, a hint: CPU + 1 that offers its waiters */

	u64 curr_sum_exec; /* p->se.sum_exec_runtime when it started */
	u64 curr_overlap;  /* its avg_overlap */
	u64 curr_running;  /* its avg_running */
	u64 curr_wakeup;   /* its avg_wakeup, brought up at each wakeup */
	struct wakees curr_wakees;
	u64 curr_last_wake; /* clock of the last time it woke another; 0: not yet */
	u64 idle_since;	    /* clock when dispatch found nothing; 0: busy */
	u64 avg_idle;	    /* ns, as rq->avg_idle */
	u64 next_balance;   /* clock of the next periodic look */
	u32 nr_looks;	    /* periodic looks so far: which level is due */
	u32 pull_from;	    /* CPU + 1 to take a task from at the next dispatch */
	u32 from_queue;	    /* dispatch took the first of the own queue */
	u32 curr_yielded;   /* the running task called sched_yield() */
	u32 curr_preempted; /* any CPU, a hint: a wakee preempts it */
	u32 curr_pid;
	u32 next_buddy;	     /* pid that NEXT_BUDDY would run next; 0: none */
	u32 last_buddy;	     /* the same of LAST_BUDDY */
	u32 whatif_turns[8]; /* decisions so far, by kind: whatif.bpf.h */
} __attribute__((aligned(128)));

struct cpu_ctx cpu_ctxs[MAX_CPUS];

static __always_inline struct cpu_ctx *cpu_ctx(s32 cpu)
{
	return &cpu_ctxs[cpu & (MAX_CPUS - 1)];
}

/* How many of our tasks run and wait on a CPU. */
static __always_inline u32 queue_running(const struct cpu_ctx *cpuc)
{
	return cpuc->nr_queued + (cpuc->curr_start ? 1 : 0);
}

/* Weight of what runs and waits on a CPU: of this moment, not an average. */
static __always_inline u64 queue_load(const struct cpu_ctx *cpuc)
{
	return cpuc->queued_weight + (cpuc->curr_start ? cpuc->curr_weight : 0);
}

/*
 * vruntime of the task that runs on a CPU, or of the last one. The fields may
 * change while another CPU reads them; the value is then off by one run, which
 * the clamps at every insertion bound.
 */
static __always_inline u64 curr_vruntime(const struct cpu_ctx *cpuc, u64 now)
{
	u64 start = cpuc->curr_start;
	u64 ran = start && time_is_before(start, now) ? now - start : 0;

	return cpuc->curr_vruntime + calc_delta_fair(ran, cpuc->curr_weight);
}

/*
 * CPUs with a queue that is not empty, by LLC: what a CPU that goes idle looks
 * at before it asks the kernel anything. Own cache lines for each LLC, since
 * its CPUs write here when a queue fills or empties.
 */
struct llc_ctx {
	u64 queued[MAX_WORDS];
	u64 sched_idle[MAX_WORDS]; /* CPUs that run a SCHED_IDLE task */
} __attribute__((aligned(64)));

struct llc_ctx llc_ctxs[MAX_LLCS];

static __always_inline struct llc_ctx *llc_ctx(u32 llc)
{
	return &llc_ctxs[llc & (MAX_LLCS - 1)];
}

struct task_ctx {
	u64 vruntime; /* in the clock of vcpu, i.e. against its min_vruntime */
	s32 vcpu;
	s32 queued_on; /* CPU whose queue holds it, or NO_CPU */
	s32 last_cpu;  /* where it ran last, or NO_CPU */
	u32 weight;
	u32 queued_weight; /* what it was counted with when queued */
	u32 decision;	   /* counter of its last way out of select_cpu, for the dump */
	u64 woken_at;	   /* clock of a wakeup that has not run yet; 0: none */
	/* Moving averages in ns, each kept only while a switch that asks for it is on. */
	u64 avg_overlap; /* how long it runs on after waking another */
	u64 avg_wakeup;	 /* how long it runs between two wakeups of others */
	u64 avg_running; /* how long it runs at a time */
	u64 stopped_at;	 /* clock when it last left a CPU, under CACHE_HOT */
	struct wakees wakees;
	s32 recent_cpu;	 /* the previous CPU before the previous one, or NO_CPU */
	bool is_new;	 /* forked and not placed yet */
	bool woken_sync; /* by a waker that is believed to sleep soon */
	bool exec;	 /* called exec() and is to be placed anew */
	bool sync_here;	 /* select_cpu left it to its waker's CPU */
	bool outranked;	 /* a higher class took its CPU in the middle of a slice */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

static __always_inline struct task_ctx *try_lookup_task(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, 0, 0);
}

/* Every task got its context in init_task, so absence is an error. */
static __always_inline struct task_ctx *lookup_task(struct task_struct *p)
{
	struct task_ctx *taskc = try_lookup_task(p);

	if (!taskc)
		scx_bpf_error("no context for task %s[%d]", p->comm, p->pid);
	return taskc;
}

#endif
