/* SPDX-License-Identifier: MIT */
/* Who could ask for the GIL, and who could let go of it. */
#include "model/late.h"

#include "model/span.h"

void late_off_cpu(const struct model_thread *thread, uint64_t from_ns, uint64_t to_ns,
                  uint64_t *ret_line_ns, uint64_t *ret_asleep_ns)
{
	const struct lane *lane = &thread->cpu;

	*ret_line_ns = *ret_asleep_ns = 0;
	for (size_t i = lane_at(lane, from_ns);
	     i < lane->spans.n && lane->spans.v[i].start_ns < to_ns; i++) {
		uint64_t from = later(lane->spans.v[i].start_ns, from_ns);
		uint64_t to = lane_span_end(lane, i) < to_ns ? lane_span_end(lane, i) : to_ns;
		uint8_t state = lane->spans.v[i].state;

		if (state == CPU_UNKNOWN || state == CPU_RUNNING || to <= from)
			continue;
		*(state == CPU_RUNNABLE ? ret_line_ns : ret_asleep_ns) += to - from;
	}
}

/*
 * From when on the thread that waits had a CPU, no earlier than from_ns; otherwise_ns if that
 * cannot be told. It sleeps for one interval at a time: where a sleep was longer, a timer's wake-up
 * was not recorded, and the rest of it was in line for a CPU.
 */
static uint64_t on_cpu(const struct model_thread *t, uint64_t from_ns, uint64_t interval_ns,
                       uint64_t otherwise_ns)
{
	const struct lane *lane = &t->cpu;

	for (size_t i = lane_at(lane, from_ns); i < lane->spans.n; i++) {
		uint64_t start_ns = later(lane->spans.v[i].start_ns, from_ns);
		uint64_t end_ns = lane_span_end(lane, i);
		uint8_t state = lane->spans.v[i].state;

		if (end_ns <= from_ns)
			continue;
		if (state == CPU_RUNNING)
			return start_ns;
		if (state == CPU_UNKNOWN && end_ns - start_ns > 2 * interval_ns)
			break;
	}
	return later(from_ns, otherwise_ns);
}

/* When the thread that waited asked, or UINT64_MAX. */
static uint64_t asked_by(const struct model_thread *t, const struct late_hold *h,
                         uint64_t interval_ns)
{
	const struct lane *lane = &t->gil;

	for (size_t i = lane_at(lane, h->start_ns);
	     i < lane->spans.n && lane->spans.v[i].start_ns < h->end_ns; i++) {
		const struct span *span = &lane->spans.v[i];
		uint64_t from = span->start_ns;

		if (span->state != GIL_WAIT || span->ref != h->gil)
			continue;
		/* Its interval had begun under another holder: at its end it begins anew. */
		if (from < h->start_ns)
			from = on_cpu(t, h->start_ns, interval_ns, h->start_ns);
		if (lane_span_end(lane, i) > from + interval_ns)
			return on_cpu(t, from + interval_ns, interval_ns, h->due_ns);
	}
	return UINT64_MAX;
}

bool late_is(const struct model *model, const struct late_hold *h, uint64_t interval_ns,
             uint64_t slack_ns)
{
	uint64_t asked_ns = UINT64_MAX, line_ns, asleep_ns;

	if (h->due_ns == UINT64_MAX || h->end_ns - h->start_ns <= interval_ns + slack_ns)
		return false;
	for (uint32_t i = 0; i < model->threads.n; i++) {
		uint64_t ns;

		if (i == h->thread)
			continue;
		ns = asked_by(&model->threads.v[i], h, interval_ns);
		asked_ns = ns < asked_ns ? ns : asked_ns;
	}
	if (asked_ns >= h->end_ns)
		return false;
	late_off_cpu(&model->threads.v[h->thread], asked_ns, h->end_ns, &line_ns, &asleep_ns);
	return h->end_ns - asked_ns - line_ns > slack_ns;
}
