/* SPDX-License-Identifier: MIT */
/* The verdict: which rule holds, and how to say it. */
#include "verdict.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/span.h"
#include "report/facts.h"
#include "report/functions.h"
#include "report/pystack.h"
#include "report/utf8.h"
#include "trace/names.h"
#include "trace/source.h"

#define NAME_COLUMNS     48
#define FUNCTION_PERCENT 20       /* less is not worth a name */
#define LEAST_PERCENT    0.05     /* less would be printed as 0.0 % */
#define LONG_HOLD_NS     10000000 /* twice the switch interval: worth a word */

/**
 * What the rules look at.
 * @off_gil_running_ns: on a CPU without the GIL, once it was looked at
 * @victim: the thread with the largest share of its life spent waiting, of those that lived long
 * @victim_percent: that share
 * @waiters_percent: how much of a thread waited for the GIL on average
 * @busiest: the thread that ran on the CPUs most
 * @holders: threads that held a GIL
 */
struct evidence {
	const struct report *report;
	const struct report_pass *pass;
	const struct model *model;
	struct facts_totals totals;
	uint64_t wall_ns, off_gil_running_ns, busiest_ns;
	uint32_t busiest, victim;
	double victim_percent, waiters_percent;
	unsigned holders;
};

/* Both lanes of a thread side by side: how long it ran on a CPU while it did not have the GIL. */
static uint64_t running_off_gil(const struct model_thread *t)
{
	uint64_t sum = 0;
	size_t g = 0, c = 0;

	while (g < t->gil.spans.n && c < t->cpu.spans.n) {
		const struct span *gil = &t->gil.spans.v[g], *cpu = &t->cpu.spans.v[c];
		uint64_t gil_end = lane_span_end(&t->gil, g), cpu_end = lane_span_end(&t->cpu, c);
		uint64_t from = gil->start_ns > cpu->start_ns ? gil->start_ns : cpu->start_ns;
		uint64_t to = gil_end < cpu_end ? gil_end : cpu_end;

		if (gil->state == GIL_NO && cpu->state == CPU_RUNNING && to > from)
			sum += to - from;
		if (gil_end <= cpu_end)
			g++;
		if (cpu_end <= gil_end)
			c++;
	}
	return sum;
}

/* What a thread waits for the GIL: by its events, or, where none were recorded, by its sleeps. */
static uint64_t gil_wait(const struct evidence *e, const struct model_thread *t)
{
	return e->report->gil_detect ? model_thread_wait_ns(t) : t->cpu_ns[CPU_GIL_SLEEP];
}

static void look_at_thread(struct evidence *e, uint32_t i)
{
	const struct model_thread *t = &e->model->threads.v[i];
	uint64_t unknown = e->report->gil_detect ? t->gil_ns[GIL_UNKNOWN] : t->cpu_ns[CPU_UNKNOWN];
	uint64_t known = t->end_ns - t->start_ns - unknown;
	double percent = facts_percent(gil_wait(e, t), known);

	e->holders += t->gil_ns[GIL_HOLD] > 0;
	if (t->cpu_ns[CPU_RUNNING] > e->busiest_ns) {
		e->busiest = i;
		e->busiest_ns = t->cpu_ns[CPU_RUNNING];
	}
	if (known >= e->wall_ns / 100 * VERDICT_LIFE && percent > e->victim_percent) {
		e->victim = i;
		e->victim_percent = percent;
	}
}

static struct evidence gather(const struct report *report)
{
	struct evidence e = {
		.report = report,
		.pass = report_main_pass(report),
		.busiest = MODEL_NONE,
		.victim = MODEL_NONE,
	};
	uint64_t wait = 0;

	e.model = e.pass->model;
	e.totals = facts_totals(e.model);
	e.wall_ns = e.model->end_ns - e.model->start_ns;
	for (uint32_t i = 0; i < e.model->threads.n; i++) {
		look_at_thread(&e, i);
		wait += gil_wait(&e, &e.model->threads.v[i]);
	}
	e.waiters_percent = facts_percent(wait, e.wall_ns);
	return e;
}

static uint64_t asleep(const struct facts_totals *t)
{
	return t->cpu_ns[CPU_SLEEPING] + t->cpu_ns[CPU_UNINTERRUPTIBLE];
}

static bool is_starved(const struct evidence *e)
{
	uint64_t runnable = e->totals.cpu_ns[CPU_RUNNABLE];

	return facts_percent(runnable, runnable + e->totals.cpu_ns[CPU_RUNNING]) >=
	               VERDICT_STARVED &&
	       facts_percent(runnable, e->wall_ns) >= VERDICT_STARVED_WALL &&
	       (double)runnable * 100 > e->waiters_percent * (double)e->wall_ns;
}

/* Only when nothing simpler decides: it walks all spans. */
static bool is_native(struct evidence *e)
{
	uint64_t running = e->totals.cpu_ns[CPU_RUNNING];

	if (!e->report->gil_detect || running <= e->wall_ns / 10)
		return false;
	for (size_t i = 0; i < e->model->threads.n; i++)
		e->off_gil_running_ns += running_off_gil(&e->model->threads.v[i]);
	return facts_percent(e->off_gil_running_ns, running) >= VERDICT_NATIVE;
}

static enum verdict_kind judge(struct evidence *e)
{
	const struct facts_totals *t = &e->totals;
	uint64_t running = t->cpu_ns[CPU_RUNNING];
	uint64_t cpu_known = t->life_ns - t->cpu_ns[CPU_UNKNOWN];

	if (e->report->python.free_threaded)
		return VERDICT_FREE_THREADED;
	if (!e->model->threads.n || (!e->model->gil_events && !cpu_known) ||
	    (!e->model->gil_events && e->report->gil_detect))
		return VERDICT_NOTHING;
	if (e->wall_ns < VERDICT_SHORT_NS)
		return VERDICT_TOO_SHORT;
	if (is_starved(e))
		return VERDICT_CPU_STARVED;
	if (e->waiters_percent >= VERDICT_WAITERS || e->victim_percent >= VERDICT_VICTIM)
		return VERDICT_GIL_BOUND;
	if (e->waiters_percent >= VERDICT_WAITERS_SOME || e->victim_percent >= VERDICT_VICTIM_SOME)
		return VERDICT_GIL_SOME;
	if (facts_percent(e->busiest_ns, running) >= VERDICT_SINGLE &&
	    facts_percent(running, e->wall_ns) >= VERDICT_BUSY)
		return VERDICT_SINGLE_THREADED;
	if (is_native(e))
		return VERDICT_NATIVE_WORK;
	if (cpu_known && facts_percent(asleep(t), cpu_known) >= VERDICT_ASLEEP)
		return VERDICT_IO_BOUND;
	if (e->holders <= 1)
		return VERDICT_SINGLE_THREADED;
	return VERDICT_GIL_NONE;
}

static void add_thread(struct str *out, const struct evidence *e, uint32_t thread)
{
	utf8_add_safe(out, facts_thread_name(e->pass, thread), NAME_COLUMNS);
	str_addf(out, " (%" PRIu32 ")", e->model->threads.v[thread].tid);
}

/* "2.3 s", "14 ms": for sentences; tables have the digits. */
static void add_time(struct str *out, uint64_t ns)
{
	if (ns >= 1000000000)
		str_addf(out, "%.2f s", (double)ns / 1e9);
	else if (ns >= 1000000)
		str_addf(out, "%.1f ms", (double)ns / 1e6);
	else
		str_addf(out, "%.1f µs", (double)ns / 1e3);
}

static void say_waits(struct str *out, const struct evidence *e, const char *limits)
{
	const struct model_thread *t;

	str_addf(out, "The GIL %s this program: ", limits);
	if (e->victim_percent < VERDICT_VICTIM_SOME) {
		str_addf(out, "on average %.1f threads waited for it.", e->waiters_percent / 100);
		return;
	}
	t = &e->model->threads.v[e->victim];
	str_adds(out, "thread ");
	add_thread(out, e, e->victim);
	str_addf(out, " spent %.1f %% of its time waiting for it (", e->victim_percent);
	add_time(out, gil_wait(e, t));
	str_addc(out, ')');
	if (e->waiters_percent >= 150)
		str_addf(out, ", and on average %.1f threads waited", e->waiters_percent / 100);
	str_adds(out, ".");
}

static void say_headline(struct str *out, const struct evidence *e, enum verdict_kind kind)
{
	const struct facts_totals *t = &e->totals;
	uint64_t running = t->cpu_ns[CPU_RUNNING], runnable = t->cpu_ns[CPU_RUNNABLE];

	switch (kind) {
	case VERDICT_FREE_THREADED:
		str_adds(out,
		         "This interpreter is free-threaded: it has no GIL, and threads do not "
		         "wait for one.");
		return;
	case VERDICT_NOTHING:
		str_adds(out, "Nothing was recorded: no thread took or released the GIL while "
		              "tracing was on.");
		return;
	case VERDICT_TOO_SHORT:
		str_adds(out, "Too short to say: only ");
		add_time(out, e->wall_ns);
		str_adds(out, " were recorded.");
		return;
	case VERDICT_CPU_STARVED:
		str_addf(out,
		         "Not the GIL but the CPUs limit this program: its threads stood in line "
		         "for a CPU for %.1f %% of the time they wanted one.",
		         facts_percent(runnable, runnable + running));
		return;
	case VERDICT_GIL_BOUND:
		say_waits(out, e, "limits");
		return;
	case VERDICT_GIL_SOME:
		say_waits(out, e, "slows");
		return;
	case VERDICT_NATIVE_WORK:
		str_addf(out,
		         "The GIL does not limit this program: %.1f %% of what its threads did on "
		         "the CPUs was native code that had released the GIL.",
		         facts_percent(e->off_gil_running_ns, running));
		return;
	case VERDICT_IO_BOUND:
		str_addf(out,
		         "The GIL does not limit this program: its threads were asleep for %.1f %% "
		         "of their lives, waiting for something else.",
		         facts_percent(asleep(t), t->life_ns - t->cpu_ns[CPU_UNKNOWN]));
		return;
	case VERDICT_SINGLE_THREADED:
		str_adds(out, "The GIL cannot limit this program: one thread does all the work.");
		return;
	case VERDICT_GIL_NONE:
		str_addf(out,
		         "The GIL does not limit this program: its threads waited for it for %.1f "
		         "%% of their lives.",
		         facts_percent(t->wait_ns, t->known_ns));
		return;
	}
}

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
 * @ns: by thread; @order: threads, the most charged first
 */
struct charges {
	uint64_t *ns;
	uint32_t *order;
	uint64_t handover_ns, total_ns;
};

static int compare_charges(const void *a, const void *b, void *data)
{
	const uint64_t *ns = data;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;

	if (ns[ia] != ns[ib])
		return ns[ia] < ns[ib] ? 1 : -1;
	return (ia > ib) - (ia < ib);
}

static struct charges charge(const struct model *model)
{
	struct charges c = { 0 };

	c.ns = xcalloc(model->threads.n + 1, sizeof(*c.ns));
	c.order = xcalloc(model->threads.n + 1, sizeof(*c.order));
	for (uint32_t i = 0; i < model->threads.n; i++)
		c.order[i] = i;
	for (size_t i = 0; i < model->blame.n; i++) {
		const struct model_blame *blame = &model->blame.v[i];

		c.total_ns += blame->wait_ns;
		if (blame->holder == MODEL_NONE)
			c.handover_ns += blame->wait_ns;
		else if (blame->holder != MODEL_UNKNOWN)
			c.ns[blame->holder] += blame->wait_ns;
	}
	qsort_r(c.order, model->threads.n, sizeof(*c.order), compare_charges, c.ns);
	return c;
}

static void charges_done(struct charges *c)
{
	free(c->ns);
	free(c->order);
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
static void say_probed_function(struct str *out, const struct evidence *e, uint32_t holder)
{
	const struct hog *hog = functions_top(e->pass, holder);
	struct function f;

	if (!hog || functions_percent(e->pass, hog) < FUNCTION_PERCENT)
		return;
	f = function_of(e->pass, hog);
	str_addf(out, ", %.1f %% of it in ", functions_percent(e->pass, hog));
	if (hog->late_wait_ns * 2 < hog->wait_ns)
		str_adds(out, "holds that ended in ");
	function_add(out, &f, NAME_COLUMNS);
}

/* The function that ran most while holder was waited for, and the caller of its heaviest stack. */
static void say_function(struct str *out, const struct evidence *e, uint32_t holder)
{
	const struct slice_thread *st = pystack_find(e->pass, holder);
	struct pystack_top top;
	struct stretches stretches;
	struct pystack py;

	if (!st) {
		say_probed_function(out, e, holder);
		return;
	}
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
}

static void say_one(struct verdict *v, const struct evidence *e, const struct charges *c)
{
	uint32_t holder = c->order[0];
	uint64_t longest = e->model->threads.v[holder].longest_hold_ns;

	str_adds(&v->because, "Mostly because of thread ");
	add_thread(&v->because, e, holder);
	str_addf(&v->because, ": %.1f %% of all waiting (",
	         facts_percent(c->ns[holder], c->total_ns));
	add_time(&v->because, c->ns[holder]);
	str_adds(&v->because, ") passed while it held the GIL");
	say_function(&v->because, e, holder);
	if (longest >= LONG_HOLD_NS) {
		str_adds(&v->because, "; it held it for up to ");
		add_time(&v->because, longest);
		str_adds(&v->because, " without a break");
	}
	str_adds(&v->because, ".");
	find_moment(v, e->model, holder);
}

static void say_several(struct verdict *v, const struct evidence *e, const struct charges *c)
{
	str_addf(&v->because,
	         "They get in each other's way: %.1f %% of all waiting passed while thread ",
	         facts_percent(c->ns[c->order[0]], c->total_ns));
	add_thread(&v->because, e, c->order[0]);
	str_addf(&v->because, " held the GIL, %.1f %% while ",
	         facts_percent(c->ns[c->order[1]], c->total_ns));
	add_thread(&v->because, e, c->order[1]);
	str_addf(&v->because, " did, %.1f %% while nobody did.",
	         facts_percent(c->handover_ns, c->total_ns));
	find_moment(v, e->model, c->order[0]);
}

static void say_blame(struct verdict *v, const struct evidence *e)
{
	struct charges c = charge(e->model);
	uint64_t most = e->model->threads.n ? c.ns[c.order[0]] : 0;

	if (facts_percent(c.handover_ns, c.total_ns) >= VERDICT_HANDOVER && c.handover_ns > most)
		str_addf(&v->because,
		         "%.1f %% of all waiting passed while nobody held the GIL: it had been "
		         "given "
		         "up, and the thread that waited for it had yet to wake up. The GIL is "
		         "given "
		         "up very often here, and tracing makes each time dearer.",
		         facts_percent(c.handover_ns, c.total_ns));
	else if (facts_percent(most, c.total_ns) >= VERDICT_CULPRIT)
		say_one(v, e, &c);
	else if (e->model->threads.n > 1 && c.ns[c.order[1]])
		say_several(v, e, &c);
	charges_done(&c);
}

static void say_because(struct verdict *v, const struct evidence *e)
{
	const struct facts_totals *t = &e->totals;
	uint64_t cpu_known = t->life_ns - t->cpu_ns[CPU_UNKNOWN];

	switch (v->kind) {
	case VERDICT_GIL_BOUND:
	case VERDICT_GIL_SOME:
		say_blame(v, e);
		return;
	case VERDICT_SINGLE_THREADED:
		if (e->busiest == MODEL_NONE)
			return;
		str_adds(&v->because, "Thread ");
		add_thread(&v->because, e, e->busiest);
		str_addf(&v->because, " ran for %.1f %% of the recording.",
		         facts_percent(e->busiest_ns, e->wall_ns));
		return;
	case VERDICT_IO_BOUND:
	case VERDICT_NATIVE_WORK:
	case VERDICT_CPU_STARVED:
		str_addf(&v->because,
		         "Of all threads' time %.1f %% were spent on a CPU, %.1f %% in line for "
		         "one, %.1f %% asleep, and %.1f %% waiting for the GIL.",
		         facts_percent(t->cpu_ns[CPU_RUNNING], cpu_known),
		         facts_percent(t->cpu_ns[CPU_RUNNABLE], cpu_known),
		         facts_percent(asleep(t), cpu_known),
		         facts_percent(t->wait_ns, t->known_ns));
		return;
	case VERDICT_FREE_THREADED:
	case VERDICT_TOO_SHORT:
	case VERDICT_NOTHING:
	case VERDICT_GIL_NONE:
		return;
	}
}

static uint64_t lost_records(const struct report *report)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < report->pass_count; i++)
		lost += report->passes[i].source ? report->passes[i].source->stats.lost : 0;
	return lost;
}

/* Good: all is known. Poor: what is missing may change the verdict. */
/* Only what is wrong: shares that round to nothing are not. */
static void say_quality(struct str *out, const struct verdict *v, uint64_t lost, double unknown,
                        double inferred)
{
	if (lost)
		str_addf(out, " %" PRIu64 " records were lost.", lost);
	if (unknown >= LEAST_PERCENT)
		str_addf(out, " %.1f %% of the threads' time is unknown.", unknown);
	if (inferred >= LEAST_PERCENT)
		str_addf(out, " %.1f %% of the releases were inferred.", inferred);
	if (!out->len)
		str_adds(out, v->quality == QUALITY_GOOD
		                      ? " Complete: nothing was lost or had to be inferred."
		                      : " See the notes on the recording.");
}

static void judge_quality(struct verdict *v, const struct evidence *e)
{
	const uint64_t *caveats = e->model->caveats;
	double unknown = facts_percent(e->totals.unknown_ns, e->totals.life_ns);
	uint64_t releases = e->totals.releases_probed + e->totals.releases_inferred;
	double inferred = facts_percent(e->totals.releases_inferred, releases);
	uint64_t lost = lost_records(e->report);
	CLEANUP(str_done) struct str text = { 0 };

	v->quality = QUALITY_GOOD;
	if (lost || unknown >= 1 || inferred >= 5 || caveats[CAVEAT_UNORDERED])
		v->quality = QUALITY_FAIR;
	if (unknown >= 10 || caveats[CAVEAT_TWO_HOLDERS] || caveats[CAVEAT_TRUNCATED] ||
	    caveats[CAVEAT_BROKEN_IDENTITY])
		v->quality = QUALITY_POOR;
	say_quality(&text, v, lost, unknown, inferred);
	str_adds(&v->quality_text, str_get(&text) + 1);
}

void verdict_init(struct verdict *verdict, const struct report *report)
{
	struct evidence e = gather(report);

	*verdict = (struct verdict){ .kind = judge(&e) };
	say_headline(&verdict->headline, &e, verdict->kind);
	say_because(verdict, &e);
	judge_quality(verdict, &e);
}

void verdict_done(struct verdict *verdict)
{
	str_done(&verdict->headline);
	str_done(&verdict->because);
	str_done(&verdict->quality_text);
}

const char *verdict_kind_name(enum verdict_kind kind)
{
	static const char *const names[] = {
		[VERDICT_FREE_THREADED] = "free-threaded",
		[VERDICT_NOTHING] = "nothing",
		[VERDICT_TOO_SHORT] = "too-short",
		[VERDICT_CPU_STARVED] = "cpu-starved",
		[VERDICT_GIL_BOUND] = "gil-bound",
		[VERDICT_GIL_SOME] = "gil-some",
		[VERDICT_NATIVE_WORK] = "native",
		[VERDICT_IO_BOUND] = "io-bound",
		[VERDICT_SINGLE_THREADED] = "single-threaded",
		[VERDICT_GIL_NONE] = "gil-none",
	};

	return names[kind];
}

const char *verdict_quality_name(enum verdict_quality quality)
{
	static const char *const names[] = { "good", "fair", "poor" };

	return names[quality];
}
