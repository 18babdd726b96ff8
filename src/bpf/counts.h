/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is counted, a row each: counters, columns of the what-if table, histograms.
 * Part of intf.h, which says what becomes of the rows.
 */
#ifndef __COUNTS_H
#define __COUNTS_H

/*
 * Counters, one for each way out of a decision. name, what must be on for it to
 * move ("-": nothing; a feature; or LEVEL:SD_FLAG), which event it counts
 */
#define COUNTERS(X)                                                                                \
	/* ways out of select_cpu; their sum is the number of its calls */                         \
	X(select_sync, "SYNC_STACK", "wakeups put on the CPU of a waker that was about to sleep")  \
	X(select_prev_idle, "-", "wakeups whose previous CPU was idle")                            \
	X(select_waker_idle, "AFFINE_WAKEUPS",                                                     \
	  "wakeups by an interrupt on an idle CPU, which took the wakee")                          \
	X(select_kthread, "KTHREAD_STACK",                                                         \
	  "wakeups by a per-CPU kernel thread, left on the CPU they share")                        \
	X(select_recent, "RECENT_CPU", "wakeups put on the CPU before the previous one")           \
	X(select_shared_cache, "IDLE_SHARED_CACHE",                                                \
	  "wakeups put on the first idle CPU of the waker's shared cache")                         \
	X(select_idle_cluster, "IDLE_CLUSTER",                                                     \
	  "wakeups that found an idle CPU in the target's cluster")                                \
	X(select_idle_core, "IDLE_CORE",                                                           \
	  "wakeups that found a wholly idle core in the target's LLC")                             \
	X(select_idle_smt, "IDLE_SMT", "wakeups put on the idle sibling of the previous CPU")      \
	X(select_idle_sibling, "IDLE_SIBLING",                                                     \
	  "wakeups that found an idle CPU in the target's LLC")                                    \
	X(select_sched_idle, "SCHED_IDLE_CPU",                                                     \
	  "wakeups put on a CPU that ran a SCHED_IDLE task only")                                  \
	X(select_idle_llc, "-", "wakeups that the slow path put on an idle CPU of their own LLC")  \
	X(select_idle_node, "NODE:SD_BALANCE_WAKE",                                                \
	  "wakeups that found an idle CPU in another LLC of the node")                             \
	X(select_idle_system, "SYSTEM:SD_BALANCE_WAKE",                                            \
	  "wakeups that found an idle CPU on another node")                                        \
	X(select_wide_load, "WAKE_WIDE",                                                           \
	  "wakeups of wide relations put on the lightest CPU, none being idle")                    \
	X(select_busy_waker, "AFFINE_WAKEUPS",                                                     \
	  "wakeups queued on the waker's CPU, nothing idle having been found")                     \
	X(select_busy_prev, "-",                                                                   \
	  "wakeups queued on the previous CPU, nothing idle having been found")                    \
	X(select_fork_idle, "-", "new tasks placed on an idle CPU")                                \
	X(select_fork_load, "-",                                                                   \
	  "new tasks placed on the CPU with the lightest queue, none being idle")                  \
	/* on the way to those */                                                                  \
	X(wake_wide, "WAKE_WIDE", "wakeups whose waker's CPU was not considered, being wide")      \
	X(sync_doubted, "SYNC_LESS", "sync wakeups not believed: the waker used to run on")        \
	X(scan_words, "-", "words of CPU masks read by searches for an idle CPU")                  \
	X(scan_limited, "SIS_UTIL", "searches cut short or left out because the LLC was too busy") \
	X(exec_move, "-", "tasks placed on another CPU because they called exec()")                \
	/* enqueue */                                                                              \
	X(enqueue_kthread, "-", "wakeups of per-CPU kernel threads, which preempt at once")        \
	X(enqueue_idle, "-",                                                                       \
	  "wakeups that found their CPU idle only when they were queued, as pinned tasks do")      \
	X(enqueue_requeue, "-",                                                                    \
	  "tasks queued again without a wakeup: slice ended, or moved by the kernel")              \
	X(enqueue_displaced, "-",                                                                  \
	  "tasks queued on another CPU because theirs is no longer allowed")                       \
	X(enqueue_kick_idle, "-", "idle CPUs woken because a task was queued behind a busy one")   \
	/* ways out of the preemption test, made for each wakee that is queued */                  \
	X(preempt_local, "-",                                                                      \
	  "wakees that preempted and were first in line: straight onto the CPU")                   \
	X(preempt_kick, "-",                                                                       \
	  "wakees that preempted while others were queued: picked in vruntime order")              \
	X(preempt_idle_policy, "-",                                                                \
	  "wakees that preempted a SCHED_IDLE task (also counted above)")                          \
	X(preempt_wakeup_sync, "WAKEUP_SYNC",                                                      \
	  "wakees of sync wakeups that preempted for that (also counted above)")                   \
	X(preempt_overlap, "WAKEUP_OVERLAP",                                                       \
	  "wakees that preempted since both overlap little (also counted above)")                  \
	X(preempt_running, "WAKEUP_RUNNING",                                                       \
	  "wakees that preempted for their shorter runs (also counted above)")                     \
	X(preempt_not_ahead, "WAKEUP_PREEMPTION",                                                  \
	  "refused: the wakee's vruntime was not smaller than the running task's")                 \
	X(preempt_granularity, "WAKEUP_PREEMPTION",                                                \
	  "refused: the wakee's lead was below wakeup_granularity_ns")                             \
	X(preempt_batch, "-", "refused: the wakee is SCHED_BATCH or SCHED_IDLE")                   \
	X(preempt_protected, "RUN_TO_PARITY",                                                      \
	  "refused: the running task has not had min_granularity_ns yet")                          \
	X(preempt_sync, "-", "refused: the waker runs here and is about to sleep")                 \
	X(preempt_not_ours, "-", "refused: no sched_ext task runs on that CPU")                    \
	/* ways out of dispatch; their sum is the number of its calls */                           \
	X(dispatch_keep_alone, "-", "the running task went on because nothing waited on its CPU")  \
	X(dispatch_keep_first, "-",                                                                \
	  "the running task went on because it was still first by vruntime")                       \
	X(dispatch_next_buddy, "NEXT_BUDDY", "the last wakee was taken from the own queue")        \
	X(dispatch_last_buddy, "LAST_BUDDY", "the preempted task was taken from the own queue")    \
	X(dispatch_queue, "-", "the first task of the CPU's own queue was taken")                  \
	X(dispatch_pull_smt, "SMT:SD_BALANCE_NEWIDLE",                                             \
	  "pulled from a sibling hardware thread, going idle")                                     \
	X(dispatch_pull_llc, "LLC:SD_BALANCE_NEWIDLE", "pulled from the own LLC, going idle")      \
	X(dispatch_pull_node, "NODE:SD_BALANCE_NEWIDLE",                                           \
	  "pulled from another LLC of the node, going idle")                                       \
	X(dispatch_pull_system, "SYSTEM:SD_BALANCE_NEWIDLE",                                       \
	  "pulled from another node, going idle")                                                  \
	X(dispatch_handed, "-", "took over a task that an overloaded CPU offered to an idle one")  \
	X(dispatch_balance, "-", "a busy CPU pulled from a heavier queue")                         \
	X(dispatch_idle, "-", "nothing to run was found")                                          \
	/* balancing */                                                                            \
	X(newidle_short, "-", "new-idle pulls not tried: this CPU's idle times are too short")     \
	X(newidle_cost, "NI_RANDOM",                                                               \
	  "new-idle pulls not tried: they cost more than this CPU's idle times are long")          \
	X(newidle_ratio, "NI_RANDOM",                                                              \
	  "new-idle pulls not tried: thrown out by the dice, as they seldom succeed")              \
	X(pull_hot, "CACHE_HOT", "waiting tasks passed over by a pull because they were hot")      \
	X(pull_buddy, "CACHE_HOT_BUDDY", "waiting tasks passed over by a pull as buddies")         \
	X(newidle_nothing, "-", "new-idle pulls that found nothing to take")                       \
	X(balance_even, "-", "periodic looks at a level that found no imbalance")                  \
	X(balance_llc, "LLC:SD_LOAD_BALANCE",                                                      \
	  "periodic looks that found a heavier queue in the LLC")                                  \
	X(balance_node, "NODE:SD_LOAD_BALANCE",                                                    \
	  "periodic looks that found a heavier queue in the node")                                 \
	X(balance_system, "SYSTEM:SD_LOAD_BALANCE",                                                \
	  "periodic looks that found a heavier queue on another node")                             \
	X(handover_kick, "-",                                                                      \
	  "times that a CPU with waiting tasks woke an idle one to take a task")                   \
	/* placement, tick, yield, moves */                                                        \
	X(place_credit, "FAIR_SLEEPERS", "sleepers lifted to the credit limit")                    \
	X(place_debit, "START_DEBIT", "new tasks charged a slice in advance")                      \
	X(clamp_credit, "-", "requeued or moved tasks whose credit exceeded the limit")            \
	X(clamp_debt, "-", "tasks whose debt exceeded the limit")                                  \
	X(tick_preempt, "TICK_PREEMPT", "runs ended at the tick, others waiting")                  \
	X(yield_alone, "-", "sched_yield() with nobody waiting: nothing done")                     \
	X(yield_skip, "-", "sched_yield() that gave way to the next in line")                      \
	X(move_llc, "-", "tasks that ran in another LLC of the node than last")                    \
	X(move_node, "-", "tasks that ran on another node than last")

enum counter {
#define X(name, needs, help) CNT_##name,
	COUNTERS(X)
#undef X
		NR_COUNTERS
};

/*
 * What a rule that is off would have done: columns of a table with a row for
 * each feature, then for each domain flag at each level (enum whatif_row). name,
 * help
 */
#define WHATIFS(X)                                                                        \
	X(asked, "decisions that were worked out a second time")                          \
	X(differed, "of these, came out otherwise; where to, by the columns that follow") \
	X(waker, "to the waker's CPU")                                                    \
	X(prev, "to the previous CPU")                                                    \
	X(llc, "to another CPU of the previous one's LLC")                                \
	X(node, "to another LLC of the node")                                             \
	X(system, "to another node")                                                      \
	X(yes, "it would have been done: preempted, pulled, ended, passed over")          \
	X(no, "it would not have been done")

enum whatif {
#define X(name, help) WHATIF_##name,
	WHATIFS(X)
#undef X
		NR_WHATIFS
};

/* Log2 histograms. name, unit, help */
#define HISTS(X)                                          \
	X(wakeup_latency, "ns", "from wakeup to running") \
	X(run_length, "ns", "time on the CPU between two switches")

enum hist {
#define X(name, unit, help) HIST_##name,
	HISTS(X)
#undef X
		NR_HISTS
};

#endif
