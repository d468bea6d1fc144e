/* SPDX-License-Identifier: MIT */
/* Keeps timers in a binary heap. */
#include "analysis/timers.h"

#include <stdbool.h>

static bool is_before(const struct timer *a, const struct timer *b)
{
	return a->at < b->at || (!(a->at > b->at) && a->who < b->who);
}

void timers_push(struct timers *timers, double at, uint32_t who, uint32_t turn)
{
	struct timer timer = { at, who, turn };
	size_t i;

	(void)vec_push(&timers->v);
	for (i = timers->v.n - 1; i && is_before(&timer, &timers->v.v[(i - 1) / 2]);
	     i = (i - 1) / 2)
		timers->v.v[i] = timers->v.v[(i - 1) / 2];
	timers->v.v[i] = timer;
}

void timers_pop(struct timers *timers)
{
	struct timer last = timers->v.v[--timers->v.n];
	size_t n = timers->v.n, i = 0;

	for (size_t child = 1; child < n; child = 2 * i + 1) {
		if (child + 1 < n && is_before(&timers->v.v[child + 1], &timers->v.v[child]))
			child++;
		if (!is_before(&timers->v.v[child], &last))
			break;
		timers->v.v[i] = timers->v.v[child];
		i = child;
	}
	if (n)
		timers->v.v[i] = last;
}

void timers_done(struct timers *timers)
{
	vec_done(&timers->v);
}
