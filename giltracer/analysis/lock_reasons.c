/* SPDX-License-Identifier: MIT */
/* Which thread is blocked most by locks and stops of the world, where, and by which thread. */
#include "analysis/lock_reasons.h"

#include <string.h>

#define WORTH_A_WORD 1  /* percent of a thread's life: worth reporting */
#define WORTH_ADVICE 10 /* likewise */

#define CHAINS             2  /* the largest number that is reported */
#define CHAIN_WORTH_A_WORD 20 /* percent of the waiting for locks */

/* The thread that spent the largest share of its life in state, or MODEL_NONE. */
static uint32_t most_in(const struct model *model, enum gil_state state)
{
	uint32_t most = MODEL_NONE;
	double percent = 0;

	for (uint32_t i = 0; i < model->threads.n; i++) {
		const struct model_thread *t = &model->threads.v[i];
		double share = facts_percent(t->gil_ns[state], t->end_ns - t->start_ns);

		if (share > percent && share >= WORTH_A_WORD) {
			most = i;
			percent = share;
		}
	}
	return most;
}

/* Finds the place where the thread spent most time in state, and the type of object whose lock it
 * was. */
static void find_place(struct reason *r, const struct analysis *a, enum gil_state state)
{
	struct locks_places places = locks_places(a->pass, r->thread);

	for (size_t i = 0; i < places.v.n; i++) {
		if (places.v.v[i].state != state)
			continue;
		r->frame = places.v.v[i].frame;
		r->of = places.v.v[i].of;
		break;
	}
	vec_done(&places.v);
}

/* Finds the thread whose releases ended most of the thread's blocked time. */
static void find_releaser(struct reason *r, const struct model *model, enum gil_state state)
{
	const struct model_lock_blame *most = NULL;

	for (size_t i = 0; i < model->lock_blame.n; i++) {
		const struct model_lock_blame *b = &model->lock_blame.v[i];

		if (b->waiter == r->thread && b->state == state && b->by < MODEL_UNKNOWN &&
		    (!most || b->wait_ns > most->wait_ns))
			most = b;
	}
	if (!most)
		return;
	r->other = most->by;
	r->other_percent = facts_percent(most->wait_ns, r->ns);
}

/* Returns the share of its life, in percent, for which the most blocked thread is blocked. */
static double add_blocked(struct reasons *to, const struct analysis *a, enum gil_state state,
                          enum reason_code code)
{
	uint32_t thread = most_in(a->model, state);
	const struct model_thread *t;
	struct reason *r;

	if (thread == MODEL_NONE)
		return 0;
	t = &a->model->threads.v[thread];
	r = reasons_add(to, code);
	r->thread = thread;
	r->ns = t->gil_ns[state];
	r->percent = facts_percent(r->ns, t->end_ns - t->start_ns);
	if (state != GIL_STOPPING)
		find_releaser(r, a->model, state);
	if (state != GIL_STOPPED)
		find_place(r, a, state);
	return r->percent;
}

void lock_reasons_find(struct verdict *v, const struct analysis *a)
{
	if (!a->recording->gil_detect)
		return;
	if (add_blocked(&v->because, a, GIL_LOCK_WAIT, REASON_LOCKS) >= WORTH_ADVICE)
		reasons_add(&v->advice, ADVICE_LOCK);
	add_blocked(&v->because, a, GIL_STOPPING, REASON_STOPS);
	add_blocked(&v->because, a, GIL_STOPPED, REASON_STOPPED);
	if (!v->because.v.n)
		reasons_add(&v->because, REASON_NO_LOCKS);
}

void lock_reasons_chains(struct reasons *because, struct reasons *advice, const struct analysis *a)
{
	for (size_t i = 0; i < a->chains.v.n && i < CHAINS; i++) {
		const struct chain *chain = &a->chains.v.v[i];
		double percent = facts_percent(chain->ns, a->chains.ns);
		struct reason *r;

		if (i && percent < CHAIN_WORTH_A_WORD)
			break;
		r = reasons_add(because, REASON_CHAIN);
		r->chain = chain;
		r->percent = percent;
		if (!i && chain->end != CHAIN_FREE && chain->end != CHAIN_UNKNOWN)
			reasons_add(advice, chain->end == CHAIN_WITHOUT_GIL ? ADVICE_LOCK_ASLEEP
			                                                    : ADVICE_LOCK);
	}
}

void lock_reasons_turned_on(struct reasons *to, const struct analysis *a)
{
	const struct recording_python *python = &a->recording->python;
	const char *module = a->model->gil_module;

	if (!python->free_threaded || !a->model->gil_events)
		return;
	if (python->gil && !strcmp(python->gil, "forced")) {
		reasons_add(to, REASON_GIL_FORCED);
		return;
	}
	reasons_add(to, python->gil && !strcmp(python->gil, "off") ? REASON_GIL_TURNED_ON
	                                                           : REASON_GIL_ON)
		->name = module && *module ? module : NULL;
}
