/* SPDX-License-Identifier: MIT */
/*
 * Lanes: contiguous spans of one thread, appended at the end. A lane that has begun always has a
 * last span, which is still open.
 */
#ifndef GILTRACER_MODEL_SPAN_H
#define GILTRACER_MODEL_SPAN_H

#include "base/vec.h"
#include "model/model.h"

static inline uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* How much two stretches of time have in common. */
static inline uint64_t overlap_ns(uint64_t from_ns, uint64_t to_ns, uint64_t other_from_ns,
                                  uint64_t other_to_ns)
{
	uint64_t from = later(from_ns, other_from_ns);
	uint64_t to = to_ns < other_to_ns ? to_ns : other_to_ns;

	return to > from ? to - from : 0;
}

/* A span of a GIL lane without a frame. index: of the GIL or, depending on the state, of the
 * lock. */
static inline struct span gil_span(uint64_t start_ns, unsigned state, uint32_t index,
                                   unsigned flags)
{
	return (struct span){ .start_ns = start_ns,
		              .state = (uint8_t)state,
		              .flags = (uint8_t)flags,
		              .gil = { .owner_hint = -1, .index = index } };
}

/* A span of a CPU lane without a stack, on no CPU. */
static inline struct span cpu_span(uint64_t start_ns, unsigned state, uint32_t waker,
                                   unsigned flags)
{
	return (struct span){ .start_ns = start_ns,
		              .state = (uint8_t)state,
		              .flags = (uint8_t)flags,
		              .cpu = { .number = -1, .waker = waker } };
}

/* Whether b continues a's state. The fields of the union's gil cover the bytes of cpu. */
static inline bool span_continues(const struct span *a, const struct span *b)
{
	return a->state == b->state && a->flags == b->flags && a->gil.index == b->gil.index &&
	       a->gil.frame == b->gil.frame && a->gil.owner_hint == b->gil.owner_hint;
}

static inline struct span *lane_last(struct lane *lane)
{
	return &lane->spans.v[lane->spans.n - 1];
}

/* The end of span i. */
static inline uint64_t lane_span_end(const struct lane *lane, size_t i)
{
	return i + 1 < lane->spans.n ? lane->spans.v[i + 1].start_ns : lane->end_ns;
}

/* How much of span i is in a stretch of time. */
static inline uint64_t lane_span_in(const struct lane *lane, size_t i, uint64_t from_ns,
                                    uint64_t to_ns)
{
	return overlap_ns(lane->spans.v[i].start_ns, lane_span_end(lane, i), from_ns, to_ns);
}

/* Index of the span that contains time_ns: the last one that does not start later, or the first
 * one. */
static inline size_t lane_at(const struct lane *lane, uint64_t time_ns)
{
	size_t after = SEARCH(lane->spans.n, i, lane->spans.v[i].start_ns <= time_ns);

	return after ? after - 1 : 0;
}

/* Whether the lane's last span must be kept: a hold or a wait, if count is set. */
static inline bool lane_keeps_last(struct lane *lane, bool count)
{
	const struct span *last = lane_last(lane);

	return count && (last->state == GIL_HOLD || last->state == GIL_WAIT);
}

/*
 * The lane is in span's state from span->start_ns on, which is not before the last span's start. A
 * last span of no length is replaced, and an equal one is continued; holds and waits are always
 * kept if count is set (in GIL lanes), because they are counted. Inline, because nearly all events
 * end here, and copying a span while it is still being stored costs more than all the rest.
 */
static inline void lane_push(struct lane *lane, const struct span *span, bool count)
{
	if (lane->spans.n && !lane_keeps_last(lane, count) &&
	    lane_last(lane)->start_ns == span->start_ns)
		lane->spans.n--;
	if (lane->spans.n && !lane_keeps_last(lane, count) && span_continues(lane_last(lane), span))
		return;
	*vec_push(&lane->spans) = *span;
}

/* Replaces everything from span->start_ns on by span. */
void lane_overwrite(struct lane *lane, const struct span *span, bool count);

/* Closes the lane at end_ns, which is not before the last span's start, and drops an empty last
 * span. */
void lane_finish(struct lane *lane, uint64_t end_ns, bool count);

void lane_done(struct lane *lane);

#endif
