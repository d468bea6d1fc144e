/* SPDX-License-Identifier: MIT */
/* Places where threads were blocked. */
#include "analysis/locks.h"

#include <stdlib.h>

#include "analysis/facts.h"
#include "analysis/functions.h"
#include "model/span.h"

bool locks_of_pass(const struct recording_pass *pass)
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

/* Waits are grouped by function, not by line. */
static struct locks_place *place_of(struct locks_places *places, const struct recording_pass *pass,
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

static void add_span(struct locks_places *places, const struct recording_pass *pass,
                     const struct span *s, uint64_t ns)
{
	const char *of = s->state == GIL_LOCK_WAIT ? pass->model->locks.v[s->gil.lock].of : NULL;
	uint32_t frame = functions_frames(pass) ? s->gil.frame : 0;
	struct locks_place *place = place_of(places, pass, s->state, frame, of);

	place->count++;
	place->ns += ns;
	if (ns <= place->longest_ns)
		return;
	place->longest_ns = ns;
	/* The row shows the line of its longest wait. */
	place->frame = frame;
}

static int compare_places(const void *a, const void *b)
{
	const struct locks_place *pa = a, *pb = b;

	return (pa->ns < pb->ns) - (pa->ns > pb->ns);
}

struct locks_places locks_places(const struct recording_pass *pass, uint32_t thread)
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
