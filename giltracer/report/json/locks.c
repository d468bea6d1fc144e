/* SPDX-License-Identifier: MIT */
/* Waits for locks, and stops of the world of a free-threaded interpreter, as JSON. */
#include "report/json/locks.h"

#include "analysis/facts.h"
#include "analysis/functions.h"
#include "analysis/locks.h"
#include "report/json/json.h"

static const char *state_name(unsigned state)
{
	return state == GIL_LOCK_WAIT ? "lock" : state == GIL_STOPPED ? "stopped" : "stops others";
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

static void put_blame(struct jsonw *w, const struct analysis *a, size_t most)
{
	const struct model *m = a->model;

	jsonw_array(w, "lock_blame");
	for (size_t i = 0; i < m->lock_blame.n && i < most; i++) {
		const struct model_lock_blame *b = &m->lock_blame.v[a->lock_blame_order[i]];

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

static void put_function(struct jsonw *w, const struct function *f)
{
	jsonw_string(w, "function", f->name);
	jsonw_string(w, "file", *f->file ? f->file : NULL);
	jsonw_u64(w, "line", f->line);
}

static void put_places(struct jsonw *w, const struct analysis *a)
{
	jsonw_array(w, "blocked");
	for (size_t i = 0; i < a->places.v.n; i++) {
		const struct locks_place *place = &a->places.v.v[i];
		struct function f = function_at(a->pass, place->frame);

		jsonw_object(w, NULL);
		jsonw_string(w, "what", state_name(place->state));
		put_function(w, &f);
		jsonw_string(w, "of", place->of && *place->of ? place->of : NULL);
		jsonw_u64(w, "count", place->count);
		jsonw_u64(w, "total_ns", place->ns);
		jsonw_u64(w, "longest_ns", place->longest_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_chains(struct jsonw *w, const struct analysis *a, size_t most)
{
	static const char *const ends[CHAIN_ENDS] = { "holds the GIL", "without the GIL",
		                                      "hand-off", "unknown" };

	jsonw_array(w, "lock_chains");
	for (size_t i = 0; i < a->chains.v.n && i < most; i++) {
		const struct chain *chain = &a->chains.v.v[i];
		struct function in = function_at(a->pass, chain->waits_in);
		struct function at = function_at(a->pass, chain->at);

		jsonw_object(w, NULL);
		put_function(w, &in);
		jsonw_string(w, "meanwhile", ends[chain->end]);
		jsonw_bool(w, "through", chain->through);
		jsonw_object(w, "at");
		put_function(w, &at);
		jsonw_end(w);
		json_tid(w, "tid", a->model, chain->thread);
		jsonw_u64(w, "wait_ns", chain->ns);
		jsonw_u64(w, "asleep_ns", chain->asleep_ns);
		jsonw_u64(w, "parts", chain->parts);
		jsonw_u64(w, "longest_ns", chain->longest_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_path(struct jsonw *w, const struct analysis *a, size_t most)
{
	static const char *const reasons[PATH_REASONS] = {
		[PATH_GIL] = "with the GIL", [PATH_WITHOUT_GIL] = "without the GIL",
		[PATH_ASLEEP] = "asleep",    [PATH_TIME_OUT] = "time-out",
		[PATH_NO_CPU] = "no CPU",    [PATH_HANDOFF] = "hand-off",
		[PATH_UNKNOWN] = "unknown",
	};

	jsonw_array(w, "critical_path");
	for (size_t i = 0; i < a->path.rows.n && i < most; i++) {
		const struct path_part *part = &a->path.rows.v[i];
		struct function at = function_at(a->pass, part->at);

		jsonw_object(w, NULL);
		jsonw_string(w, "reason", reasons[part->reason]);
		put_function(w, &at);
		json_tid(w, "tid", a->model, part->thread);
		jsonw_u64(w, "ns", part->ns);
		jsonw_u64(w, "parts", part->parts);
		jsonw_u64(w, "longest_ns", part->longest_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
}

void locks_json(struct jsonw *w, const struct analysis *a, size_t most)
{
	static const char *const keys[] = { "locks", "lock_blame", "lock_chains", "critical_path",
		                            "blocked" };

	if (!a->pass->locks_known) {
		for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
			jsonw_null(w, keys[i]);
		return;
	}
	put_locks(w, a->model);
	put_blame(w, a, most);
	put_chains(w, a, most);
	put_path(w, a, most);
	put_places(w, a);
}
