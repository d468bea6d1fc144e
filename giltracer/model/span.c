/* SPDX-License-Identifier: MIT */
/* Overwrites and ends the spans of a lane. */
#include "model/span.h"

void lane_overwrite(struct lane *lane, const struct span *span, bool count)
{
	while (lane->spans.n && lane_last(lane)->start_ns >= span->start_ns)
		lane->spans.n--;
	lane_push(lane, span, count);
}

void lane_finish(struct lane *lane, uint64_t end_ns, bool count)
{
	if (lane->spans.n > 1 && lane_last(lane)->start_ns == end_ns &&
	    !lane_keeps_last(lane, count))
		lane->spans.n--;
	lane->end_ns = end_ns;
}

void lane_done(struct lane *lane)
{
	vec_done(&lane->spans);
}
