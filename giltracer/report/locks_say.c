/* SPDX-License-Identifier: MIT */
/* What blocks the threads of a free-threaded interpreter, in sentences. */
#include "locks_say.h"

#include <string.h>

#include "report/crowds.h"
#include "report/functions.h"
#include "report/locks.h"
#include "report/utf8.h"

#define NAME_COLUMNS 48
#define WORTH_A_WORD 1  /* percent of a thread's life */
#define WORTH_ADVICE 10 /* likewise */
#define ADVISE_LOCK \
	"Keep that lock for shorter, or give each thread an object of its own to work on."

/* The thread that state took the largest share of whose life, MODEL_NONE: none. */
static uint32_t most_in(const struct evidence *e, enum gil_state state)
{
	uint32_t most = MODEL_NONE;
	double percent = 0;

	for (uint32_t i = 0; i < e->model->threads.n; i++) {
		const struct model_thread *t = &e->model->threads.v[i];
		double share = facts_percent(t->gil_ns[state], t->end_ns - t->start_ns);

		if (share > percent && share >= WORTH_A_WORD) {
			most = i;
			percent = share;
		}
	}
	return most;
}

/* Where state took most of the thread's time, and whose lock it was. */
static void say_place(struct str *out, const struct evidence *e, uint32_t thread,
                      enum gil_state state)
{
	struct locks_places places = locks_places(e->pass, thread);
	const struct locks_place *place = NULL;
	struct function f;

	for (size_t i = 0; !place && i < places.v.n; i++)
		if (places.v.v[i].state == state)
			place = &places.v.v[i];
	f = function_at(e->pass, place ? place->frame : 0);
	if (f.name) {
		str_adds(out, ", mostly in ");
		function_add(out, &f, NAME_COLUMNS);
	}
	if (place && place->of && *place->of) {
		str_adds(out, f.name ? ", for " : ", mostly for ");
		str_adds(out, strncmp(place->of, "_thread.", 8) ? "the lock of a " : "a ");
		utf8_add_safe(out, place->of, NAME_COLUMNS);
	}
	vec_done(&places.v);
}

/* Who let go of what that thread was blocked on, for longest. */
static void say_releaser(struct str *out, const struct evidence *e, uint32_t waiter,
                         enum gil_state state)
{
	const struct model_lock_blame *most = NULL;

	for (size_t i = 0; i < e->model->lock_blame.n; i++) {
		const struct model_lock_blame *b = &e->model->lock_blame.v[i];

		if (b->waiter == waiter && b->state == state && b->by < MODEL_UNKNOWN &&
		    (!most || b->wait_ns > most->wait_ns))
			most = b;
	}
	if (!most)
		return;
	str_addf(out, ", %.1f %% of it until thread ",
	         facts_percent(most->wait_ns, e->model->threads.v[waiter].gil_ns[state]));
	crowd_add_thread(out, e->pass, most->by);
	str_adds(out, state == GIL_STOPPED ? " let it go on" : " let go");
}

/* Returns the percentage of its life that the thread is blocked that is blocked most. */
static double say_blocked(struct str *out, const struct evidence *e, enum gil_state state,
                          const char *what)
{
	uint32_t thread = most_in(e, state);
	double percent;
	const struct model_thread *t;

	if (thread == MODEL_NONE)
		return 0;
	t = &e->model->threads.v[thread];
	percent = facts_percent(t->gil_ns[state], t->end_ns - t->start_ns);
	str_adds(out, out->len ? " Thread " : "Thread ");
	crowd_add_thread(out, e->pass, thread);
	str_addf(out, " %s for %.1f %% of its time (", what, percent);
	facts_add_time(out, t->gil_ns[state]);
	str_addc(out, ')');
	if (state != GIL_STOPPING)
		say_releaser(out, e, thread, state);
	if (state != GIL_STOPPED)
		say_place(out, e, thread, state);
	str_addc(out, '.');
	return percent;
}

/* What blocks where there is no GIL. */
void locks_say(struct verdict *v, const struct evidence *e)
{
	struct str *out = &v->because;

	if (!e->report->gil_detect)
		return;
	if (say_blocked(out, e, GIL_LOCK_WAIT, "waited for locks") >= WORTH_ADVICE)
		str_adds(&v->advice, ADVISE_LOCK);
	say_blocked(out, e, GIL_STOPPING, "stopped all others");
	say_blocked(out, e, GIL_STOPPED, "stood still because another one had stopped it,");
	if (!out->len)
		str_adds(out, "Nor were they blocked by locks or stops of the interpreter's own "
		              "for a time worth a word.");
}

/* The GIL of an interpreter that can do without. */
void locks_say_turned_on(struct str *out, const struct evidence *e)
{
	const struct report_python *python = &e->report->python;
	const char *gil = python->gil, *module = e->model->gil_module;

	if (!python->free_threaded || !e->model->gil_events)
		return;
	str_adds(out, out->len ? " This" : "This");
	str_adds(out, " interpreter is free-threaded, but its GIL ");
	str_adds(out, gil && !strcmp(gil, "off") ? "was turned on meanwhile" : "is on");
	if (gil && !strcmp(gil, "forced")) {
		str_adds(out, ": PYTHON_GIL=1 or -X gil=1 asks for it.");
	} else if (module && *module) {
		str_adds(out, ": the import of ");
		utf8_add_safe(out, module, NAME_COLUMNS);
		str_adds(out, ", which does not say that it can do without, turned it on.");
	} else {
		str_adds(out, ", for an import.");
	}
}
