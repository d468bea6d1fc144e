/* SPDX-License-Identifier: MIT */
/* Puts findings into words, and writes them as Markdown. */
#include "report/findings.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/phrases.h"
#include "report/report.h"
#include "report/words.h"
#include "session/session.h"
#include "trace/names.h"
#include "trace/stacks.h"

#define NAME_COLUMNS   60
#define SOURCE_COLUMNS 100

const char *finding_kind_name(enum finding_kind kind)
{
	static const char *const names[FINDING_KINDS] = {
		[FINDING_CALL] = "call",       [FINDING_FUNCTION] = "function",
		[FINDING_THREAD] = "thread",   [FINDING_HANDOFF] = "hand-off",
		[FINDING_NO_CPU] = "no-cpu",   [FINDING_LOCK] = "lock",
		[FINDING_SHARED] = "shared",   [FINDING_STOPS] = "stops",
		[FINDING_TASK] = "task",       [FINDING_CPUS_FEW] = "few-cpus",
		[FINDING_QUOTA] = "quota",     [FINDING_PATTERN] = "pattern",
		[FINDING_SAMPLED] = "sampled",
	};

	return names[kind];
}

const char *finding_certainty_name(enum finding_certainty certainty)
{
	static const char *const names[] = { "exact", "inferred", "sampled" };

	return names[certainty];
}

struct function finding_place_of(const struct analysis *a, const struct finding *f)
{
	struct function own = function_at(a->pass, f->frame), user = { .file = "" };

	if (f->row)
		user = function_user(a->pass, f->row->hog);
	if (!user.name && f->traced_name && (!own.name || function_in_library(own.file)))
		return (struct function){ f->traced_name, f->traced_file, f->traced_line };
	return user.name ? user : own;
}

static void add_place(struct str *out, const struct analysis *a, const struct finding *f)
{
	struct function place = finding_place_of(a, f);

	wording_add_function(out, &place, NAME_COLUMNS);
}

static void add_group_name(struct str *out, const struct analysis *a, uint32_t group)
{
	const struct thread_group *g = &a->groups.v.v[group];

	if (g->threads == 1)
		wording_add_thread(out, a->pass, g->first);
	else
		utf8_add_safe(out, str_get(&g->name), NAME_COLUMNS);
}

static void add_tasks_name(struct str *out, const struct analysis *a, uint32_t tasks)
{
	const struct task_group *g = &a->tasks.v.v[tasks];

	if (g->named || !g->name.len)
		utf8_add_safe(out, g->name.len ? str_get(&g->name) : "?", NAME_COLUMNS);
	else
		wording_add_traced(out, str_get(&g->name), NAME_COLUMNS);
}

/* Whether another finding is about the same line of the program, which calls several functions of libraries. */
static bool shares_place(const struct analysis *a, const struct finding *f)
{
	struct function place = finding_place_of(a, f);

	for (size_t i = 0; place.name && i < a->findings.v.n; i++) {
		const struct finding *other = &a->findings.v.v[i];
		struct function at = finding_place_of(a, other);

		if (other != f && other->kind == f->kind && at.name && at.line == place.line &&
		    !strcmp(at.name, place.name) && !strcmp(at.file, place.file))
			return true;
	}
	return false;
}

static void add_function_name(struct str *out, const struct analysis *a, const struct finding *f,
                              bool full)
{
	CLEANUP(str_done) struct str place = { 0 }, ran = { 0 };

	add_place(&place, a, f);
	if (f->ran) {
		wording_add_traced(&ran, f->ran, NAME_COLUMNS);
	} else if (f->row) {
		struct function own = function_of(a->pass, f->row->hog);

		wording_add_function(&ran, &own, NAME_COLUMNS);
	}
	if (ran.len && strcmp(str_get(&ran), str_get(&place)) && (full || shares_place(a, f)))
		say_called_by(out, str_get(&ran), str_get(&place));
	else
		str_adds(out, str_get(&place));
}

static void add_title(struct str *out, const struct analysis *a, const struct finding *f, bool full)
{
	CLEANUP(str_done) struct str name = { 0 };
	struct lock_name lock;

	switch (f->kind) {
	case FINDING_CALL:
	case FINDING_FUNCTION:
		add_function_name(&name, a, f, full);
		(f->kind == FINDING_CALL ? say_f_call
		 : f->ran                ? say_f_traced
		                         : say_f_function)(out, str_get(&name));
		if (f->tracing)
			say_f_slow(out);
		return;
	case FINDING_THREAD:
		add_group_name(&name, a, f->group);
		if (a->groups.v.v[f->group].threads == 1)
			say_f_thread(out, str_get(&name));
		else
			say_f_threads(out, a->groups.v.v[f->group].threads, str_get(&name));
		return;
	case FINDING_HANDOFF:
		say_f_handoff(out);
		return;
	case FINDING_NO_CPU:
		say_f_no_cpu(out);
		return;
	case FINDING_LOCK:
		lock = lock_name_of(a->recording, a->pass, f->frame);
		wording_add_lock_in(&name, &lock, NAME_COLUMNS);
		say_f_lock(out, str_get(&name));
		return;
	case FINDING_SHARED:
		say_f_shared(out);
		return;
	case FINDING_STOPS:
		say_f_stops(out);
		return;
	case FINDING_TASK:
		add_tasks_name(&name, a, f->tasks);
		(f->what.v.v[0].code == REASON_TASK_LATE ? say_f_late : say_f_step)(out,
		                                                                    str_get(&name));
		return;
	case FINDING_CPUS_FEW:
		say_f_cpus(out);
		return;
	case FINDING_QUOTA:
		say_f_quota(out);
		return;
	case FINDING_PATTERN:
		str_adds(out, pattern_title(f->pattern->kind));
		return;
	case FINDING_SAMPLED:
		say_f_sampled(out);
		return;
	case FINDING_KINDS:
		return;
	}
}

void finding_add_title(struct str *out, const struct analysis *a, const struct finding *f)
{
	add_title(out, a, f, false);
}

void finding_add_full_title(struct str *out, const struct analysis *a, const struct finding *f)
{
	add_title(out, a, f, true);
}

void finding_add_cost(struct str *out, const struct finding *f)
{
	if (f->cost_ns && f->certainty == FINDING_EXACT)
		say_f_cost(out, f->cost_ns, f->share);
	else if (f->cost_ns)
		say_f_cost_inferred(out, f->cost_ns, f->share);
	else
		say_f_share(out, f->share);
}

/* The program's line, as it was when it was recorded; but not where a function begins. */
static void add_source(struct str *out, const struct analysis *a, const struct finding *f)
{
	struct function place = finding_place_of(a, f);
	const char *text = NULL;
	CLEANUP(str_done) struct str at = { 0 }, line = { 0 };

	if (f->certainty == FINDING_EXACT && a->recording->sources && place.name &&
	    place.name != f->traced_name)
		text = sources_find(a->recording->sources, place.file, place.line);
	if (!text)
		return;
	utf8_add_safe(&at, str_base(place.file), NAME_COLUMNS);
	str_addf(&at, ":%" PRIu32, place.line);
	utf8_add_safe(&line, text, SOURCE_COLUMNS);
	say_source(out, str_get(&at), str_get(&line));
}

/* What the title does not say of the function, and the threads that ran it. */
static void add_runs(struct str *out, const struct analysis *a, const struct finding *f)
{
	CLEANUP(str_done) struct str by = { 0 }, in = { 0 }, place = { 0 };

	if (f->row->threads == 1)
		wording_add_thread(&by, a->pass, f->row->hog->thread);
	else
		say_n_threads(&by, f->row->threads);
	wording_add_function_row(&in, a->pass, f->row->hog, NAME_COLUMNS);
	add_place(&place, a, f);
	if (!strcmp(str_get(&in), str_get(&place)))
		say_f_run_by(out, str_get(&by));
	else
		say_f_runs(out, str_get(&in), str_get(&by));
}

static void add_traced(struct str *out, const struct analysis *a, const struct finding *f)
{
	CLEANUP(str_done) struct str name = { 0 }, callee = { 0 }, caller = { 0 };

	wording_add_traced(&callee, f->ran, NAME_COLUMNS);
	if (f->caller) {
		wording_add_traced(&caller, f->caller, NAME_COLUMNS);
		say_called_by(&name, str_get(&callee), str_get(&caller));
	} else {
		str_adds(&name, str_get(&callee));
	}
	say_f_ran(out, str_get(&name), facts_percent(f->cost_ns, a->evidence.totals.blamed_ns),
	          f->cost_ns);
}

static void add_function(struct str *out, const struct analysis *a, const struct finding *f)
{
	/* The cost of a function that keeps the GIL includes holds that ended on request; that of another one,
	 * what passed while it ran according to its calls. */
	uint64_t ns = f->kind == FINDING_CALL ? f->row->wait_ns : f->ended_ns;

	if (f->ran) {
		add_traced(out, a, f);
		add_source(out, a, f);
		return;
	}
	add_runs(out, a, f);
	(f->kind == FINDING_CALL ? say_f_kept : say_f_held)(
		out, facts_percent(ns, a->evidence.totals.blamed_ns), ns, f->row->longest_ns);
	if (f->preempted_ns)
		say_longest_preempted(out, f->preempted_ns);
	add_source(out, a, f);
}

static void add_threads(struct str *out, const struct analysis *a, const struct finding *f)
{
	say_f_thread_held(out, facts_percent(f->cost_ns, a->evidence.totals.blamed_ns), f->cost_ns,
	                  f->longest_ns);
	str_addc(out, '.');
}

/* Whether a chain ends while a thread is being started, which is slow only under perf. */
static bool is_slow_start(const struct analysis *a, const struct chain *c)
{
	for (size_t i = 0; i < a->overdue.v.n; i++)
		if (c->at &&
		    hogs_same_function(functions_frames(a->pass), a->overdue.v.v[i].hog->frame,
		                       c->at) &&
		    function_is_slow_start(a->pass, a->overdue.v.v[i].hog))
			return true;
	return false;
}

static void add_lock(struct str *out, const struct analysis *a, const struct finding *f)
{
	if (f->count == 1)
		say_f_lock_wait(out, f->longest_ns);
	else if (f->threads == 1)
		say_f_lock_waits_one(out, f->count, f->longest_ns);
	else
		say_f_lock_waits(out, f->count, f->threads, f->longest_ns);
	for (unsigned i = 0; i < f->chain_count; i++) {
		const struct chain *c = f->chains[i];
		struct function at = function_at(a->pass, c->at);
		double percent = facts_percent(c->ns, f->cost_ns);
		CLEANUP(str_done) struct str in = { 0 }, does = { 0 };

		str_adds(out, i ? ", " : " ");
		wording_add_function(&in, &at, NAME_COLUMNS);
		if (is_slow_start(a, c))
			say_f_slow(&in);
		if (at.name)
			wording_add_meanwhile(&does, c, str_get(&in));
		if (c->end == CHAIN_FREE)
			(c->through ? say_f_chain_waited_free : say_f_chain_free)(out, percent);
		else if (c->end == CHAIN_UNKNOWN)
			say_f_chain_unknown(out, percent);
		else
			say_f_chain(out, percent, at.name ? str_get(&does) : wording_chain(c));
	}
	str_addc(out, '.');
	add_source(out, a, f);
	if (f->what.v.n)
		str_addc(out, ' ');
	verdict_add_text(out, a, &f->what);
}

void finding_add_text(struct str *out, const struct analysis *a, const struct finding *f)
{
	double percent = facts_percent(f->cost_ns, a->evidence.totals.blamed_ns);

	switch (f->kind) {
	case FINDING_CALL:
	case FINDING_FUNCTION:
		add_function(out, a, f);
		return;
	case FINDING_THREAD:
		add_threads(out, a, f);
		return;
	case FINDING_HANDOFF:
		say_f_handoffs(out, percent);
		return;
	case FINDING_NO_CPU:
		say_no_cpu(out, percent);
		return;
	case FINDING_LOCK:
		add_lock(out, a, f);
		return;
	case FINDING_CPUS_FEW:
	case FINDING_QUOTA:
		if (f->cost_ns)
			say_f_runnable(out, f->share);
		if (f->cost_ns && f->what.v.n)
			str_addc(out, ' ');
		break;
	case FINDING_PATTERN: {
		CLEANUP(str_done) struct str text = { 0 };

		pattern_text(a->model, f->pattern, &text);
		utf8_add_safe(out, str_get(&text), 1000);
		if (f->alike)
			say_more_alike(out, f->alike);
		return;
	}
	default:
		break;
	}
	verdict_add_text(out, a, &f->what);
}

void finding_add_remedy(struct str *out, const struct analysis *a, const struct finding *f)
{
	if (f->pattern) {
		str_adds(out, pattern_advice(f->pattern->kind));
	} else if (f->remedy != REASON_CODES) {
		struct reason one = { .code = f->remedy };

		verdict_add_text(out, a, &(struct reasons){ .v = { &one, 1, 1 } });
	}
	if (f->no_gain == GAIN_KNOWN) {
		str_addc(out, ' ');
		say_f_saves(out, f->gain_ns);
	}
}

/* ---- Markdown */

/* A backslash before punctuation keeps names from becoming markup. */
static void put_escaped(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (strchr("\\`*_{}[]<>#|~&", *text))
			putc('\\', out);
		putc(*text, out);
	}
}

static void put_said(const struct str *text, const char *before, const char *after, FILE *out)
{
	if (!text->len)
		return;
	fputs(before, out);
	put_escaped(str_get(text), out);
	fputs(after, out);
}

static void put_reasons(const struct analysis *a, const struct reasons *reasons, const char *before,
                        FILE *out)
{
	CLEANUP(str_done) struct str text = { 0 };

	verdict_add_text(&text, a, reasons);
	put_said(&text, before, "\n\n", out);
}

static void put_when(const struct analysis *a, const struct finding *f, FILE *out)
{
	const struct finding_place *p = f->places.v;
	CLEANUP(str_done) struct str text = { 0 }, name = { 0 };

	if (!f->places.n)
		return;
	if (p->thread != MODEL_NONE)
		wording_add_thread(&name, a->pass, p->thread);
	else
		add_tasks_name(&name, a, p->group);
	say_f_worst(&text, p->from_ns - a->model->start_ns, p->to_ns - p->from_ns, str_get(&name));
	put_said(&text, "   ", "\n", out);
}

static void put_finding(const struct analysis *a, const struct finding *f, size_t number, FILE *out)
{
	CLEANUP(str_done) struct str title = { 0 }, cost = { 0 }, text = { 0 }, remedy = { 0 };

	finding_add_title(&title, a, f);
	finding_add_cost(&cost, f);
	finding_add_text(&text, a, f);
	finding_add_remedy(&remedy, a, f);
	fprintf(out, "%zu. **", number);
	put_escaped(str_get(&title), out);
	fprintf(out, "**: %s  \n", str_get(&cost));
	put_said(&text, "   ", "  \n", out);
	if (remedy.len)
		fprintf(out, "   %s", phrase(PHRASE_what_helps));
	put_said(&remedy, "", "  \n", out);
	put_when(a, f, out);
}

int report_markdown(const struct analysis *a, FILE *out, struct error *err)
{
	CLEANUP(str_done) struct str quality = { 0 }, left = { 0 };

	(void)err;
	put_reasons(a, &a->verdict.headline, "## ", out);
	put_reasons(a, &a->verdict.context, "", out);
	for (size_t i = 0; i < a->findings.v.n; i++)
		put_finding(a, &a->findings.v.v[i], i + 1, out);
	if (a->findings.v.n)
		putc('\n', out);
	if (a->findings.left)
		say_f_left(&left, a->findings.left);
	put_said(&left, "", "\n\n", out);
	put_reasons(a, &a->verdict.advice, phrase(PHRASE_what_helps), out);
	verdict_add_text(&quality, a, &a->verdict.quality_why);
	fprintf(out, "%s: ", phrase(PHRASE_data_quality));
	put_said(&quality, "", "\n", out);
	return 0;
}
