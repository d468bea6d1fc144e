/* SPDX-License-Identifier: MIT */
/* Puts facts into the words of phrases.def: names, notes, samples, patterns, the verdict. */
#include "report/words.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "model/span.h"
#include "report/phrases.h"
#include "trace/names.h"

#define NAME_COLUMNS 48
#define NEARLY_ALL   95 /* percent of the time */

void wording_add_id(struct str *out, const struct recording_pass *pass, uint32_t thread)
{
	const struct model_thread *t = &pass->model->threads.v[thread];

	if (facts_many_processes(pass->model))
		str_addf(out, "%" PRIu32 "/", t->pid);
	str_addf(out, "%" PRIu32 "%s", t->tid, t->main ? "*" : "");
}

static bool is_unique(const struct recording_pass *pass, uint32_t thread)
{
	const char *name = facts_thread_name(pass, thread);

	for (uint32_t i = 0; i < pass->model->threads.n; i++)
		if (i != thread && !strcmp(facts_thread_name(pass, i), name))
			return false;
	return *name;
}

/* The name of a thread, with its id if other threads have the same name. Safe for a terminal. */
void wording_add_thread(struct str *out, const struct recording_pass *pass, uint32_t thread)
{
	utf8_add_safe(out, facts_thread_name(pass, thread), NAME_COLUMNS);
	if (!is_unique(pass, thread))
		str_addf(out, " (%" PRIu32 ")", pass->model->threads.v[thread].tid);
}

static void add_function(struct str *out, const struct function *f, unsigned columns)
{
	if (!f->name) {
		say_unknown_function(out);
		return;
	}
	utf8_add_safe(out, f->name, columns);
	if (!*f->file)
		return;
	str_adds(out, " (");
	utf8_add_safe(out, str_base(f->file), columns);
	if (f->line)
		str_addf(out, ":%u", f->line);
	str_addc(out, ')');
}

unsigned wording_add_function(struct str *out, const struct function *f, unsigned columns)
{
	size_t len = out->len;

	add_function(out, f, columns);
	return utf8_columns(str_get(out) + len);
}

unsigned wording_add_traced(struct str *out, const char *name, unsigned columns)
{
	CLEANUP(str_done) struct str text = { 0 };
	const char *paren = strstr(name, " (");
	const char *slash = paren ? strrchr(paren, '/') : NULL;
	size_t len = out->len;

	if (slash) {
		str_addn(&text, name, (size_t)(paren - name) + 2);
		str_adds(&text, slash + 1);
	} else {
		str_adds(&text, name);
	}
	utf8_add_safe(out, str_get(&text), columns);
	return utf8_columns(str_get(out) + len);
}

unsigned wording_add_function_row(struct str *out, const struct recording_pass *pass,
                                  const struct hog *hog, unsigned columns)
{
	struct function f = function_of(pass, hog), caller = function_telling_caller(pass, hog);
	const char *native = function_native(pass, hog);
	bool collected = function_cause(pass, hog) == CAUSE_COLLECTOR;
	CLEANUP(str_done) struct str native_name = { 0 }, caller_name = { 0 };
	size_t len = out->len;

	add_function(out, &f, columns);
	if (collected) {
		say_in_collector(out);
	} else if (native) {
		utf8_add_safe(&native_name, native, columns);
		say_native_in(out, str_get(&native_name));
	}
	if (caller.name) {
		add_function(&caller_name, &caller, columns);
		say_called_by_after(out, str_get(&caller_name));
	}
	if (hog->inferred && f.name)
		say_inferred_from_end(out);
	else if (f.name && function_is_inferred(pass, hog))
		say_or_called_last(out);
	if (function_is_slow_start(pass, hog))
		say_slow_under_perf(out);
	return utf8_columns(str_get(out) + len);
}

static void add_lock_kind(struct str *out, enum lock_kind kind)
{
	static void (*const say[LOCK_KINDS])(struct str *) = {
		[LOCK_UNKNOWN] = say_lock_any,         [LOCK_PLAIN] = say_lock_any,
		[LOCK_RLOCK] = say_lock_rlock,         [LOCK_CONDITION] = say_lock_condition,
		[LOCK_SEMAPHORE] = say_lock_semaphore, [LOCK_EVENT] = say_lock_event,
		[LOCK_BARRIER] = say_lock_barrier,     [LOCK_QUEUE] = say_lock_queue,
		[LOCK_THREAD] = say_lock_thread,       [LOCK_IMPORT] = say_lock_import,
		[LOCK_LOGGING] = say_lock_logging,     [LOCK_FUTURES] = say_lock_futures,
		[LOCK_ASYNCIO] = say_lock_asyncio,
	};

	say[kind](out);
}

/* "`self._lock` of Cache (cache.py:31)", or what kind of lock it is. */
static void add_lock(struct str *out, const struct lock_name *lock, bool where)
{
	CLEANUP(str_done) struct str name = { 0 }, made = { 0 };

	if (!lock->expression) {
		add_lock_kind(out, lock->kind);
		return;
	}
	utf8_add_safe(&name, lock->expression, NAME_COLUMNS);
	if (lock->of) {
		CLEANUP(str_done) struct str of = { 0 };

		utf8_add_safe(&of, lock->of, NAME_COLUMNS);
		say_lock_of(out, str_get(&name), str_get(&of));
	} else {
		say_lock_named(out, str_get(&name));
	}
	if (!lock->made || !where)
		return;
	utf8_add_safe(&made, str_base(lock->in.file), NAME_COLUMNS);
	str_addf(&made, ":%u", lock->made);
	str_adds(out, " (");
	str_adds(out, str_get(&made));
	str_addc(out, ')');
}

unsigned wording_add_lock_in(struct str *out, const struct lock_name *lock, unsigned columns)
{
	CLEANUP(str_done) struct str name = { 0 }, in = { 0 };
	size_t len = out->len;

	add_lock(&name, lock, false);
	add_function(&in, &lock->in, columns);
	say_lock_in(out, str_get(&name), str_get(&in));
	return utf8_columns(str_get(out) + len);
}

/* "`lock` (a.py:1) in work (a.py:7)" */
static void add_lock_in(struct str *out, const struct analysis *a, uint32_t frame)
{
	struct lock_name lock = lock_name_of(a->recording, a->pass, frame);
	CLEANUP(str_done) struct str name = { 0 }, in = { 0 };

	add_lock(&name, &lock, true);
	add_function(&in, &lock.in, NAME_COLUMNS);
	say_lock_in(out, str_get(&name), str_get(&in));
}

/* "slept in work (a.py:8)" */
static void add_meanwhile(struct str *out, const struct analysis *a, const struct chain *chain)
{
	struct function at = function_at(a->pass, chain->at);
	CLEANUP(str_done) struct str in = { 0 };

	if (!at.name) {
		str_adds(out, wording_chain(chain));
		return;
	}
	add_function(&in, &at, NAME_COLUMNS);
	wording_add_meanwhile(out, chain, str_get(&in));
}

void wording_add_meanwhile(struct str *out, const struct chain *chain, const char *at)
{
	/* The function in which a hold of the GIL ended, or the lock was released, is known. Others may have
	 * run before. */
	(chain->end == CHAIN_HELD_GIL ? say_chain_up_to : say_lock_in)(out, wording_chain(chain),
	                                                               at);
}

const char *wording_chain(const struct chain *chain)
{
	static const enum phrase ends[CHAIN_ENDS][2] = {
		[CHAIN_HELD_GIL] = { PHRASE_chain_held, PHRASE_chain_waited_held },
		[CHAIN_WITHOUT_GIL] = { PHRASE_chain_without, PHRASE_chain_waited_without },
		[CHAIN_FREE] = { PHRASE_chain_nobody, PHRASE_chain_waited_nobody },
		[CHAIN_DEADLOCK] = { PHRASE_chain_deadlock, PHRASE_chain_waited_deadlock },
		[CHAIN_UNKNOWN] = { PHRASE_chain_not_known, PHRASE_chain_waited_not_known },
	};
	bool slept = facts_percent(chain->asleep_ns, chain->ns) >= NEARLY_ALL;

	if (chain->end == CHAIN_WITHOUT_GIL && slept)
		return phrase(chain->through ? PHRASE_chain_waited_slept : PHRASE_chain_slept);
	return phrase(ends[chain->end][chain->through]);
}

const char *wording_nobody(const struct group_blame *blame)
{
	static const enum phrase nobody[] = {
		[WAIT_FOR_GIL] = PHRASE_nobody_handoff,
		[WAIT_FOR_LOCK] = PHRASE_nobody_free,
		[WAIT_STOPPED] = PHRASE_nobody,
		[WAIT_FOR_CPU] = PHRASE_nobody,
	};
	static const enum phrase unknown[] = {
		[WAIT_FOR_GIL] = PHRASE_holder_unknown,
		[WAIT_FOR_LOCK] = PHRASE_not_seen,
		[WAIT_STOPPED] = PHRASE_not_seen,
		[WAIT_FOR_CPU] = PHRASE_unknown,
	};

	return phrase((blame->holder == MODEL_NONE ? nobody : unknown)[blame->kind]);
}

#define CAVEAT(code, word, name, shown, quality, sentence) [CAVEAT_##code] = PHRASE_caveat_##word,
static const enum phrase caveat_texts[CAVEAT_CODES] = {
#include "model/caveats.def"
};
#undef CAVEAT

void wording_add_flaw(struct str *out, const struct slices *slices)
{
	switch (slices->flaw) {
	case SLICES_WHOLE:
		return;
	case SLICES_OVERFLOW:
		say_trace_overflow(out);
		return;
	case SLICES_DROPPED:
		say_trace_dropped(out, slices->flawed);
		return;
	case SLICES_CUT:
		say_trace_cut(out);
		return;
	case SLICES_UNRECORDED:
		say_trace_unrecorded(out, slices->flawed);
		return;
	case SLICES_ASIDE:
		say_trace_aside(out, slices->flawed);
		return;
	case SLICES_OVERLAPPING:
		say_trace_overlapping(out, slices->flawed);
		return;
	case SLICES_AFRESH:
		say_trace_afresh(out, slices->flawed);
		return;
	}
}

static void add_slowdown(struct str *out, const struct slowdown *s)
{
	if (s->inferred)
		say_slowdown_with_waiting(out, s->ratio, s->lost_ns, s->own_ns);
	else
		say_slowdown(out, s->ratio, s->own_ns);
}

void wording_add_caveat(struct str *out, const struct facts_caveat *caveat)
{
	if (caveat->note)
		str_adds(out, caveat->note);
	else if (caveat->slices)
		wording_add_flaw(out, caveat->slices);
	else if (caveat->slowdown.ratio > 0)
		add_slowdown(out, &caveat->slowdown);
	else
		str_adds(out, phrase(caveat_texts[caveat->of_model]));
}

void wording_add_note(struct str *out, const struct facts_caveat *caveat, bool name_pass)
{
	if (name_pass && caveat->pass)
		say_of_pass(out, caveat->pass);
	wording_add_caveat(out, caveat);
	if (caveat->count > 1)
		say_n_times(out, caveat->count);
}

/* Samples. */

const char *sampled_what_text(const struct recording_pass *pass, enum sampled_what what)
{
	static const enum phrase texts[SAMPLED_WHATS] = {
		[SAMPLED_HOLDS] = PHRASE_what_holds,     [SAMPLED_WAITS] = PHRASE_what_waits,
		[SAMPLED_RUNNING] = PHRASE_what_running, [SAMPLED_LOCK] = PHRASE_what_lock,
		[SAMPLED_NETWORK] = PHRASE_what_network, [SAMPLED_POLL] = PHRASE_what_poll,
		[SAMPLED_FILE] = PHRASE_what_file,       [SAMPLED_SLEEP] = PHRASE_what_sleep,
		[SAMPLED_CHILD] = PHRASE_what_child,     [SAMPLED_OTHER] = PHRASE_what_other,
		[SAMPLED_UNKNOWN] = PHRASE_what_unknown,
	};

	return phrase(what == SAMPLED_RUNNING && pass->free_threaded ? PHRASE_what_runnable
	                                                             : texts[what]);
}

unsigned sampled_add_place(struct str *out, const struct recording_pass *pass,
                           const struct sampled_place *place, unsigned columns)
{
	const struct names *names = pass->samples->names;
	const struct function callee = { names_get(names, place->name),
		                         names_get(names, place->file), place->line };
	const struct function caller = { names_get(names, place->caller),
		                         names_get(names, place->caller_file), place->caller_line };
	CLEANUP(str_done) struct str callee_text = { 0 }, caller_text = { 0 };
	size_t len = out->len;

	wording_add_function(&callee_text, &callee, columns);
	if (place->caller) {
		wording_add_function(&caller_text, &caller, columns);
		say_called_by(out, str_get(&callee_text), str_get(&caller_text));
	} else {
		str_adds(out, str_get(&callee_text));
	}
	return utf8_columns(str_get(out) + len);
}

/* Patterns. */

static const struct {
	const char *name;
	enum phrase title, advice;
} kinds[PATTERN_KINDS] = {
	[PATTERN_LOOP_STARVATION] = { "loop-starvation", PHRASE_starvation_title,
	                              PHRASE_starvation_advice },
	[PATTERN_CONVOY] = { "convoy", PHRASE_convoy_title, PHRASE_convoy_advice },
	[PATTERN_LATE_WAKEUPS] = { "late-wakeups", PHRASE_late_wakeups_title,
	                           PHRASE_late_wakeups_advice },
	[PATTERN_PING_PONG] = { "ping-pong", PHRASE_ping_pong_title, PHRASE_ping_pong_advice },
	[PATTERN_OVERSUBSCRIPTION] = { "oversubscription", PHRASE_oversubscription_title,
	                               PHRASE_oversubscription_advice },
	[PATTERN_LOCK_ACROSS_WAIT] = { "lock-across-wait", PHRASE_lock_across_wait_title,
	                               PHRASE_lock_across_wait_advice },
};

const char *pattern_name(enum pattern_kind kind)
{
	return kinds[kind].name;
}

const char *pattern_title(enum pattern_kind kind)
{
	return phrase(kinds[kind].title);
}

const char *pattern_advice(enum pattern_kind kind)
{
	return phrase(kinds[kind].advice);
}

/* "NAME (1235)"; "" for MODEL_NONE. The caller frees it. */
static struct str pattern_thread(const struct model *m, uint32_t thread)
{
	struct str ret = { 0 };
	const struct model_thread *t;

	if (thread == MODEL_NONE)
		return ret;
	t = &m->threads.v[thread];
	str_addf(&ret, "%s%s(%" PRIu32 ")", t->name, t->name[0] ? " " : "", t->tid);
	return ret;
}

/* What held the GIL during the waits, and the end of the sentence. */
static void add_pattern_waits(struct str *out, const struct model *m, const struct pattern *p)
{
	CLEANUP(str_done) struct str thread = pattern_thread(m, p->thread);
	CLEANUP(str_done) struct str other = pattern_thread(m, p->other);

	(p->kind == PATTERN_CONVOY ? say_convoy : say_late_wakeups)(out, str_get(&thread), p->count,
	                                                            p->ns, p->share);
	if (other.len)
		say_mostly_held_by(out, str_get(&other));
	say_longest_was(out, p->longest_ns);
	str_addc(out, '.');
}

static void add_starvation(struct str *out, const struct model *m, const struct pattern *p)
{
	CLEANUP(str_done) struct str thread = pattern_thread(m, p->thread);
	CLEANUP(str_done) struct str other = pattern_thread(m, p->other);
	CLEANUP(str_done) struct str function = { 0 };

	say_starvation(out, str_get(&thread), p->count, p->ns, p->share, p->longest_ns);
	if (p->function) {
		str_adds(&function, p->function);
		if (*p->file)
			str_addf(&function, " (%s:%" PRIu32 ")", str_base(p->file), p->line);
	}
	if (other.len && function.len)
		say_held_meanwhile(out, str_get(&function), str_get(&other));
	else if (other.len)
		say_thread_held_meanwhile(out, str_get(&other));
	str_addc(out, '.');
}

static void add_pair(struct str *out, const struct model *m, const struct pattern *p)
{
	CLEANUP(str_done) struct str thread = pattern_thread(m, p->thread);
	CLEANUP(str_done) struct str other = pattern_thread(m, p->other);

	if (p->kind == PATTERN_PING_PONG)
		say_ping_pong(out, str_get(&thread), str_get(&other), p->count, p->longest_ns,
		              p->ns, p->share);
	else
		say_lock_across_wait(out, str_get(&thread), p->count, str_get(&other), p->ns,
		                     p->share, p->longest_ns);
}

void pattern_text(const struct model *m, const struct pattern *p, struct str *ret)
{
	switch (p->kind) {
	case PATTERN_LOOP_STARVATION:
		add_starvation(ret, m, p);
		return;
	case PATTERN_PING_PONG:
	case PATTERN_LOCK_ACROSS_WAIT:
		add_pair(ret, m, p);
		return;
	case PATTERN_OVERSUBSCRIPTION:
		say_oversubscription(ret, p->count, p->share / 100.0);
		return;
	default:
		add_pattern_waits(ret, m, p);
	}
}

/* The verdict. */

#define SOURCE_COLUMNS 100
#define USERS          4 /* maximum number of programs to name */

/* Functions that return a part of a sentence; the caller frees it. */
static struct str thread_of(const struct analysis *a, uint32_t thread)
{
	struct str ret = { 0 };

	wording_add_thread(&ret, a->pass, thread);
	return ret;
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
	CLEANUP(str_done) struct str name = { 0 }, lock = { 0 }, does = { 0 };
	const struct thread_group *group = r->group == MODEL_NONE ? NULL : &a->groups.v.v[r->group];

	if (r->chain)
		add_lock_in(&lock, a, r->chain->waits_in);
	if (r->caused)
		add_meanwhile(&does, a, r->chain);
	if (group)
		utf8_add_safe(&name, str_get(&group->name), NAME_COLUMNS);
	else
		name = thread_of(a, r->thread);
	if (r->caused && group)
		say_locks_limit_at(out, group->threads, str_get(&name), r->percent,
		                   r->other_percent, str_get(&lock), str_get(&does));
	else if (r->caused)
		say_lock_limits_at(out, str_get(&name), r->percent, r->other_percent,
		                   str_get(&lock), str_get(&does));
	else if (r->chain && group)
		say_locks_limit_for(out, group->threads, str_get(&name), r->percent,
		                    r->other_percent, str_get(&lock));
	else if (r->chain)
		say_lock_limits_for(out, str_get(&name), r->percent, r->other_percent,
		                    str_get(&lock));
	else if (group)
		say_locks_limit(out, group->threads, str_get(&name), r->percent, r->ns);
	else
		say_lock_limits(out, str_get(&name), r->percent, r->ns);
}

static void add_convoy(struct str *out, const struct analysis *a, const struct reason *r)
{
	struct lock_name lock = lock_name_of(a->recording, a->pass, r->chain->waits_in);
	CLEANUP(str_done) struct str name = { 0 };

	add_lock(&name, &lock, true);
	say_lock_convoy(out, (uint64_t)r->number, str_get(&name), r->count, r->ns);
}

/* Which thread waits for which lock, in whose hands. */
static void add_deadlock(struct str *out, const struct analysis *a, const struct reason *r)
{
	const struct model_deadlock *d = r->deadlock;

	(d->end_ns == a->model->end_ns ? say_deadlock : say_deadlock_ended)(
		out, d->count, d->start_ns - a->model->start_ns, d->end_ns - d->start_ns);
	for (uint32_t i = 0; i < d->count; i++) {
		CLEANUP(str_done) struct str waiter = thread_of(a, d->threads[i]);
		CLEANUP(str_done)
		struct str holder = thread_of(a, d->threads[(i + 1) % d->count]);
		CLEANUP(str_done) struct str lock = { 0 };
		const struct lane *lane = &a->model->threads.v[d->threads[i]].gil;

		add_lock_in(&lock, a, lane->spans.v[lane_at(lane, d->start_ns)].gil.frame);
		str_addc(out, ' ');
		say_deadlock_waits(out, str_get(&waiter), str_get(&lock), str_get(&holder));
	}
}

/* Which thread took which of two locks while it had the other one. */
static void add_order(struct str *out, const struct analysis *a, const struct reason *r)
{
	const struct model_order *order = r->order;
	const struct model_order *other = &a->model->orders.v[order->reverse];
	CLEANUP(str_done)
	struct str one = thread_of(a, other->thread), two = thread_of(a, order->thread);
	CLEANUP(str_done) struct str first = { 0 }, second = { 0 };

	add_lock_in(&first, a, other->frame);
	add_lock_in(&second, a, order->frame);
	say_lock_order(out, str_get(&one), str_get(&first), str_get(&two), str_get(&second));
}

/* A stage of a pipeline, and one that waits for it. */
static void add_stage(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done)
	struct str thread = thread_of(a, r->thread), waiter = thread_of(a, r->other);
	struct lock_name lock = lock_name_of(a->recording, a->pass, r->frame);
	struct function at = function_at(a->pass, r->part->at);
	CLEANUP(str_done) struct str in = { 0 }, queue = { 0 };

	add_function(&in, &at, NAME_COLUMNS);
	if (lock.made)
		add_lock(&queue, &lock, true);
	else
		add_lock_in(&queue, a, r->frame);
	(r->part->reason == PATH_ASLEEP ? say_stage_slept
	 : r->part->reason == PATH_GIL  ? say_stage_held
	                                : say_stage_ran)(out, str_get(&thread), r->percent,
	                                                str_get(&in), str_get(&waiter),
	                                                r->other_percent, str_get(&queue));
}

static void add_burst(struct str *out, const struct analysis *a, const struct reason *r)
{
	(void)a;
	if (r->code == REASON_BURST)
		say_burst(out, r->percent, r->longest_ns, r->ns);
	else
		(r->code == REASON_BURST_END ? say_burst_end : say_burst_start)(
			out, r->percent, r->longest_ns, r->ns, r->count);
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
static void add_states(struct str *out, const struct analysis *a, const struct reason *r)
{
	const struct evidence *e = &a->evidence;
	const uint64_t *ns = e->totals.cpu_ns;
	uint64_t known = evidence_cpu_known(e);
	double disk = facts_percent(ns[CPU_UNINTERRUPTIBLE], known);
	double running = facts_percent(ns[CPU_RUNNING], known);
	double runnable = facts_percent(ns[CPU_RUNNABLE], known);
	double sleeping = facts_percent(ns[CPU_SLEEPING], known);
	double asleep = facts_percent(evidence_asleep(e), known);
	double gil = facts_percent(ns[CPU_GIL_SLEEP], known);
	bool blind = evidence_is_blind(e) || evidence_is_lost(e);

	(void)r;
	/* Where it is not known what a thread slept for, it may have been the GIL. */
	if (blind) {
		sleeping += gil;
		asleep += gil;
	}
	if (blind && disk >= FACTS_LEAST_PERCENT)
		say_states_blind_disk(out, running, runnable, sleeping, disk);
	else if (blind)
		say_states_blind(out, running, runnable, asleep);
	else if (disk >= FACTS_LEAST_PERCENT)
		say_states_disk(out, running, runnable, sleeping, disk, gil);
	else
		say_states(out, running, runnable, asleep, gil);
}

static void add_busiest(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str thread = thread_of(a, r->thread);

	say_busiest(out, str_get(&thread), r->percent);
}

static bool is_lock_type(const char *of)
{
	return of && !strncmp(of, "_thread.", 8);
}

static void add_shared_lock(struct str *out, const struct analysis *a, const struct reason *r)
{
	struct function f = function_at(a->pass, r->frame);
	struct lock_name lock = lock_name_of(a->recording, a->pass, r->frame);
	CLEANUP(str_done) struct str type = { 0 }, what = { 0 }, function = { 0 };

	if (r->of && *r->of) {
		utf8_add_safe(&type, r->of, NAME_COLUMNS);
		if (r->variable && *r->variable) {
			str_adds(&type, " (");
			utf8_add_safe(&type, r->variable, NAME_COLUMNS);
			str_addc(&type, ')');
		} else if (is_lock_type(r->of) && lock.expression) {
			str_adds(&type, " (");
			add_lock(&type, &lock, true);
			str_addc(&type, ')');
		}
		(is_lock_type(r->of) ? say_one : say_lock_of_one)(&what, str_get(&type));
	} else if (r->variable && *r->variable) {
		utf8_add_safe(&type, r->variable, NAME_COLUMNS);
		say_lock_of_interpreter_for(&what, str_get(&type));
	} else {
		say_lock_of_interpreter(&what);
	}
	say_shared_lock(out, r->count, r->percent, r->ns, str_get(&what));
	if (f.name) {
		wording_add_function(&function, &f, NAME_COLUMNS);
		say_mostly_in(out, str_get(&function));
	}
	if (r->other_percent >= 1)
		say_of_it_spinning(out, r->other_percent);
	str_addc(out, '.');
}

static void add_late(struct str *out, const struct analysis *a, const struct reason *r)
{
	struct function f = function_at(a->pass, r->frame);
	CLEANUP(str_done) struct str thread = { 0 }, function = { 0 };

	say_stop_late(out, r->ns);
	if (r->thread != MODEL_NONE) {
		thread = thread_of(a, r->thread);
		say_stop_late_thread(out, str_get(&thread));
	}
	if (r->thread != MODEL_NONE && f.name) {
		wording_add_function(&function, &f, NAME_COLUMNS);
		say_stop_late_in(out, str_get(&function));
	}
	str_addc(out, '.');
}

static void add_blocked(struct str *out, const struct analysis *a, const struct reason *r)
{
	struct function f = function_at(a->pass, r->frame);
	CLEANUP(str_done) struct str thread = thread_of(a, r->thread), other = { 0 }, in = { 0 };

	(r->code == REASON_STOPS ? say_locks_stops : say_locks_stopped)(out, str_get(&thread),
	                                                                r->percent, r->ns);
	if (r->other != MODEL_NONE) {
		other = thread_of(a, r->other);
		say_until_resumed(out, r->other_percent, str_get(&other));
	}
	if (f.name) {
		wording_add_function(&in, &f, NAME_COLUMNS);
		say_mostly_in(out, str_get(&in));
	}
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

static void add_sampled(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str name = { 0 };

	if (r->code == REASON_SAMPLED_HOLDER) {
		wording_add_thread(&name, a->pass, r->thread);
		say_sampled_holder(out, str_get(&name), r->percent);
		return;
	}
	sampled_add_place(&name, a->pass, r->place, NAME_COLUMNS);
	if (r->code == REASON_SAMPLED_HELD)
		say_sampled_held(out, r->percent, str_get(&name));
	else
		say_sampled_place(out, r->percent, str_get(&name),
		                  sampled_what_text(a->pass, r->place->what));
}

static void add_imported(struct str *out, const struct analysis *a, const struct model_import *i)
{
	struct function f = function_at(a->pass, i->frame);
	CLEANUP(str_done) struct str place = { 0 };

	utf8_add_safe(out, i->module, NAME_COLUMNS);
	if (!f.name)
		return;
	add_function(&place, &f, NAME_COLUMNS);
	say_imported_by(out, str_get(&place));
}

static void add_import(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str module = { 0 };
	bool during = r->code == REASON_GIL_TURNED_ON;

	if (!a->model->imports.n) {
		(during ? say_gil_turned_on : say_gil_on)(out);
		return;
	}
	add_imported(&module, a, &a->model->imports.v[0]);
	(during ? say_gil_turned_on_by : say_gil_on_by)(out, str_get(&module));
}

#define IMPORTS_NAMED 8

/* Unless an option turned the GIL on, the first one did, and has been named. */
static void add_needed(struct str *out, const struct analysis *a, const struct reason *r)
{
	const char *gil = a->recording->python.gil;
	size_t first = !(gil && !strcmp(gil, "forced"));
	CLEANUP(str_done) struct str list = { 0 };

	(void)r;
	for (size_t i = first; i < a->model->imports.n && i < first + IMPORTS_NAMED; i++) {
		str_adds(&list, i > first ? "; " : "");
		add_imported(&list, a, &a->model->imports.v[i]);
	}
	if (a->model->imports.n > first + IMPORTS_NAMED)
		str_adds(&list, "; …");
	say_gil_needed(out, str_get(&list));
}

static void add_holder(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str thread = thread_of(a, r->thread);

	say_held_all(out, r->ns, str_get(&thread));
}

static void add_stop_count(struct str *out, const struct analysis *a, const struct reason *r)
{
	(void)a;
	say_stop_count(out, r->count, r->ns, r->longest_ns);
	if (r->other_count)
		say_stop_collections(out, r->other_count);
	str_addc(out, '.');
}

static void add_quota(struct str *out, const struct analysis *a, const struct reason *r)
{
	(void)a;
	say_quota(out, r->number, r->count, r->other_count);
}

static void add_samples(struct str *out, const struct analysis *a, const struct reason *r)
{
	(void)a;
	say_sampled(out, r->count, r->number);
}

static void add_cpu_users(struct str *out, const struct analysis *a, const struct reason *r)
{
	(void)r;
	verdict_add_cpu_users(out, a);
}

/**
 * What is said of a reason.
 * @text: without holes; the beginning, if there is more
 * @percent, @ns, @count: with this number of the reason; @add: with several, or with names
 */
static const struct sentence {
	enum phrase text;
	void (*percent)(struct str *, double);
	void (*ns)(struct str *, uint64_t);
	void (*count)(struct str *, uint64_t);
	void (*add)(struct str *, const struct analysis *, const struct reason *);
} sentences[REASON_CODES] = {
	[REASON_NO_GIL] = { .text = PHRASE_no_gil },
	[REASON_IDLE] = { .ns = say_idle },
	[REASON_HALTED] = { .ns = say_halted },
	[REASON_HELD] = { .add = add_holder },
	[REASON_NOTHING] = { .text = PHRASE_nothing },
	[REASON_TOO_SHORT] = { .ns = say_too_short },
	[REASON_CPUS] = { .percent = say_cpus_limit },
	[REASON_CPUS_NOT_GIL] = { .percent = say_cpus_limit_not_gil },
	[REASON_GIL_BOUND] = { .text = PHRASE_gil_limits, .add = add_waits },
	[REASON_GIL_SOME] = { .text = PHRASE_gil_slows, .add = add_waits },
	[REASON_LOCK_BOUND] = { .add = add_lock_waits },
	[REASON_CONVOY] = { .add = add_convoy },
	[REASON_DEADLOCK] = { .add = add_deadlock },
	[REASON_ORDER] = { .add = add_order },
	[REASON_STAGE] = { .add = add_stage },
	[REASON_NATIVE] = { .percent = say_native },
	[REASON_ASLEEP] = { .percent = say_asleep },
	[REASON_ASLEEP_DISK] = { .percent = say_asleep_disk },
	[REASON_ASLEEP_TOO] = { .percent = say_asleep_too },
	[REASON_SINGLE] = { .text = PHRASE_single },
	[REASON_SINGLE_HOLDER] = { .text = PHRASE_single_holder },
	[REASON_SINGLE_TOO] = { .text = PHRASE_single_too },
	[REASON_GIL_NEARLY] = { .percent = say_gil_nearly },
	[REASON_GIL_NONE] = { .percent = say_gil_none },
	[REASON_GIL_UNKNOWN] = { .percent = say_gil_unknown },
	[REASON_GIL_LOST] = { .percent = say_gil_lost },
	[REASON_SAMPLED] = { .add = add_samples },
	[REASON_SAMPLED_NO_GIL] = { .count = say_sampled_no_gil },
	[REASON_GIL_FORCED] = { .text = PHRASE_gil_forced },
	[REASON_GIL_IS_ON] = { .text = PHRASE_gil_is_on },
	[REASON_GIL_NEEDED] = { .add = add_needed },
	[REASON_GIL_NOT_NEEDED] = { .text = PHRASE_gil_not_needed },
	[REASON_GIL_ON] = { .add = add_import },
	[REASON_GIL_TURNED_ON] = { .add = add_import },
	[REASON_SAMPLED_HOLDER] = { .add = add_sampled },
	[REASON_SAMPLED_HELD] = { .add = add_sampled },
	[REASON_SAMPLED_PLACE] = { .add = add_sampled },
	[REASON_CPU_USERS] = { .add = add_cpu_users },
	[REASON_QUOTA] = { .add = add_quota },
	[REASON_STATES] = { .add = add_states },
	[REASON_BUSIEST] = { .add = add_busiest },
	[REASON_SHARED_LOCK] = { .add = add_shared_lock },
	[REASON_STOP_COUNT] = { .add = add_stop_count },
	[REASON_STOP_LATE] = { .add = add_late },
	[REASON_STOPS] = { .add = add_blocked },
	[REASON_STOPPED] = { .add = add_blocked },
	[REASON_NO_LOCKS] = { .text = PHRASE_no_locks },
	[REASON_BURST] = { .add = add_burst },
	[REASON_BURST_END] = { .add = add_burst },
	[REASON_BURST_START] = { .add = add_burst },
	[REASON_TASK_STEP] = { .add = add_step },
	[REASON_TASK_LATE] = { .add = add_late_task },
	[ADVICE_CALL] = { .text = PHRASE_advise_call },
	[ADVICE_PYTHON] = { .text = PHRASE_advise_python },
	[ADVICE_COLLECTOR] = { .text = PHRASE_advise_collector },
	[ADVICE_IMPORT] = { .text = PHRASE_advise_import },
	[ADVICE_DEALLOCATION] = { .text = PHRASE_advise_deallocation },
	[ADVICE_CALL_OF_PROCESS] = { .text = PHRASE_advise_call_of_process },
	[ADVICE_PYTHON_OF_PROCESS] = { .text = PHRASE_advise_python_of_process },
	[ADVICE_LOOP_OF_PROCESS] = { .text = PHRASE_advise_loop_of_process },
	[ADVICE_GIL_DETECT] = { .text = PHRASE_advise_gil_detect },
	[ADVICE_HANDOFF] = { .text = PHRASE_advise_handoff },
	[ADVICE_RECORD_ALONE] = { .text = PHRASE_advise_record_alone },
	[ADVICE_BUSIEST] = { .text = PHRASE_advise_busiest },
	[ADVICE_QUOTA] = { .text = PHRASE_advise_quota },
	[ADVICE_OWN_THREADS] = { .text = PHRASE_advise_own_threads },
	[ADVICE_OTHER_PROGRAMS] = { .text = PHRASE_advise_other_programs },
	[ADVICE_CPUS] = { .text = PHRASE_advise_cpus },
	[ADVICE_STATE_DETECT] = { .text = PHRASE_advise_state_detect },
	[ADVICE_LONGER] = { .text = PHRASE_advise_longer },
	[ADVICE_RECORD_AGAIN] = { .text = PHRASE_advise_record_again },
	[ADVICE_TRACE_IMPORTS] = { .text = PHRASE_advise_trace_imports },
	[ADVICE_STACKS] = { .text = PHRASE_advise_stacks },
	[ADVICE_LOCK] = { .text = PHRASE_advise_lock },
	[ADVICE_CONVOY] = { .text = PHRASE_advise_lock_convoy },
	[ADVICE_DEADLOCK] = { .text = PHRASE_advise_deadlock },
	[ADVICE_LOCK_ASLEEP] = { .text = PHRASE_advise_lock_asleep },
	[ADVICE_EXACT] = { .text = PHRASE_advise_exact },
	[ADVICE_LOOP] = { .text = PHRASE_advise_loop },
	[ADVICE_LOOP_BLOCKED] = { .text = PHRASE_advise_loop_blocked },
	[QUALITY_SLOW_STARTS] = { .percent = say_quality_slow_starts },
	[QUALITY_LOST] = { .count = say_quality_lost },
	[QUALITY_UNKNOWN] = { .percent = say_quality_unknown },
	[QUALITY_INFERRED] = { .percent = say_quality_inferred },
	[QUALITY_SAMPLED] = { .count = say_quality_sampled },
	[QUALITY_MISSED] = { .percent = say_quality_missed },
	[QUALITY_TORN] = { .percent = say_quality_torn },
	[QUALITY_COMPLETE] = { .text = PHRASE_quality_complete },
	[QUALITY_SEE_NOTES] = { .text = PHRASE_quality_see_notes },
};

void verdict_add_text(struct str *out, const struct analysis *a, const struct reasons *reasons)
{
	for (size_t i = 0; i < reasons->v.n; i++) {
		const struct reason *r = &reasons->v.v[i];
		const struct sentence *s = &sentences[r->code];

		str_adds(out, i ? " " : "");
		str_adds(out, phrase(s->text));
		if (s->percent)
			s->percent(out, r->percent);
		if (s->ns)
			s->ns(out, r->ns);
		if (s->count)
			s->count(out, r->count);
		if (s->add)
			s->add(out, a, r);
	}
}

const char *verdict_kind_name(enum verdict_kind kind)
{
	static const char *const names[] = {
		[VERDICT_FREE_THREADED] = "free-threaded",
		[VERDICT_IDLE] = "idle",
		[VERDICT_HELD] = "held",
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
