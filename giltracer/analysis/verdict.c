/* SPDX-License-Identifier: MIT */
/* The verdict: conclusions from the evidence, with their numbers. */
#include "analysis/verdict.h"

#include "analysis/culprit.h"
#include "analysis/lock_reasons.h"
#include "analysis/sampled_reasons.h"
#include "trace/source.h"

#define LEAST_PERCENT    0.05 /* less would be printed as 0.0 % */
#define SLOW_STARTS_SOME 5    /* percent of all waiting: worth reporting */
#define SLOW_STARTS_MUCH 30

static void add_percent(struct reasons *to, enum reason_code code, double percent)
{
	reasons_add(to, code)->percent = percent;
}

static void add_victim(struct reason *r, const struct evidence_victim *victim)
{
	r->thread = victim->thread;
	r->group = victim->group;
	r->percent = victim->percent;
	r->ns = victim->ns;
}

static void add_waits(struct reasons *to, const struct evidence *e, enum reason_code code)
{
	struct reason *r = reasons_add(to, code);

	r->ns = e->wait_ns;
	r->held_ns = e->wanted_ns - e->wait_ns;
	r->percent = facts_percent(e->wait_ns, e->wanted_ns);
	if (e->victim.percent < VERDICT_SOME)
		return;
	add_victim(r, &e->victim);
}

static void add_cpus(struct reasons *to, const struct evidence *e, enum reason_code code)
{
	uint64_t runnable = e->totals.cpu_ns[CPU_RUNNABLE];

	add_percent(to, code, facts_percent(runnable, runnable + e->totals.cpu_ns[CPU_RUNNING]));
}

static void find_headline(struct reasons *to, const struct evidence *e, enum verdict_kind kind)
{
	uint64_t running = e->totals.cpu_ns[CPU_RUNNING];
	double asleep = facts_percent(evidence_asleep(e), evidence_cpu_known(e));

	switch (kind) {
	case VERDICT_FREE_THREADED:
		reasons_add(to, REASON_NO_GIL);
		return;
	case VERDICT_IDLE:
		reasons_add(to, e->model->suspended_ns ? REASON_HALTED : REASON_IDLE)->ns =
			e->model->end_ns - e->model->start_ns;
		return;
	case VERDICT_NOTHING:
		reasons_add(to, REASON_NOTHING);
		return;
	case VERDICT_TOO_SHORT:
		reasons_add(to, REASON_TOO_SHORT)->ns = e->wall_ns;
		return;
	case VERDICT_LOCK_BOUND:
		add_victim(reasons_add(to, REASON_LOCK_BOUND), &e->lock_victim);
		return;
	case VERDICT_CPU_STARVED:
		add_cpus(to, e,
		         evidence_gil(e) == VERDICT_GIL_NONE && !evidence_is_blind(e) &&
		                         !evidence_is_lost(e)
		                 ? REASON_CPUS_NOT_GIL
		                 : REASON_CPUS);
		return;
	case VERDICT_GIL_BOUND:
		add_waits(to, e, REASON_GIL_BOUND);
		return;
	case VERDICT_GIL_SOME:
		add_waits(to, e, REASON_GIL_SOME);
		return;
	case VERDICT_NATIVE_WORK:
		add_percent(to, REASON_NATIVE, facts_percent(e->off_gil_running_ns, running));
		return;
	case VERDICT_IO_BOUND:
		add_percent(to,
		            e->totals.cpu_ns[CPU_UNINTERRUPTIBLE] > evidence_asleep(e) / 2
		                    ? REASON_ASLEEP_DISK
		                    : REASON_ASLEEP,
		            asleep);
		return;
	case VERDICT_SINGLE_THREADED:
		reasons_add(to, evidence_is_single(e) ? REASON_SINGLE : REASON_SINGLE_HOLDER);
		return;
	case VERDICT_SAMPLED:
		return; /* sampled_reasons_find */
	case VERDICT_GIL_NONE:
		add_percent(to, REASON_GIL_NONE, facts_percent(e->blocked_ns, e->wall_ns));
		return;
	case VERDICT_GIL_UNKNOWN:
		if (evidence_is_blind(e))
			add_percent(to, REASON_GIL_UNKNOWN,
			            facts_percent(running, evidence_cpu_known(e)));
		else
			add_percent(to, REASON_GIL_LOST, evidence_unknown_percent(e));
		return;
	}
}

static void move_all(struct reasons *to, struct reasons *from)
{
	for (size_t i = 0; i < from->v.n; i++)
		*vec_push(&to->v) = from->v.v[i];
	vec_done(&from->v);
}

/* Adds the waiting for the GIL to a lack of CPUs: its causes, and the advice against it. */
static void add_gil_too(struct verdict *v, const struct analysis *a)
{
	struct verdict gil = { .kind = v->kind };

	add_waits(&v->also, &a->evidence,
	          evidence_gil(&a->evidence) == VERDICT_GIL_BOUND ? REASON_GIL_BOUND_TOO
	                                                          : REASON_GIL_SOME_TOO);
	culprit_find(&gil, a);
	move_all(&v->also, &gil.because);
	if (gil.advice.v.n)
		reasons_add(&v->advice, ADVICE_GIL_TOO);
	move_all(&v->advice, &gil.advice);
}

/* Reports that most of the waiting happened at once. */
static void add_burst(struct verdict *v, const struct evidence *e)
{
	const struct evidence_burst *b = &e->burst;
	bool ended = b->ended >= b->started;
	uint32_t threads = ended ? b->ended : b->started;
	struct reason *r;

	if (!b->percent || v->kind == VERDICT_TOO_SHORT ||
	    (v->kind == VERDICT_LOCK_BOUND && evidence_gil(e) == VERDICT_GIL_NONE))
		return;
	r = reasons_add(&v->also, threads < GROUP_MIN_THREADS ? REASON_BURST
	                          : ended                     ? REASON_BURST_END
	                                                      : REASON_BURST_START);
	r->percent = b->percent;
	r->ns = b->from_ns - e->model->start_ns;
	r->longest_ns = b->to_ns - b->from_ns;
	r->count = threads;
}

/* Adds further problems. */
static void find_also(struct verdict *v, const struct analysis *a)
{
	const struct evidence *e = &a->evidence;
	double asleep = facts_percent(evidence_asleep(e), evidence_cpu_known(e));
	bool gil = v->kind == VERDICT_GIL_BOUND || v->kind == VERDICT_GIL_SOME;

	if ((v->kind == VERDICT_CPU_STARVED || v->kind == VERDICT_LOCK_BOUND) &&
	    evidence_gil(e) != VERDICT_GIL_NONE)
		add_gil_too(v, a);
	else if (v->kind == VERDICT_CPU_STARVED && evidence_is_single(e))
		reasons_add(&v->also, REASON_SINGLE_TOO);
	else if (v->kind == VERDICT_FREE_THREADED && evidence_is_starved(e))
		add_cpus(&v->also, e, REASON_CPUS_TOO_FEW);
	else if (gil && evidence_is_starved(e))
		add_cpus(&v->also, e, REASON_CPUS_TOO);
	else if (v->kind == VERDICT_GIL_SOME && asleep >= VERDICT_ASLEEP)
		add_percent(&v->also, REASON_ASLEEP_TOO, asleep);
	add_burst(v, e);
}

static void add_busiest(struct verdict *v, const struct evidence *e)
{
	double percent = facts_percent(e->busiest_ns, e->wall_ns);

	if (e->busiest == MODEL_NONE)
		return;
	add_percent(&v->because, REASON_BUSIEST, percent);
	v->because.v.v[v->because.v.n - 1].thread = e->busiest;
	if (percent >= VERDICT_BUSY)
		reasons_add(&v->advice, ADVICE_BUSIEST);
}

/* Reports the limit of the program's control group. */
static void add_quota(struct reasons *to, struct verdict *v, const struct evidence *e)
{
	const struct cpu_quota *q = &e->pass->quota;
	struct reason *r;

	if (!evidence_is_throttled(e))
		return;
	r = reasons_add(to, REASON_QUOTA);
	r->number = (double)q->quota_us / (double)q->period_us;
	r->count = q->throttled;
	r->other_count = q->periods;
	for (size_t i = 0; i < v->advice.v.n; i++)
		if (v->advice.v.v[i].code == ADVICE_QUOTA)
			return;
	reasons_add(&v->advice, ADVICE_QUOTA);
}

static void find_because(struct verdict *v, const struct analysis *a)
{
	const struct evidence *e = &a->evidence;

	switch (v->kind) {
	case VERDICT_GIL_BOUND:
	case VERDICT_GIL_SOME:
		culprit_find(v, a);
		return;
	case VERDICT_LOCK_BOUND:
		lock_reasons_chains(&v->because, &v->advice, a);
		return;
	case VERDICT_CPU_STARVED:
		if (!evidence_is_throttled(e)) {
			reasons_add(&v->because,
			            a->cpu_users.list.n ? REASON_CPU_USERS : REASON_STATES);
			reasons_add(&v->advice, culprit_cpu_advice(a));
		}
		return;
	case VERDICT_SINGLE_THREADED:
		add_busiest(v, e);
		return;
	case VERDICT_IO_BOUND:
		reasons_add(&v->because, REASON_STATES);
		/* Without GIL events, it was the stacks that were recorded. */
		if (!a->recording->state_detect && a->recording->gil_detect)
			reasons_add(&v->advice, ADVICE_STATE_DETECT);
		return;
	case VERDICT_NATIVE_WORK:
	case VERDICT_GIL_UNKNOWN:
		reasons_add(&v->because, REASON_STATES);
		return;
	case VERDICT_TOO_SHORT:
		reasons_add(&v->advice, ADVICE_LONGER);
		return;
	case VERDICT_IDLE:
		reasons_add(&v->advice, ADVICE_STACKS);
		return;
	case VERDICT_NOTHING:
		if (!recording_has_note(a->recording, "not-loaded"))
			reasons_add(&v->advice, e->model->caveats[CAVEAT_TRUNCATED]
			                                ? ADVICE_RECORD_AGAIN
			                        : e->pass->attached ? ADVICE_STACKS
			                                            : ADVICE_TRACE_IMPORTS);
		return;
	case VERDICT_FREE_THREADED:
		lock_reasons_find(v, a);
		return;
	case VERDICT_SAMPLED:
		sampled_reasons_find(v, a);
		return;
	case VERDICT_GIL_NONE:
		return;
	}
}

static uint64_t lost_records(const struct recording *recording)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < recording->pass_count; i++)
		if (recording->passes[i].source)
			lost += recording->passes[i].source->stats.lost;
	return lost;
}

/* Flaws of the recording; shares that round to 0 are not reported. */
struct flaws {
	uint64_t lost;
	double starts, unknown, inferred;
};

static void add_flaws(struct reasons *to, const struct flaws *f, bool complete)
{
	if (f->starts >= SLOW_STARTS_SOME)
		add_percent(to, QUALITY_SLOW_STARTS, f->starts);
	if (f->lost)
		reasons_add(to, QUALITY_LOST)->count = f->lost;
	if (f->unknown >= LEAST_PERCENT)
		add_percent(to, QUALITY_UNKNOWN, f->unknown);
	if (f->inferred >= LEAST_PERCENT)
		add_percent(to, QUALITY_INFERRED, f->inferred);
	if (!to->v.n)
		reasons_add(to, complete ? QUALITY_COMPLETE : QUALITY_SEE_NOTES);
}

/* Whether nothing is shown to people that says otherwise. */
static bool is_complete(const struct analysis *a)
{
	for (size_t i = 0; i < a->caveats.n; i++)
		if (!a->caveats.v[i].minor)
			return false;
	for (size_t i = 0; i < a->tasks.v.n; i++)
		if (a->tasks.v.v[i].inferred_ns || a->tasks.v.v[i].unknown_ns)
			return false;
	return true;
}

/* Good: everything is known. Poor: the missing data may change the verdict. */
static void judge_quality(struct verdict *v, const struct analysis *a)
{
	const struct evidence *e = &a->evidence;
	const uint64_t *caveats = e->model->caveats;
	uint64_t releases = e->totals.releases_probed + e->totals.releases_inferred;
	struct flaws f = {
		.lost = lost_records(e->recording),
		.starts = e->slow_percent,
		.unknown = evidence_unknown_percent(e),
		.inferred = facts_percent(e->totals.releases_inferred, releases),
	};

	v->quality = QUALITY_GOOD;
	if (f.lost || f.starts >= SLOW_STARTS_SOME || f.unknown >= 1 || f.inferred >= 5 ||
	    caveats[CAVEAT_UNORDERED])
		v->quality = QUALITY_FAIR;
	if (f.unknown >= 10 || f.starts >= SLOW_STARTS_MUCH || caveats[CAVEAT_TWO_HOLDERS] ||
	    caveats[CAVEAT_TRUNCATED] || caveats[CAVEAT_BROKEN_IDENTITY])
		v->quality = QUALITY_POOR;
	add_flaws(&v->quality_why, &f, v->quality == QUALITY_GOOD && is_complete(a));
}

/* Adds waits for locks to another problem. */
static void find_locks_too(struct verdict *v, const struct analysis *a)
{
	const struct evidence *e = &a->evidence;

	if (v->kind == VERDICT_LOCK_BOUND || v->kind == VERDICT_FREE_THREADED ||
	    e->lock_victim.percent < VERDICT_SOME || e->lock_wait_ns < VERDICT_SHORT_NS)
		return;
	add_victim(reasons_add(&v->also, REASON_LOCK_BOUND_TOO), &e->lock_victim);
	lock_reasons_chains(&v->also, &v->advice, a);
}

/* Reports the task with the longest delay, or if it is not known when tasks become ready, the longest
 * step. */
static void find_late_task(struct verdict *v, const struct analysis *a)
{
	const struct task_delay *late = NULL, *step = NULL, *worst;
	struct reason *r;

	for (size_t i = 0; i < a->tasks.v.n; i++) {
		const struct task_group *g = &a->tasks.v.v[i];

		if (!late || g->delay.end_ns - g->delay.start_ns > late->end_ns - late->start_ns)
			late = &g->delay;
		if (!aio_shows_ready(g->loop) &&
		    (!step || g->step.end_ns - g->step.start_ns > step->end_ns - step->start_ns))
			step = &g->step;
	}
	worst = late && late->end_ns - late->start_ns >= VERDICT_LATE_NS ? late : step;
	if (!worst || worst->end_ns - worst->start_ns < VERDICT_LATE_NS)
		return;
	r = reasons_add(&v->also, worst == late ? REASON_TASK_LATE : REASON_TASK_STEP);
	r->delay = worst;
	r->ns = worst->end_ns - worst->start_ns;
	r->thread = worst->thread;
	reasons_add(&v->advice, ADVICE_LOOP);
}

void verdict_find(struct verdict *ret, struct analysis *a)
{
	*ret = (struct verdict){ .kind = evidence_judge(&a->evidence) };
	find_headline(&ret->headline, &a->evidence, ret->kind);
	if (ret->kind == VERDICT_CPU_STARVED)
		add_quota(&ret->because, ret, &a->evidence);
	find_because(ret, a);
	find_also(ret, a);
	if (ret->kind != VERDICT_CPU_STARVED)
		add_quota(&ret->also, ret, &a->evidence);
	find_locks_too(ret, a);
	lock_reasons_turned_on(&ret->also, a);
	find_late_task(ret, a);
	if (ret->kind == VERDICT_SAMPLED)
		sampled_reasons_judge(ret, a);
	else
		judge_quality(ret, a);
}

void verdict_done(struct verdict *verdict)
{
	vec_done(&verdict->headline.v);
	vec_done(&verdict->because.v);
	vec_done(&verdict->also.v);
	vec_done(&verdict->advice.v);
	vec_done(&verdict->quality_why.v);
}
