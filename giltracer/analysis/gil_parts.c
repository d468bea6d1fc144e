/* SPDX-License-Identifier: MIT */
/* Distributes a thread's GIL states over equal parts of the recording. */
#include "analysis/gil_parts.h"

#include <string.h>

#include "model/span.h"

static const int8_t state_of[GIL_STATES] = {
	[GIL_UNKNOWN] = -1,
	[GIL_NO] = PART_NO_GIL,
	[GIL_HOLD] = PART_HOLD,
	[GIL_WAIT] = PART_WAIT,
	[GIL_SWITCH_WAIT] = PART_WAIT,
	[GIL_FREE_WAIT] = PART_FREE_WAIT,
	[GIL_LOCK_WAIT] = PART_WAIT,
	[GIL_STOPPED] = PART_WAIT,
	[GIL_STOPPING] = PART_HOLD,
};

/* The part in which the last span ended, and the end of that part. */
struct place {
	uint64_t part, limit_ns;
};

static struct place place_of(const struct gil_parts *parts, uint64_t time_ns)
{
	uint64_t part = (time_ns - parts->start_ns) / parts->width_ns;

	return (struct place){ part, parts->start_ns + (part + 1) * parts->width_ns };
}

/* Adds a span. Spans come in order of time, and nearly all are within one part. */
static void add(struct gil_parts *parts, struct place *at, enum gil_part_state state,
                uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns >= at->limit_ns)
		*at = place_of(parts, from_ns);
	while (from_ns < to_ns && at->part < GIL_PARTS) {
		uint64_t end_ns = to_ns < at->limit_ns ? to_ns : at->limit_ns;

		parts->ns[state][at->part] += end_ns - from_ns;
		from_ns = end_ns;
		if (from_ns == at->limit_ns)
			*at = place_of(parts, from_ns);
	}
}

void gil_parts_init(struct gil_parts *ret, const struct model *model, uint32_t thread, bool locks)
{
	const struct lane *lane = &model->threads.v[thread].gil;
	uint64_t dur_ns = model->end_ns - model->start_ns;
	struct place at = { 0, 0 };

	memset(ret, 0, sizeof(*ret));
	ret->start_ns = model->start_ns;
	ret->width_ns = dur_ns ? (dur_ns - 1) / GIL_PARTS + 1 : 1;
	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *span = &lane->spans.v[i];
		int state = !locks && gil_state_is_without(span->state) ? PART_NO_GIL
		                                                        : state_of[span->state];

		if (state >= 0)
			add(ret, &at, (enum gil_part_state)state, span->start_ns,
			    lane_span_end(lane, i));
	}
}
