/* SPDX-License-Identifier: MIT */
/* Expresses the reasons of a verdict in words from phrases.def. */
#include "report/verdict_text.h"

#include <string.h>

#include "base/cleanup.h"
#include "report/phrases.h"
#include "report/sampled_text.h"
#include "base/utf8.h"
#include "report/wording.h"
#include "trace/names.h"

#define NAME_COLUMNS   48
#define SOURCE_COLUMNS 100
#define LEAST_PERCENT  0.05 /* smaller shares would be printed as 0.0 % */
#define USERS          4    /* maximum number of programs to name */

/* Functions that return a part of a sentence; the caller frees it. */
static struct str thread_of(const struct analysis *a, uint32_t thread)
{
	struct str ret = { 0 };

	wording_add_thread(&ret, a->pass, thread);
	return ret;
}

static struct str function_of_hog(const struct analysis *a, const struct hog *hog)
{
	struct str ret = { 0 };

	wording_add_function_row(&ret, a->pass, hog, NAME_COLUMNS);
	return ret;
}

/* "thread X", or "the 4 threads X-*". */
static struct str group_of(const struct analysis *a, uint32_t group)
{
	const struct thread_group *g = &a->groups.v.v[group];
	CLEANUP(str_done) struct str name = { 0 };
	struct str ret = { 0 };

	if (g->threads == 1) {
		wording_add_thread(&name, a->pass, g->first);
		say_the_thread(&ret, str_get(&name));
	} else {
		utf8_add_safe(&name, str_get(&g->name), NAME_COLUMNS);
		say_the_threads(&ret, g->threads, str_get(&name));
	}
	return ret;
}

static struct str traced_function(const char *name)
{
	struct str ret = { 0 };

	wording_add_traced(&ret, name, 2 * NAME_COLUMNS);
	return ret;
}

/* Adds ", 60.0 % of it in f (x.py:1)" if there is such a function. */
static void add_function(struct str *out, const struct analysis *a, const struct reason_function *f)
{
	CLEANUP(str_done) struct str name = { 0 };

	if (f->hog) {
		name = function_of_hog(a, f->hog);
	} else if (f->name) {
		CLEANUP(str_done) struct str callee = traced_function(f->name);
		CLEANUP(str_done) struct str caller = { 0 };

		if (f->caller)
			caller = traced_function(f->caller);
		if (f->caller)
			say_called_by(&name, str_get(&callee), str_get(&caller));
		else
			str_adds(&name, str_get(&callee));
	}
	if (name.len)
		(f->ended ? say_share_ended_in : say_share_in)(out, f->percent, str_get(&name));
}

static void add_waits(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str name = { 0 };

	if (r->group != MODEL_NONE) {
		const struct thread_group *group = &a->groups.v.v[r->group];

		utf8_add_safe(&name, str_get(&group->name), NAME_COLUMNS);
		say_threads_wait(out, group->threads, str_get(&name), r->percent, r->ns);
	} else if (r->thread != MODEL_NONE) {
		name = thread_of(a, r->thread);
		say_thread_waits(out, str_get(&name), r->percent, r->ns);
	} else {
		say_all_wait(out, r->held_ns, r->ns, r->percent);
	}
}

static void add_lock_waits(struct str *out, const struct analysis *a, const struct reason *r)
{
	bool too = r->code == REASON_LOCK_BOUND_TOO;
	CLEANUP(str_done) struct str name = { 0 };

	if (r->group != MODEL_NONE) {
		const struct thread_group *group = &a->groups.v.v[r->group];

		utf8_add_safe(&name, str_get(&group->name), NAME_COLUMNS);
		(too ? say_locks_limit_too : say_locks_limit)(out, group->threads, str_get(&name),
		                                              r->percent, r->ns);
	} else {
		name = thread_of(a, r->thread);
		(too ? say_lock_limits_too : say_lock_limits)(out, str_get(&name), r->percent,
		                                              r->ns);
	}
}

static void add_chain(struct str *out, const struct analysis *a, const struct reason *r)
{
	struct function in = function_at(a->pass, r->chain->waits_in);
	struct function at = function_at(a->pass, r->chain->at);
	CLEANUP(str_done) struct str waits = { 0 }, does = { 0 };

	wording_add_function(&waits, &in, NAME_COLUMNS);
	if (r->chain->end == CHAIN_FREE) {
		say_chain_free(out, r->percent, str_get(&waits));
	} else if (r->chain->end == CHAIN_UNKNOWN) {
		say_chain_unknown(out, r->percent, str_get(&waits));
	} else if (at.name) {
		wording_add_function(&does, &at, NAME_COLUMNS);
		say_chain_in(out, r->percent, str_get(&waits), wording_chain(r->chain),
		             str_get(&does));
	} else {
		say_chain(out, r->percent, str_get(&waits), wording_chain(r->chain));
	}
}

static void add_burst(struct str *out, const struct reason *r)
{
	if (r->code == REASON_BURST)
		say_burst(out, r->percent, r->longest_ns, r->ns);
	else
		(r->code == REASON_BURST_END ? say_burst_end : say_burst_start)(
			out, r->percent, r->longest_ns, r->ns, r->count);
}

/* Neither the code nor the thread is the cause of this time. */
static void add_preempted(struct str *out, const struct reason *r)
{
	if (r->preempted_ns)
		say_longest_preempted(out, r->preempted_ns);
}

static void add_source(struct str *out, const struct analysis *a, const struct hog *hog)
{
	struct function of;
	const char *text = function_source(a->recording, a->pass, hog, &of);
	const char *base = strrchr(of.file, '/');
	CLEANUP(str_done) struct str place = { 0 }, line = { 0 };

	if (!text)
		return;
	utf8_add_safe(&place, base ? base + 1 : of.file, NAME_COLUMNS);
	str_addf(&place, ":%u", of.line);
	utf8_add_safe(&line, text, SOURCE_COLUMNS);
	say_source(out, str_get(&place), str_get(&line));
}

static void add_call(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str thread = thread_of(a, r->thread);
	CLEANUP(str_done) struct str function = function_of_hog(a, r->hog);

	if (r->count > 1)
		say_call_of_threads(out, str_get(&function), r->count, r->percent, r->ns,
		                    r->longest_ns);
	else
		say_call_of_thread(out, str_get(&function), str_get(&thread), r->percent, r->ns,
		                   r->longest_ns);
	add_preempted(out, r);
	add_source(out, a, r->hog);
}

static void add_thread(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str thread = thread_of(a, r->thread);

	say_thread_held(out, str_get(&thread), r->percent, r->ns);
	add_function(out, a, &r->function);
	if (r->longest_ns)
		say_longest_hold(out, r->longest_ns);
	str_addc(out, '.');
	add_preempted(out, r);
}

static void add_group(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str group = group_of(a, r->group);

	say_threads_held(out, r->percent, str_get(&group));
	add_function(out, a, &r->function);
	str_addc(out, '.');
}

static void add_groups(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str one = group_of(a, r->group);
	CLEANUP(str_done) struct str other = group_of(a, r->other_group);

	say_both_held(out, r->percent, str_get(&one), r->other_percent, str_get(&other));
}

static void add_rest(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str function = function_of_hog(a, r->hog);

	say_slow_start_rest(out, r->percent, str_get(&function));
}

static void add_program(struct str *out, const char *name)
{
	uint32_t cp;

	while ((cp = utf8_next(&name)))
		utf8_add(out, utf8_is_unsafe(cp) ? '?' : cp);
}

void verdict_add_cpu_users(struct str *out, const struct analysis *a)
{
	const struct cpu_users *users = &a->cpu_users;

	if (!users->list.n)
		return;
	say_cpu_users(out);
	for (size_t i = 0; i < users->list.n && i < USERS; i++) {
		const struct cpu_user *user = &users->list.v[i];
		CLEANUP(str_done) struct str name = { 0 };

		if (user->name)
			add_program(&name, user->name);
		else
			say_own_threads(&name);
		str_adds(out, i ? ", " : "");
		say_cpu_user(out, str_get(&name), facts_percent(user->ns, users->all_ns));
	}
	str_addc(out, '.');
}

/* The sum of the shares is 100 %. */
static void add_states(struct str *out, const struct evidence *e)
{
	const uint64_t *ns = e->totals.cpu_ns;
	uint64_t known = evidence_cpu_known(e);
	double disk = facts_percent(ns[CPU_UNINTERRUPTIBLE], known);
	double running = facts_percent(ns[CPU_RUNNING], known);
	double runnable = facts_percent(ns[CPU_RUNNABLE], known);
	double sleeping = facts_percent(ns[CPU_SLEEPING], known);
	double asleep = facts_percent(evidence_asleep(e), known);
	double gil = facts_percent(ns[CPU_GIL_SLEEP], known);
	bool blind = evidence_is_blind(e) || evidence_is_lost(e);

	/* Where it is not known what a thread slept for, it may have been the GIL. */
	if (blind) {
		sleeping += gil;
		asleep += gil;
	}
	if (blind && disk >= LEAST_PERCENT)
		say_states_blind_disk(out, running, runnable, sleeping, disk);
	else if (blind)
		say_states_blind(out, running, runnable, asleep);
	else if (disk >= LEAST_PERCENT)
		say_states_disk(out, running, runnable, sleeping, disk, gil);
	else
		say_states(out, running, runnable, asleep, gil);
}

static void add_busiest(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str thread = thread_of(a, r->thread);

	say_busiest(out, str_get(&thread), r->percent);
}

/* Where the thread was blocked, and the type of the lock. */
static void add_place(struct str *out, const struct analysis *a, const struct reason *r)
{
	struct function f = function_at(a->pass, r->frame);
	CLEANUP(str_done) struct str function = { 0 }, of = { 0 };
	bool type = r->of && !strncmp(r->of, "_thread.", 8);

	if (f.name) {
		wording_add_function(&function, &f, NAME_COLUMNS);
		say_mostly_in(out, str_get(&function));
	}
	if (!r->of || !*r->of)
		return;
	utf8_add_safe(&of, r->of, NAME_COLUMNS);
	if (f.name)
		(type ? say_for_a : say_for_the_lock_of)(out, str_get(&of));
	else
		(type ? say_mostly_for_a : say_mostly_for_the_lock_of)(out, str_get(&of));
}

static void add_blocked(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str thread = thread_of(a, r->thread), other = { 0 };

	(r->code == REASON_LOCKS   ? say_locks_waited
	 : r->code == REASON_STOPS ? say_locks_stops
	                           : say_locks_stopped)(out, str_get(&thread), r->percent, r->ns);
	if (r->other != MODEL_NONE) {
		other = thread_of(a, r->other);
		(r->code == REASON_STOPPED ? say_until_resumed : say_until_released)(
			out, r->other_percent, str_get(&other));
	}
	add_place(out, a, r);
	str_addc(out, '.');
}

/* The task's name, or that of its coroutine function. */
static struct str task_of(const struct analysis *a, uint32_t task)
{
	const struct aio_task *t = &a->pass->slices->tasks->v.v[task];
	const char *name = names_get(a->pass->slices->names, t->name ? t->name : t->function);
	struct str ret = { 0 };

	if (t->name)
		utf8_add_safe(&ret, name, NAME_COLUMNS);
	else if (t->function)
		wording_add_traced(&ret, name, 2 * NAME_COLUMNS);
	else
		say_unknown_function(&ret);
	return ret;
}

static void add_loop_gil(struct str *out, const struct analysis *a, const struct task_delay *d,
                         const char *thread)
{
	CLEANUP(str_done) struct str holder = { 0 }, function = { 0 };
	struct function f = function_at(a->pass, d->holder_frame);

	say_loop_gil(out, thread, d->gil_ns);
	if (d->holder != MODEL_NONE) {
		wording_add_thread(&holder, a->pass, d->holder);
		say_loop_gil_held(out, str_get(&holder));
	}
	if (d->holder != MODEL_NONE && f.name) {
		wording_add_function(&function, &f, NAME_COLUMNS);
		say_loop_gil_in(out, str_get(&function));
	}
	str_addc(out, '.');
}

static void add_late_task(struct str *out, const struct analysis *a, const struct reason *r)
{
	const struct task_delay *d = r->delay;
	CLEANUP(str_done) struct str task = task_of(a, d->task), thread = { 0 }, function = { 0 };

	(d->inferred ? say_task_late_inferred : say_task_late)(out, str_get(&task), r->ns);
	if (d->thread == MODEL_NONE) {
		str_addc(out, '.');
		return;
	}
	thread = thread_of(a, d->thread);
	if (d->gil_ns * 2 >= r->ns) {
		add_loop_gil(out, a, d, str_get(&thread));
	} else if (d->function) {
		wording_add_traced(&function, names_get(a->pass->slices->names, d->function),
		                   2 * NAME_COLUMNS);
		say_loop_busy(out, str_get(&thread), d->busy_ns, str_get(&function));
	} else if (d->slept_ns) {
		say_loop_slept(out, str_get(&thread), d->slept_ns);
	} else {
		say_loop_others(out, str_get(&thread), d->others);
	}
}

static void add_step(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str task = task_of(a, r->delay->task), function = { 0 };

	say_task_step(out, str_get(&task), r->ns);
	if (!r->delay->function) {
		str_addc(out, '.');
		return;
	}
	wording_add_traced(&function, names_get(a->pass->slices->names, r->delay->function),
	                   2 * NAME_COLUMNS);
	say_step_in(out, r->delay->busy_ns, str_get(&function));
}

static void add_import(struct str *out, const struct reason *r)
{
	CLEANUP(str_done) struct str module = { 0 };
	bool during = r->code == REASON_GIL_TURNED_ON;

	if (!r->name) {
		(during ? say_gil_turned_on : say_gil_on)(out);
		return;
	}
	utf8_add_safe(&module, r->name, NAME_COLUMNS);
	(during ? say_gil_turned_on_by : say_gil_on_by)(out, str_get(&module));
}

/* Reasons without values. */
static const enum phrase plain[] = {
	[REASON_NO_GIL] = PHRASE_no_gil,
	[REASON_NOTHING] = PHRASE_nothing,
	[REASON_SINGLE] = PHRASE_single,
	[REASON_SINGLE_HOLDER] = PHRASE_single_holder,
	[REASON_SINGLE_TOO] = PHRASE_single_too,
	[REASON_GIL_FORCED] = PHRASE_gil_forced,
	[REASON_NO_LOCKS] = PHRASE_no_locks,
	[ADVICE_CALL] = PHRASE_advise_call,
	[ADVICE_PYTHON] = PHRASE_advise_python,
	[ADVICE_CALL_OF_PROCESS] = PHRASE_advise_call_of_process,
	[ADVICE_PYTHON_OF_PROCESS] = PHRASE_advise_python_of_process,
	[ADVICE_LOOP_OF_PROCESS] = PHRASE_advise_loop_of_process,
	[ADVICE_COLLECTOR] = PHRASE_advise_collector,
	[ADVICE_IMPORT] = PHRASE_advise_import,
	[ADVICE_DEALLOCATION] = PHRASE_advise_deallocation,
	[ADVICE_GIL_DETECT] = PHRASE_advise_gil_detect,
	[ADVICE_HANDOFF] = PHRASE_advise_handoff,
	[ADVICE_RECORD_ALONE] = PHRASE_advise_record_alone,
	[ADVICE_BUSIEST] = PHRASE_advise_busiest,
	[ADVICE_QUOTA] = PHRASE_advise_quota,
	[ADVICE_OWN_THREADS] = PHRASE_advise_own_threads,
	[ADVICE_OTHER_PROGRAMS] = PHRASE_advise_other_programs,
	[ADVICE_CPUS] = PHRASE_advise_cpus,
	[ADVICE_STATE_DETECT] = PHRASE_advise_state_detect,
	[ADVICE_LONGER] = PHRASE_advise_longer,
	[ADVICE_RECORD_AGAIN] = PHRASE_advise_record_again,
	[ADVICE_STACKS] = PHRASE_advise_stacks,
	[ADVICE_TRACE_IMPORTS] = PHRASE_advise_trace_imports,
	[ADVICE_LOCK] = PHRASE_advise_lock,
	[ADVICE_LOCK_ASLEEP] = PHRASE_advise_lock_asleep,
	[ADVICE_EXACT] = PHRASE_advise_exact,
	[ADVICE_GIL_TOO] = PHRASE_advise_gil_too,
	[ADVICE_LOOP] = PHRASE_advise_loop,
	[QUALITY_COMPLETE] = PHRASE_quality_complete,
	[QUALITY_SEE_NOTES] = PHRASE_quality_see_notes,
	[REASON_CODES] = PHRASE_NONE,
};

/* The beginning of sentences with names. */
static const enum phrase leads[] = {
	[REASON_GIL_BOUND] = PHRASE_gil_limits,
	[REASON_GIL_SOME] = PHRASE_gil_slows,
	[REASON_GIL_BOUND_TOO] = PHRASE_gil_limits_too,
	[REASON_GIL_SOME_TOO] = PHRASE_gil_slows_too,
	[REASON_CALL] = PHRASE_the_worst_is,
	[REASON_CALL_MOSTLY] = PHRASE_mostly_because_of,
	[REASON_THREAD] = PHRASE_the_worst_is,
	[REASON_THREAD_MOSTLY] = PHRASE_mostly_because_of,
	[REASON_CODES] = PHRASE_NONE,
};

/* Reasons with one percentage. */
static void (*const shares[])(struct str *, double) = {
	[REASON_CPUS] = say_cpus_limit,
	[REASON_CPUS_NOT_GIL] = say_cpus_limit_not_gil,
	[REASON_CPUS_TOO] = say_too_few_cpus_too,
	[REASON_CPUS_TOO_FEW] = say_too_few_cpus,
	[REASON_NATIVE] = say_native,
	[REASON_ASLEEP] = say_asleep,
	[REASON_ASLEEP_DISK] = say_asleep_disk,
	[REASON_ASLEEP_TOO] = say_asleep_too,
	[REASON_GIL_NONE] = say_gil_none,
	[REASON_GIL_UNKNOWN] = say_gil_unknown,
	[REASON_GIL_LOST] = say_gil_lost,
	[REASON_HANDOFF] = say_handoff,
	[REASON_HANDOFF_TOO] = say_handoff_too,
	[REASON_NO_CPU] = say_no_cpu,
	[REASON_NO_CPU_TOO] = say_no_cpu_too,
	[REASON_SLOW_START] = say_slow_start,
	[QUALITY_SLOW_STARTS] = say_quality_slow_starts,
	[QUALITY_MISSED] = say_quality_missed,
	[QUALITY_TORN] = say_quality_torn,
	[QUALITY_UNKNOWN] = say_quality_unknown,
	[QUALITY_INFERRED] = say_quality_inferred,
	[REASON_CODES] = NULL,
};

static void add_named(struct str *out, const struct analysis *a, const struct reason *r)
{
	switch (r->code) {
	case REASON_GIL_BOUND:
	case REASON_GIL_SOME:
	case REASON_GIL_BOUND_TOO:
	case REASON_GIL_SOME_TOO:
		add_waits(out, a, r);
		return;
	case REASON_LOCK_BOUND:
	case REASON_LOCK_BOUND_TOO:
		add_lock_waits(out, a, r);
		return;
	case REASON_CHAIN:
		add_chain(out, a, r);
		return;
	case REASON_CALL:
	case REASON_CALL_MOSTLY:
		add_call(out, a, r);
		return;
	case REASON_THREAD:
	case REASON_THREAD_MOSTLY:
		add_thread(out, a, r);
		return;
	case REASON_GROUP:
		add_group(out, a, r);
		return;
	case REASON_GROUPS:
		add_groups(out, a, r);
		return;
	case REASON_SLOW_START_REST:
		add_rest(out, a, r);
		return;
	case REASON_BUSIEST:
		add_busiest(out, a, r);
		return;
	case REASON_LOCKS:
	case REASON_STOPS:
	case REASON_STOPPED:
		add_blocked(out, a, r);
		return;
	case REASON_GIL_ON:
	case REASON_GIL_TURNED_ON:
		add_import(out, r);
		return;
	case REASON_BURST:
	case REASON_BURST_END:
	case REASON_BURST_START:
		add_burst(out, r);
		return;
	case REASON_TASK_LATE:
		add_late_task(out, a, r);
		return;
	case REASON_TASK_STEP:
		add_step(out, a, r);
		return;
	case REASON_CPU_USERS:
		verdict_add_cpu_users(out, a);
		return;
	case REASON_QUOTA:
		say_quota(out, r->number, r->count, r->other_count);
		return;
	case REASON_STATES:
		add_states(out, &a->evidence);
		return;
	case REASON_IDLE:
		say_idle(out, r->ns);
		return;
	case REASON_HALTED:
		say_halted(out, r->ns);
		return;
	case REASON_TOO_SHORT:
		say_too_short(out, r->ns);
		return;
	case QUALITY_LOST:
		say_quality_lost(out, r->count);
		return;
	default:
		sampled_add_reason(out, a, r);
	}
}

void verdict_add_text(struct str *out, const struct analysis *a, const struct reasons *reasons)
{
	for (size_t i = 0; i < reasons->v.n; i++) {
		const struct reason *r = &reasons->v.v[i];

		str_adds(out, i ? " " : "");
		str_adds(out, phrase(plain[r->code]));
		str_adds(out, phrase(leads[r->code]));
		if (shares[r->code])
			shares[r->code](out, r->percent);
		else
			add_named(out, a, r);
	}
}

const char *verdict_kind_name(enum verdict_kind kind)
{
	static const char *const names[] = {
		[VERDICT_FREE_THREADED] = "free-threaded",
		[VERDICT_IDLE] = "idle",
		[VERDICT_NOTHING] = "nothing",
		[VERDICT_TOO_SHORT] = "too-short",
		[VERDICT_LOCK_BOUND] = "lock-bound",
		[VERDICT_CPU_STARVED] = "cpu-starved",
		[VERDICT_GIL_BOUND] = "gil-bound",
		[VERDICT_GIL_SOME] = "gil-some",
		[VERDICT_NATIVE_WORK] = "native",
		[VERDICT_IO_BOUND] = "io-bound",
		[VERDICT_SINGLE_THREADED] = "single-threaded",
		[VERDICT_GIL_NONE] = "gil-none",
		[VERDICT_GIL_UNKNOWN] = "gil-unknown",
		[VERDICT_SAMPLED] = "sampled",
	};

	return names[kind];
}

const char *verdict_quality_name(enum verdict_quality quality)
{
	static const char *const names[] = { "good", "fair", "poor" };

	return names[quality];
}
