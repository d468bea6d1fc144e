/* SPDX-License-Identifier: MIT */
/* The document of --json: writes it, and reads it back as a summary. */
#include "report/json.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/facts.h"
#include "analysis/functions.h"
#include "analysis/locks.h"
#include "analysis/tasks.h"
#include "analysis/whatif.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "report/findings.h"
#include "report/threads.h"
#include "report/words.h"
#include "model/span.h"
#include "trace/names.h"
#include "trace/source.h"

/* Null if it is not known. */
static void put_known(struct jsonw *w, const char *key, bool known, uint64_t value)
{
	if (known)
		jsonw_u64(w, key, value);
	else
		jsonw_null(w, key);
}

static void put_place(struct jsonw *w, const struct function *f)
{
	jsonw_string(w, "function", f->name);
	jsonw_string(w, "file", *f->file ? f->file : NULL);
	put_known(w, "line", f->line, f->line);
}

static void put_member(struct jsonw *w, const char *key, const struct function *f)
{
	if (!f->name) {
		jsonw_null(w, key);
		return;
	}
	jsonw_object(w, key);
	put_place(w, f);
	jsonw_end(w);
}

static void put_function(struct jsonw *w, const struct recording_pass *pass, const struct hog *hog)
{
	struct function f = function_of(pass, hog), caller = function_caller(pass, hog);
	struct function user = function_user(pass, hog);

	put_place(w, &f);
	json_tid(w, "tid", pass->model, hog->thread);
	put_member(w, "caller", &caller);
	put_member(w, "user", &user);
}

static void put_hog(struct jsonw *w, const struct recording *recording,
                    const struct recording_pass *pass, const struct hog *hog)
{
	static const char *const names[] = {
		[GAIN_KNOWN] = NULL,
		[NO_GAIN_UNKNOWN] = "unknown-time",
		[NO_GAIN_LITTLE] = "little",
		[NO_GAIN_DIFFERENT] = "not-reproduced",
		[NO_GAIN_TOO_LONG] = "too-long",
		[NO_GAIN_SLOW_START] = "slow-start",
		[NO_GAIN_NOT_A_CALL] = "not-a-call",
	};
	static const char *const causes[CAUSES] = {
		[CAUSE_CALL] = "call",
		[CAUSE_COLLECTOR] = "collector",
		[CAUSE_IMPORT] = "import",
		[CAUSE_DEALLOCATION] = "deallocation",
	};
	uint64_t gain_ns = 0;
	enum no_gain why = function_gain(pass, hog, &gain_ns);
	struct function of;

	jsonw_object(w, NULL);
	put_function(w, pass, hog);
	jsonw_string(w, "native", function_native(pass, hog));
	jsonw_string(w, "cause", causes[function_cause(pass, hog)]);
	jsonw_bool(w, "inferred", function_is_inferred(pass, hog));
	jsonw_string(w, "source", function_source(recording, pass, hog, &of));
	jsonw_u64(w, "holds", hog->overdue_holds);
	jsonw_u64(w, "hold_ns", hog->overdue_ns);
	jsonw_u64(w, "longest_hold_ns", hog->overdue_longest_ns);
	jsonw_u64(w, "longest_hold_at_ns", hog->overdue_longest_at_ns - pass->model->start_ns);
	jsonw_u64(w, "wait_caused_ns", hog->overdue_wait_ns);
	jsonw_u64(w, "held_off_cpu_ns", hog->off_cpu_ns);
	jsonw_u64(w, "held_asleep_ns", hog->asleep_ns);
	put_known(w, "gain_ns", why == GAIN_KNOWN, gain_ns);
	jsonw_string(w, "no_gain", names[why]);
	jsonw_end(w);
}

static void put_all(struct jsonw *w, const struct recording_pass *pass, const struct hog *hog)
{
	jsonw_object(w, NULL);
	put_function(w, pass, hog);
	jsonw_u64(w, "holds", hog->holds);
	jsonw_u64(w, "hold_ns", hog->hold_ns);
	jsonw_u64(w, "longest_hold_ns", hog->longest_ns);
	jsonw_u64(w, "longest_hold_at_ns", hog->longest_at_ns - pass->model->start_ns);
	jsonw_u64(w, "wait_caused_ns", hog->wait_ns);
	jsonw_u64(w, "held_off_cpu_ns", hog->hold_off_cpu_ns);
	jsonw_u64(w, "held_asleep_ns", hog->hold_asleep_ns);
	jsonw_end(w);
}

/* Write the members "hogs" and "functions" into the open object. */
static void functions_json(struct jsonw *w, const struct recording *recording,
                           const struct recording_pass *pass)
{
	size_t n = pass->hogs ? pass->hogs->v.n : 0;

	jsonw_array(w, "hogs");
	for (size_t i = 0; i < n && pass->hogs->v.v[i].overdue_holds; i++)
		put_hog(w, recording, pass, &pass->hogs->v.v[i]);
	jsonw_end(w);
	jsonw_array(w, "functions");
	for (size_t i = 0; i < n; i++)
		if (pass->hogs->v.v[i].wait_ns)
			put_all(w, pass, &pass->hogs->v.v[i]);
	jsonw_end(w);
}

/* Waits for locks, and stops of the world of a free-threaded interpreter, as JSON. */

static const char *state_name(unsigned state)
{
	return state == GIL_LOCK_WAIT  ? "lock"
	       : state == GIL_SPINNING ? "spins"
	       : state == GIL_STOPPED  ? "stopped"
	                               : "stops others";
}

static bool is_wanted(const struct model_lock *lock)
{
	return !lock->world && (lock->waits || lock->spins);
}

static int compare_locks(const void *va, const void *vb)
{
	const struct model_lock *const *a = va, *const *b = vb;
	uint64_t ns_a = (*a)->wait_ns + (*a)->spin_ns, ns_b = (*b)->wait_ns + (*b)->spin_ns;

	return ns_a == ns_b ? (*a > *b) - (*a < *b) : ns_a < ns_b ? 1 : -1;
}

static void put_locks(struct jsonw *w, const struct model *m, size_t most)
{
	VEC(const struct model_lock *) locks = { 0 };

	for (size_t i = 0; i < m->locks.n; i++)
		if (is_wanted(&m->locks.v[i]))
			*vec_push(&locks) = &m->locks.v[i];
	vec_sort(&locks, compare_locks);
	jsonw_array(w, "locks");
	for (size_t i = 0; i < locks.n && i < most; i++) {
		const struct model_lock *lock = locks.v[i];

		jsonw_object(w, NULL);
		jsonw_u64(w, "pid", lock->pid);
		jsonw_hex(w, "address", lock->address);
		jsonw_bool(w, "runtime", lock->runtime);
		jsonw_string(w, "of", *lock->of ? lock->of : NULL);
		jsonw_string(w, "name", lock->name && *lock->name ? lock->name : NULL);
		jsonw_u64(w, "waits", lock->waits);
		jsonw_u64(w, "wait_ns", lock->wait_ns);
		jsonw_u64(w, "longest_wait_ns", lock->longest_ns);
		jsonw_u64(w, "spins", lock->spins);
		jsonw_u64(w, "spin_ns", lock->spin_ns);
		jsonw_u64(w, "most_waiters", lock->most_waiters);
		jsonw_u64(w, "wanted_ns", lock->wanted_ns);
		jsonw_u64(w, "releases", lock->releases);
		jsonw_end(w);
	}
	jsonw_end(w);
	vec_done(&locks);
}

static void put_lock_blame(struct jsonw *w, const struct analysis *a, size_t most)
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

static void put_lock_function(struct jsonw *w, const struct function *f)
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
		put_lock_function(w, &f);
		jsonw_string(w, "of", place->of && *place->of ? place->of : NULL);
		jsonw_string(w, "name", place->name && *place->name ? place->name : NULL);
		jsonw_u64(w, "count", place->count);
		jsonw_u64(w, "total_ns", place->ns);
		jsonw_u64(w, "longest_ns", place->longest_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
}

/* The lock for which a thread waits in this frame. */
static void put_lock_name(struct jsonw *w, const struct analysis *a, uint32_t frame)
{
	static const char *const kinds[LOCK_KINDS] = {
		[LOCK_PLAIN] = "Lock",
		[LOCK_RLOCK] = "RLock",
		[LOCK_CONDITION] = "Condition",
		[LOCK_SEMAPHORE] = "Semaphore",
		[LOCK_EVENT] = "Event",
		[LOCK_BARRIER] = "Barrier",
		[LOCK_QUEUE] = "queue",
		[LOCK_THREAD] = "thread",
		[LOCK_IMPORT] = "import",
		[LOCK_LOGGING] = "logging handler",
		[LOCK_FUTURES] = "concurrent.futures",
		[LOCK_ASYNCIO] = "asyncio",
	};
	struct lock_name lock = lock_name_of(a->recording, a->pass, frame);

	jsonw_object(w, "lock");
	jsonw_string(w, "kind", kinds[lock.kind]);
	jsonw_string(w, "name", lock.expression);
	jsonw_string(w, "of", lock.of);
	put_lock_function(w, &lock.in);
	jsonw_u64(w, "made_in_line", lock.made);
	jsonw_end(w);
}

static void put_deadlocks(struct jsonw *w, const struct analysis *a)
{
	const struct model *m = a->model;

	jsonw_array(w, "deadlocks");
	for (size_t i = 0; i < m->deadlocks.n; i++) {
		const struct model_deadlock *d = &m->deadlocks.v[i];

		jsonw_object(w, NULL);
		jsonw_u64(w, "start_ns", d->start_ns - m->start_ns);
		jsonw_u64(w, "ns", d->end_ns - d->start_ns);
		jsonw_u64(w, "times", d->times);
		jsonw_array(w, "threads");
		for (uint32_t k = 0; k < d->count; k++) {
			const struct lane *lane = &m->threads.v[d->threads[k]].gil;

			jsonw_object(w, NULL);
			json_tid(w, "tid", m, d->threads[k]);
			json_tid(w, "waits_for_tid", m, d->threads[(k + 1) % d->count]);
			put_lock_name(w, a, lane->spans.v[lane_at(lane, d->start_ns)].gil.frame);
			jsonw_end(w);
		}
		jsonw_end(w);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_chains(struct jsonw *w, const struct analysis *a, size_t most)
{
	static const char *const ends[CHAIN_ENDS] = { "holds the GIL", "without the GIL",
		                                      "hand-off", "deadlock", "unknown" };

	jsonw_array(w, "lock_chains");
	for (size_t i = 0; i < a->chains.v.n && i < most; i++) {
		const struct chain *chain = &a->chains.v.v[i];
		struct function in = function_at(a->pass, chain->waits_in);
		struct function at = function_at(a->pass, chain->at);

		jsonw_object(w, NULL);
		put_lock_function(w, &in);
		put_lock_name(w, a, chain->waits_in);
		jsonw_string(w, "meanwhile", ends[chain->end]);
		jsonw_bool(w, "through", chain->through);
		jsonw_object(w, "at");
		put_lock_function(w, &at);
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

static void put_order(struct jsonw *w, const struct analysis *a, const struct model_order *order)
{
	jsonw_object(w, NULL);
	json_tid(w, "tid", a->model, order->thread);
	put_lock_name(w, a, order->frame);
	jsonw_end(w);
}

/* Pairs of locks that were taken in both orders; at most this many. */
static void put_orders(struct jsonw *w, const struct analysis *a, size_t most)
{
	const struct model *m = a->model;
	size_t n = 0;

	jsonw_array(w, "lock_orders");
	for (size_t i = 0; i < m->orders.n && n < most; i++) {
		if (!model_order_is_inverted(m, i))
			continue;
		n++;
		jsonw_array(w, NULL);
		put_order(w, a, &m->orders.v[m->orders.v[i].reverse]);
		put_order(w, a, &m->orders.v[i]);
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
		put_lock_function(w, &at);
		json_tid(w, "tid", a->model, part->thread);
		jsonw_u64(w, "ns", part->ns);
		jsonw_u64(w, "parts", part->parts);
		jsonw_u64(w, "longest_ns", part->longest_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
}

/* null: not asked for, or nothing was replayed */
static void put_without_gil(struct jsonw *w, const struct analysis *a)
{
	static const char *const kinds[WHATIF_KINDS] = { "Python code", "C code", "asleep" };
	struct whatif_free f;
	bool any = a->recording->without_gil && analysis_without_gil(&f, a);

	if (!any || !f.run_count) {
		jsonw_null(w, "without_gil");
		if (any)
			whatif_free_done(&f);
		return;
	}
	jsonw_object(w, "without_gil");
	jsonw_bool(w, "reproduced", f.no_gain == GAIN_KNOWN);
	jsonw_bool(w, "states_known", f.states_known);
	jsonw_real(w, "factor", a->recording->without_gil->factor, 2);
	jsonw_u64(w, "recorded_ns", f.duration_ns);
	jsonw_u64(w, "replayed_ns", f.unchanged.end_ns);
	jsonw_array(w, "runs");
	for (unsigned i = 0; i < f.run_count; i++) {
		jsonw_object(w, NULL);
		jsonw_real(w, "cpus", f.runs[i].cpus, 2);
		jsonw_u64(w, "expected_ns", f.runs[i].end_ns);
		jsonw_u64(w, "cpu_ns", f.runs[i].worked_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
	jsonw_array(w, "critical_path");
	for (size_t i = 0; i < f.path.n; i++) {
		struct function at = function_at(a->pass, f.path.v[i].frame);

		jsonw_object(w, NULL);
		jsonw_string(w, "what", kinds[f.path.v[i].kind]);
		put_lock_function(w, &at);
		json_tid(w, "tid", a->model, f.path.v[i].thread);
		jsonw_u64(w, "ns", (uint64_t)f.path.v[i].ns);
		jsonw_end(w);
	}
	jsonw_end(w);
	jsonw_u64(w, "lock_ns", (uint64_t)f.lock_ns);
	jsonw_end(w);
	whatif_free_done(&f);
}

static void put_late(struct jsonw *w, const struct analysis *a, size_t most)
{
	struct locks_late_list late = locks_late(a->pass);

	jsonw_array(w, "last_to_stop");
	for (size_t i = 0; i < late.v.n && i < most; i++) {
		const struct locks_late *l = &late.v.v[i];
		struct function f = function_at(a->pass, l->frame);

		jsonw_object(w, NULL);
		json_tid(w, "tid", a->model, l->thread);
		put_lock_function(w, &f);
		jsonw_u64(w, "count", l->count);
		jsonw_u64(w, "waiting_ns", l->waiting_ns);
		jsonw_u64(w, "longest_ns", l->longest_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
	vec_done(&late.v);
}

static void put_stop(struct jsonw *w, const struct analysis *a, const struct model_stop *stop)
{
	struct function in = function_at(a->pass, stop->frame);
	struct function last = function_at(a->pass, stop->last_frame);

	jsonw_object(w, NULL);
	json_tid(w, "tid", a->model, stop->by);
	put_lock_function(w, &in);
	/* Only the library tells, if it has seen the request. */
	if (stop->address)
		jsonw_bool(w, "collection", stop->collects);
	else
		jsonw_null(w, "collection");
	jsonw_u64(w, "at_ns", stop->request_ns - a->model->start_ns);
	jsonw_u64(w, "total_ns", locks_stop_ns(stop));
	jsonw_u64(w, "waiting_ns", locks_stop_waiting_ns(stop));
	if (stop->last == MODEL_NONE) {
		jsonw_null(w, "last");
	} else {
		jsonw_object(w, "last");
		json_tid(w, "tid", a->model, stop->last);
		put_lock_function(w, &last);
		jsonw_end(w);
	}
	jsonw_end(w);
}

/* The stops in which others were waited for longest. */
static int compare_stops(const void *a, const void *b)
{
	uint64_t x = locks_stop_waiting_ns(*(const struct model_stop *const *)a);
	uint64_t y = locks_stop_waiting_ns(*(const struct model_stop *const *)b);

	return (x < y) - (x > y);
}

static void put_stops(struct jsonw *w, const struct analysis *a, size_t most)
{
	struct locks_stops stops = locks_stops(a->model);
	const struct model_stop **order = xcalloc(a->model->stops.n + 1, sizeof(*order));

	if (!a->pass->free_threaded) {
		jsonw_null(w, "stops");
		free(order);
		return;
	}
	for (size_t i = 0; i < a->model->stops.n; i++)
		order[i] = &a->model->stops.v[i];
	qsort(order, a->model->stops.n, sizeof(*order), compare_stops);
	jsonw_object(w, "stops");
	jsonw_u64(w, "count", stops.count);
	jsonw_u64(w, "collections", stops.collections);
	jsonw_u64(w, "total_ns", stops.ns);
	jsonw_u64(w, "longest_ns", stops.longest_ns);
	jsonw_u64(w, "waiting_ns", stops.waiting_ns);
	jsonw_array(w, "latest");
	for (size_t i = 0; i < a->model->stops.n && i < most; i++)
		put_stop(w, a, order[i]);
	jsonw_end(w);
	put_late(w, a, most);
	jsonw_end(w);
	free(order);
}

/* Write what blocked threads into the open object: "locks", "lock_blame", "lock_chains" and
 * "critical_path" (at most this many rows of each, the largest), and "blocked"; null if waits for locks
 * were not recorded. */
static void locks_json(struct jsonw *w, const struct analysis *a, size_t most)
{
	static const char *const keys[] = { "locks",       "lock_blame", "lock_chains",
		                            "lock_orders", "deadlocks",  "critical_path",
		                            "blocked",     "stops" };

	if (!a->pass->locks_known) {
		for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
			jsonw_null(w, keys[i]);
		return;
	}
	put_locks(w, a->model, most);
	put_lock_blame(w, a, most);
	put_chains(w, a, most);
	put_orders(w, a, most);
	put_deadlocks(w, a);
	put_path(w, a, most);
	put_places(w, a);
	put_stops(w, a, most);
}

/* Counts of samples, as JSON. */

static void put_activities(struct jsonw *w, const uint64_t *what)
{
	for (unsigned i = 0; i < SAMPLED_WHATS; i++)
		jsonw_u64(w, sampled_what_name(i), what[i]);
}

/* The interpreter whose GIL a thread used last. */
static uint32_t last_gil_of(const struct sample_thread *thread)
{
	return thread->runs.n ? thread->runs.v[thread->runs.n - 1].gil_of : 0;
}

static void put_thread(struct jsonw *w, const struct analysis *a, const struct sampled_thread *t)
{
	const struct samples *s = a->pass->samples;
	const struct sample_thread *of = &s->threads.v[t->of];

	jsonw_object(w, NULL);
	jsonw_u64(w, "pid", of->pid);
	jsonw_u64(w, "tid", of->tid);
	jsonw_string(w, "name",
	             t->thread == MODEL_NONE ? names_get(s->names, of->name)
	                                     : facts_thread_name(a->pass, t->thread));
	jsonw_u64(w, "gil_of", last_gil_of(of));
	jsonw_u64(w, "samples", t->samples);
	put_activities(w, t->what);
	jsonw_end(w);
}

static void put_gil(struct jsonw *w, const struct sampled_gil *gil)
{
	jsonw_object(w, NULL);
	jsonw_u64(w, "pid", gil->pid);
	jsonw_u64(w, "gil_of", gil->gil_of);
	jsonw_u64(w, "held", gil->held);
	jsonw_end(w);
}

static void put_sampled_function(struct jsonw *w, const struct samples *s, uint32_t name,
                                 uint32_t file, uint32_t line)
{
	jsonw_string(w, "function", names_get(s->names, name));
	jsonw_string(w, "file", file ? names_get(s->names, file) : NULL);
	put_known(w, "line", line, line);
}

static void put_sampled_place(struct jsonw *w, const struct samples *s,
                              const struct sampled_place *p)
{
	jsonw_object(w, NULL);
	put_sampled_function(w, s, p->name, p->file, p->line);
	if (p->caller) {
		jsonw_object(w, "caller");
		put_sampled_function(w, s, p->caller, p->caller_file, p->caller_line);
		jsonw_end(w);
	} else {
		jsonw_null(w, "caller");
	}
	jsonw_string(w, "what", sampled_what_name(p->what));
	jsonw_u64(w, "tid", p->threads == 1 ? s->threads.v[p->thread].tid : 0);
	jsonw_u64(w, "threads", p->threads);
	jsonw_u64(w, "samples", p->samples);
	jsonw_u64(w, "waiters", p->waiters);
	jsonw_end(w);
}

/* Write the member "samples": counts of samples, or null; with at most this many places. */
static void samples_json(struct jsonw *w, const struct analysis *a, size_t most)
{
	const struct samples *s = a->pass->samples;

	if (!s) {
		jsonw_null(w, "samples");
		return;
	}
	jsonw_object(w, "samples");
	jsonw_u64(w, "hz", s->hz);
	jsonw_bool(w, "gil_only", s->gil_only);
	jsonw_u64(w, "count", s->times.n);
	jsonw_u64(w, "missed", s->missed);
	jsonw_u64(w, "stacks", s->stacks_read);
	jsonw_u64(w, "torn", s->torn);
	jsonw_u64(w, "held", a->sampled.held);
	jsonw_array(w, "gils");
	for (size_t i = 0; i < a->sampled.gils.n; i++)
		put_gil(w, &a->sampled.gils.v[i]);
	jsonw_end(w);
	jsonw_array(w, "threads");
	for (size_t i = 0; i < a->sampled.threads.n; i++)
		put_thread(w, a, &a->sampled.threads.v[i]);
	jsonw_end(w);
	jsonw_array(w, "places");
	for (size_t i = 0; i < a->sampled.places.n && i < most; i++)
		put_sampled_place(w, s, &a->sampled.places.v[i]);
	jsonw_end(w);
	jsonw_end(w);
}

/* Users of the CPUs while threads were runnable, as JSON. */

static const char *kind_of(const struct group_blame *row, const char *program)
{
	if (row->longest_waiter == MODEL_NONE)
		return "several";
	if (row->longest_holder == MODEL_UNKNOWN)
		return "unknown";
	if (row->longest_holder == MODEL_NONE)
		return program ? "program" : "nobody";
	return "thread";
}

static void put_row(struct jsonw *w, const struct recording_pass *pass,
                    const struct group_blame *row)
{
	uint32_t by = row->longest_holder;
	const char *program = cpu_users_program(pass, by, row->name);

	jsonw_object(w, NULL);
	json_tid(w, "tid", pass->model, row->longest_waiter);
	json_tid(w, "by_tid", pass->model, by == MODEL_UNKNOWN ? MODEL_NONE : by);
	jsonw_string(w, "by_name", program);
	jsonw_string(w, "by", kind_of(row, program));
	jsonw_u64(w, "runnable_ns", row->wait_ns);
	jsonw_end(w);
}

/* The last row is the sum of the omitted ones. */
static void put_groups(struct jsonw *w, const struct analysis *a, size_t most)
{
	struct group_blame rest = { .longest_waiter = MODEL_NONE,
		                    .longest_holder = MODEL_NONE,
		                    .wait_ns = a->cpu_waits.wait_ns };

	for (size_t i = 0; i < a->cpu_waits.v.n && i < most; i++) {
		put_row(w, a->pass, &a->cpu_waits.v.v[i]);
		rest.wait_ns -= a->cpu_waits.v.v[i].wait_ns;
	}
	if (a->cpu_waits.v.n > most)
		put_row(w, a->pass, &rest);
}

/*
 * Write the member "starvation": a row for each runnable thread and each user of the CPU that it
 * waited for. If there are more than most, one for each group and user, at most that many, with the
 * names of the two in its largest row; and a last one, with nobody, for the time of the omitted
 * rows.
 */
static void starvation_json(struct jsonw *w, const struct analysis *a, size_t most)
{
	size_t n = blame_pair_count(a->model, WAIT_FOR_CPU);

	jsonw_array(w, "starvation");
	if (n > most)
		put_groups(w, a, most);
	for (size_t i = 0; n <= most && i < n; i++) {
		struct group_blame pair = blame_pair(a->model, WAIT_FOR_CPU, i);

		put_row(w, a->pass, &pair);
	}
	jsonw_end(w);
}

/* Tasks of event loops, as JSON. */

static const char *slices_name(const struct analysis *a, uint32_t id)
{
	return id ? names_get(a->pass->slices->names, id) : NULL;
}

/* The tid of a thread of the slices. */
static void put_tid(struct jsonw *w, const char *key, const struct analysis *a, uint32_t thread)
{
	jsonw_u64(w, key, a->pass->slices->threads[thread].tid);
}

/* A time, written relative to the start of the recording; null if ns is 0. */
static void put_time(struct jsonw *w, const char *key, const struct analysis *a, uint64_t ns)
{
	put_known(w, key, ns, ns > a->model->start_ns ? ns - a->model->start_ns : 0);
}

static void put_rows(struct jsonw *w, const char *key, const struct analysis *a,
                     const struct task_rows *rows, uint32_t group)
{
	bool waits = rows == &a->tasks.waits;
	const struct task_row *row;
	size_t n;

	row = task_rows_of(rows, group, &n);
	jsonw_array(w, key);
	for (size_t i = 0; i < n; i++) {
		jsonw_object(w, NULL);
		jsonw_string(w, "function", slices_name(a, row[i].function));
		if (waits)
			put_known(w, "line", row[i].line, row[i].line);
		jsonw_u64(w, "count", row[i].count);
		if (waits)
			jsonw_u64(w, "ns", row[i].ns);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_step(struct jsonw *w, const struct analysis *a, const struct task_delay *d)
{
	if (d->start_ns == d->end_ns) {
		jsonw_null(w, "longest_step");
		return;
	}
	jsonw_object(w, "longest_step");
	jsonw_u64(w, "task", d->task);
	put_time(w, "at_ns", a, d->start_ns);
	jsonw_u64(w, "ns", d->end_ns - d->start_ns);
	json_tid(w, "loop_tid", a->model, d->thread);
	jsonw_string(w, "function", slices_name(a, d->function));
	jsonw_u64(w, "function_ns", d->busy_ns);
	jsonw_u64(w, "gil_wait_ns", d->gil_ns);
	jsonw_end(w);
}

static void put_delay(struct jsonw *w, const struct analysis *a, const struct task_delay *d)
{
	const struct aio *aio = a->pass->slices->tasks;
	struct function f;

	if (d->start_ns == d->end_ns) {
		jsonw_null(w, "longest_late");
		return;
	}
	f = function_at(a->pass, d->holder_frame);
	jsonw_object(w, "longest_late");
	jsonw_u64(w, "task", d->task);
	put_time(w, "at_ns", a, d->start_ns);
	jsonw_u64(w, "ns", d->end_ns - d->start_ns);
	jsonw_bool(w, "inferred", d->inferred);
	jsonw_string(w, "woken_by",
	             d->step == AIO_NONE ? NULL
	                                 : slices_name(a, aio->steps.v[d->step].waker.function));
	json_tid(w, "loop_tid", a->model, d->thread);
	jsonw_string(w, "function", slices_name(a, d->function));
	jsonw_u64(w, "function_ns", d->busy_ns);
	jsonw_u64(w, "slept_ns", d->slept_ns);
	jsonw_u64(w, "other_steps", d->others);
	jsonw_u64(w, "gil_wait_ns", d->gil_ns);
	json_tid(w, "holder_tid", a->model, d->holder);
	jsonw_string(w, "holder_function", f.name);
	jsonw_end(w);
}

/* Why the slowest tasks of a group take longer than the fast half; null if they are too few. */
static void put_requests(struct jsonw *w, const struct analysis *a, const struct task_requests *r)
{
	static const char *const states[REQUEST_STATES] = {
		[REQUEST_RUNNING] = "running", [REQUEST_GIL] = "gil",
		[REQUEST_LATE] = "late",       [REQUEST_LATE_GIL] = "late_gil",
		[REQUEST_WAITING] = "waiting", [REQUEST_UNKNOWN] = "unknown",
		[REQUEST_OTHERS] = "others",
	};

	if (!r->count) {
		jsonw_null(w, "requests");
		return;
	}
	jsonw_object(w, "requests");
	jsonw_u64(w, "count", r->count);
	jsonw_u64(w, "fast", r->fast);
	jsonw_u64(w, "slow", r->slow);
	jsonw_u64(w, "p50_ns", r->p50_ns);
	jsonw_u64(w, "p95_ns", r->p95_ns);
	jsonw_u64(w, "p99_ns", r->p99_ns);
	jsonw_u64(w, "longest_ns", r->longest_ns);
	jsonw_array(w, "causes");
	for (size_t i = 0; i < r->causes.n; i++) {
		const struct request_cause *c = &r->causes.v[i];

		jsonw_object(w, NULL);
		jsonw_string(w, "what", states[c->state]);
		jsonw_string(w, "function", slices_name(a, c->function));
		put_known(w, "line", c->line, c->line);
		if (c->state == REQUEST_OTHERS)
			jsonw_u64(w, "causes", c->causes);
		jsonw_u64(w, "fast_ns", c->fast_ns);
		jsonw_u64(w, "slow_ns", c->slow_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
	jsonw_array(w, "slowest");
	for (size_t i = 0; i < r->slowest.n; i++) {
		const struct aio_task *t = &a->pass->slices->tasks->v.v[r->slowest.v[i]];

		jsonw_object(w, NULL);
		jsonw_u64(w, "task", r->slowest.v[i]);
		put_tid(w, "tid", a, t->thread);
		put_time(w, "from_ns", a, t->first_ns);
		jsonw_u64(w, "ns", t->last_ns - t->first_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
	jsonw_end(w);
}

static void put_group(struct jsonw *w, const struct analysis *a, uint32_t i)
{
	const struct task_group *g = &a->tasks.v.v[i];

	jsonw_object(w, NULL);
	jsonw_string(w, "name", str_get(&g->name));
	jsonw_bool(w, "named", g->named);
	jsonw_string(w, "loop", aio_loop_name(g->loop));
	jsonw_u64(w, "tasks", g->tasks);
	jsonw_u64(w, "done", g->done);
	jsonw_u64(w, "raised", g->raised);
	jsonw_u64(w, "steps", g->steps);
	jsonw_u64(w, "life_ns", g->life_ns);
	jsonw_u64(w, "running_ns", g->running_ns);
	jsonw_u64(w, "waiting_ns", g->waiting_ns);
	jsonw_u64(w, "late_ns", g->late_ns);
	jsonw_u64(w, "unknown_ns", g->unknown_ns);
	jsonw_u64(w, "late_inferred_ns", g->inferred_ns);
	jsonw_u64(w, "late_gil_wait_ns", g->gil_ns);
	put_delay(w, a, &g->delay);
	put_step(w, a, &g->step);
	put_rows(w, "waits", a, &a->tasks.waits, i);
	put_rows(w, "woken_by", a, &a->tasks.wakers, i);
	put_rows(w, "created_by", a, &a->tasks.creators, i);
	put_requests(w, a, &g->requests);
	jsonw_end(w);
}

static const char *end_name(enum aio_end end)
{
	static const char *const names[] = {
		[AIO_ALIVE] = "alive",
		[AIO_DONE] = "done",
		[AIO_RAISED] = "raised",
		[AIO_LOST] = "lost",
	};

	return names[end];
}

static void put_creator(struct jsonw *w, const struct analysis *a, const struct aio_task *t)
{
	if (!t->created) {
		jsonw_null(w, "created_by");
		return;
	}
	jsonw_object(w, "created_by");
	put_tid(w, "tid", a, t->creator.thread);
	put_known(w, "task", t->creator.task != AIO_NONE, t->creator.task);
	jsonw_string(w, "function", slices_name(a, t->creator.function));
	jsonw_end(w);
}

static void put_task(struct jsonw *w, const struct analysis *a, uint32_t i)
{
	const struct aio_task *t = &a->pass->slices->tasks->v.v[i];

	jsonw_object(w, NULL);
	jsonw_u64(w, "task", i);
	jsonw_u64(w, "group", a->tasks.of[i]);
	jsonw_string(w, "loop", aio_loop_name(t->loop));
	jsonw_u64(w, "pid", t->pid);
	put_tid(w, "tid", a, t->thread);
	jsonw_string(w, "name", slices_name(a, t->name));
	jsonw_string(w, "function", slices_name(a, t->function));
	put_creator(w, a, t);
	put_time(w, "from_ns", a, t->first_ns);
	put_time(w, "first_run_ns", a, t->run_ns);
	put_time(w, "to_ns", a, t->last_ns);
	jsonw_string(w, "end", end_name(t->end));
	jsonw_u64(w, "steps", t->steps);
	jsonw_u64(w, "life_ns", t->last_ns - t->first_ns);
	jsonw_u64(w, "running_ns", t->running_ns);
	jsonw_u64(w, "waiting_ns", t->waiting_ns);
	jsonw_u64(w, "late_ns", t->late_ns);
	jsonw_u64(w, "unknown_ns", t->unknown_ns);
	jsonw_u64(w, "late_inferred_ns", t->inferred_ns);
	jsonw_u64(w, "longest_late_ns", t->longest_late_ns);
	jsonw_string(w, "suspended_in", slices_name(a, t->place));
	put_known(w, "line", t->line, t->line);
	jsonw_end(w);
}

/* The maximum number of tasks if other lists have at most this many entries; a task takes half a
 * kilobyte. */
static size_t tasks_json_most(size_t most)
{
	return most == SIZE_MAX ? most : most / 10;
}

/* Write the member "tasks": tasks of event loops, in at most this many groups, and one by one; null
 * if there were none. */
static void tasks_json(struct jsonw *w, const struct analysis *a, size_t most)
{
	const struct aio *aio = a->tasks.v.n ? a->pass->slices->tasks : NULL;

	if (!aio) {
		jsonw_null(w, "tasks");
		return;
	}
	jsonw_object(w, "tasks");
	jsonw_u64(w, "count", aio->v.n);
	jsonw_u64(w, "steps", aio->steps.n);
	jsonw_array(w, "groups");
	for (uint32_t i = 0; i < a->tasks.v.n && i < most; i++)
		put_group(w, a, i);
	jsonw_end(w);
	jsonw_array(w, "list");
	for (uint32_t i = 0; i < aio->v.n && i < tasks_json_most(most); i++)
		put_task(w, a, i);
	jsonw_end(w);
	jsonw_end(w);
}

static void put_levels(struct jsonw *w, const struct analysis *a, uint32_t group)
{
	static const char *const names[TASK_STATES] = {
		[TASK_RUNNING] = "running",
		[TASK_LATE] = "late",
		[TASK_WAITING] = "waiting",
		[TASK_UNKNOWN] = "unknown",
	};
	CLEANUP(task_levels_done) struct task_levels levels;

	task_levels_init(&levels, &a->tasks, a->pass, group);
	jsonw_object(w, NULL);
	jsonw_bool(w, "exact", levels.exact);
	jsonw_array(w, "dur");
	for (size_t i = 0; i < levels.v.n; i++)
		jsonw_u64(w, NULL, levels.v.v[i].dur_ns);
	jsonw_end(w);
	for (unsigned s = 0; s < TASK_STATES; s++) {
		jsonw_array(w, names[s]);
		for (size_t i = 0; i < levels.v.n; i++)
			jsonw_u64(w, NULL, levels.v.v[i].ns[s]);
		jsonw_end(w);
	}
	jsonw_end(w);
}

void tasks_meta(struct jsonw *w, const struct analysis *a)
{
	if (!a->tasks.v.n)
		return;
	jsonw_object(w, "tasks");
	jsonw_u64(w, "pass", (size_t)(a->pass - a->recording->passes));
	jsonw_u64(w, "groups", a->tasks.v.n);
	jsonw_array(w, "lanes");
	for (uint32_t i = 0; i < a->tasks.v.n && i < TASK_LANES; i++)
		put_levels(w, a, i);
	jsonw_end(w);
	jsonw_end(w);
}

static void put_patterns(struct jsonw *w, const struct recording_pass *pass)
{
	jsonw_array(w, "patterns");
	for (size_t i = 0; pass->patterns && i < pass->patterns->v.n; i++) {
		const struct pattern *p = &pass->patterns->v.v[i];
		CLEANUP(str_done) struct str text = { 0 };

		pattern_text(pass->model, p, &text);
		jsonw_object(w, NULL);
		jsonw_string(w, "code", pattern_name(p->kind));
		jsonw_string(w, "title", pattern_title(p->kind));
		json_tid(w, "tid", pass->model, p->thread);
		json_tid(w, "other_tid", pass->model, p->other);
		jsonw_u64(w, "count", p->count);
		jsonw_u64(w, "ns", p->ns);
		jsonw_u64(w, "longest_ns", p->longest_ns);
		jsonw_string(w, "function", p->function);
		jsonw_string(w, "text", str_get(&text));
		jsonw_string(w, "advice", pattern_advice(p->kind));
		jsonw_end(w);
	}
	jsonw_end(w);
}

/* Threads, GILs, and the document. */

/* Extension modules that need the GIL of a free-threaded interpreter. */
static void put_imports(struct jsonw *w, const struct recording_pass *pass, size_t most)
{
	const struct model *m = pass->model;

	jsonw_string(w, "gil_module",
	             m->gil_events && m->imports.n ? m->imports.v[0].module : NULL);
	jsonw_array(w, "gil_modules");
	for (size_t i = 0; i < m->imports.n && i < most; i++) {
		struct function f = function_at(pass, m->imports.v[i].frame);

		jsonw_object(w, NULL);
		jsonw_string(w, "module", m->imports.v[i].module);
		put_lock_function(w, &f);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_python(struct jsonw *w, const struct recording_python *python,
                       const struct recording_pass *pass, size_t most)
{
	jsonw_object(w, "python");
	jsonw_string(w, "executable", python->executable);
	jsonw_string(w, "version", python->version);
	jsonw_string(w, "implementation", python->implementation);
	jsonw_string(w, "build_id", python->build_id);
	jsonw_bool(w, "free_threaded", python->free_threaded);
	if (python->free_threaded) {
		jsonw_string(w, "gil", python->gil);
		put_imports(w, pass, most);
	}
	jsonw_array(w, "gil_functions");
	for (size_t i = 0; i < python->function_count; i++) {
		jsonw_object(w, NULL);
		jsonw_string(w, "name", python->functions[i].name);
		jsonw_u64(w, "offset", python->functions[i].offset);
		jsonw_string(w, "kind", python->functions[i].kind);
		jsonw_end(w);
	}
	jsonw_end(w);
	jsonw_end(w);
}

static void put_passes(struct jsonw *w, const struct recording *recording)
{
	jsonw_array(w, "passes");
	for (size_t i = 0; i < recording->pass_count; i++) {
		const struct recording_pass *pass = &recording->passes[i];
		struct facts_totals totals = facts_totals(pass->model);

		jsonw_object(w, NULL);
		jsonw_string(w, "name", pass_kind_name(pass->kind));
		jsonw_i64(w, "exit_status", pass->exit_status);
		jsonw_u64(w, "wall_ns", pass->wall_ns);
		jsonw_u64(w, "start_ns", pass->model->start_ns);
		jsonw_u64(w, "events", pass->source ? pass->source->stats.events : 0);
		jsonw_u64(w, "lost", pass->source ? pass->source->stats.lost : 0);
		jsonw_u64(w, "releases_probed", totals.releases_probed);
		jsonw_u64(w, "releases_inferred", totals.releases_inferred);
		if (pass->quota.quota_us) {
			jsonw_object(w, "cpu_quota");
			jsonw_u64(w, "quota_ns", pass->quota.quota_us * 1000);
			jsonw_u64(w, "period_ns", pass->quota.period_us * 1000);
			jsonw_u64(w, "periods", pass->quota.periods);
			jsonw_u64(w, "throttled", pass->quota.throttled);
			jsonw_end(w);
		}
		jsonw_end(w);
	}
	jsonw_end(w);
}

void json_thread_members(struct jsonw *w, const struct recording_pass *pass, uint32_t thread)
{
	const struct model_thread *t = &pass->model->threads.v[thread];

	jsonw_u64(w, "pid", t->pid);
	jsonw_u64(w, "tid", t->tid);
	jsonw_string(w, "name", facts_thread_name(pass, thread));
	jsonw_bool(w, "main", t->main);
	thread_json(w, pass, t);
}

static void put_threads(struct jsonw *w, const struct analysis *a)
{
	jsonw_array(w, "threads");
	for (size_t i = 0; i < a->model->threads.n; i++) {
		jsonw_object(w, NULL);
		json_thread_members(w, a->pass, a->thread_order[i]);
		jsonw_end(w);
	}
	jsonw_end(w);
}

void json_gil_members(struct jsonw *w, const struct model_gil *gil)
{
	jsonw_u64(w, "pid", gil->pid);
	jsonw_hex(w, "address", gil->address);
	jsonw_u64(w, "held_ns", gil->held_ns);
	jsonw_u64(w, "wanted_ns", gil->wanted_ns);
	jsonw_u64(w, "handover_ns", gil->handover_ns);
}

static void put_gils(struct jsonw *w, const struct model *model)
{
	jsonw_array(w, "gils");
	for (size_t i = 0; i < model->gils.n; i++) {
		jsonw_object(w, NULL);
		json_gil_members(w, &model->gils.v[i]);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_blame(struct jsonw *w, const struct analysis *a, size_t most)
{
	const struct model *model = a->model;

	jsonw_array(w, "blame");
	for (size_t i = 0; i < model->blame.n && i < most; i++) {
		const struct model_blame *blame = &model->blame.v[a->blame_order[i]];

		jsonw_object(w, NULL);
		json_tid(w, "waiter_tid", model, blame->waiter);
		json_tid(w, "holder_tid", model, blame->holder);
		jsonw_u64(w, "wait_ns", blame->wait_ns);
		if (blame->holder == MODEL_NONE)
			jsonw_u64(w, "no_cpu_ns", blame->no_cpu_ns);
		jsonw_u64(w, "gil", blame->gil);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_counters(struct jsonw *w, const struct analysis *a)
{
	jsonw_array(w, "counters");
	for (size_t i = 0; i < a->counters.v.n; i++) {
		const struct counter_row *row = &a->counters.v.v[i];

		jsonw_object(w, NULL);
		jsonw_string(w, "name", a->pass->source->counters[row->counter]);
		json_tid(w, "tid", a->model, row->thread);
		jsonw_u64(w, "count", row->count);
		jsonw_u64(w, "samples", row->samples);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static size_t count_inverted(const struct model *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->orders.n; i++)
		n += model_order_is_inverted(m, i);
	return n;
}

static size_t count_locks(const struct model *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->locks.n; i++)
		n += is_wanted(&m->locks.v[i]);
	return n;
}

static size_t count_late(const struct recording_pass *pass)
{
	struct locks_late_list late = locks_late(pass);
	size_t n = late.v.n;

	vec_done(&late.v);
	return n;
}

/* The full number of rows of each shortened list. */
static void put_shortened(struct jsonw *w, const struct analysis *a, size_t most)
{
	const struct recording_pass *pass = a->pass;
	const struct model *m = a->model;
	const struct {
		const char *key;
		size_t n, most;
	} lists[] = {
		{ "blame", m->blame.n, most },
		{ "locks", count_locks(m), most },
		{ "gil_modules", m->imports.n, most },
		{ "lock_blame", m->lock_blame.n, most },
		{ "lock_chains", a->chains.v.n, most },
		{ "lock_orders", count_inverted(m), most },
		{ "last_to_stop", count_late(pass), most },
		{ "critical_path", a->path.rows.n, most },
		{ "starvation", m->cpu_blame.n, most },
		{ "lines", a->lines.v.n + a->lines.left, a->lines.v.n },
		{ "findings", a->findings.v.n + a->findings.left, a->findings.v.n },
		{ "tasks", pass->slices && pass->slices->tasks ? pass->slices->tasks->v.n : 0,
		  tasks_json_most(most) },
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		if (lists[i].n <= lists[i].most)
			continue;
		if (!any)
			jsonw_object(w, "shortened");
		any = true;
		jsonw_u64(w, lists[i].key, lists[i].n);
	}
	if (any)
		jsonw_end(w);
}

/* Sentences, or null. */
static void put_reasons(struct jsonw *w, const char *key, const struct analysis *a,
                        const struct reasons *reasons)
{
	CLEANUP(str_done) struct str text = { 0 };

	verdict_add_text(&text, a, reasons);
	jsonw_string(w, key, reasons->v.n ? str_get(&text) : NULL);
}

static void put_verdict(struct jsonw *w, const struct analysis *a)
{
	const struct verdict *v = &a->verdict;

	jsonw_object(w, "verdict");
	jsonw_string(w, "kind", verdict_kind_name(v->kind));
	put_reasons(w, "headline", a, &v->headline);
	put_reasons(w, "context", a, &v->context);
	put_reasons(w, "advice", a, &v->advice);
	jsonw_string(w, "quality", verdict_quality_name(v->quality));
	jsonw_end(w);
}

static void put_finding_places(struct jsonw *w, const struct analysis *a, const struct finding *f)
{
	jsonw_array(w, "places");
	for (size_t i = 0; i < f->places.n; i++) {
		const struct finding_place *p = &f->places.v[i];

		jsonw_object(w, NULL);
		if (p->thread == MODEL_NONE)
			jsonw_u64(w, "task_group", p->group);
		else
			json_tid(w, "tid", a->model, p->thread);
		put_time(w, "from_ns", a, p->from_ns);
		put_time(w, "to_ns", a, p->to_ns);
		jsonw_u64(w, "cost_ns", p->cost_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_finding(struct jsonw *w, const struct analysis *a, const struct finding *f)
{
	struct function place = finding_place_of(a, f);
	CLEANUP(str_done) struct str title = { 0 }, text = { 0 }, remedy = { 0 };

	finding_add_title(&title, a, f);
	finding_add_text(&text, a, f);
	finding_add_remedy(&remedy, a, f);
	jsonw_object(w, NULL);
	jsonw_string(w, "kind", finding_kind_name(f->kind));
	jsonw_string(w, "title", str_get(&title));
	put_known(w, "cost_ns", f->cost_ns > 0, f->cost_ns);
	jsonw_real(w, "percent", f->share, 1);
	jsonw_string(w, "certainty", finding_certainty_name(f->certainty));
	jsonw_bool(w, "tracing", f->tracing);
	jsonw_string(w, "function", place.name);
	jsonw_string(w, "file", place.name ? place.file : NULL);
	put_known(w, "line", place.name && place.line, place.line);
	jsonw_string(w, "text", str_get(&text));
	jsonw_string(w, "advice", remedy.len ? str_get(&remedy) : NULL);
	put_known(w, "would_save_ns", f->no_gain == GAIN_KNOWN, f->gain_ns);
	put_finding_places(w, a, f);
	jsonw_end(w);
}

/* Times of lines, see analysis/lines.h. */
static void put_lines(struct jsonw *w, const struct analysis *a)
{
	jsonw_array(w, "lines");
	for (size_t i = 0; i < a->lines.v.n; i++) {
		const struct line_times *line = &a->lines.v.v[i];
		struct function f = function_at(a->pass, line->frame);

		jsonw_object(w, NULL);
		put_place(w, &f);
		jsonw_u64(w, "held_ns", line->held_ns);
		jsonw_u64(w, "caused_ns", line->caused_ns);
		jsonw_u64(w, "waited_ns", line->waited_ns);
		jsonw_u64(w, "lock_wait_ns", line->lock_ns);
		jsonw_u64(w, "lock_caused_ns", line->lock_caused_ns);
		json_tid(w, "tid", a->model, line->thread);
		put_time(w, "from_ns", a, line->from_ns);
		put_time(w, "to_ns", a, line->to_ns);
		jsonw_end(w);
	}
	jsonw_end(w);
}

static void put_findings(struct jsonw *w, const struct analysis *a)
{
	jsonw_array(w, "findings");
	for (size_t i = 0; i < a->findings.v.n; i++)
		put_finding(w, a, &a->findings.v.v[i]);
	jsonw_end(w);
}

static void put_caveats(struct jsonw *w, const struct analysis *a)
{
	jsonw_array(w, "caveats");
	for (size_t i = 0; i < a->caveats.n; i++) {
		const struct facts_caveat *caveat = &a->caveats.v[i];
		CLEANUP(str_done) struct str text = { 0 };

		wording_add_caveat(&text, caveat);
		jsonw_object(w, NULL);
		jsonw_string(w, "code", caveat->code);
		jsonw_u64(w, "count", caveat->count);
		jsonw_string(w, "text", str_get(&text));
		jsonw_string(w, "pass", caveat->pass);
		jsonw_end(w);
	}
	jsonw_end(w);
}

void json_write(const struct analysis *a, size_t most, FILE *out)
{
	const struct recording_pass *pass = a->pass;
	struct jsonw w;

	jsonw_init(&w, out, 2);
	jsonw_object(&w, NULL);
	jsonw_u64(&w, "schema", 1);
	jsonw_string(&w, "giltracer", a->recording->version);
	put_verdict(&w, a);
	put_findings(&w, a);
	put_lines(&w, a);
	put_python(&w, &a->recording->python, pass, most);
	put_passes(&w, a->recording);
	put_threads(&w, a);
	put_gils(&w, a->model);
	put_blame(&w, a, most);
	locks_json(&w, a, most);
	put_without_gil(&w, a);
	functions_json(&w, a->recording, pass);
	put_patterns(&w, pass);
	starvation_json(&w, a, most);
	put_counters(&w, a);
	samples_json(&w, a, most);
	tasks_json(&w, a, most);
	put_caveats(&w, a);
	put_shortened(&w, a, most);
	jsonw_end(&w);
	jsonw_finish(&w);
}

int report_json(const struct analysis *a, FILE *out, struct error *err)
{
	(void)err;
	json_write(a, SIZE_MAX, out);
	return 0;
}

/* Reads what json.c and functions.c write. */

/* A value that is not a number, or is negative, becomes 0. */
static uint64_t number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static const char *text_of(const json_t *object, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : otherwise;
}

static void add_thread(struct summary *s, const json_t *thread)
{
	if (json_is_null(json_object_get(thread, "lock_wait_ns")))
		s->locks_unknown = true;
	summary_add_thread(s, &(struct summary_thread){
				      .name = text_of(thread, "name", "?"),
				      .total_ns = number(thread, "total_ns"),
				      .hold_ns = number(thread, "hold_ns"),
				      .wait_ns = number(thread, "wait_ns"),
				      .unknown_ns = number(thread, "unknown_ns"),
				      .lock_wait_ns = number(thread, "lock_wait_ns"),
				      .stopped_ns = number(thread, "stopped_ns"),
				      .longest_hold_ns = number(thread, "longest_hold_ns"),
				      .longest_wait_ns = number(thread, "longest_wait_ns"),
			      });
}

static struct summary_function named(const json_t *function)
{
	return (struct summary_function){
		.name = text_of(function, "function", SUMMARY_UNKNOWN),
		.file = text_of(function, "file", ""),
		.line = (uint32_t)number(function, "line"),
	};
}

static void add_function(struct summary *s, const json_t *function)
{
	struct summary_function f = named(function);

	f.wait_ns = number(function, "wait_caused_ns");
	f.hold_ns = number(function, "hold_ns");
	summary_add_function(s, &f);
}

static void add_hog(struct summary *s, const json_t *hog)
{
	struct summary_function f = named(hog);

	f.overdue = number(hog, "holds");
	f.overdue_wait_ns = number(hog, "wait_caused_ns");
	summary_add_function(s, &f);
}

static void add_pass(struct summary *s, const json_t *pass)
{
	summary_add_lost(s, number(pass, "lost"));
}

static void each(struct summary *s, const json_t *root, const char *key,
                 void (*add)(struct summary *, const json_t *))
{
	const json_t *array = json_object_get(root, key), *element;
	size_t i;

	json_array_foreach(array, i, element) add(s, element);
}

static int check_schema(const json_t *root, struct error *err)
{
	const json_t *schema = json_object_get(root, "schema");

	if (json_object_get(root, "diff"))
		return error_set(err, EINVAL, "a comparison, not a report");
	if (!json_is_integer(schema) || !json_is_array(json_object_get(root, "threads")))
		return error_set(err, EINVAL, "not a JSON document of giltracer");
	if (json_integer_value(schema) != 1)
		return error_set(err, EINVAL,
		                 "schema %" JSON_INTEGER_FORMAT ", this giltracer reads schema 1",
		                 json_integer_value(schema));
	return 0;
}

int summary_read(struct summary *ret, const char *text, size_t len, struct error *err)
{
	json_error_t bad;
	json_auto_t *root = json_loadb(text, len, JSON_ALLOW_NUL, &bad);

	*ret = (struct summary){ 0 };
	if (!root)
		return error_set(err, EINVAL, "neither a session folder nor JSON: line %d: %s",
		                 bad.line, bad.text);
	if (check_schema(root, err) < 0)
		return -1;
	each(ret, root, "passes", add_pass);
	each(ret, root, "threads", add_thread);
	each(ret, root, "functions", add_function);
	each(ret, root, "hogs", add_hog);
	summary_finish(ret);
	return 0;
}
