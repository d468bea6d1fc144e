/* SPDX-License-Identifier: MIT */
/* Whose fault the waiting is, in words. */
#include "culprit.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "report/crowds.h"
#include "report/functions.h"
#include "report/pystack.h"
#include "report/utf8.h"
#include "trace/names.h"
#include "trace/source.h"

#define NAME_COLUMNS     48
#define FUNCTION_PERCENT 20       /* less is not worth a name */
#define LONG_HOLD_NS     10000000 /* twice the switch interval: worth a word */
#define SECOND_PERCENT   5        /* of the waiting: who caused less is not named beside another */
#define BETWEEN_PERCENT  10       /* likewise of nobody */

#define ADVISE_CALL                                                                            \
	"Let that call release the GIL, give it less at a time, or run it in another process " \
	"(ProcessPoolExecutor)."
#define ADVISE_PYTHON                                                                        \
	"One thread at a time can run Python: use processes (ProcessPoolExecutor), or code " \
	"that releases the GIL."
#define ADVISE_COLLECTOR                                                                         \
	"It is the garbage collector that runs there: gc.freeze() or gc.disable() keep it from " \
	"looking at all that lives."
#define ADVISE_DETECT "Without --no-gil-detect the report says who held it meanwhile."
#define ADVISE_HANDOVER \
	"Do more each time that the GIL is taken: exchange larger pieces, or use fewer threads."

/* The longest wait that passed while holder held the GIL. */
static void find_moment(struct verdict *v, const struct model *model, uint32_t holder)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < model->blame.n; i++) {
		const struct model_blame *blame = &model->blame.v[i];

		if (blame->holder != holder || blame->longest_ns <= longest)
			continue;
		longest = blame->longest_ns;
		v->moment = true;
		v->moment_thread = blame->waiter;
		v->moment_start_ns = blame->longest_at_ns;
		v->moment_end_ns = blame->longest_at_ns + longest;
	}
}

/**
 * All waits by what they were charged to.
 * @ns: by crowd; @order: crowds, the most charged first
 * @nobody_ns: while the GIL went from one thread to the next: handovers and switch waits
 */
struct charges {
	struct crowds crowds;
	uint64_t *ns;
	uint32_t *order;
	uint64_t nobody_ns, total_ns;
};

static int compare_charges(const void *a, const void *b, void *data)
{
	const uint64_t *ns = data;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;

	if (ns[ia] != ns[ib])
		return ns[ia] < ns[ib] ? 1 : -1;
	return (ia > ib) - (ia < ib);
}

static void charge(struct charges *c, const struct evidence *e)
{
	const struct model *model = e->model;
	/* As the headline has it. */
	uint64_t switch_ns = e->totals.switch_wait_ns, free_ns = e->totals.free_wait_ns;

	*c = (struct charges){ 0 };
	crowds_init(&c->crowds, e->pass);
	c->ns = xcalloc(c->crowds.v.n + 1, sizeof(*c->ns));
	c->order = xcalloc(c->crowds.v.n + 1, sizeof(*c->order));
	for (uint32_t i = 0; i < c->crowds.v.n; i++)
		c->order[i] = i;
	for (size_t i = 0; i < model->blame.n; i++) {
		const struct model_blame *blame = &model->blame.v[i];

		c->total_ns += blame->wait_ns;
		if (blame->holder == MODEL_NONE)
			c->nobody_ns += blame->wait_ns;
		else if (blame->holder != MODEL_UNKNOWN)
			c->ns[c->crowds.of[blame->holder]] += blame->wait_ns;
	}
	c->nobody_ns += switch_ns - free_ns;
	c->total_ns += switch_ns - free_ns;
	qsort_r(c->order, c->crowds.v.n, sizeof(*c->order), compare_charges, c->ns);
}

static void charges_done(struct charges *c)
{
	crowds_done(&c->crowds);
	free(c->ns);
	free(c->order);
}

static void add_crowd(struct str *out, const struct evidence *e, const struct charges *c,
                      uint32_t crowd)
{
	const struct crowd *who = &c->crowds.v.v[crowd];

	if (who->threads == 1) {
		str_adds(out, "thread ");
		crowd_add_thread(out, e->pass, who->first);
		return;
	}
	str_addf(out, "one of the %u threads ", who->threads);
	utf8_add_safe(out, str_get(&who->name), NAME_COLUMNS);
}

/* "function (/long/path/file.py:12)" without the path. */
static void add_function(struct str *out, const char *name)
{
	CLEANUP(str_done) struct str text = { 0 };
	const char *paren = strstr(name, " (");
	const char *slash = paren ? strrchr(paren, '/') : NULL;

	if (slash) {
		str_addn(&text, name, (size_t)(paren - name) + 2);
		str_adds(&text, slash + 1);
	} else {
		str_adds(&text, name);
	}
	utf8_add_safe(out, str_get(&text), 2 * NAME_COLUMNS);
}

/* Without a Python-side trace: the function in which those of its holds ended that made others wait
 * most. */
static void say_probed_function(struct str *out, const struct evidence *e, const struct charges *c,
                                uint32_t crowd)
{
	struct function_rows rows = functions_rows(e->pass, false, &c->crowds, crowd);
	const struct function_row *top = rows.v.n ? &rows.v.v[0] : NULL;
	double percent = top ? facts_percent(top->wait_ns, c->ns[crowd]) : 0;

	if (percent >= FUNCTION_PERCENT) {
		str_addf(out, ", %.1f %% of it in ", percent);
		if (top->hog->late_wait_ns * 2 < top->hog->wait_ns)
			str_adds(out, "holds that ended in ");
		function_add_row(out, e->pass, top->hog, NAME_COLUMNS);
	}
	vec_done(&rows.v);
}

/* The function that ran most while holder was waited for, and the caller of its heaviest stack. */
static bool say_traced_function(struct str *out, const struct evidence *e, uint32_t holder)
{
	const struct slice_thread *st = pystack_find(e->pass, holder);
	struct pystack_top top;
	struct stretches stretches;
	struct pystack py;

	if (!st)
		return false;
	stretches = stretches_blamed(e->model, holder);
	pystack_init(&py, e->pass->slices);
	pystack_charge(&py, st, &stretches);
	top = pystack_top(&py);
	if (facts_percent(top.ns, top.all_ns) >= FUNCTION_PERCENT) {
		str_addf(out, ", %.1f %% of it in ", facts_percent(top.ns, top.all_ns));
		add_function(out, names_get(e->pass->slices->names, top.name));
		if (top.caller) {
			str_adds(out, " called by ");
			add_function(out, names_get(e->pass->slices->names, top.caller));
		}
	}
	pystack_done(&py);
	vec_done(&stretches);
	return true;
}

/* What nobody is to blame for. */
static void say_between(struct str *out, const struct charges *c)
{
	double percent = facts_percent(c->nobody_ns, c->total_ns);

	if (percent >= BETWEEN_PERCENT)
		str_addf(out,
		         " Another %.1f %% passed while the GIL went from one thread to the next, "
		         "which had to wake up and get a CPU first.",
		         percent);
}

static void say_one(struct verdict *v, const struct evidence *e, const struct charges *c)
{
	uint32_t crowd = c->order[0], holder = c->crowds.v.v[crowd].first;
	uint64_t longest = e->model->threads.v[holder].longest_hold_ns;
	double percent = facts_percent(c->ns[crowd], c->total_ns);

	str_adds(&v->because,
	         percent >= VERDICT_CULPRIT ? "Mostly because of thread " : "The worst is thread ");
	crowd_add_thread(&v->because, e->pass, holder);
	str_addf(&v->because, ": %.1f %% of all waiting (", percent);
	facts_add_time(&v->because, c->ns[crowd]);
	str_adds(&v->because, ") passed while it held the GIL");
	if (!say_traced_function(&v->because, e, holder))
		say_probed_function(&v->because, e, c, crowd);
	if (longest >= LONG_HOLD_NS) {
		str_adds(&v->because, "; it held it for up to ");
		facts_add_time(&v->because, longest);
		str_adds(&v->because, " without a break");
	}
	str_adds(&v->because, ".");
	say_between(&v->because, c);
	str_adds(&v->advice, ADVISE_PYTHON);
	find_moment(v, e->model, holder);
}

static void say_crowd(struct verdict *v, const struct evidence *e, const struct charges *c)
{
	uint32_t crowd = c->order[0];

	str_addf(&v->because, "They get in each other's way: %.1f %% of all waiting passed while ",
	         facts_percent(c->ns[crowd], c->total_ns));
	add_crowd(&v->because, e, c, crowd);
	str_adds(&v->because, " held the GIL");
	say_probed_function(&v->because, e, c, crowd);
	str_adds(&v->because, ".");
	say_between(&v->because, c);
	str_adds(&v->advice, ADVISE_PYTHON);
	find_moment(v, e->model, c->crowds.v.v[crowd].first);
}

static void say_several(struct verdict *v, const struct evidence *e, const struct charges *c)
{
	str_addf(&v->because, "They get in each other's way: %.1f %% of all waiting passed while ",
	         facts_percent(c->ns[c->order[0]], c->total_ns));
	add_crowd(&v->because, e, c, c->order[0]);
	str_addf(&v->because, " held the GIL, %.1f %% while ",
	         facts_percent(c->ns[c->order[1]], c->total_ns));
	add_crowd(&v->because, e, c, c->order[1]);
	str_adds(&v->because, " did.");
	say_between(&v->because, c);
	str_adds(&v->advice, ADVISE_PYTHON);
	find_moment(v, e->model, c->crowds.v.v[c->order[0]].first);
}

static bool is_collector(const struct report_pass *pass, const struct hog *hog)
{
	const char *native = function_native(pass, hog);

	/* As native.c tells it: CPython 3.8 to 3.13, before, and since. */
	return native && (str_has_prefix(native, "gc_collect") || !strcmp(native, "collect") ||
	                  str_has_prefix(native, "_Py_RunGC"));
}

/* Threads that were started, and which call is to blame for the rest. */
static void say_slow_start(struct verdict *v, const struct evidence *e, const struct charges *c,
                           const struct function_rows *rows)
{
	uint64_t slow_ns = rows->v.v[0].wait_ns;
	const struct function_row *next = rows->v.n > 1 ? &rows->v.v[1] : NULL;
	double percent = next ? facts_percent(next->wait_ns, c->total_ns - slow_ns) : 0;

	str_addf(&v->because,
	         "%.1f %% of all waiting passed while threads were started: that is slow under "
	         "perf, and not the program's fault.",
	         facts_percent(slow_ns, c->total_ns));
	if (percent >= VERDICT_CALL && next->hog->frame &&
	    !function_is_slow_start(e->pass, next->hog)) {
		str_addf(&v->because, " Of the rest, %.1f %% passed while ", percent);
		function_add_row(&v->because, e->pass, next->hog, NAME_COLUMNS);
		str_adds(&v->because, " kept the GIL although it was asked to let go.");
	}
	str_adds(&v->advice, "Record again when nobody else traces on this host.");
}

/* One function, whoever ran it, that kept the GIL when it was asked to let go. */
static bool say_call(struct verdict *v, const struct evidence *e, const struct charges *c)
{
	struct function_rows rows = functions_rows(e->pass, true, NULL, 0);
	const struct function_row *top = rows.v.n ? &rows.v.v[0] : NULL;
	double percent = top ? facts_percent(top->wait_ns, c->total_ns) : 0;
	bool told = percent >= VERDICT_CALL && top->hog->frame;

	if (told && function_is_slow_start(e->pass, top->hog)) {
		say_slow_start(v, e, c, &rows);
	} else if (told) {
		str_adds(&v->because,
		         percent >= VERDICT_CULPRIT ? "Mostly because of " : "The worst is ");
		function_add_row(&v->because, e->pass, top->hog, NAME_COLUMNS);
		if (top->threads > 1) {
			str_addf(&v->because, ", which %u threads ran", top->threads);
		} else {
			str_adds(&v->because, ", which thread ");
			crowd_add_thread(&v->because, e->pass, top->hog->thread);
			str_adds(&v->because, " ran");
		}
		str_addf(&v->because, ": %.1f %% of all waiting (", percent);
		facts_add_time(&v->because, top->wait_ns);
		str_adds(&v->because, ") passed while it kept the GIL although it was asked to "
		                      "let go, for up to ");
		facts_add_time(&v->because, top->longest_ns);
		str_adds(&v->because, " at a time.");
		str_adds(&v->advice,
		         is_collector(e->pass, top->hog) ? ADVISE_COLLECTOR : ADVISE_CALL);
		find_moment(v, e->model, top->longest_thread);
	}
	vec_done(&rows.v);
	return told;
}

/* The GIL is given up again at once, as the holds say that were not cut short by a lack of CPUs. */
static bool is_given_up_often(const struct evidence *e)
{
	uint64_t holds = 0;

	for (size_t i = 0; i < e->model->threads.n; i++)
		holds += e->model->threads.v[i].holds;
	return holds && e->totals.hold_ns / holds < VERDICT_SHORT_HOLD_NS;
}

static void say_handover(struct verdict *v, const struct charges *c)
{
	str_addf(&v->because,
	         "%.1f %% of all waiting passed while nobody held the GIL: it is given up very "
	         "often, and who waits for it has to wake up first. Tracing makes each time "
	         "dearer.",
	         facts_percent(c->nobody_ns, c->total_ns));
	str_adds(&v->advice, ADVISE_HANDOVER);
}

void culprit_say(struct verdict *v, const struct evidence *e)
{
	struct charges c;
	uint64_t most, second;

	charge(&c, e);
	most = c.crowds.v.n ? c.ns[c.order[0]] : 0;
	second = c.crowds.v.n > 1 ? c.ns[c.order[1]] : 0;
	if (facts_percent(c.nobody_ns, c.total_ns) >= VERDICT_HANDOVER && c.nobody_ns > most &&
	    is_given_up_often(e))
		say_handover(v, &c);
	else if (say_call(v, e, &c))
		;
	else if (!most)
		str_adds(&v->advice, e->report->gil_detect ? ADVISE_PYTHON : ADVISE_DETECT);
	else if (facts_percent(most, c.total_ns - c.nobody_ns) < VERDICT_CULPRIT &&
	         facts_percent(second, c.total_ns) >= SECOND_PERCENT)
		say_several(v, e, &c);
	else
		(c.crowds.v.v[c.order[0]].threads == 1 ? say_one : say_crowd)(v, e, &c);
	charges_done(&c);
}
