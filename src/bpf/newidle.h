/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Today's gate for new-idle pulls (NI_RANDOM): what they cost is weighed against
 * how long this CPU stays idle, and a die is thrown by how often they succeed. Pure
 * arithmetic, as policy.h.
 */
#ifndef __NEWIDLE_H
#define __NEWIDLE_H

#include "policy.h"

/* What new-idle pulls at one level of one CPU cost, and how often they succeed. */
struct newidle {
	u64 max_cost; /* ns */
	u64 decay_at; /* clock of its next decay */
	u32 calls, successes;
	u32 ratio; /* of 1024 pulls, how many found something */
};

enum {
	NEWIDLE_WINDOW = 1024,
	NEWIDLE_START = 512, /* calls, and the ratio, that a new window starts with */
};

/*
 * How much a pull that the dice let through counts if it succeeds: as many as were
 * thrown out for it. 7.3 sched_balance_newidle().
 */
static inline u32 newidle_weight(u32 ratio)
{
	u32 weight = 1 + ratio;

	return (NEWIDLE_WINDOW + weight / 2) / weight;
}

/*
 * Note a pull that was tried or thrown out (@successes 0); the window ends at 1024.
 * 7.3 update_newidle_stats(), but for NI_RATE, which adds a little to the ratio of a
 * CPU that seldom goes idle.
 */
static inline void newidle_note(struct newidle *ni, u32 successes)
{
	ni->calls++;
	ni->successes += successes;
	if (ni->calls < NEWIDLE_WINDOW)
		return;
	ni->ratio = ni->successes < NEWIDLE_WINDOW ? ni->successes : NEWIDLE_WINDOW;
	ni->calls /= 2;
	ni->successes /= 2;
}

/*
 * The highest cost seen, less 3 of 256 each second. 7.3 update_newidle_cost(); the
 * @limit is 6.18's, so that one slow pull does not end all.
 */
static inline void newidle_cost(struct newidle *ni, u64 cost, u64 limit, u64 now)
{
	if (cost > ni->max_cost) {
		ni->max_cost = cost < limit ? cost : limit;
		ni->decay_at = now + NSEC_PER_SEC;
	} else if (time_is_before(ni->decay_at, now)) {
		ni->max_cost = ni->max_cost * 253 / 256;
		ni->decay_at = now + NSEC_PER_SEC;
	}
}

/* May a pull be tried? @die is 0 to 1023. 7.3 sched_balance_newidle(), NI_RANDOM. */
static inline bool newidle_dice(const struct newidle *ni, u32 die)
{
	return ni->ratio >= NEWIDLE_WINDOW || die <= 1 + ni->ratio;
}

#endif
