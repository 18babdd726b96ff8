/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Host build of src/bpf/policy.h for tests/policy.rs: one exported wrapper for
 * each function under test, and the lists of intf.h as the C compiler reads them.
 */
#include "newidle.h"
#include "policy.h"

const u64 t_feature_dfl[] = {
#define X(name, dfl, from, help) dfl,
	FEATURES(X)
#undef X
};

const u64 t_tunable_dfl[] = {
#define X(name, dfl, min, max, unit, from, help) dfl,
	TUNABLES(X)
#undef X
};

const u64 t_tunable_min[] = {
#define X(name, dfl, min, max, unit, from, help) min,
	TUNABLES(X)
#undef X
};

const u64 t_tunable_max[] = {
#define X(name, dfl, min, max, unit, from, help) max,
	TUNABLES(X)
#undef X
};

const u64 t_flag_levels[] = {
#define X(name, levels, dfl, help) levels,
	DOMAIN_FLAGS(X)
#undef X
};

const u64 t_flag_dfl[] = {
#define X(name, levels, dfl, help) dfl,
	DOMAIN_FLAGS(X)
#undef X
};

/* What Rust has a copy of, so that neither writes beyond the other's. */
const u64 t_sizes[] = {
	sizeof(struct tunables),
	sizeof(struct wakees),
	sizeof(struct newidle),
};

/* A line each. */
/* clang-format off */
u32 t_hist_bucket(u64 ns) { return hist_bucket(ns); }
u32 t_first_bit(u64 word) { return first_bit(word); }
u32 t_count_bits(u64 word) { return count_bits(word); }
u32 t_task_weight(s32 static_prio, bool idle) { return task_weight(static_prio, idle); }
bool t_time_is_before(u64 a, u64 b) { return time_is_before(a, b); }
u64 t_calc_delta_fair(u64 delta, u32 w) { return calc_delta_fair(delta, w); }
u64 t_sched_period(const struct tunables *tun, u32 nr) { return sched_period(tun, nr); }
u64 t_sched_slice(const struct tunables *tun, u32 nr, u32 w, u64 total) { return sched_slice(tun, nr, w, total); }
u64 t_sleeper_credit(const struct tunables *tun, u32 w, bool fair, bool gentle, bool normalized) { return sleeper_credit(tun, w, fair, gentle, normalized); }
u64 t_debt_limit(u64 latency, u32 w) { return debt_limit(latency, w); }
u64 t_place_new(u64 min_v, u64 parent_v, u64 vslice) { return place_new(min_v, parent_v, vslice); }
u64 t_rebase(u64 v, u64 from, u64 to) { return rebase(v, from, to); }
u64 t_clamp_credit(u64 v, u64 min_v, u64 credit) { return clamp_credit(v, min_v, credit); }
u64 t_clamp_debt(u64 v, u64 min_v, u64 debt) { return clamp_debt(v, min_v, debt); }
u64 t_wakeup_gran(u64 gran, u32 w) { return wakeup_gran(gran, w); }
s32 t_wakeup_preempt_entity(u64 curr_v, u64 wakee_v, u64 gran) { return wakeup_preempt_entity(curr_v, wakee_v, gran); }
u64 t_adaptive_gran(u64 gran, u64 avg_wakeup, u32 nr, u64 ran) { return adaptive_gran(gran, avg_wakeup, nr, ran); }
bool t_buddy_scale(const struct tunables *tun, u32 nr) { return buddy_scale(tun, nr); }
void t_record_wakee(struct wakees *wakees, u32 pid, u64 now) { record_wakee(wakees, pid, now); }
bool t_wake_is_wide(u32 waker, u32 wakee, u32 cpus) { return wake_is_wide(waker, wakee, cpus); }
u32 t_sis_util_scan(u32 cpus, u32 busy, u32 pct) { return sis_util_scan(cpus, busy, pct); }
void t_newidle_note(struct newidle *ni, u32 successes) { newidle_note(ni, successes); }
u32 t_newidle_weight(u32 ratio) { return newidle_weight(ratio); }
void t_newidle_cost(struct newidle *ni, u64 cost, u64 limit, u64 now) { newidle_cost(ni, cost, limit, now); }
bool t_newidle_dice(const struct newidle *ni, u32 die) { return newidle_dice(ni, die); }
bool t_task_is_hot(u64 since, u64 cost) { return task_is_hot(since, cost); }
u64 t_update_avg(u64 avg, u64 sample) { return update_avg(avg, sample); }
u64 t_update_avg_idle(u64 avg, u64 idle, u64 cost) { return update_avg_idle(avg, idle, cost); }
bool t_wake_affine_weight(u64 this_load, u64 prev_load, u32 w, u32 pct) { return wake_affine_weight(this_load, prev_load, w, pct); }
bool t_load_imbalanced(u64 mine, u64 theirs, u32 nr, u32 pct) { return load_imbalanced(mine, theirs, nr, pct); }
