/* SPDX-License-Identifier: MIT */
/* Charges the waiting to threads, functions and hand-offs, and decides which of them to report. */
#include "analysis/culprit.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/hogs.h"
#include "analysis/pystack.h"
#include "base/alloc.h"
#include "base/str.h"
#include "model/span.h"
#include "trace/names.h"
#include "trace/source.h"

#define FUNCTION_PERCENT 20       /* a function with a smaller share is not named */
#define LONG_HOLD_NS     10000000 /* twice the switch interval: holds of this length are reported */
#define PREEMPTED        20       /* percent of the longest hold: likewise */
#define MOMENT_LOOKS     4000000  /* limit for the longest wait: threads examined during holds */
#define SECOND_PERCENT   5        /* of the waiting: a second group that caused less is not named */
#define BETWEEN_PERCENT  10       /* likewise for waiting that is charged to no thread */

/* The longest wait during which some thread of a group held the GIL. */
static void find_moment(struct verdict *v, const struct model *model, const uint32_t *of,
                        uint32_t group)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < model->blame.n; i++) {
		const struct model_blame *blame = &model->blame.v[i];

		if (blame->holder >= model->threads.n || blame->longest_ns <= longest ||
		    of[blame->holder] != group)
			continue;
		longest = blame->longest_ns;
		v->moment = true;
		v->moment_thread = blame->waiter;
		v->moment_start_ns = blame->longest_at_ns;
		v->moment_end_ns = blame->longest_at_ns + longest;
	}
}

struct gil_holds {
	VEC(struct gil_hold) v;
};

static int longest_first(const void *va, const void *vb)
{
	const struct gil_hold *a = va, *b = vb;
	uint64_t x = a->end_ns - a->start_ns, y = b->end_ns - b->start_ns;

	if (x != y)
		return x < y ? 1 : -1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* The overdue holds of a function in all threads, the longest first. Free with
 * vec_done(&list.v). */
static struct gil_holds overdue_holds_of(const struct recording_pass *pass, uint32_t frame)
{
	const struct hogs *hogs = pass->hogs;
	struct gil_holds list = { 0 };

	for (size_t i = 0; i < hogs->overdue.n; i++) {
		const struct hog_overdue *o = &hogs->overdue.v[i];
		const struct lane *lane = &pass->model->threads.v[o->thread].gil;

		if (hogs_same_function(functions_frames(pass), o->frame, frame))
			*vec_push(&list.v) = (struct gil_hold){ o->thread,
				                                lane->spans.v[o->span].gil.index,
				                                lane->spans.v[o->span].start_ns,
				                                lane_span_end(lane, o->span) };
	}
	if (list.v.n)
		qsort(list.v.v, list.v.n, sizeof(*list.v.v), longest_first);
	return list;
}

/* Sets the moment to the longest wait of the thread during the hold, if it is longer than the
 * verdict's. */
static void find_wait(struct verdict *v, const struct model *model, uint32_t thread,
                      const struct gil_hold *hold)
{
	const struct lane *lane = &model->threads.v[thread].gil;

	for (size_t i = lane_at(lane, hold->start_ns);
	     i < lane->spans.n && lane->spans.v[i].start_ns < hold->end_ns; i++) {
		uint64_t from = later(lane->spans.v[i].start_ns, hold->start_ns);
		uint64_t to = lane_span_end(lane, i);

		to = to < hold->end_ns ? to : hold->end_ns;
		if (lane->spans.v[i].state != GIL_WAIT || lane->spans.v[i].gil.index != hold->gil ||
		    to <= from || (v->moment && to - from <= v->moment_end_ns - v->moment_start_ns))
			continue;
		v->moment = true;
		v->moment_thread = thread;
		v->moment_start_ns = from;
		v->moment_end_ns = to;
	}
}

/* The longest wait during which any thread kept the GIL in a function. If there are too many holds
 * and threads to examine all, none is reported, because it might not be the longest. */
static void find_call_moment(struct verdict *v, const struct analysis *a, uint32_t frame)
{
	struct gil_holds list = overdue_holds_of(a->pass, frame);
	size_t looks = MOMENT_LOOKS;

	for (size_t i = 0; i < list.v.n; i++) {
		const struct gil_hold *hold = &list.v.v[i];

		if (v->moment &&
		    hold->end_ns - hold->start_ns <= v->moment_end_ns - v->moment_start_ns)
			break;
		if (looks < a->model->threads.n) {
			v->moment = false;
			break;
		}
		looks -= a->model->threads.n;
		for (uint32_t t = 0; t < a->model->threads.n; t++)
			find_wait(v, a->model, t, hold);
	}
	vec_done(&list.v);
}

/**
 * All waiting, by the group it is charged to.
 * @ns: by group; @order: groups, the most charged first
 * @handoff_ns, @no_cpu_ns, @total_ns: as in struct facts_totals
 */
struct charges {
	const struct thread_groups *groups;
	uint64_t *ns;
	uint32_t *order;
	uint64_t handoff_ns, no_cpu_ns, total_ns;
};

static int compare_charges(const void *a, const void *b, void *data)
{
	const uint64_t *ns = data;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;

	if (ns[ia] != ns[ib])
		return ns[ia] < ns[ib] ? 1 : -1;
	return (ia > ib) - (ia < ib);
}

static void charge(struct charges *c, const struct analysis *a)
{
	const struct facts_totals *totals = &a->evidence.totals;
	uint32_t n = (uint32_t)a->groups.v.n;

	*c = (struct charges){
		.groups = &a->groups,
		.ns = xcalloc(n + 1, sizeof(*c->ns)),
		.order = xcalloc(n + 1, sizeof(*c->order)),
		.handoff_ns = totals->handoff_ns,
		.no_cpu_ns = totals->no_cpu_ns,
		.total_ns = totals->blamed_ns,
	};
	for (uint32_t i = 0; i < n; i++)
		c->order[i] = i;
	for (size_t i = 0; i < a->model->blame.n; i++) {
		const struct model_blame *blame = &a->model->blame.v[i];

		if (blame->holder < MODEL_UNKNOWN)
			c->ns[a->groups.of[blame->holder]] += blame->wait_ns;
	}
	qsort_r(c->order, n, sizeof(*c->order), compare_charges, c->ns);
}

/* Whether more passed while the next thread had no CPU than while any group held the GIL. */
static bool is_for_lack_of_cpus(const struct charges *c)
{
	uint64_t most = c->groups->v.n ? c->ns[c->order[0]] : 0;

	return facts_percent(c->no_cpu_ns, c->total_ns) >= VERDICT_HANDOVER && c->no_cpu_ns > most;
}

static void charges_done(struct charges *c)
{
	free(c->ns);
	free(c->order);
}

/* The function in which those holds of the group ended for which others waited most. Used if there
 * is no Python-side trace. */
static void find_probed_function(struct reason_function *f, const struct analysis *a,
                                 const struct charges *c, uint32_t group)
{
	struct function_rows rows = functions_rows(a->pass, false, c->groups, group);
	const struct function_row *top = rows.v.n ? &rows.v.v[0] : NULL;
	double percent = top ? facts_percent(top->wait_ns, c->ns[group]) : 0;

	if (percent >= FUNCTION_PERCENT)
		*f = (struct reason_function){
			.percent = percent,
			.hog = top->hog,
			.ended = top->hog->overdue_wait_ns * 2 < top->hog->wait_ns,
		};
	vec_done(&rows.v);
}

static const char *name_in(const struct pystack *py, uint32_t stack)
{
	return names_get(stacks_names(py->stacks), stacks_get(py->stacks, stack)->name);
}

/* The caller of the last function of a stack: of a function of a library, the innermost one that
 * belongs to the program, if there is one. NULL: none. */
static const char *traced_caller(const struct pystack *py, uint32_t stack)
{
	uint32_t parent = stacks_get(py->stacks, stack)->parent;

	for (uint32_t at = parent; at && function_in_library(name_in(py, stack));
	     at = stacks_get(py->stacks, at)->parent)
		if (!function_in_library(name_in(py, at)))
			return name_in(py, at);
	return parent ? name_in(py, parent) : NULL;
}

/* The function that ran most while others waited for a thread of the group, and the caller in its
 * heaviest stack. False: the calls of these threads are not known. */
static bool find_traced_function(struct reason_function *f, const struct analysis *a,
                                 const struct thread_groups *groups, uint32_t group)
{
	struct pystack_top top;
	struct pystack py;
	bool found = false;

	if (!a->pass->slices)
		return false;
	pystack_init(&py, a->pass->slices);
	for (uint32_t i = 0; i < a->model->threads.n; i++) {
		const struct slice_thread *st = pystack_find(a->pass, i);
		struct stretches stretches;

		if (groups->of[i] != group)
			continue;
		stretches = stretches_blamed(a->model, i);
		pystack_charge(&py, st, &stretches);
		vec_done(&stretches);
		found |= st != NULL;
	}
	top = pystack_top(&py);
	if (found && facts_percent(top.ns, top.all_ns) >= FUNCTION_PERCENT)
		*f = (struct reason_function){
			.percent = facts_percent(top.ns, top.all_ns),
			.name = name_in(&py, top.stack),
			.caller = traced_caller(&py, top.stack),
		};
	pystack_done(&py);
	return found;
}

/* The function that ran most while others waited for a thread of the group. */
static void find_function(struct reason_function *f, const struct analysis *a,
                          const struct charges *c, uint32_t group)
{
	if (!find_traced_function(f, a, c->groups, group))
		find_probed_function(f, a, c, group);
}

/* Reports waiting that is charged to no thread, and is not the main cause. */
static void add_between(struct reasons *to, const struct charges *c)
{
	double handoff = facts_percent(c->handoff_ns, c->total_ns);
	double no_cpu = facts_percent(c->no_cpu_ns, c->total_ns);

	if (handoff >= BETWEEN_PERCENT)
		reasons_add(to, REASON_HANDOFF_TOO)->percent = handoff;
	if (no_cpu >= BETWEEN_PERCENT && !is_for_lack_of_cpus(c))
		reasons_add(to, REASON_NO_CPU_TOO)->percent = no_cpu;
}

/* The advice depends on which programs had the CPUs. */
enum reason_code culprit_cpu_advice(const struct analysis *a)
{
	double own = cpu_users_own_percent(a->pass);

	if (evidence_is_throttled(&a->evidence))
		return ADVICE_QUOTA;
	if (own >= 100 - VERDICT_OTHERS)
		return ADVICE_OWN_THREADS;
	return own >= 0 && own <= VERDICT_OTHERS ? ADVICE_OTHER_PROGRAMS : ADVICE_CPUS;
}

static enum reason_code python_advice(const struct analysis *a)
{
	return a->evidence.processes > 1 ? ADVICE_PYTHON_OF_PROCESS : ADVICE_PYTHON;
}

/* How long the holder was runnable without a CPU during the hold; 0 if that is a small share. */
static uint64_t preempted(const struct model *model, uint32_t thread, uint64_t from_ns, uint64_t ns)
{
	uint64_t runnable_ns, asleep_ns;

	hogs_off_cpu(&model->threads.v[thread], from_ns, from_ns + ns, &runnable_ns, &asleep_ns);
	return facts_percent(runnable_ns, ns) >= PREEMPTED ? runnable_ns : 0;
}

static void blame_thread(struct verdict *v, const struct analysis *a, const struct charges *c)
{
	uint32_t group = c->order[0], holder = c->groups->v.v[group].first;
	uint64_t longest = a->model->threads.v[holder].longest_hold_ns;
	double percent = facts_percent(c->ns[group], c->total_ns);
	struct reason *r = reasons_add(
		&v->because, percent >= VERDICT_CULPRIT ? REASON_THREAD_MOSTLY : REASON_THREAD);

	r->thread = holder;
	r->percent = percent;
	r->ns = c->ns[group];
	r->longest_ns = longest >= LONG_HOLD_NS ? longest : 0;
	if (r->longest_ns)
		r->preempted_ns = preempted(
			a->model, holder, a->model->threads.v[holder].longest_hold_at_ns, longest);
	find_function(&r->function, a, c, group);
	add_between(&v->because, c);
	reasons_add(&v->advice, python_advice(a));
	find_moment(v, a->model, c->groups->of, group);
}

static void blame_group(struct verdict *v, const struct analysis *a, const struct charges *c)
{
	struct reason *r = reasons_add(&v->because, REASON_GROUP);

	r->group = c->order[0];
	r->percent = facts_percent(c->ns[r->group], c->total_ns);
	find_function(&r->function, a, c, r->group);
	add_between(&v->because, c);
	reasons_add(&v->advice, python_advice(a));
	find_moment(v, a->model, c->groups->of, c->order[0]);
}

static void blame_several(struct verdict *v, const struct analysis *a, const struct charges *c)
{
	struct reason *r = reasons_add(&v->because, REASON_GROUPS);

	r->group = c->order[0];
	r->other_group = c->order[1];
	r->percent = facts_percent(c->ns[r->group], c->total_ns);
	r->other_percent = facts_percent(c->ns[r->other_group], c->total_ns);
	add_between(&v->because, c);
	reasons_add(&v->advice, python_advice(a));
	find_moment(v, a->model, c->groups->of, c->order[0]);
}

static enum reason_code call_advice(const struct analysis *a, const struct hog *hog)
{
	switch (function_cause(a->pass, hog)) {
	case CAUSE_COLLECTOR:
		return ADVICE_COLLECTOR;
	case CAUSE_IMPORT:
		return ADVICE_IMPORT;
	case CAUSE_DEALLOCATION:
		return ADVICE_DEALLOCATION;
	case CAUSE_CALL:
	case CAUSES:
		break;
	}
	return a->evidence.processes > 1 ? ADVICE_CALL_OF_PROCESS : ADVICE_CALL;
}

/* Reports slow starts of threads, and the function that caused most of the rest of the waiting. */
static void blame_slow_start(struct verdict *v, const struct analysis *a, const struct charges *c)
{
	uint64_t slow_ns = a->overdue.v.v[0].wait_ns;
	const struct function_row *next = a->overdue.v.n > 1 ? &a->overdue.v.v[1] : NULL;
	double percent = next ? facts_percent(next->wait_ns, c->total_ns - slow_ns) : 0;
	struct reason *r = reasons_add(&v->because, REASON_SLOW_START);

	r->percent = facts_percent(slow_ns, c->total_ns);
	if (percent >= VERDICT_CALL && next->hog->frame &&
	    !function_is_slow_start(a->pass, next->hog)) {
		r = reasons_add(&v->because, REASON_SLOW_START_REST);
		r->percent = percent;
		r->hog = next->hog;
	}
	reasons_add(&v->advice, ADVICE_RECORD_ALONE);
}

/* Reports the function that kept the GIL longest after release requests, in any number of
 * threads. */
static bool blame_call(struct verdict *v, const struct analysis *a, const struct charges *c)
{
	const struct function_row *top = a->overdue.v.n ? &a->overdue.v.v[0] : NULL;
	double percent = top ? facts_percent(top->wait_ns, c->total_ns) : 0;
	struct reason *r;

	if (percent < VERDICT_CALL || !top->hog->frame)
		return false;
	if (function_is_slow_start(a->pass, top->hog)) {
		blame_slow_start(v, a, c);
		return true;
	}
	r = reasons_add(&v->because, percent >= VERDICT_CULPRIT ? REASON_CALL_MOSTLY : REASON_CALL);
	r->percent = percent;
	r->hog = top->hog;
	r->count = top->threads;
	r->thread = top->hog->thread;
	r->ns = top->wait_ns;
	r->longest_ns = top->longest_ns;
	r->preempted_ns = preempted(a->model, top->longest_thread, top->longest_at_ns,
	                            top->longest_ns);
	reasons_add(&v->advice, call_advice(a, top->hog));
	find_call_moment(v, a, top->hog->frame);
	return true;
}

/* Whether the GIL is released soon after it is acquired, judged by the mean hold. */
static bool is_given_up_often(const struct analysis *a)
{
	uint64_t holds = 0;

	for (size_t i = 0; i < a->model->threads.n; i++)
		holds += a->model->threads.v[i].holds;
	return holds && a->evidence.totals.hold_ns / holds < VERDICT_SHORT_HOLD_NS;
}

static void blame_handoff(struct verdict *v, const struct charges *c)
{
	reasons_add(&v->because, REASON_HANDOFF)->percent = facts_percent(c->handoff_ns,
	                                                                  c->total_ns);
	reasons_add(&v->advice, ADVICE_HANDOFF);
}

/* Widens the moment, for which someone held the GIL, to the whole wait. */
static void widen_moment(struct verdict *v, const struct model *model)
{
	const struct lane *lane = &model->threads.v[v->moment_thread].gil;
	size_t i;

	if (!lane->spans.n)
		return;
	i = lane_at(lane, v->moment_start_ns);
	if (lane->spans.v[i].state != GIL_WAIT)
		return;
	v->moment_start_ns = lane->spans.v[i].start_ns;
	v->moment_end_ns = lane_span_end(lane, i);
}

void culprit_find(struct verdict *v, const struct analysis *a)
{
	struct charges c;
	uint64_t most, second;
	bool lack;

	charge(&c, a);
	most = c.groups->v.n ? c.ns[c.order[0]] : 0;
	second = c.groups->v.n > 1 ? c.ns[c.order[1]] : 0;
	lack = is_for_lack_of_cpus(&c);
	if (lack) {
		reasons_add(&v->because, REASON_NO_CPU)->percent = facts_percent(c.no_cpu_ns,
		                                                                 c.total_ns);
		if (v->kind != VERDICT_CPU_STARVED)
			reasons_add(&v->advice, culprit_cpu_advice(a));
	}
	if (facts_percent(c.handoff_ns, c.total_ns) >= VERDICT_HANDOVER && c.handoff_ns > most &&
	    is_given_up_often(a))
		blame_handoff(v, &c);
	else if (blame_call(v, a, &c))
		;
	else if (!most && !lack)
		reasons_add(&v->advice,
		            a->recording->gil_detect ? python_advice(a) : ADVICE_GIL_DETECT);
	else if (!most)
		; /* the lack of CPUs is all there is */
	else if (facts_percent(most, c.total_ns - c.handoff_ns - c.no_cpu_ns) < VERDICT_CULPRIT &&
	         facts_percent(second, c.total_ns) >= SECOND_PERCENT)
		blame_several(v, a, &c);
	else
		(c.groups->v.v[c.order[0]].threads == 1 ? blame_thread : blame_group)(v, a, &c);
	if (v->moment)
		widen_moment(v, a->model);
	charges_done(&c);
}
