/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_kin: the rules that CFS became known for, each behind a switch that can be
 * thrown while the scheduler runs.
 *
 * Every CPU has a queue of its own in vruntime order (queue.bpf.h). A wakee is
 * put near what it works with (select.bpf.h), may preempt what runs there
 * (preempt.bpf.h), may run before its turn (buddy.bpf.h), and waiting tasks are
 * moved when a CPU has nothing to do or too much (balance.bpf.h). Rules that are
 * off are asked now and then what they would have done (whatif.bpf.h). This file
 * holds the ops in the order the kernel calls them in a task's life. Each gathers
 * numbers, asks, acts, and counts the way out that it took.
 *
 * Order of a pick, which the kernel gives and we build on: a running task with
 * slice left goes on; else the CPU's local DSQ; else ops.dispatch. So whatever
 * sits in a local DSQ comes before every queue, and only these are put there:
 * - one that was given an idle CPU, or that preempts;
 * - one that a waker left its CPU to: it then needs no dispatch, and if the waker
 *   does not sleep, the tick ends that one's run after min_granularity;
 * - a waking per-CPU kernel thread.
 * (The kernel itself puts exiting and migration-disabled tasks there, without
 * asking.) A pinned user task is queued like any other: in the local DSQ two
 * pinned hogs would starve the whole queue.
 *
 * Known limits. A slice ends at a tick, 4 ms at HZ=250, as in CFS without
 * HRTICK. cgroup weights are not looked at. A CPU that is hot-plugged ends the
 * scheduler with a request to restart it. CPUs count as equally strong.
 */
#include <scx/common.bpf.h>
#include "whatif.bpf.h"
#include "buddy.bpf.h"
#include "dump.bpf.h"

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

/* Counts what happens to a task, for itself too if it is watched. */
static __always_inline void count_event(const struct task_struct *p, u32 row)
{
	count_row(row);
	if (is_watched(p))
		watch_row(row);
}

/* ------------------------------------------------------------------ wakeup */

/*
 * What a wakeup tells of the waker. An interrupt's is put down to the task that it
 * interrupted.
 */
static __always_inline void note_waker(const struct settings *set, struct cpu_ctx *wakerc,
				       const struct task_struct *p, u64 now)
{
	if (feat(set, WAKE_WIDE))
		record_wakee(&wakerc->curr_wakees, p->pid, now);
	if (feat(set, ADAPTIVE_GRAN) && wakerc->curr_start) {
		u64 since = wakerc->curr_last_wake ? wakerc->curr_last_wake : wakerc->curr_start;

		wakerc->curr_wakeup = update_avg(wakerc->curr_wakeup,
						 time_is_before(since, now) ? now - since : 0);
	}
	wakerc->curr_last_wake = now;
}

static __always_inline void select_for_wakeup(const struct settings *set, struct task_struct *p,
					      struct task_ctx *taskc, struct wakeup *wake,
					      struct choice *choice)
{
	u32 row = whatif_due(set, WHATIF_WAKEUP,
			     feat(set, IDLE_SHARED_CACHE) ? WAKEUP_ROWS : WAKEUP_ROWS & ~WALK_ROWS);
	s32 other = NO_CPU;

	note_waker(set, cpu_ctx(wake->this), p, wake->now);
	taskc->woken_at = wake->now;
	if (row != NO_ROW)
		other = whatif_wakeup(set, p, wake, row);
	choose_for_wakeup(set, p, wake, choice);
	if (row != NO_ROW)
		whatif_place(row, choice->cpu, other, wake->this, wake->prev);
	taskc->woken_sync = choice->sync;
	/* Its CPU is free in a moment: nobody else need be woken for it. */
	taskc->sync_here = choice->row == CNT_select_sync || choice->row == CNT_select_kthread;
}

/* A new task starts from its parent's vruntime; the parent runs here. */
static __always_inline void select_for_fork(const struct settings *set, struct task_struct *p,
					    struct task_ctx *taskc, s32 home, u64 now,
					    struct choice *choice)
{
	s32 this = bpf_get_smp_processor_id();
	const struct cpu_ctx *parentc = cpu_ctx(this);

	if (parentc->curr_start) {
		taskc->vcpu = this;
		taskc->vruntime = curr_vruntime(parentc, now);
	}
	whatif_fork(set, p, home, taskc->vruntime);
	choose_for_fork(set, p, home, false, choice);
}

s32 BPF_STRUCT_OPS(kin_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	const struct settings *set = settings();
	bool fork = wake_flags & SCX_WAKE_FORK;
	struct task_ctx *taskc = lookup_task(p);
	u64 now = scx_bpf_now();
	s32 this = bpf_get_smp_processor_id();
	struct selection *selection = selection_here(this);
	struct choice *choice = &selection->choice;
	struct wakeup *wake = &selection->wake;
	s32 cpu;

	if (!taskc)
		return prev_cpu;
	prev_cpu = nearest_allowed(p, prev_cpu); /* 1 */
	if (fork) {
		select_for_fork(set, p, taskc, prev_cpu, now, choice);
	} else {
		wake->now = now;
		wake->weight = taskc->weight;
		wake->flips = taskc->wakees.flips;
		wake->this = this;
		wake->prev = prev_cpu;
		wake->recent = taskc->recent_cpu;
		wake->sync = wake_flags & SCX_WAKE_SYNC;
		wake->dry = false;
		select_for_wakeup(set, p, taskc, wake, choice);
	}
	cpu = choice->cpu;
	taskc->exec = false;
	taskc->decision = choice->row;
	count_event(p, choice->row);
	if (choice->claimed) {
		/*
		 * The task skips enqueue, so it is placed here: one that always
		 * finds an idle CPU would otherwise gather credit for ever.
		 */
		u64 min_v = queue_min(cpu_ctx(cpu), now);

		queue_place(set, taskc, cpu, fork ? PLACE_NEW : PLACE_WAKEUP,
			    queue_rebased(taskc, cpu, min_v), min_v);
		queue_insert_local(set, p, taskc, cpu, 0);
		taskc->is_new = false;
	}
	return cpu;
}

/* ----------------------------------------------------------------- enqueue */

/* Gathers what the preemption rules go by; the rest was filled in before. */
static __always_inline void describe_wakee(struct queued_wakee *wakee, const struct task_struct *p,
					   const struct task_ctx *taskc, s32 cpu)
{
	wakee->cpu = cpu;
	wakee->weight = taskc->weight;
	wakee->vruntime = taskc->vruntime;
	wakee->avg_overlap = taskc->avg_overlap;
	wakee->avg_wakeup = taskc->avg_wakeup;
	wakee->avg_running = taskc->avg_running;
	wakee->idle_policy = is_idle_policy(p);
	wakee->batch_policy = p->policy == SCHED_BATCH;
	wakee->woken_sync = taskc->woken_sync;
	wakee->sync_here = taskc->sync_here;
}

/* Asks whether a wakee preempts, counts the verdict, and what others would say. */
static __always_inline bool wakee_preempts(const struct settings *set, const struct task_struct *p,
					   const struct queued_wakee *wakee)
{
	u32 verdict = preempt_verdict(set, wakee);

	/* preempt_local is counted by whoever knows whether it is that or a kick. */
	if (verdict != CNT_preempt_local)
		count_event(p, verdict);
	whatif_preempt(set, wakee, preempts(verdict));
	return preempts(verdict);
}

/* A wakee that got no idle CPU: preempt what runs on @cpu, or wait. */
static __always_inline void enqueue_wakee(const struct settings *set, struct task_struct *p,
					  struct task_ctx *taskc, s32 cpu, bool preempt,
					  u64 enq_flags)
{
	struct cpu_ctx *cpuc = cpu_ctx(cpu);

	buddy_next(set, p, cpuc);
	if (preempt) {
		buddy_last(set, cpuc);
		cpuc->curr_preempted = 1;
	}
	if ((preempt || taskc->sync_here) && !cpuc->nr_queued &&
	    !scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu)) {
		if (preempt)
			count_event(p, CNT_preempt_local);
		queue_insert_local(set, p, taskc, cpu, enq_flags | (preempt ? SCX_ENQ_PREEMPT : 0));
		return;
	}
	queue_insert(set, p, taskc, cpu, enq_flags);
	if (preempt) {
		count_event(p, CNT_preempt_kick);
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	} else if (feat_any(set, FEAT(IDLE_SIBLING) | FEAT(IDLE_SHARED_CACHE)) &&
		   !taskc->sync_here) {
		kick_idle_near(p, cpu);
	}
}

/* Where a task goes that called exec() while others waited (kin_exec). */
static __always_inline s32 place_exec(const struct settings *set, const struct task_struct *p,
				      s32 home)
{
	s32 cpu = choose_for_exec(set, p, home);

	if (cpu != home)
		count_event(p, CNT_exec_move);
	return cpu;
}

/* A task that was placed, and waits or runs on: by what brought it here. */
static __always_inline void enqueue_placed(const struct settings *set, struct task_struct *p,
					   struct task_ctx *taskc, s32 cpu,
					   struct queued_wakee *wakee, u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_WAKEUP) {
		if (is_percpu_kthread(p)) {
			count(enqueue_kthread);
			queue_insert_local(set, p, taskc, cpu, enq_flags | SCX_ENQ_PREEMPT);
		} else if (!cpu_ctx(cpu)->curr_start && scx_bpf_test_and_clear_cpu_idle(cpu)) {
			/* Pinned, so that select_cpu was not asked, or idle by now. */
			count(enqueue_idle);
			queue_insert_local(set, p, taskc, cpu, enq_flags);
		} else {
			describe_wakee(wakee, p, taskc, cpu);
			enqueue_wakee(set, p, taskc, cpu, wakee_preempts(set, p, wakee), enq_flags);
		}
		return;
	}
	if (!taskc->is_new)
		count(enqueue_requeue);
	queue_insert(set, p, taskc, cpu, enq_flags);
	if (taskc->outranked)
		kick_idle_near(p, cpu);
}

void BPF_STRUCT_OPS(kin_enqueue, struct task_struct *p, u64 enq_flags)
{
	const struct settings *set = settings();
	struct task_ctx *taskc = lookup_task(p);
	s32 task_cpu = scx_bpf_task_cpu(p);
	s32 cpu = nearest_allowed(p, task_cpu);
	bool wakeup = enq_flags & SCX_ENQ_WAKEUP, moved_by_exec = false;
	enum place_kind kind = PLACE_REQUEUE;
	struct queued_wakee wakee = { .now = scx_bpf_now() };

	if (!taskc)
		return;
	if (wakeup && !taskc->woken_at)
		taskc->woken_at = wakee.now; /* pinned: select_cpu was not asked */
	if (taskc->is_new) {
		kind = PLACE_NEW;
	} else if (wakeup) {
		kind = PLACE_WAKEUP;
	} else if (taskc->exec) {
		cpu = place_exec(set, p, cpu);
		moved_by_exec = cpu != task_cpu;
	}
	wakee.min_v = queue_min(cpu_ctx(cpu), wakee.now);
	wakee.v_before = queue_rebased(taskc, cpu, wakee.min_v);
	queue_place(set, taskc, cpu, kind, wakee.v_before, wakee.min_v);
	if (cpu != task_cpu) {
		/* Not where it was; so the kernel will not kick that CPU. */
		if (!moved_by_exec)
			count(enqueue_displaced);
		queue_insert(set, p, taskc, cpu, enq_flags);
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	} else {
		enqueue_placed(set, p, taskc, cpu, &wakee, enq_flags);
	}
	taskc->is_new = false;
	taskc->sync_here = false;
	taskc->woken_sync = false;
	taskc->outranked = false;
	taskc->exec = false;
}

/* ---------------------------------------------------------------- dispatch */

static void keep_running(const struct settings *set, struct task_struct *prev,
			 const struct cpu_ctx *cpuc)
{
	/* Without this the kernel would give it the default 20 ms. */
	scx_bpf_task_set_slice(prev, queue_slice(set, cpuc, cpuc->curr_weight));
}

static bool take_first(struct cpu_ctx *cpuc, s32 cpu)
{
	if (!scx_bpf_dsq_move_to_local(cpu, 0))
		return false;
	cpuc->from_queue = 1;
	return true;
}

/*
 * How long the running task has run; right where sum_exec is up to date, as it is
 * in dispatch, tick and stopping.
 */
static __always_inline u64 ran_ns(const struct cpu_ctx *cpuc, const struct task_struct *curr)
{
	return curr->se.sum_exec_runtime - cpuc->curr_sum_exec;
}

/* Its vruntime by now. */
static u64 prev_vruntime(const struct cpu_ctx *cpuc, const struct task_struct *prev)
{
	return cpuc->curr_vruntime + calc_delta_fair(ran_ns(cpuc, prev), cpuc->curr_weight);
}

/*
 * The running task could run on: it does, unless it yielded or somebody of this
 * very CPU is before it by now. Other CPUs are none of its business, but for the
 * one pull that the periodic balance asked for.
 */
static void dispatch_runnable(const struct settings *set, struct cpu_ctx *cpuc, s32 cpu,
			      struct task_struct *prev)
{
	u32 victim = cpuc->pull_from;
	struct task_struct *first;

	if (victim) {
		cpuc->pull_from = 0;
		if (pull_from(set, victim - 1, cpu, true)) {
			count(dispatch_balance);
			return;
		}
	}
	if (cpuc->nr_queued) {
		bool keep = false;

		if ((cpuc->next_buddy || cpuc->last_buddy) &&
		    pick_buddy(set, cpuc, cpu, prev_vruntime(cpuc, prev), !cpuc->curr_yielded))
			return;
		bpf_rcu_read_lock();
		first = __COMPAT_scx_bpf_dsq_peek(cpu);
		if (first && !cpuc->curr_yielded)
			keep = !time_is_before(first->scx.dsq_vtime, prev_vruntime(cpuc, prev));
		bpf_rcu_read_unlock();
		if (keep) {
			count(dispatch_keep_first);
			keep_running(set, prev, cpuc);
			return;
		}
		if (take_first(cpuc, cpu)) {
			count(dispatch_queue);
			return;
		}
	}
	count(dispatch_keep_alone);
	keep_running(set, prev, cpuc);
}

/* The CPU has nothing to run: own queue, an offer, new-idle pull, idle. */
static void dispatch_free(const struct settings *set, struct cpu_ctx *cpuc, s32 cpu)
{
	u32 offer = cpuc->offered_by;

	if (cpuc->nr_queued && (cpuc->next_buddy || cpuc->last_buddy) &&
	    pick_buddy(set, cpuc, cpu, 0, false))
		return;
	if (cpuc->nr_queued && take_first(cpuc, cpu)) {
		count(dispatch_queue);
		return;
	}
	if (offer) {
		cpuc->offered_by = 0;
		if (pull_from(set, offer - 1, cpu, false)) {
			count(dispatch_handed);
			return;
		}
	}
	if (newidle_worth_it(set, cpuc)) {
		if (pull_newidle(set, cpu))
			return;
		whatif_newidle(set, cpu);
	}
	/* A pull gives up the runqueue's lock: meanwhile one may have been queued here. */
	if (cpuc->nr_queued && take_first(cpuc, cpu)) {
		count(dispatch_queue);
		return;
	}
	count(dispatch_idle);
	if (!cpuc->idle_since)
		cpuc->idle_since = scx_bpf_now();
}

void BPF_STRUCT_OPS(kin_dispatch, s32 cpu, struct task_struct *prev)
{
	const struct settings *set = settings();
	struct cpu_ctx *cpuc = cpu_ctx(cpu);

	/* curr_start: a task that came without running() has nothing to compare. */
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED) && cpuc->curr_start)
		dispatch_runnable(set, cpuc, cpu, prev);
	else
		dispatch_free(set, cpuc, cpu);
}

/* ------------------------------------------------------- running, stopping */

static void count_move(struct task_struct *p, struct task_ctx *taskc, s32 cpu)
{
	s32 last = taskc->last_cpu;
	u32 row;

	taskc->last_cpu = cpu;
	if (last == cpu || last == NO_CPU)
		return;
	taskc->recent_cpu = last;
	if (shares_llc(last, cpu))
		return;
	row = node_of(last) == node_of(cpu) ? CNT_move_llc : CNT_move_node;
	count_event(p, row);
}

/* From wakeup to running; and that a watched task runs here. */
static __always_inline void count_wait(struct task_struct *p, struct task_ctx *taskc, s32 cpu,
				       u64 now)
{
	u64 waited = time_is_before(taskc->woken_at, now) ? now - taskc->woken_at : 0;
	bool watched = is_watched(p);

	if (watched)
		watch_add(cpu_runs[cpu & (MAX_CPUS - 1)], 1);
	if (!taskc->woken_at)
		return;
	hist_add(wakeup_latency, waited);
	if (watched)
		watch_add(hists[HIST_wakeup_latency][hist_bucket(waited)], 1);
	taskc->woken_at = 0;
}

/* What the wakeups of the running task are judged by: kept in its CPU's context. */
static __always_inline void load_averages(const struct settings *set, struct cpu_ctx *cpuc,
					  const struct task_ctx *taskc)
{
	cpuc->curr_overlap = taskc->avg_overlap;
	if (!feat_any(set, FEAT(ADAPTIVE_GRAN) | FEAT(WAKEUP_RUNNING) | FEAT(WAKE_WIDE)))
		return;
	cpuc->curr_wakeup = taskc->avg_wakeup;
	cpuc->curr_running = taskc->avg_running;
	cpuc->curr_wakees = taskc->wakees;
}

/*
 * The averages of a task that stops, each only while a switch asks for it. One that
 * is turned on in the middle of a run stores what another task left on this CPU:
 * a wrong start, which the next runs correct.
 */
static __always_inline void store_averages(const struct settings *set, const struct cpu_ctx *cpuc,
					   struct task_ctx *taskc, u64 ran, bool sleeps)
{
	u64 max = 2 * set->tun.migration_cost_ns;

	if (feat_any(set, FEAT(SYNC_LESS) | FEAT(WAKEUP_OVERLAP)) && cpuc->curr_last_wake) {
		u64 overlap = scx_bpf_now() - cpuc->curr_last_wake;

		taskc->avg_overlap = update_avg(taskc->avg_overlap, overlap < max ? overlap : max);
	}
	if (!feat_any(set, FEAT(ADAPTIVE_GRAN) | FEAT(WAKEUP_RUNNING) | FEAT(WAKE_WIDE) |
				   FEAT(CACHE_HOT)))
		return;
	if (feat(set, WAKE_WIDE))
		taskc->wakees = cpuc->curr_wakees;
	if (feat(set, ADAPTIVE_GRAN)) {
		taskc->avg_wakeup = cpuc->curr_wakeup;
		if (sleeps && !cpuc->curr_last_wake)
			taskc->avg_wakeup =
				update_avg(taskc->avg_wakeup, set->tun.wakeup_granularity_ns);
	}
	if (feat(set, WAKEUP_RUNNING))
		taskc->avg_running = update_avg(taskc->avg_running, ran < max ? ran : max);
	if (feat(set, CACHE_HOT))
		taskc->stopped_at = scx_bpf_now();
}

/* SCHED_IDLE_CPU looks here for a CPU. */
static __always_inline void mark_sched_idle(struct cpu_ctx *cpuc, s32 cpu, bool runs)
{
	u64 bit = 1ULL << (cpu & 63);
	u64 *word = &llc_ctx(llc_of(cpu))->sched_idle[(cpu / 64) & (MAX_WORDS - 1)];

	if (runs == cpuc->curr_idle_policy)
		return;
	cpuc->curr_idle_policy = runs;
	if (runs)
		__sync_fetch_and_or(word, bit);
	else
		__sync_fetch_and_and(word, ~bit);
}

void BPF_STRUCT_OPS(kin_running, struct task_struct *p)
{
	const struct settings *set = settings();
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	struct task_ctx *taskc = lookup_task(p);
	u64 now = scx_bpf_now();

	if (!taskc)
		return;
	queue_leave(taskc);
	if (taskc->vcpu != cpu) { /* pulled */
		u64 min_v = queue_min(cpuc, now);

		taskc->vruntime =
			queue_clamp(set, queue_rebased(taskc, cpu, min_v), min_v, taskc->weight);
		taskc->vcpu = cpu;
	}
	count_move(p, taskc, cpu);
	count_wait(p, taskc, cpu, now);
	if (cpuc->idle_since) {
		cpuc->avg_idle = update_avg_idle(cpuc->avg_idle, now - cpuc->idle_since,
						 set->tun.migration_cost_ns);
		cpuc->idle_since = 0;
	}
	if (cpuc->from_queue || !cpuc->nr_queued)
		queue_advance_min(cpuc, taskc->vruntime);
	cpuc->from_queue = 0;
	cpuc->offered_by = 0;
	cpuc->pull_from = 0;
	cpuc->curr_vruntime = taskc->vruntime;
	cpuc->curr_weight = taskc->weight;
	mark_sched_idle(cpuc, cpu, is_idle_policy(p));
	cpuc->curr_sum_exec = p->se.sum_exec_runtime;
	load_averages(set, cpuc, taskc);
	cpuc->curr_pid = p->pid;
	cpuc->curr_last_wake = 0;
	cpuc->curr_yielded = 0;
	cpuc->curr_preempted = 0;
	cpuc->curr_start = now;
}

/* How a watched task's run ended. */
static __noinline int watch_run(const struct cpu_ctx *cpuc, struct task_struct *p, s32 cpu, u64 ran,
				bool runnable)
{
	watch_add(cpu_ns[cpu & (MAX_CPUS - 1)], ran);
	watch_add(hists[HIST_run_length][hist_bucket(ran)], 1);
	if (!runnable)
		watch_add(slept, 1);
	else if (p->scx.slice)
		watch_add(outranked, 1);
	else if (cpuc->curr_preempted)
		watch_add(preempted, 1);
	else
		watch_add(expired, 1);
	return 0;
}

void BPF_STRUCT_OPS(kin_stopping, struct task_struct *p, bool runnable)
{
	const struct settings *set = settings();
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	struct task_ctx *taskc = lookup_task(p);
	u64 ran;

	if (!taskc || !cpuc->curr_start)
		return;
	ran = ran_ns(cpuc, p);
	taskc->vruntime = prev_vruntime(cpuc, p);
	hist_add(run_length, ran);
	if (is_watched(p))
		watch_run(cpuc, p, cpu, ran, runnable);
	store_averages(set, cpuc, taskc, ran, !runnable);
	if (!cpuc->nr_queued)
		queue_advance_min(cpuc, taskc->vruntime);
	cpuc->curr_vruntime = taskc->vruntime;
	cpuc->curr_start = 0;
	mark_sched_idle(cpuc, cpu, false);
	/*
	 * Slice left and runnable: a higher class takes the CPU. The kernel would
	 * put the task into the local DSQ, where nobody else can have it, for as
	 * long as that class pleases; without slice it comes to enqueue instead.
	 */
	if (runnable && p->scx.slice) {
		taskc->outranked = true;
		scx_bpf_task_set_slice(p, 0);
	}
}

/* -------------------------------------------------------------------- tick */

void BPF_STRUCT_OPS(kin_tick, struct task_struct *p)
{
	const struct settings *set = settings();
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cpuc = cpu_ctx(cpu);
	struct task_struct *first;
	u64 ran, slice, curr_v, first_v;
	bool end;

	if (!cpuc->curr_start)
		return;
	ran = ran_ns(cpuc, p);
	curr_v = first_v = prev_vruntime(cpuc, p);
	if (cpuc->nr_queued) {
		bpf_rcu_read_lock();
		first = __COMPAT_scx_bpf_dsq_peek(cpu);
		if (first)
			first_v = first->scx.dsq_vtime;
		bpf_rcu_read_unlock();
		hand_over(cpu, LEVEL_LLC);
	}
	queue_advance_min(cpuc, time_min(curr_v, first_v));
	slice = queue_slice(set, cpuc, cpuc->curr_weight);
	whatif_tick(set, cpu, ran, (s64)(curr_v - first_v), !p->scx.slice);
	end = balance_due(set, cpuc, cpu, scx_bpf_now());
	if (!end && tick_preempts(set, cpuc, ran, slice, (s64)(curr_v - first_v))) {
		count(tick_preempt);
		end = true;
	}
	/* What the kernel itself put here: exiting, migration disabled. */
	if (!end && ran >= set->tun.min_granularity_ns)
		end = scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu);
	if (end)
		scx_bpf_task_set_slice(p, 0);
}

/* ------------------------------------------------------------------- yield */

/*
 * Alone on its CPU the task just goes on: ending its slice would send every
 * yield through dispatch, for nothing. Otherwise it is skipped once, as the skip
 * buddy of CFS: dispatch takes the next in line although prev may be first.
 */
bool BPF_STRUCT_OPS(kin_yield, struct task_struct *from, struct task_struct *to)
{
	struct cpu_ctx *cpuc = cpu_ctx(scx_bpf_task_cpu(from));

	if (!cpuc->nr_queued) {
		count(yield_alone);
		return false;
	}
	count(yield_skip);
	cpuc->curr_yielded = 1;
	scx_bpf_task_set_slice(from, 0);
	return false;
}

/* --------------------------------------------- a higher class takes the CPU */

/*
 * What was put into the local DSQ but has not run would wait until the realtime
 * task is done, even beside idle CPUs: queue it again, and offer it. The loader
 * leaves this op out on kernels from 7.1 on, which complain about it and serve
 * ext tasks for 50 ms of every second instead.
 */
void BPF_STRUCT_OPS(kin_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	u32 level;

	scx_bpf_reenqueue_local();
	if (!cpu_ctx(cpu)->nr_queued)
		return;
	bpf_for(level, LEVEL_LLC, NR_LEVELS) {
		if (hand_over(cpu, level))
			return;
	}
}

/* -------------------------------------------------------- tasks come and go */

void BPF_STRUCT_OPS(kin_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *taskc = lookup_task(p);

	/* @weight is the cgroup scale, too coarse for nice 14 and above. */
	if (taskc)
		taskc->weight = task_weight(p->static_prio, is_idle_policy(p));
}

void BPF_STRUCT_OPS(kin_enable, struct task_struct *p)
{
	struct task_ctx *taskc = lookup_task(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (!taskc)
		return;
	taskc->vcpu = cpu;
	taskc->vruntime = cpu_ctx(cpu)->min_vruntime;
	taskc->weight = task_weight(p->static_prio, is_idle_policy(p));
}

void BPF_STRUCT_OPS(kin_disable, struct task_struct *p)
{
	struct task_ctx *taskc = lookup_task(p);

	if (taskc)
		queue_leave(taskc);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(kin_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *taskc =
		bpf_task_storage_get(&task_ctxs, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!taskc)
		return -ENOMEM;
	taskc->queued_on = NO_CPU;
	taskc->last_cpu = NO_CPU;
	taskc->recent_cpu = NO_CPU;
	taskc->avg_wakeup = settings()->tun.wakeup_granularity_ns;
	taskc->decision = CNT_select_busy_prev; /* stayed where it was */
	taskc->weight = NICE_0_WEIGHT;
	taskc->is_new = args->fork;
	return 0;
}

/*
 * exec() is where a task costs least to move: its memory is new. The kernel asks no
 * op then, so this gives way to the next in line as sched_yield() does, if others
 * wait on its CPU, and enqueue then places the task. Alone it has nothing to gain
 * but a better core, and cannot be moved while it runs.
 */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(kin_exec, struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)
{
	const struct settings *set = settings();
	s32 cpu = bpf_get_smp_processor_id();
	struct task_ctx *taskc;

	if (!cpu_ctx(cpu)->nr_queued || !levels_with(set, FLAG_SD_BALANCE_EXEC))
		return 0;
	taskc = try_lookup_task(p);
	if (!taskc)
		return 0;
	taskc->exec = true;
	cpu_ctx(cpu)->curr_yielded = 1;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return 0;
}

/* -------------------------------------------------------------- init, exit */

s32 BPF_STRUCT_OPS_SLEEPABLE(kin_init)
{
	s32 cpu, err;
	u32 level;

	bpf_for(cpu, 0, nr_cpus) {
		err = scx_bpf_create_dsq(cpu, is_online(cpu) ? (s32)node_of(cpu) : NUMA_NO_NODE);
		if (err) {
			scx_bpf_error("no queue for CPU %d: error %d", cpu, err);
			return err;
		}
		/* Until its idle times are known a CPU may pull. */
		cpu_ctx(cpu)->avg_idle = 2 * settings()->tun.migration_cost_ns;
		bpf_for(level, 0, NR_LEVELS) {
			newidle_of(cpu, level)->calls = NEWIDLE_START;
			newidle_of(cpu, level)->successes = NEWIDLE_START / 2;
			newidle_of(cpu, level)->ratio = NEWIDLE_START;
		}
	}
	return 0;
}

void BPF_STRUCT_OPS(kin_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

/* clang-format off */
SCX_OPS_DEFINE(kin_ops,
	       .select_cpu	= (void *)kin_select_cpu,
	       .enqueue		= (void *)kin_enqueue,
	       .dispatch	= (void *)kin_dispatch,
	       .tick		= (void *)kin_tick,
	       .running		= (void *)kin_running,
	       .stopping	= (void *)kin_stopping,
	       .yield		= (void *)kin_yield,
	       .cpu_release	= (void *)kin_cpu_release,
	       .set_weight	= (void *)kin_set_weight,
	       .enable		= (void *)kin_enable,
	       .disable		= (void *)kin_disable,
	       .init_task	= (void *)kin_init_task,
	       .dump		= (void *)kin_dump,
	       .dump_cpu	= (void *)kin_dump_cpu,
	       .dump_task	= (void *)kin_dump_task,
	       .init		= (void *)kin_init,
	       .exit		= (void *)kin_exit,
	       .timeout_ms	= 30000,
	       .name		= "kin");
