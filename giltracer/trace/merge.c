/* SPDX-License-Identifier: MIT */
/* Merges sources by time. */
#include "trace/merge.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "base/vec.h"

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

static int merge_one(struct merge *m, struct event *ret, struct error *err)
{
	struct side *from = &m->recording;

	if (fetch(&m->recording, err) < 0)
		return -1;
	if (!m->recording.have || fetch_wakeup(m, err) < 0)
		return m->recording.have ? -1 : 0;
	m->started = true;
	if (m->wakeups.have && m->wakeups.ev.time_ns < m->recording.ev.time_ns)
		from = &m->wakeups;
	*ret = from->ev;
	from->have = false;
	return 1;
}

static int merge_next(struct source *source, struct event *ret, struct error *err)
{
	struct merge *m = (struct merge *)source;
	int more = merge_one(m, ret, err);

	if (more <= 0)
		add_stats(m);
	return more;
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

/* What the library records while uprobes record the GIL. */
static bool is_extra(const struct event *ev)
{
	return ev->type == EV_ASKED || (ev->type >= EV_PARK && ev->type <= EV_UNPARK);
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

static int beside_one(struct beside *b, struct event *ret, struct error *err)
{
	struct side *from = &b->perf;

	if (fetch_part(&b->gil, err) < 0 || fetch_part(&b->perf, err) < 0)
		return -1;
	if (!b->perf.have || (b->gil.have && b->gil.ev.time_ns < b->perf.ev.time_ns))
		from = &b->gil;
	if (!from->have)
		return 0;
	*ret = from->ev;
	from->have = false;
	return 1;
}

static int beside_next(struct source *source, struct event *ret, struct error *err)
{
	struct beside *b = (struct beside *)source;
	int more = beside_one(b, ret, err);

	if (more > 0)
		return more;
	sum_stats(&source->stats, &b->perf.source->stats, &b->gil.source->stats);
	source->counters = b->perf.source->counters;
	source->counter_count = b->perf.source->counter_count;
	return more;
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
		.frames = perf->frames,
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

	b->gil.takes = is_extra;
	return &b->source;
}

/* ---- uprobes, and the library that took over */

/* The library knows a GIL by the address of its mutex, uprobes by that of the struct
 * _gil_runtime_state that contains it (CPython 3.12 and later): four members, each of 8 bytes with
 * its padding, a condition variable, the mutex. */
#define MUTEX_AT (32 + sizeof(pthread_cond_t))

/* Marks the stacks of switches, whose records are positions in a file. */
#define OF_SWITCHES (UINT64_C(1) << 63)

enum { UPROBES, LIBRARY, SWITCHES, SIDES };

enum seam_state { SEAM_UNKNOWN, SEAM_WAITS, SEAM_HOLDS, SEAM_FREE };

/* Of a thread. @first_ns, @second_ns: times of the library's first two records of it; 0: none yet */
struct seam {
	uint64_t first_ns, second_ns;
	enum seam_state state;
};

/**
 * @threads: index in seams, by pid and tid; @probed: processes of which uprobes recorded events
 */
struct handover {
	struct source source;
	struct handover_options options;
	struct side sides[SIDES];
	struct idmap threads, probed;
	VEC(struct seam) seams;
};

/* Whether the side records this kind of event at this time. A loss of uprobes may also be one of
 * the last events before the library's. */
static bool is_used(const struct handover *h, unsigned side, struct event *ev)
{
	const bool before = ev->time_ns < h->options.from_ns;

	if (ev->type == EV_LOST && side == UPROBES) {
		if (!before)
			ev->flags |= EVF_GIL_ONLY;
		return before || ev->lost.since_ns < h->options.from_ns;
	}
	if (ev->type == EV_LOST)
		ev->flags |= side == LIBRARY ? EVF_GIL_ONLY : EVF_NO_GIL;
	if (side == LIBRARY)
		return is_of_gil(ev);
	if (ev->type <= EV_SAVE)
		return side == UPROBES;
	return side == UPROBES ? before : side == SWITCHES && !before;
}

static int fetch_used(struct handover *h, unsigned index, struct error *err)
{
	struct side *side = &h->sides[index];

	while (!side->have && !side->over) {
		if (fetch(side, err) < 0)
			return -1;
		side->have = side->have && is_used(h, index, &side->ev);
	}
	return 0;
}

static struct seam *seam_of(struct handover *h, const struct event *ev)
{
	uint32_t i;

	if (idmap_add(&h->threads, idmap_pair(ev->pid, ev->tid), (uint32_t)h->seams.n, &i))
		*vec_push(&h->seams) = (struct seam){ 0 };
	return &h->seams.v[i];
}

static enum seam_state state_after(const struct event *ev)
{
	switch (ev->type) {
	case EV_REQUEST:
		return SEAM_WAITS;
	case EV_ACQUIRE:
		return SEAM_HOLDS;
	default:
		return SEAM_FREE;
	}
}

/* A request that precedes an acquire of the same turn changes nothing after that acquire. */
static bool is_known(const struct seam *s, const struct event *ev)
{
	enum seam_state state = state_after(ev);

	if (ev->type == EV_RELEASED)
		return false;
	return s->state == state || (state == SEAM_WAITS && s->state == SEAM_HOLDS);
}

static bool is_repeated(struct seam *s, const struct event *ev, bool by_library)
{
	if (!by_library)
		return s->second_ns || (s->first_ns && is_known(s, ev));
	if (!s->first_ns)
		s->first_ns = ev->time_ns;
	else if (!s->second_ns && ev->time_ns != s->first_ns)
		s->second_ns = ev->time_ns;
	return (!s->second_ns || s->second_ns == ev->time_ns) && is_known(s, ev);
}

static void translate(const struct handover *h, struct event *ev)
{
	if (ev->type == EV_ACQUIRE || !ev->gil.address)
		return;
	if (!h->options.shared)
		ev->gil.address -= MUTEX_AT;
	else if (idmap_get(&h->probed, ev->pid) != IDMAP_NONE)
		ev->gil.address = 0;
}

/* Whether the event is new. */
static bool is_new(struct handover *h, unsigned side, struct event *ev)
{
	struct seam *s;
	uint32_t ignored;

	if (ev->type == EV_STACK && side == SWITCHES)
		ev->stack.record |= OF_SWITCHES;
	if (side == LIBRARY && ev->type <= EV_ASKED)
		translate(h, ev);
	if (ev->type > EV_SAVE)
		return true;
	s = seam_of(h, ev);
	if (is_repeated(s, ev, side == LIBRARY))
		return false;
	s->state = state_after(ev);
	if (side == UPROBES)
		idmap_add(&h->probed, ev->pid, 0, &ignored);
	return true;
}

static void add_all_stats(struct handover *h)
{
	sum_stats(&h->source.stats, &h->sides[UPROBES].source->stats,
	          &h->sides[LIBRARY].source->stats);
	sum_stats(&h->source.stats, &h->source.stats, &h->sides[SWITCHES].source->stats);
	h->source.counters = h->sides[UPROBES].source->counters;
	h->source.counter_count = h->sides[UPROBES].source->counter_count;
}

/* At the same time, the order of the sides. */
static int handover_one(struct handover *h, struct event *ret, struct error *err)
{
	for (;;) {
		unsigned from = SIDES;

		for (unsigned i = 0; i < SIDES; i++) {
			if (fetch_used(h, i, err) < 0)
				return -1;
			if (h->sides[i].have &&
			    (from == SIDES || h->sides[i].ev.time_ns < h->sides[from].ev.time_ns))
				from = i;
		}
		if (from == SIDES)
			return 0;
		*ret = h->sides[from].ev;
		h->sides[from].have = false;
		if (is_new(h, from, ret))
			return 1;
	}
}

static int handover_next(struct source *source, struct event *ret, struct error *err)
{
	struct handover *h = (struct handover *)source;
	int more = handover_one(h, ret, err);

	if (more <= 0)
		add_all_stats(h);
	return more;
}

static void handover_close(struct source *source)
{
	struct handover *h = (struct handover *)source;

	/* The first one last: it owns the names. */
	for (unsigned i = SIDES; i-- > 0;)
		source_close(h->sides[i].source);
	idmap_done(&h->threads);
	idmap_done(&h->probed);
	vec_done(&h->seams);
	free(h);
}

static uint32_t handover_stack_at(struct source *source, uint64_t record)
{
	struct handover *h = (struct handover *)source;
	unsigned side = record & OF_SWITCHES ? SWITCHES : UPROBES;

	return source_stack_at(h->sides[side].source, record & ~OF_SWITCHES);
}

struct source *source_handover(struct source *uprobes, struct source *library,
                               struct source *switches, const struct handover_options *options)
{
	static const struct source_ops ops = {
		.next = handover_next,
		.close = handover_close,
		.stack_at = handover_stack_at,
	};
	struct handover *h = xcalloc(1, sizeof(*h));

	h->source = (struct source){
		.ops = &ops,
		.names = uprobes->names,
		.stacks = uprobes->stacks,
		.frames = uprobes->frames,
		.by_perf = uprobes->by_perf,
	};
	h->options = *options;
	h->sides[UPROBES].source = uprobes;
	h->sides[LIBRARY].source = library;
	h->sides[SWITCHES].source = switches;
	return &h->source;
}
