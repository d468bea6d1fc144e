/* SPDX-License-Identifier: MIT */
/* Merges sources by time. */
#include "trace/merge.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* have: ev is the next event of the side. takes: whether the event is used; NULL: all are */
struct side {
	struct source *source;
	bool (*takes)(const struct event *ev);
	struct event ev;
	bool have, over;
};

struct merge {
	struct source source;
	struct side recording, wakeups;
	bool started;
};

/* Fills in side->ev if there is one more event. */
static int fetch(struct side *side, struct error *err)
{
	int more;

	if (side->have || side->over)
		return 0;
	more = source_next(side->source, &side->ev, err);
	if (more < 0)
		return -1;
	side->have = more;
	side->over = !more;
	return 0;
}

static bool is_wanted(const struct event *ev)
{
	return ev->type == EV_WAKING || ev->type == EV_PICK || ev->type == EV_MOVE ||
	       ev->type == EV_LOST;
}

static int fetch_wakeup(struct merge *m, struct error *err)
{
	struct side *side = &m->wakeups;

	for (;;) {
		if (fetch(side, err) < 0)
			return -1;
		if (!side->have || (is_wanted(&side->ev) &&
		                    (m->started || side->ev.time_ns >= m->recording.ev.time_ns)))
			return 0;
		side->have = false;
	}
}

static void sum_stats(struct source_stats *sum, const struct source_stats *a,
                      const struct source_stats *b)
{
	*sum = *a;
	sum->records += b->records;
	sum->samples += b->samples;
	sum->events += b->events;
	sum->lost += b->lost;
	sum->unknown_records += b->unknown_records;
	sum->unordered += b->unordered;
	sum->leftover_bytes += b->leftover_bytes;
	sum->bytes += b->bytes;
	sum->unfinished += b->unfinished;
	if (!sum->truncated_at) {
		sum->truncated_at = b->truncated_at;
		memcpy(sum->truncated_text, b->truncated_text, sizeof(sum->truncated_text));
	}
}

/* Counters keep the recording's numbers. */
static void add_stats(struct merge *m)
{
	sum_stats(&m->source.stats, &m->recording.source->stats, &m->wakeups.source->stats);
	m->source.counters = m->recording.source->counters;
	m->source.counter_count = m->recording.source->counter_count;
}

static int merge_next(struct source *source, struct event *ret, struct error *err)
{
	struct merge *m = (struct merge *)source;
	struct side *from = &m->recording;

	if (fetch(&m->recording, err) < 0)
		return -1;
	if (!m->recording.have || fetch_wakeup(m, err) < 0) {
		add_stats(m);
		return m->recording.have ? -1 : 0;
	}
	m->started = true;
	if (m->wakeups.have && m->wakeups.ev.time_ns < m->recording.ev.time_ns)
		from = &m->wakeups;
	*ret = from->ev;
	from->have = false;
	add_stats(m);
	return 1;
}

static void merge_close(struct source *source)
{
	struct merge *m = (struct merge *)source;

	source_close(m->recording.source);
	source_close(m->wakeups.source);
	free(m);
}

static uint32_t merge_stack_at(struct source *source, uint64_t record)
{
	return source_stack_at(((struct merge *)source)->recording.source, record);
}

struct source *source_merge(struct source *recording, struct source *wakeups)
{
	static const struct source_ops ops = {
		.next = merge_next,
		.close = merge_close,
		.stack_at = merge_stack_at,
	};
	struct merge *m = xcalloc(1, sizeof(*m));

	m->source = (struct source){ .ops = &ops,
		                     .names = recording->names,
		                     .stacks = recording->stacks,
		                     .frames = recording->frames,
		                     .by_perf = recording->by_perf,
		                     .cpu_names = wakeups->names };
	m->recording.source = recording;
	m->wakeups.source = wakeups;
	return &m->source;
}

/* ---- the library inside the program, and perf */

struct beside {
	struct source source;
	struct side gil, perf;
};

/* Events of GILs and locks, which the library records. */
static bool is_of_gil(const struct event *ev)
{
	return ev->type <= EV_UNPARK || ev->type == EV_LOST;
}

static bool is_not_of_gil(const struct event *ev)
{
	return ev->type > EV_UNPARK;
}

static bool is_asked(const struct event *ev)
{
	return ev->type == EV_ASKED;
}

/* Fetches the next event that is used from this side. */
static int fetch_part(struct side *side, struct error *err)
{
	while (!side->have && !side->over) {
		if (fetch(side, err) < 0)
			return -1;
		if (side->have && side->takes && !side->takes(&side->ev))
			side->have = false;
	}
	if (side->have && side->ev.type == EV_LOST && side->takes)
		side->ev.flags |= side->takes == is_of_gil ? EVF_GIL_ONLY : EVF_NO_GIL;
	return 0;
}

static int beside_next(struct source *source, struct event *ret, struct error *err)
{
	struct beside *b = (struct beside *)source;
	struct side *from = &b->perf;

	if (fetch_part(&b->gil, err) < 0 || fetch_part(&b->perf, err) < 0)
		return -1;
	sum_stats(&source->stats, &b->perf.source->stats, &b->gil.source->stats);
	source->counters = b->perf.source->counters;
	source->counter_count = b->perf.source->counter_count;
	if (!b->perf.have || (b->gil.have && b->gil.ev.time_ns < b->perf.ev.time_ns))
		from = &b->gil;
	if (!from->have)
		return 0;
	*ret = from->ev;
	from->have = false;
	return 1;
}

static void beside_close(struct source *source)
{
	struct beside *b = (struct beside *)source;

	source_close(b->gil.source);
	source_close(b->perf.source);
	free(b);
}

static uint32_t beside_stack_at(struct source *source, uint64_t record)
{
	return source_stack_at(((struct beside *)source)->perf.source, record);
}

static struct beside *beside_new(struct source *gil, struct source *perf)
{
	static const struct source_ops ops = {
		.next = beside_next,
		.close = beside_close,
		.stack_at = beside_stack_at,
	};
	struct beside *b = xcalloc(1, sizeof(*b));

	b->source = (struct source){
		.ops = &ops,
		.names = perf->names,
		.stacks = perf->stacks,
		.frames = gil->frames,
		.by_perf = perf->by_perf,
	};
	b->gil.source = gil;
	b->perf.source = perf;
	return b;
}

struct source *source_beside(struct source *gil, struct source *perf)
{
	struct beside *b = beside_new(gil, perf);

	b->gil.takes = is_of_gil;
	b->perf.takes = is_not_of_gil;
	return &b->source;
}

struct source *source_with_held(struct source *held, struct source *perf)
{
	struct beside *b = beside_new(held, perf);

	b->gil.takes = is_asked;
	return &b->source;
}
