/* SPDX-License-Identifier: MIT */
/* The verdict: how to say it. */
#include "verdict.h"

#include <inttypes.h>

#include "report/crowds.h"
#include "report/culprit.h"
#include "report/evidence.h"
#include "report/functions.h"
#include "report/locks_say.h"
#include "report/starved.h"
#include "trace/source.h"

#define LEAST_PERCENT 0.05 /* less would be printed as 0.0 % */

static void say_waits(struct str *out, const struct evidence *e, const char *limits)
{
	const struct model_thread *t;

	str_addf(out, "The GIL %s: ", limits);
	if (e->victim_percent < VERDICT_VICTIM_SOME) {
		str_addf(out, "on average %.1f threads waited for it.", e->waiters_percent / 100);
		return;
	}
	t = &e->model->threads.v[e->victim];
	str_adds(out, "thread ");
	crowd_add_thread(out, e->pass, e->victim);
	str_addf(out, " spent %.1f %% of its time waiting for it (", e->victim_percent);
	facts_add_time(out, evidence_gil_wait(e, t));
	str_addc(out, ')');
	if (e->waiters_percent >= 150)
		str_addf(out, ", and on average %.1f threads waited", e->waiters_percent / 100);
	str_adds(out, ".");
}

static void say_line(struct str *out, const struct evidence *e, const char *what)
{
	uint64_t runnable = e->totals.cpu_ns[CPU_RUNNABLE];

	str_addf(out,
	         "%s: its threads stood in line for a CPU for %.1f %% of the time they wanted "
	         "one.",
	         what, facts_percent(runnable, runnable + e->totals.cpu_ns[CPU_RUNNING]));
}

static void say_headline(struct str *out, const struct evidence *e, enum verdict_kind kind)
{
	uint64_t running = e->totals.cpu_ns[CPU_RUNNING];

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
		facts_add_time(out, e->wall_ns);
		str_adds(out, " were recorded.");
		return;
	case VERDICT_CPU_STARVED:
		say_line(out, e,
		         evidence_gil(e) == VERDICT_GIL_NONE && !evidence_is_blind(e)
		                 ? "Not the GIL but the CPUs limit this program"
		                 : "The CPUs limit this program");
		return;
	case VERDICT_GIL_BOUND:
		say_waits(out, e, "limits this program");
		return;
	case VERDICT_GIL_SOME:
		say_waits(out, e, "slows this program");
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
		         "of their lives, waiting for %s.",
		         facts_percent(evidence_asleep(e), evidence_cpu_known(e)),
		         e->totals.cpu_ns[CPU_UNINTERRUPTIBLE] > evidence_asleep(e) / 2
		                 ? "a disk most of the time"
		                 : "something else");
		return;
	case VERDICT_SINGLE_THREADED:
		str_adds(out, "The GIL cannot limit this program: one thread does all the work.");
		return;
	case VERDICT_GIL_NONE:
		str_addf(out,
		         "The GIL does not limit this program: its threads waited for it for %.1f "
		         "%% of their lives.",
		         facts_percent(e->wait_ns, e->known_ns));
		return;
	case VERDICT_GIL_UNKNOWN:
		str_addf(out,
		         "Whether the GIL limits this program is not known, since neither it nor "
		         "stacks were recorded: its threads were on a CPU for %.1f %% of their "
		         "lives.",
		         facts_percent(running, evidence_cpu_known(e)));
		return;
	}
}

/* The GIL, beside a lack of CPUs: whose fault that is and what helps against it, too. */
static void say_gil_too(struct verdict *v, const struct evidence *e)
{
	struct verdict gil = { 0 };

	say_waits(&v->also, e,
	          evidence_gil(e) == VERDICT_GIL_BOUND ? "limits it as well" : "slows it as well");
	culprit_say(&gil, e);
	if (gil.because.len)
		str_addf(&v->also, " %s", str_get(&gil.because));
	if (gil.advice.len)
		str_addf(&v->advice, " Against the GIL: %s", str_get(&gil.advice));
	verdict_done(&gil);
}

/* What is wrong besides, in words for who has read the headline. */
static void say_also(struct verdict *v, const struct evidence *e)
{
	if (v->kind == VERDICT_CPU_STARVED && evidence_gil(e) == VERDICT_GIL_NONE &&
	    evidence_is_single(e))
		str_adds(&v->also, "One thread does all its work.");
	else if (v->kind == VERDICT_CPU_STARVED && evidence_gil(e) != VERDICT_GIL_NONE)
		say_gil_too(v, e);
	else if (v->kind == VERDICT_FREE_THREADED && evidence_is_starved(e))
		say_line(&v->also, e, "It has too few CPUs");
	if ((v->kind == VERDICT_GIL_BOUND || v->kind == VERDICT_GIL_SOME) && evidence_is_starved(e))
		say_line(&v->also, e, "It has too few CPUs as well");
	else if (v->kind == VERDICT_GIL_SOME &&
	         facts_percent(evidence_asleep(e), evidence_cpu_known(e)) >= VERDICT_ASLEEP)
		str_addf(&v->also, "Mostly its threads were asleep: for %.1f %% of their lives.",
		         facts_percent(evidence_asleep(e), evidence_cpu_known(e)));
}

/* They add up to all. */
static void say_shares(struct str *out, const struct evidence *e)
{
	const uint64_t *ns = e->totals.cpu_ns;
	uint64_t known = evidence_cpu_known(e);
	double disk = facts_percent(ns[CPU_UNINTERRUPTIBLE], known);

	str_addf(out,
	         "Of all threads' time %.1f %% were spent on a CPU, %.1f %% in line for one%s "
	         "%.1f %% asleep",
	         facts_percent(ns[CPU_RUNNING], known), facts_percent(ns[CPU_RUNNABLE], known),
	         evidence_is_blind(e) ? " and" : ",",
	         facts_percent(disk >= LEAST_PERCENT ? ns[CPU_SLEEPING] : evidence_asleep(e),
	                       known));
	if (disk >= LEAST_PERCENT)
		str_addf(out, ", %.1f %% asleep for a disk", disk);
	if (!evidence_is_blind(e))
		str_addf(out, ", and %.1f %% asleep for the GIL",
		         facts_percent(ns[CPU_GIL_SLEEP], known));
	str_addc(out, '.');
}

static void say_busiest(struct verdict *v, const struct evidence *e)
{
	if (e->busiest == MODEL_NONE)
		return;
	str_adds(&v->because, "Thread ");
	crowd_add_thread(&v->because, e->pass, e->busiest);
	str_addf(&v->because, " ran for %.1f %% of the recording.",
	         facts_percent(e->busiest_ns, e->wall_ns));
	if (facts_percent(e->busiest_ns, e->wall_ns) >= VERDICT_BUSY)
		str_adds(&v->advice, "What makes that thread's code faster makes it faster; "
		                     "parts of it may run in processes.");
}

/* What there is to do depends on who had the CPUs. */
static void say_cpu_advice(struct str *out, const struct evidence *e)
{
	double own = starved_own_percent(e->pass);

	if (own >= 100 - VERDICT_OTHERS)
		str_adds(out,
		         "Give it more CPUs, or use fewer threads: mostly its own had the CPUs.");
	else if (own >= 0 && own <= VERDICT_OTHERS)
		str_adds(out, "Run less beside it, or give it more CPUs: mostly other programs had "
		              "them.");
	else
		str_adds(out, "Give it more CPUs, run less beside it, or use fewer threads.");
}

static void say_because(struct verdict *v, const struct evidence *e)
{
	switch (v->kind) {
	case VERDICT_GIL_BOUND:
	case VERDICT_GIL_SOME:
		culprit_say(v, e);
		return;
	case VERDICT_CPU_STARVED:
		if (!starved_say(&v->because, e->pass))
			say_shares(&v->because, e);
		say_cpu_advice(&v->advice, e);
		return;
	case VERDICT_SINGLE_THREADED:
		say_busiest(v, e);
		return;
	case VERDICT_IO_BOUND:
		say_shares(&v->because, e);
		/* Without the GIL, it is the stacks that were recorded. */
		if (!e->report->state_detect && e->report->gil_detect)
			str_adds(&v->advice, "With --state-detect the report shows where they "
			                     "sleep.");
		return;
	case VERDICT_NATIVE_WORK:
	case VERDICT_GIL_UNKNOWN:
		say_shares(&v->because, e);
		return;
	case VERDICT_TOO_SHORT:
		str_adds(&v->advice, "Give it more to do.");
		return;
	case VERDICT_NOTHING:
		str_adds(&v->advice,
		         e->model->caveats[CAVEAT_TRUNCATED]
		                 ? "The recording is cut: record again."
		                 : "With --trace-imports it is traced from its first line on.");
		return;
	case VERDICT_FREE_THREADED:
		locks_say(v, e);
		return;
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

/* Of threads that had to do with the GIL: those of C libraries never have, and nothing is missing.
 */
static double unknown_percent(const struct evidence *e)
{
	const struct model *model = e->model;
	uint64_t unknown_ns = 0, life_ns = 0;

	if (!e->report->gil_detect)
		return facts_percent(e->totals.cpu_ns[CPU_UNKNOWN], e->totals.life_ns);

	for (size_t i = 0; i < model->threads.n; i++) {
		const struct model_thread *t = &model->threads.v[i];

		if (t->gil_ns[GIL_UNKNOWN] == t->end_ns - t->start_ns && model->gil_events)
			continue;
		unknown_ns += t->gil_ns[GIL_UNKNOWN];
		life_ns += t->end_ns - t->start_ns;
	}
	return facts_percent(unknown_ns, life_ns);
}

/* Of all waiting, what was waited while threads were started, which tracing makes slow. */
static double slow_starts(const struct evidence *e)
{
	const struct hogs *hogs = e->pass->hogs;
	uint64_t wait_ns = 0;

	for (size_t i = 0; hogs && i < hogs->v.n; i++)
		if (function_is_slow_start(e->pass, &hogs->v.v[i]))
			wait_ns += hogs->v.v[i].late_wait_ns;
	return facts_percent(wait_ns, e->totals.wait_ns);
}

/* Good: all is known. Poor: what is missing may change the verdict. */
static void judge_quality(struct verdict *v, const struct evidence *e)
{
	const uint64_t *caveats = e->model->caveats;
	double unknown = unknown_percent(e);
	uint64_t releases = e->totals.releases_probed + e->totals.releases_inferred;
	double inferred = facts_percent(e->totals.releases_inferred, releases);
	uint64_t lost = lost_records(e->report);
	double starts = slow_starts(e);
	CLEANUP(str_done) struct str text = { 0 };

	v->quality = QUALITY_GOOD;
	if (starts >= 5)
		str_addf(&text, " Tracing made starting threads slow: %.1f %% of all waiting.",
		         starts);
	if (lost || starts >= 5 || unknown >= 1 || inferred >= 5 || caveats[CAVEAT_UNORDERED])
		v->quality = QUALITY_FAIR;
	if (unknown >= 10 || starts >= 30 || caveats[CAVEAT_TWO_HOLDERS] ||
	    caveats[CAVEAT_TRUNCATED] || caveats[CAVEAT_BROKEN_IDENTITY])
		v->quality = QUALITY_POOR;
	say_quality(&text, v, lost, unknown, inferred);
	str_adds(&v->quality_text, str_get(&text) + 1);
}

void verdict_init(struct verdict *verdict, const struct report *report)
{
	struct evidence e = evidence_gather(report);

	*verdict = (struct verdict){ .kind = evidence_judge(&e) };
	say_headline(&verdict->headline, &e, verdict->kind);
	say_because(verdict, &e);
	say_also(verdict, &e);
	locks_say_turned_on(&verdict->also, &e);
	judge_quality(verdict, &e);
}

void verdict_done(struct verdict *verdict)
{
	str_done(&verdict->headline);
	str_done(&verdict->because);
	str_done(&verdict->also);
	str_done(&verdict->advice);
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
		[VERDICT_GIL_UNKNOWN] = "gil-unknown",
	};

	return names[kind];
}

const char *verdict_quality_name(enum verdict_quality quality)
{
	static const char *const names[] = { "good", "fair", "poor" };

	return names[quality];
}
