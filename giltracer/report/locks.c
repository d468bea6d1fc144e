/* SPDX-License-Identifier: MIT */
/* Where threads were blocked, for all writers; and as JSON. */
#include "locks.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "model/span.h"
#include "report/facts.h"
#include "report/functions.h"
#include "report/json.h"

const char *locks_state_name(unsigned state)
{
	return state == GIL_LOCK_WAIT ? "lock" : state == GIL_STOPPED ? "stopped" : "stops others";
}

bool locks_of_pass(const struct report_pass *pass)
{
	return pass->free_threaded && !pass->model->gil_events && pass->model->park_events;
}

struct locks_shares locks_shares(const struct model_thread *t)
{
	uint64_t life = t->end_ns - t->start_ns, known = life - t->gil_ns[GIL_UNKNOWN];

	return (struct locks_shares){
		.free = facts_percent(t->gil_ns[GIL_NO], known),
		.lock_wait = facts_percent(t->gil_ns[GIL_LOCK_WAIT], known),
		.stopped = facts_percent(t->gil_ns[GIL_STOPPED], known),
		.stops = facts_percent(t->gil_ns[GIL_STOPPING], known),
		.unknown = facts_percent(t->gil_ns[GIL_UNKNOWN], life),
	};
}

/* The function decides, not the line in it. */
static struct locks_place *place_of(struct locks_places *places, const struct report_pass *pass,
                                    unsigned state, uint32_t frame, const char *of)
{
	const struct stacks *frames = functions_frames(pass);

	for (size_t i = 0; i < places->v.n; i++) {
		struct locks_place *place = &places->v.v[i];

		if (place->state == state && place->of == of &&
		    hogs_same_function(frames, place->frame, frame))
			return place;
	}
	*vec_push(&places->v) = (struct locks_place){ .state = state, .frame = frame, .of = of };
	return &places->v.v[places->v.n - 1];
}

static void add_span(struct locks_places *places, const struct report_pass *pass,
                     const struct span *s, uint64_t ns)
{
	const char *of = s->state == GIL_LOCK_WAIT ? pass->model->locks.v[s->ref].of : NULL;
	uint32_t frame = functions_frames(pass) ? s->stack : 0;
	struct locks_place *place = place_of(places, pass, s->state, frame, of);

	place->count++;
	place->ns += ns;
	if (ns <= place->longest_ns)
		return;
	place->longest_ns = ns;
	/* The line of the longest one stands for all. */
	place->frame = frame;
}

static int compare_places(const void *a, const void *b)
{
	const struct locks_place *pa = a, *pb = b;

	return (pa->ns < pb->ns) - (pa->ns > pb->ns);
}

struct locks_places locks_places(const struct report_pass *pass, uint32_t thread)
{
	const struct model *m = pass->model;
	struct locks_places places = { 0 };

	for (size_t i = 0; m->park_events && i < m->threads.n; i++) {
		const struct lane *lane = &m->threads.v[i].gil;

		if (thread != MODEL_NONE && i != thread)
			continue;
		for (size_t k = 0; k < lane->spans.n; k++)
			if (lane->spans.v[k].state >= GIL_LOCK_WAIT)
				add_span(&places, pass, &lane->spans.v[k],
				         lane_span_end(lane, k) - lane->spans.v[k].start_ns);
	}
	if (places.v.n)
		qsort(places.v.v, places.v.n, sizeof(*places.v.v), compare_places);
	return places;
}

static void put_locks(struct jsonw *w, const struct model *m)
{
	jsonw_array(w, "locks");
	for (size_t i = 0; i < m->locks.n; i++) {
		const struct model_lock *lock = &m->locks.v[i];

		if (lock->world || !lock->waits)
			continue;
		jsonw_object(w, NULL);
		jsonw_u64(w, "pid", lock->pid);
		jsonw_hex(w, "address", lock->address);
		jsonw_string(w, "of", *lock->of ? lock->of : NULL);
		jsonw_u64(w, "waits", lock->waits);
		jsonw_u64(w, "wait_ns", lock->wait_ns);
		jsonw_u64(w, "longest_wait_ns", lock->longest_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_blame(struct jsonw *w, const struct model *m, size_t most)
{
	CLEANUP(free) uint32_t *order = facts_lock_blame_order(m);

	jsonw_array(w, "lock_blame");
	for (size_t i = 0; i < m->lock_blame.n && i < most; i++) {
		const struct model_lock_blame *b = &m->lock_blame.v[order[i]];

		jsonw_object(w, NULL);
		jsonw_string(w, "kind", b->state == GIL_STOPPED ? "stop" : "lock");
		json_tid(w, "waiter_tid", m, b->waiter);
		json_tid(w, "released_by_tid", m, b->by);
		jsonw_u64(w, "wait_ns", b->wait_ns);
		jsonw_u64(w, "longest_ns", b->longest_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_places(struct jsonw *w, const struct report_pass *pass)
{
	struct locks_places places = locks_places(pass, MODEL_NONE);

	jsonw_array(w, "blocked");
	for (size_t i = 0; i < places.v.n; i++) {
		const struct locks_place *place = &places.v.v[i];
		struct function f = function_at(pass, place->frame);

		jsonw_object(w, NULL);
		jsonw_string(w, "what", locks_state_name(place->state));
		jsonw_string(w, "function", f.name);
		jsonw_string(w, "file", *f.file ? f.file : NULL);
		jsonw_u64(w, "line", f.line);
		jsonw_string(w, "of", place->of && *place->of ? place->of : NULL);
		jsonw_u64(w, "count", place->count);
		jsonw_u64(w, "total_ns", place->ns);
		jsonw_u64(w, "longest_ns", place->longest_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
	vec_done(&places.v);
}

void locks_json(struct jsonw *w, const struct report_pass *pass, size_t most)
{
	put_locks(w, pass->model);
	put_blame(w, pass->model, most);
	put_places(w, pass);
}
