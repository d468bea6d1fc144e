/* SPDX-License-Identifier: MIT */
#include "model/span.h"

static bool counted(const struct span *span, bool count)
{
	return count && (span->state == GIL_HOLD || span->state == GIL_WAIT);
}

static bool same(const struct span *a, const struct span *b)
{
	return a->state == b->state && a->ref == b->ref && a->stack == b->stack &&
	       a->cpu == b->cpu && a->flags == b->flags;
}

void lane_push(struct lane *lane, const struct span *span, bool count)
{
	struct span *last = NULL;

	if (lane->spans.n && !counted(lane_last(lane), count)) {
		last = lane_last(lane);
		if (last->start_ns == span->start_ns) {
			lane->spans.n--;
			last = NULL;
			if (lane->spans.n && !counted(lane_last(lane), count))
				last = lane_last(lane);
		}
	}
	if (!last || !same(last, span))
		*vec_push(&lane->spans) = *span;
}

void lane_overwrite(struct lane *lane, const struct span *span, bool count)
{
	while (lane->spans.n && lane_last(lane)->start_ns >= span->start_ns)
		lane->spans.n--;
	lane_push(lane, span, count);
}

void lane_finish(struct lane *lane, uint64_t end_ns, bool count)
{
	if (lane->spans.n > 1 && lane_last(lane)->start_ns == end_ns &&
	    !counted(lane_last(lane), count))
		lane->spans.n--;
	lane->end_ns = end_ns;
}

void lane_done(struct lane *lane)
{
	vec_done(&lane->spans);
}
