/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a user may set, a row each: levels, domain flags, switches, numbers. Part of
 * intf.h, which says what becomes of the rows.
 */
#ifndef __RULES_H
#define __RULES_H

/* Scheduling domain levels, from the inside out. name, help */
#define LEVELS(X)                                      \
	X(SMT, "hardware threads of one core")         \
	X(LLC, "CPUs that share the last-level cache") \
	X(NODE, "LLCs of one NUMA node")               \
	X(SYSTEM, "all CPUs, nearest nodes first")

enum level {
#define X(name, help) LEVEL_##name,
	LEVELS(X)
#undef X
		NR_LEVELS
};

#define ON_SMT (1 << LEVEL_SMT)
#define ON_LLC (1 << LEVEL_LLC)
#define ON_NODE (1 << LEVEL_NODE)
#define ON_SYSTEM (1 << LEVEL_SYSTEM)
#define ON_ALL (ON_SMT | ON_LLC | ON_NODE | ON_SYSTEM)

/*
 * Switches of a domain level. name, levels it has a meaning at, levels where
 * it is on by default, help
 */
#define DOMAIN_FLAGS(X)                                                                    \
	X(SD_WAKE_AFFINE, ON_ALL, ON_ALL,                                                  \
	  "a wakee whose previous CPU is at this level of the waker may go to the waker")  \
	X(SD_PREFER_SIBLING, ON_ALL, ON_LLC,                                               \
	  "IDLE_SHARED_CACHE scans this level of the waker's CPU for an idle CPU")         \
	X(SD_BALANCE_NEWIDLE, ON_ALL, ON_ALL,                                              \
	  "a CPU that runs out of work pulls a waiting task from this level")              \
	X(SD_BALANCE_WAKE, ON_ALL, ON_NODE,                                                \
	  "a wakeup that finds nothing idle near its target looks through this level")     \
	X(SD_BALANCE_FORK, ON_ALL, ON_ALL,                                                 \
	  "a new task may be placed in the idlest group, on the idlest CPU of this level") \
	X(SD_BALANCE_EXEC, ON_ALL, ON_ALL,                                                 \
	  "a task that calls exec() while others wait may be placed anew at this level")   \
	X(SD_LOAD_BALANCE, ON_LLC | ON_NODE | ON_SYSTEM, ON_LLC | ON_NODE | ON_SYSTEM,     \
	  "busy CPUs of this level even out the weight of their queues")

enum domain_flag {
#define X(name, levels, dfl, help) FLAG_##name,
	DOMAIN_FLAGS(X)
#undef X
		NR_DOMAIN_FLAGS
};

/* Switches. name, on by default, where the rule comes from, help */
#define FEATURES(X)                                                                               \
	/* where a wakee goes: its waker's CPU or its previous one? */                            \
	X(AFFINE_WAKEUPS, true, "2.6.32 select_task_rq_fair",                                     \
	  "consider the waker's CPU for the wakee, not only the previous one")                    \
	X(WA_IDLE, true, "7.3 wake_affine_idle",                                                  \
	  "of the two take the one that is idle, or will be after a sync wakeup")                 \
	X(WA_WEIGHT, true, "7.3 wake_affine_weight",                                              \
	  "of the two take the one that carries less weight")                                     \
	X(WA_BIAS, true, "7.3 wake_affine_weight",                                                \
	  "lean towards the waker's CPU by half of what imbalance_pct exceeds 100")               \
	X(WAKE_WIDE, false, "7.3 wake_wide",                                                      \
	  "keep a wakee off its waker if both switch partners more often than an LLC has CPUs")   \
	X(SYNC_WAKEUPS, true, "2.6.32 wake_affine",                                               \
	  "believe a waker that says it is about to sleep")                                       \
	X(SYNC_LESS, true, "2.6.32 wake_affine",                                                  \
	  "do not believe one that ran on for more than sync_overlap_ns after such wakeups")      \
	X(SYNC_STACK, true, "own measurements",                                                   \
	  "a believed sync wakeup takes its waker's CPU even if another one is idle")             \
	/* ... and is there an idle CPU near that? Two forms, of which one may be on */           \
	X(IDLE_SHARED_CACHE, false, "idle shared cache, Galbraith 2009-10-27",                    \
	  "previous CPU if idle, else the first idle one of the waker's shared cache, in order")  \
	X(IDLE_SIBLING, true, "7.3 select_idle_sibling",                                          \
	  "look for an idle CPU in the LLC of the target, by the rules that follow")              \
	X(KTHREAD_STACK, true, "7.3 select_idle_sibling",                                         \
	  "leave on its CPU what a per-CPU kernel thread wakes there while nobody waits")         \
	X(RECENT_CPU, false, "7.3 select_idle_sibling",                                           \
	  "try the CPU that the task used before its previous one")                               \
	X(IDLE_CORE, true, "7.3 select_idle_core",                                                \
	  "prefer a CPU whose whole core is idle over one with a busy sibling")                   \
	X(IDLE_CLUSTER, true, "7.3 select_idle_cpu",                                              \
	  "where an LLC has clusters, look in the target's cluster first")                        \
	X(IDLE_SMT, false, "7.3 select_idle_smt",                                                 \
	  "no core being idle, try the sibling thread of the previous CPU first")                 \
	X(SIS_UTIL, false, "7.3 update_idle_cpu_scan",                                            \
	  "look at fewer CPUs the busier the LLC is, at none from 85 % on")                       \
	X(SCHED_IDLE_CPU, true, "7.3 choose_idle_cpu",                                            \
	  "nothing being idle, take a CPU of the LLC that runs a SCHED_IDLE task only")           \
	/* may it preempt what runs there? */                                                     \
	X(WAKEUP_PREEMPTION, true, "2.6.32 check_preempt_wakeup",                                 \
	  "let a wakee preempt a task that is ahead by wakeup_granularity_ns")                    \
	X(RUN_TO_PARITY, true, "7.3 set_protect_slice, 2.6.32 check_preempt_tick",                \
	  "protect a task until it ran min_granularity_ns, but from an interrupt's wakee")        \
	X(ASYM_GRAN, true, "2.6.32 wakeup_gran",                                                  \
	  "weigh the granularity by the wakee: a light one preempts less; off: by the current")   \
	X(ADAPTIVE_GRAN, false, "2.6.32 adaptive_gran",                                           \
	  "less granularity for a wakee that often wakes others")                                 \
	X(WAKEUP_SYNC, false, "2.6.32 check_preempt_wakeup", "a sync wakeup preempts at once")    \
	X(WAKEUP_OVERLAP, false, "2.6.32 check_preempt_wakeup",                                   \
	  "preempt at once if both run on for less than migration_cost_ns after wakeups")         \
	X(WAKEUP_RUNNING, false, "2.6.32 check_preempt_wakeup",                                   \
	  "preempt at once if the wakee's runs are shorter than the running task's")              \
	X(NEXT_BUDDY, false, "2.6.32 pick_next_entity",                                           \
	  "run the last wakee next, unless another one is too far behind")                        \
	X(LAST_BUDDY, false, "2.6.32 pick_next_entity",                                           \
	  "run the preempted task next, unless another one is too far behind")                    \
	/* vruntime and slices */                                                                 \
	X(FAIR_SLEEPERS, true, "2.6.32 place_entity",                                             \
	  "credit a sleeper with up to sched_latency_ns of vruntime")                             \
	X(GENTLE_FAIR_SLEEPERS, true, "2.6.32 place_entity", "halve the credit of FAIR_SLEEPERS") \
	X(NORMALIZED_SLEEPER, false, "2.6.32 place_entity",                                       \
	  "weigh the credit: a light sleeper gets more vruntime of it, a heavy one less")         \
	X(START_DEBIT, true, "2.6.32 place_entity",                                               \
	  "make a new task wait one slice before its first run")                                  \
	X(TICK_PREEMPT, true, "2.6.32 check_preempt_tick",                                        \
	  "end a run at the tick once it exceeds the slice the queue now allows")                 \
	/* what is pulled, and when */                                                            \
	X(CACHE_HOT, false, "2.6.32 task_hot",                                                    \
	  "do not pull from another core what ran within migration_cost_ns")                      \
	X(CACHE_HOT_BUDDY, false, "2.6.32 task_hot",                                              \
	  "a busy CPU does not pull another one's next or last buddy")                            \
	X(NI_RANDOM, false, "7.3 sched_balance_newidle",                                          \
	  "new-idle pulls by today's gate, what they cost and how often they succeed; off: 2009's")

enum feature {
#define X(name, dfl, from, help) FEAT_##name,
	FEATURES(X)
#undef X
		NR_FEATURES
};

/* Numbers. name, default, min, max, unit (ns or %), where from, help */
#define TUNABLES(X)                                                                                \
	X(sched_latency_ns, 24 * NSEC_PER_MSEC, 100 * NSEC_PER_USEC, 1 * NSEC_PER_SEC, "ns",       \
	  "6.1 sysctl_sched_latency on 8 CPUs",                                                    \
	  "period in which every waiting task runs once; larger: fewer switches, longer waits")    \
	X(min_granularity_ns, 3 * NSEC_PER_MSEC, 100 * NSEC_PER_USEC, 1 * NSEC_PER_SEC, "ns",      \
	  "6.1 sysctl_sched_min_granularity on 8 CPUs",                                            \
	  "shortest slice; many waiting tasks stretch the period instead")                         \
	X(wakeup_granularity_ns, 4 * NSEC_PER_MSEC, 0, 1 * NSEC_PER_SEC, "ns",                     \
	  "6.1 sysctl_sched_wakeup_granularity on 8 CPUs",                                         \
	  "lead in vruntime a wakee needs to preempt; larger: fewer preemptions")                  \
	X(migration_cost_ns, 500 * NSEC_PER_USEC, 0, 100 * NSEC_PER_MSEC, "ns",                    \
	  "2.6.32 sysctl_sched_migration_cost",                                                    \
	  "a CPU whose idle times are shorter than this on average pulls nothing")                 \
	X(sync_overlap_ns, 20 * NSEC_PER_USEC, 0, 100 * NSEC_PER_MSEC, "ns",                       \
	  "2.6.32 avg_overlap, the value measured",                                                \
	  "SYNC_WAKEUPS believes a waker that runs on for at most this after waking another")      \
	X(balance_interval_ns, 16 * NSEC_PER_MSEC, 1 * NSEC_PER_MSEC, 1 * NSEC_PER_SEC, "ns",      \
	  "own measurements",                                                                      \
	  "how often a busy CPU compares itself with its LLC; node twice, system four times that") \
	X(imbalance_pct, 117, 100, 400, "%", "7.3 sd_init",                                        \
	  "how much heavier a queue must be before a busy CPU pulls from it, in percent")          \
	X(whatif_interval, 64, 0, 65536, "decisions", "own measurements",                          \
	  "for each rule that is off, one decision in so many (at least 64) is also worked out with it")

#endif
