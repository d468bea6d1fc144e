/* SPDX-License-Identifier: MIT */
/* Merges two sources by time. */
#include "trace/merge.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"

/* have: the side's next event is in ev. */
struct side {
	struct source *source;
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

/* Counters and other totals stay those of the recording. */
static void add_stats(struct merge *m)
{
	const struct source_stats *a = &m->recording.source->stats, *b = &m->wakeups.source->stats;
	struct source_stats *sum = &m->source.stats;

	*sum = *a;
	sum->records += b->records;
	sum->samples += b->samples;
	sum->events += b->events;
	sum->lost += b->lost;
	sum->unknown_records += b->unknown_records;
	sum->unordered += b->unordered;
	sum->leftover_bytes += b->leftover_bytes;
	sum->bytes += b->bytes;
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
		                     .cpu_names = wakeups->names };
	m->recording.source = recording;
	m->wakeups.source = wakeups;
	return &m->source;
}
