/* SPDX-License-Identifier: MIT */
/* Collects the findings from the other facts, ranks them, and looks for their places. */
#include "analysis/findings.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/pystack.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "model/owners.h"
#include "model/span.h"
#include "trace/names.h"
#include "trace/stacks.h"

#define NONE           UINT32_MAX
#define TASK_FINDINGS  3  /* the largest number */
#define CHAIN_DIRECT   20 /* percent: what the code with the lock does itself decides the remedy */
#define RUNNABLE_LEAST 1000 /* ns; shorter times without a CPU are no place to look at */
#define OTHERS         33 /* percent of the CPUs' time: from here on, other programs are mentioned */
#define PREEMPTED      20      /* percent of the longest hold: worth reporting */
#define WORTH_A_WORD   1       /* percent of a thread's life: likewise */
#define PLACE_SOME     5       /* percent of the samples: likewise */
#define LATE_SOME_NS   1000000 /* of the last thread to stop: likewise */
#define SHARED_FRAMES  64      /* the largest number that is compared */

/* Many threads queue for a lock. */
#define CONVOY_THREADS  4       /* at the same time */
#define CONVOY_RELEASES 100     /* while threads wait */
#define CONVOY_NS       1000000 /* from one to the next */

/* Threads that were stopped waited, and so did the one that waited until they had stopped. */
static uint64_t stops_ns(const struct model *m)
{
	uint64_t ns = locks_stops(m).waiting_ns;

	for (size_t i = 0; i < m->threads.n; i++)
		ns += m->threads.v[i].gil_ns[GIL_STOPPED];
	return ns;
}

static uint64_t wanted_ns(const struct analysis *a)
{
	uint64_t spins_ns = 0;

	for (size_t i = 0; i < a->model->threads.n; i++)
		spins_ns += a->model->threads.v[i].gil_ns[GIL_SPINNING];
	return a->evidence.wanted_ns + a->evidence.lock_wait_ns + spins_ns + stops_ns(a->model);
}

/* What all findings have. Valid until the next call. */
static struct finding *push(struct findings *to, enum finding_kind kind, uint64_t cost_ns,
                            uint64_t of_ns)
{
	struct finding *f = vec_push(&to->v);
	*f = (struct finding){ .kind = kind,
		               .cost_ns = cost_ns,
		               .share = facts_percent(cost_ns, of_ns),
		               .group = NONE,
		               .tasks = NONE,
		               .charged = NONE,
		               .remedy = REASON_CODES,
		               .no_gain = NO_GAIN_NOT_A_CALL };
	return f;
}

/* Returns NULL if it costs too little to be a finding. */
static struct finding *add(struct findings *to, const struct analysis *a, enum finding_kind kind,
                           uint64_t cost_ns, uint64_t of_ns)
{
	if (facts_percent(cost_ns, of_ns) < FINDING_LEAST || cost_ns < VERDICT_SHORT_NS ||
	    facts_percent(cost_ns, a->evidence.wall_ns) < FINDING_LEAST)
		return NULL;
	return push(to, kind, cost_ns, of_ns);
}

/* What helps against a lack of CPUs depends on which programs had them. */
static enum reason_code cpu_remedy(const struct analysis *a)
{
	double own = cpu_users_own_percent(&a->cpu_users);

	if (evidence_is_throttled(&a->evidence))
		return ADVICE_QUOTA;
	if (own >= 100 - OTHERS)
		return ADVICE_OWN_THREADS;
	return own >= 0 && own <= OTHERS ? ADVICE_OTHER_PROGRAMS : ADVICE_CPUS;
}

/* ---- the GIL */

static enum reason_code python_remedy(const struct analysis *a)
{
	return a->evidence.processes > 1 ? ADVICE_PYTHON_OF_PROCESS : ADVICE_PYTHON;
}

static enum reason_code function_remedy(const struct analysis *a, const struct finding *f)
{
	if (f->tracing)
		return ADVICE_RECORD_ALONE;
	switch (function_cause(a->pass, f->row->hog)) {
	case CAUSE_COLLECTOR:
		return ADVICE_COLLECTOR;
	case CAUSE_IMPORT:
		return ADVICE_IMPORT;
	case CAUSE_DEALLOCATION:
		return ADVICE_DEALLOCATION;
	default:
		break;
	}
	if (f->kind == FINDING_FUNCTION)
		return python_remedy(a);
	return a->evidence.processes > 1 ? ADVICE_CALL_OF_PROCESS : ADVICE_CALL;
}

/* How long the holder was runnable without a CPU during the hold; 0 if that is a small share. */
static uint64_t preempted(const struct model *model, uint32_t thread, uint64_t from_ns, uint64_t ns)
{
	uint64_t runnable_ns, asleep_ns;

	hogs_off_cpu(&model->threads.v[thread], from_ns, from_ns + ns, &runnable_ns, &asleep_ns);
	return facts_percent(runnable_ns, ns) >= PREEMPTED ? runnable_ns : 0;
}

/* What is known of holds that were overdue. */
static void set_overdue(struct finding *f, const struct analysis *a)
{
	if (function_is_inferred(a->pass, f->row->hog))
		f->certainty = FINDING_INFERRED;
	f->no_gain = functions_gain(a->pass, f->row->hog, &f->gain_ns);
	f->preempted_ns = preempted(a->model, f->row->longest_thread, f->row->longest_at_ns,
	                            f->row->longest_ns);
}

/* The row of its overdue holds; NULL: none were. */
static const struct function_row *overdue_row(const struct analysis *a,
                                              const struct function_row *row)
{
	for (size_t i = 0; i < a->overdue.v.n; i++)
		if (row->hog->frame &&
		    hogs_same_function(functions_frames(a->pass), a->overdue.v.v[i].hog->frame,
		                       row->hog->frame))
			return &a->overdue.v.v[i];
	return NULL;
}

static void find_functions(struct findings *to, const struct analysis *a, uint64_t of_ns)
{
	for (size_t i = 0; i < a->holders.v.n; i++) {
		const struct function_row *row = &a->holders.v.v[i];
		const struct function_row *overdue = overdue_row(a, row);
		bool keeps = overdue && overdue->wait_ns * 2 >= row->wait_ns;
		struct finding *f = add(to, a, keeps ? FINDING_CALL : FINDING_FUNCTION,
		                        row->wait_ns, of_ns);

		if (!f)
			continue;
		f->row = keeps ? overdue : row;
		f->ended_ns = row->wait_ns;
		f->frame = row->hog->frame;
		f->tracing = function_is_slow_start(a->pass, f->row->hog);
		f->remedy = function_remedy(a, f);
		if (keeps)
			set_overdue(f, a);
		else if (function_is_inferred(a->pass, f->row->hog))
			f->certainty = FINDING_INFERRED;
	}
}

/* Threads held the GIL in unknown functions. @ns: of such holds, by group of threads */
static void find_threads(struct findings *to, const struct analysis *a, const uint64_t *ns,
                         uint64_t of_ns)
{
	for (uint32_t g = 0; g < a->groups.v.n; g++) {
		struct finding *f = add(to, a, FINDING_THREAD, ns[g], of_ns);

		if (!f)
			continue;
		f->group = g;
		f->longest_ns = a->groups.v.v[g].sum.longest_hold_ns;
		f->remedy = a->recording->gil_detect ? python_remedy(a) : ADVICE_GIL_DETECT;
	}
}

/* The same where no calls are recorded: the probes do not know the function in which the hold ended. */
static void find_unprobed(struct findings *to, const struct analysis *a, uint64_t of_ns)
{
	CLEANUP(free) uint64_t *ns = xcalloc(a->groups.v.n + 1, sizeof(*ns));

	for (size_t i = 0; i < a->model->blame.n; i++)
		if (a->model->blame.v[i].holder < MODEL_UNKNOWN)
			ns[a->groups.of[a->model->blame.v[i].holder]] +=
				a->model->blame.v[i].wait_ns;
	for (size_t i = 0; a->pass->hogs && i < a->pass->hogs->v.n; i++) {
		const struct hog *hog = &a->pass->hogs->v.v[i];
		uint64_t *rest_ns = &ns[a->groups.of[hog->thread]];

		if (hog->frame)
			*rest_ns -= hog->wait_ns < *rest_ns ? hog->wait_ns : *rest_ns;
	}
	find_threads(to, a, ns, of_ns);
}

/* ---- by recorded calls */

/**
 * A function, by name and file.
 * @overdue: the row of its overdue holds, @ended: of all holds that ended in it; NULL: none
 * @ns: waiting for its overdue holds, and meanwhile waiting while it ran in others; @ended_ns: the
 * part for holds that ended in it, of which no call is recorded
 * @stack: its heaviest, 0: none
 */
struct charged {
	const struct function_row *overdue, *ended;
	uint64_t ns, ended_ns;
	uint32_t stack;
};

/**
 * What ran while others waited: in an overdue hold, what kept the GIL; in others, the calls that are
 * recorded; without calls, the function in which the hold ended.
 * @v: by id in keys, which are "name (file"
 * @of: index in v by name of a call; @finding: index of a finding by index in v, NONE: none
 * @unknown_ns: by group of threads: nothing is known of what ran
 */
struct charges {
	struct pystack py;
	struct names *keys;
	VEC(struct charged) v;
	uint32_t *of, *finding;
	uint64_t *unknown_ns;
};

static struct charged *find_key(struct charges *c, const char *name, size_t name_len,
                                const char *file)
{
	CLEANUP(str_done) struct str key = { 0 };
	uint32_t id;

	str_addn(&key, name, name_len);
	if (file)
		str_addf(&key, " (%s", file);
	id = names_id(c->keys, str_get(&key), key.len);
	while (c->v.n <= id)
		*vec_push(&c->v) = (struct charged){ .ns = 0 };
	return &c->v.v[id];
}

/* By the name of a call, "name (file:line)". */
static struct charged *of_call(struct charges *c, const char *name)
{
	const char *colon = strrchr(name, ':');

	return find_key(c, name, colon ? (size_t)(colon - name) : strlen(name), NULL);
}

/* NULL: the function is not known. */
static struct charged *of_frame(struct charges *c, const struct analysis *a, uint32_t frame)
{
	struct function f = function_at(a->pass, frame);

	return f.name ? find_key(c, f.name, strlen(f.name), f.file) : NULL;
}

static void charge_threads(struct charges *c, const struct analysis *a)
{
	for (uint32_t t = 0; t < a->model->threads.n; t++) {
		struct stretches stretches = stretches_blamed(a->model, t, a->pass->hogs);
		uint64_t before_ns = c->py.rest.n ? c->py.rest.v[0] : 0;

		pystack_charge(&c->py, pystack_find(a->pass, t), &stretches);
		c->unknown_ns[a->groups.of[t]] += (c->py.rest.n ? c->py.rest.v[0] : 0) - before_ns;
		vec_done(&stretches);
	}
}

static void charge_rows(struct charges *c, const struct analysis *a)
{
	struct charged *of;

	for (size_t i = 0; i < a->holders.v.n; i++)
		if ((of = of_frame(c, a, a->holders.v.v[i].hog->frame)))
			of->ended = &a->holders.v.v[i];
	for (size_t i = 0; i < a->overdue.v.n; i++) {
		const struct function_row *row = &a->overdue.v.v[i];

		if ((of = of_frame(c, a, row->hog->frame))) {
			of->overdue = row;
			of->ns += row->wait_ns;
		} else {
			c->unknown_ns[a->groups.of[row->hog->thread]] += row->wait_ns;
		}
	}
}

static void charges_find(struct charges *c, const struct analysis *a)
{
	struct pystack_functions functions;
	uint32_t names;

	*c = (struct charges){
		.keys = names_new(),
		.unknown_ns = xcalloc(a->groups.v.n + 1, sizeof(*c->unknown_ns)),
	};
	pystack_init(&c->py, a->pass->slices);
	charge_threads(c, a);
	charge_rows(c, a);
	functions = pystack_functions(&c->py);
	names = names_count(stacks_names(c->py.stacks));
	c->of = xcalloc((size_t)names + 1, sizeof(*c->of));
	for (size_t i = 0; i < functions.n; i++) {
		struct charged *of = of_call(c, pystack_name(&c->py, functions.v[i].stack));

		of->ns += functions.v[i].ns;
		if (!of->stack)
			of->stack = functions.v[i].stack;
		c->of[functions.v[i].name] = (uint32_t)(of - c->v.v);
	}
	for (uint32_t frame = 1; frame < c->py.rest.n; frame++) {
		struct charged *of = c->py.rest.v[frame] ? of_frame(c, a, frame) : NULL;

		if (!of)
			continue;
		of->ns += c->py.rest.v[frame];
		of->ended_ns += c->py.rest.v[frame];
	}
	vec_done(&functions);
}

static void charges_done(struct charges *c)
{
	if (!c->keys)
		return;
	pystack_done(&c->py);
	names_free(c->keys);
	vec_done(&c->v);
	free(c->of);
	free(c->finding);
	free(c->unknown_ns);
}

/* Where to look: the function itself, or if it is one of a library, its caller in the program. */
static void set_traced(struct finding *f, const struct pystack *py, uint32_t stack)
{
	const char *name = pystack_name(py, stack), *caller = pystack_caller(py, stack);
	const char *text = caller && function_in_library(name) ? caller : name;
	const char *paren = strstr(text, " ("), *colon = strrchr(text, ':');

	f->ran = name;
	f->caller = caller;
	if (!paren || !colon || colon < paren) {
		f->traced_name = xstrdup(text);
		f->traced_file = xstrdup("");
		return;
	}
	f->traced_name = xasprintf("%.*s", (int)(paren - text), text);
	f->traced_file = xasprintf("%.*s", (int)(colon - paren - 2), paren + 2);
	f->traced_line = (uint32_t)strtoul(colon + 1, NULL, 10);
}

static void find_charged(struct findings *to, const struct analysis *a, struct charges *c,
                         uint64_t of_ns)
{
	for (uint32_t i = 0; i < c->v.n; i++) {
		const struct charged *of = &c->v.v[i];
		bool keeps = of->overdue && of->overdue->wait_ns * 2 >= of->ns;
		bool ended = !of->stack || of->ended_ns * 2 > of->ns;
		struct finding *f = add(to, a, keeps ? FINDING_CALL : FINDING_FUNCTION, of->ns,
		                        of_ns);

		if (!f)
			continue;
		f->charged = i;
		f->ended_ns = of->ended_ns + (of->overdue ? of->overdue->wait_ns : 0);
		f->row = keeps ? of->overdue : of->ended;
		f->frame = f->row ? f->row->hog->frame : 0;
		f->tracing = f->row && function_is_slow_start(a->pass, f->row->hog);
		f->remedy = f->row ? function_remedy(a, f) : python_remedy(a);
		if (keeps)
			set_overdue(f, a);
		else if (!ended)
			set_traced(f, &c->py, of->stack);
	}
	find_threads(to, a, c->unknown_ns, of_ns);
}

static void find_gil(struct findings *to, const struct analysis *a, struct charges *c,
                     uint64_t of_ns)
{
	const struct facts_totals *t = &a->evidence.totals;
	struct finding *f;

	if (a->locks)
		return;
	if (facts_percent(t->blamed_ns, of_ns) < FINDING_LEAST)
		return;
	if (a->pass->slices) {
		charges_find(c, a);
		find_charged(to, a, c, of_ns);
	} else {
		find_functions(to, a, of_ns);
		find_unprobed(to, a, of_ns);
	}
	f = add(to, a, FINDING_HANDOFF, t->handoff_ns - t->probed_handoff_ns, of_ns);
	if (f)
		f->remedy = ADVICE_HANDOFF;
	f = add(to, a, FINDING_NO_CPU, t->no_cpu_ns, of_ns);
	if (f)
		f->remedy = cpu_remedy(a);
}

/* ---- locks */

static bool same_line(const struct stacks *frames, uint32_t a, uint32_t b)
{
	return a == b || (frames && hogs_same_function(frames, a, b) &&
	                  stacks_get(frames, a)->line == stacks_get(frames, b)->line);
}

/* The remedy depends on what the code with the lock does itself, as far as that is much. */
static enum reason_code lock_remedy(const struct analysis *a, const struct finding *f)
{
	uint64_t slept_ns = 0, stuck_ns = 0;

	for (size_t i = 0; i < a->chains.v.n; i++) {
		const struct chain *c = &a->chains.v.v[i];

		if (!same_line(functions_frames(a->pass), c->waits_in, f->frame))
			continue;
		if (!c->through && c->end == CHAIN_WITHOUT_GIL)
			slept_ns += c->ns;
		if (c->end == CHAIN_DEADLOCK)
			stuck_ns += c->ns;
	}
	if (facts_percent(stuck_ns, f->cost_ns) >= CHAIN_DIRECT)
		return ADVICE_DEADLOCK;
	return facts_percent(slept_ns, f->cost_ns) >= CHAIN_DIRECT ? ADVICE_LOCK_ASLEEP
	                                                           : ADVICE_LOCK;
}

/* Time in which threads waited for one lock. @threads: those for which it matters; @life_ns: of these */
struct shared_lock {
	uint32_t lock, threads;
	uint64_t ns, life_ns, spin_ns;
	VEC(struct frame_time {
		uint32_t frame;
		uint64_t ns;
	})
	frames;
};

static void shared_lock_done(struct shared_lock *shared)
{
	vec_done(&shared->frames);
}

DEFINE_CLEANUP_IN(struct shared_lock, shared_lock_done);

static void add_to_frame(struct shared_lock *shared, uint32_t frame, uint64_t ns)
{
	for (size_t i = 0; i < shared->frames.n; i++)
		if (shared->frames.v[i].frame == frame) {
			shared->frames.v[i].ns += ns;
			return;
		}
	if (shared->frames.n < SHARED_FRAMES)
		*vec_push(&shared->frames) = (struct frame_time){ frame, ns };
}

static void add_waits_of_thread(struct shared_lock *shared, const struct model_thread *t)
{
	uint64_t ns = 0, spin_ns = 0;

	for (size_t i = 0; i < t->gil.spans.n; i++) {
		const struct span *s = &t->gil.spans.v[i];
		uint64_t span_ns = lane_span_end(&t->gil, i) - s->start_ns;

		if ((s->state != GIL_LOCK_WAIT && s->state != GIL_SPINNING) ||
		    s->gil.lock != shared->lock)
			continue;
		ns += span_ns;
		spin_ns += s->state == GIL_SPINNING ? span_ns : 0;
		add_to_frame(shared, s->gil.frame, span_ns);
	}
	if (facts_percent(ns, t->end_ns - t->start_ns) < WORTH_A_WORD)
		return;
	shared->threads++;
	shared->ns += ns;
	shared->spin_ns += spin_ns;
	shared->life_ns += t->end_ns - t->start_ns;
}

/* The lock for which threads waited longest, asleep or spinning, unless only one did. Returns the line; 0:
 * none. */
static uint32_t find_shared(struct findings *to, const struct analysis *a, uint64_t of_ns)
{
	const struct model *m = a->model;
	CLEANUP(shared_lock_done) struct shared_lock shared = { .lock = MODEL_NONE };
	uint64_t most_ns = 0;
	struct finding *f;
	struct reason *r;

	for (uint32_t i = 0; i < m->locks.n; i++)
		if (!m->locks.v[i].world &&
		    m->locks.v[i].wait_ns + m->locks.v[i].spin_ns > most_ns) {
			most_ns = m->locks.v[i].wait_ns + m->locks.v[i].spin_ns;
			shared.lock = i;
		}
	for (size_t i = 0; shared.lock != MODEL_NONE && i < m->threads.n; i++)
		add_waits_of_thread(&shared, &m->threads.v[i]);
	f = shared.threads < 2 ? NULL : add(to, a, FINDING_SHARED, shared.ns, of_ns);
	if (!f)
		return 0;
	most_ns = 0;
	for (size_t i = 0; i < shared.frames.n; i++)
		if (shared.frames.v[i].ns > most_ns) {
			most_ns = shared.frames.v[i].ns;
			f->frame = shared.frames.v[i].frame;
		}
	f->remedy = ADVICE_LOCK;
	r = reasons_add(&f->what, REASON_SHARED_LOCK);
	r->count = shared.threads;
	r->ns = shared.ns;
	r->percent = facts_percent(shared.ns, shared.life_ns);
	r->other_percent = facts_percent(shared.spin_ns, shared.ns);
	r->frame = f->frame;
	r->of = m->locks.v[shared.lock].of;
	r->variable = m->locks.v[shared.lock].name;
	return f->frame;
}

/* Many threads queue for a lock that none of them has for long. */
static bool add_convoy(struct reasons *to, const struct analysis *a, const struct chain *chain)
{
	const struct model_lock *lock = chain->lock == MODEL_NONE ? NULL
	                                                          : &a->model->locks.v[chain->lock];
	struct reason *r;

	if (!lock || lock->most_waiters < CONVOY_THREADS || lock->releases < CONVOY_RELEASES ||
	    lock->wanted_ns / lock->releases > CONVOY_NS)
		return false;
	r = reasons_add(to, REASON_CONVOY);
	r->chain = chain;
	r->number = lock->most_waiters;
	r->ns = lock->wanted_ns / lock->releases;
	r->count = (uint64_t)((double)lock->releases * 1e9 / (double)lock->wanted_ns);
	return true;
}

/* The chains are in the order of their times, so the first of a line is its largest. */
static void find_locks(struct findings *to, const struct analysis *a, uint64_t of_ns)
{
	const struct stacks *frames = functions_frames(a->pass);
	CLEANUP(free) bool *seen = xcalloc(a->chains.v.n + 1, sizeof(*seen));
	uint32_t shared = a->locks ? find_shared(to, a, of_ns) : 0;

	for (size_t i = 0; shared && i < a->chains.v.n; i++)
		seen[i] = same_line(frames, a->chains.v.v[i].waits_in, shared);
	for (size_t i = 0; i < a->chains.v.n; i++) {
		const struct chain *first = &a->chains.v.v[i];
		uint64_t ns = 0, unknown_ns = 0;
		struct finding *f;

		if (seen[i])
			continue;
		for (size_t j = i; j < a->chains.v.n; j++) {
			const struct chain *c = &a->chains.v.v[j];

			if (seen[j] || !same_line(frames, c->waits_in, first->waits_in))
				continue;
			seen[j] = true;
			ns += c->ns;
			unknown_ns += c->end == CHAIN_UNKNOWN ? c->ns : 0;
		}
		f = add(to, a, FINDING_LOCK, ns, of_ns);
		if (!f)
			continue;
		f->frame = first->waits_in;
		for (size_t j = i; j < a->chains.v.n && f->chain_count < FINDING_CHAINS; j++) {
			const struct chain *c = &a->chains.v.v[j];

			if (same_line(frames, c->waits_in, f->frame) &&
			    facts_percent(c->ns, ns) >= FINDING_CHAIN)
				f->chains[f->chain_count++] = c;
		}
		if (unknown_ns * 2 > ns)
			f->certainty = FINDING_INFERRED;
		f->remedy = lock_remedy(a, f);
		if (first->end != CHAIN_DEADLOCK && add_convoy(&f->what, a, first))
			f->remedy = ADVICE_CONVOY;
	}
}

/* The thread that spent the largest share of its life in state, or MODEL_NONE. */
static uint32_t most_in(const struct model *model, enum gil_state state)
{
	uint32_t most = MODEL_NONE;
	double percent = 0;

	for (uint32_t i = 0; i < model->threads.n; i++) {
		const struct model_thread *t = &model->threads.v[i];
		double share = facts_percent(t->gil_ns[state], t->end_ns - t->start_ns);

		if (share > percent && share >= WORTH_A_WORD) {
			most = i;
			percent = share;
		}
	}
	return most;
}

/* Finds the place where the thread stopped the others for most of the time. */
static void find_blocked_place(struct reason *r, const struct analysis *a)
{
	struct locks_places places = locks_places(a->pass, r->thread);

	for (size_t i = 0; i < places.v.n; i++) {
		if (places.v.v[i].state != GIL_STOPPING)
			continue;
		r->frame = places.v.v[i].frame;
		break;
	}
	vec_done(&places.v);
}

/* Finds the thread that resumed it after most of the time in which it was stopped. */
static void find_releaser(struct reason *r, const struct model *model)
{
	const struct model_lock_blame *most = NULL;

	for (size_t i = 0; i < model->lock_blame.n; i++) {
		const struct model_lock_blame *b = &model->lock_blame.v[i];

		if (b->waiter == r->thread && b->state == GIL_STOPPED && b->by < MODEL_UNKNOWN &&
		    (!most || b->wait_ns > most->wait_ns))
			most = b;
	}
	if (!most)
		return;
	r->other = most->by;
	r->other_percent = facts_percent(most->wait_ns, r->ns);
}

/* The thread that stopped the others, or was stopped, for the largest share of its life. */
static void add_blocked(struct reasons *to, const struct analysis *a, enum gil_state state,
                        enum reason_code code)
{
	uint32_t thread = most_in(a->model, state);
	const struct model_thread *t;
	struct reason *r;

	if (thread == MODEL_NONE)
		return;
	t = &a->model->threads.v[thread];
	r = reasons_add(to, code);
	r->thread = thread;
	r->ns = t->gil_ns[state];
	r->percent = facts_percent(r->ns, t->end_ns - t->start_ns);
	if (state == GIL_STOPPING)
		find_blocked_place(r, a);
	else
		find_releaser(r, a->model);
}

/* How often the world was stopped, and which thread stopped last where that took longest. */
static void add_stops(struct reasons *to, const struct model *m)
{
	struct locks_stops stops = locks_stops(m);
	struct reason *r;

	if (facts_percent(stops.ns, m->end_ns - m->start_ns) < WORTH_A_WORD)
		return;
	r = reasons_add(to, REASON_STOP_COUNT);
	r->count = stops.count;
	r->other_count = stops.collections;
	r->ns = stops.ns;
	r->longest_ns = stops.longest_ns;
	if (!stops.latest || locks_stop_waiting_ns(stops.latest) < LATE_SOME_NS)
		return;
	r = reasons_add(to, REASON_STOP_LATE);
	r->ns = locks_stop_waiting_ns(stops.latest);
	r->thread = stops.latest->last;
	r->frame = stops.latest->last_frame;
}

static void find_stops(struct findings *to, const struct analysis *a, uint64_t of_ns)
{
	struct finding *f = add(to, a, FINDING_STOPS, stops_ns(a->model), of_ns);

	if (!f)
		return;
	add_blocked(&f->what, a, GIL_STOPPING, REASON_STOPS);
	if (f->what.v.n)
		f->frame = f->what.v.v[0].frame;
	else
		add_blocked(&f->what, a, GIL_STOPPED, REASON_STOPPED);
	add_stops(&f->what, a->model);
}

/* ---- tasks, CPUs, patterns, samples */

/* Whether the loop's thread was without the GIL for most of the time, outside of its selector: all other
 * tasks waited for a step that slept, waited for something else, or ran C code. */
static bool is_blocked(const struct model *m, const struct task_delay *d)
{
	const struct lane *lane = d->thread < m->threads.n ? &m->threads.v[d->thread].gil : NULL;
	uint64_t ns = 0;

	for (size_t i = lane ? lane_at(lane, d->start_ns) : 0;
	     lane && i < lane->spans.n && lane->spans.v[i].start_ns < d->end_ns; i++)
		if (gil_state_is_without(lane->spans.v[i].state))
			ns += lane_span_in(lane, i, d->start_ns, d->end_ns);
	return ns > d->slept_ns && (ns - d->slept_ns) * 2 > d->end_ns - d->start_ns;
}

static enum reason_code task_remedy(const struct analysis *a, const struct task_delay *d)
{
	if (is_blocked(a->model, d))
		return ADVICE_LOOP_BLOCKED;
	return a->evidence.processes > 1 ? ADVICE_LOOP_OF_PROCESS : ADVICE_LOOP;
}

static void find_tasks(struct findings *to, const struct analysis *a)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < a->tasks.v.n && n < TASK_FINDINGS; i++) {
		const struct task_group *g = &a->tasks.v.v[i];
		/* Of uvloop, it is only known of some tasks, such as new ones. */
		bool late = aio_shows_ready(g->loop) ||
		            g->delay.end_ns - g->delay.start_ns >= FINDING_LATE_NS;
		const struct task_delay *d = late ? &g->delay : &g->step;
		struct finding *f;
		struct reason *r;

		if (d->end_ns - d->start_ns < FINDING_LATE_NS)
			continue;
		f = late ? push(to, FINDING_TASK, g->late_ns, g->late_ns + g->running_ns)
		         : push(to, FINDING_TASK, d->end_ns - d->start_ns, g->life_ns);
		n++;
		f->tasks = i;
		f->longest_ns = d->end_ns - d->start_ns;
		f->certainty = late && (d->inferred || g->inferred_ns * 2 > g->late_ns)
		                       ? FINDING_INFERRED
		                       : FINDING_EXACT;
		f->remedy = task_remedy(a, d);
		r = reasons_add(&f->what, late ? REASON_TASK_LATE : REASON_TASK_STEP);
		r->thread = d->thread;
		r->delay = d;
		r->ns = f->longest_ns;
		*vec_push(&f->places) = (struct finding_place){ MODEL_NONE, i, d->start_ns,
			                                        d->end_ns, f->longest_ns };
	}
}

static void find_cpus(struct findings *to, const struct analysis *a)
{
	const uint64_t *ns = a->evidence.totals.cpu_ns;
	uint64_t wanted = ns[CPU_RUNNABLE] + ns[CPU_RUNNING];
	double share = facts_percent(ns[CPU_RUNNABLE], wanted);
	const struct cpu_quota *q = evidence_is_throttled(&a->evidence) ? &a->pass->quota : NULL;
	struct finding *f = NULL;
	struct reason *r;

	if (share >= FINDING_CPUS && a->evidence.runnable_percent >= FINDING_CPUS)
		f = add(to, a, FINDING_CPUS_FEW, ns[CPU_RUNNABLE], wanted);
	if (!f && q)
		f = push(to, FINDING_QUOTA, ns[CPU_RUNNABLE], wanted);
	if (!f)
		return;
	f->remedy = cpu_remedy(a);
	if (!q)
		return;
	f->kind = FINDING_QUOTA;
	r = reasons_add(&f->what, REASON_QUOTA);
	r->number = (double)q->quota_us / (double)q->period_us;
	r->count = q->throttled;
	r->other_count = q->periods;
}

/* Each kind once, with its largest case. */
static void find_patterns(struct findings *to, const struct analysis *a, uint64_t of_ns)
{
	const struct patterns *p = a->pass->patterns;
	unsigned seen = 0;

	for (size_t i = 0; p && !a->locks && i < p->v.n; i++) {
		struct finding *f;

		if (seen & 1u << p->v.v[i].kind)
			continue;
		seen |= 1u << p->v.v[i].kind;
		f = add(to, a, FINDING_PATTERN, p->v.v[i].ns, of_ns);
		if (!f)
			continue;
		f->pattern = &p->v.v[i];
		for (size_t j = i + 1; j < p->v.n; j++)
			f->alike += p->v.v[j].kind == f->pattern->kind;
	}
}

static const struct sampled_place *find_sampled_place(const struct sampled *s, bool holds)
{
	for (size_t i = 0; i < s->places.n; i++) {
		enum sampled_what what = s->places.v[i].what;

		if (holds == (what == SAMPLED_HOLDS) && what != SAMPLED_WAITS)
			return &s->places.v[i];
	}
	return NULL;
}

static struct reason *push_sampled(struct findings *to, enum reason_code code, double percent)
{
	struct finding *f = push(to, FINDING_SAMPLED, 0, 0);
	struct reason *r = reasons_add(&f->what, code);

	f->certainty = FINDING_ESTIMATED;
	f->share = r->percent = percent;
	return r;
}

static void add_sampled_place(struct findings *to, enum reason_code code,
                              const struct sampled_place *place, uint64_t whole)
{
	double percent = facts_percent(place ? place->samples : 0, whole);

	if (percent >= PLACE_SOME)
		push_sampled(to, code, percent)->place = place;
}

static void find_sampled(struct findings *to, const struct analysis *a)
{
	const struct sampled *s = &a->sampled;
	const struct sampled_thread *t;

	if (a->verdict.kind != VERDICT_SAMPLED)
		return;
	t = s->busiest == MODEL_NONE ? NULL : &s->threads.v[s->busiest];
	if (t && t->thread != MODEL_NONE)
		push_sampled(to, REASON_SAMPLED_HOLDER,
		             facts_percent(t->what[SAMPLED_HOLDS], s->samples))
			->thread = t->thread;
	add_sampled_place(to, REASON_SAMPLED_HELD, find_sampled_place(s, true),
	                  s->what[SAMPLED_HOLDS]);
	add_sampled_place(to, REASON_SAMPLED_PLACE, find_sampled_place(s, false),
	                  s->thread_samples);
}

/* ---- the order */

static bool is_subject(enum verdict_kind verdict, enum finding_kind kind)
{
	switch (verdict) {
	case VERDICT_GIL_BOUND:
	case VERDICT_GIL_SOME:
		return kind <= FINDING_NO_CPU;
	case VERDICT_LOCK_BOUND:
		return kind == FINDING_LOCK;
	case VERDICT_CPU_STARVED:
		return kind == FINDING_CPUS_FEW || kind == FINDING_QUOTA;
	default:
		return false;
	}
}

/* More threads than the GIL can run is said of all waiting at once, so that it would always be
 * first. */
static uint64_t rank(const struct finding *f)
{
	return f->tracing || (f->pattern && f->pattern->kind == PATTERN_OVERSUBSCRIPTION)
	               ? 0
	               : f->cost_ns;
}

static int compare(const void *va, const void *vb)
{
	const struct finding *a = va, *b = vb;
	uint64_t x = rank(a), y = rank(b);

	if (x != y)
		return x < y ? 1 : -1;
	if (a->tracing != b->tracing)
		return a->tracing - b->tracing;
	if (a->cost_ns != b->cost_ns)
		return a->cost_ns < b->cost_ns ? 1 : -1;
	return (a->share < b->share) - (a->share > b->share);
}

static void finding_done(struct finding *f)
{
	vec_done(&f->what.v);
	vec_done(&f->places);
	free(f->traced_name);
	free(f->traced_file);
}

static void put_in_order(struct findings *to, enum verdict_kind verdict)
{
	vec_sort(&to->v, compare);
	for (size_t i = 0; i < to->v.n; i++) {
		struct finding first = to->v.v[i];

		if (!is_subject(verdict, first.kind) || first.tracing)
			continue;
		memmove(&to->v.v[1], &to->v.v[0], i * sizeof(first));
		to->v.v[0] = first;
		break;
	}
	while (to->v.n > FINDINGS_MAX) {
		finding_done(&to->v.v[--to->v.n]);
		to->left++;
	}
}

/* ---- the places */

/**
 * @hold_of, @lock_of: index of a finding by id of a frame; @group_of: by group of threads
 * @cheapest: by finding: the least costs of its places, if it has FINDING_PLACES
 */
struct places {
	const struct analysis *a;
	struct findings *of;
	uint32_t *hold_of, *lock_of, *group_of;
	uint32_t cpus, stops;
	uint64_t cheapest[FINDINGS_MAX];
};

/* Keeps those that cost most. */
static void put_place(struct places *p, uint32_t finding, const struct finding_place *place)
{
	struct finding *f = &p->of->v.v[finding];
	size_t least = 0;

	if (f->places.n < FINDING_PLACES) {
		*vec_push(&f->places) = *place;
	} else if (place->cost_ns > p->cheapest[finding]) {
		for (size_t i = 0; i < f->places.n; i++)
			if (f->places.v[i].cost_ns < f->places.v[least].cost_ns)
				least = i;
		f->places.v[least] = *place;
	}
	if (f->places.n < FINDING_PLACES)
		return;
	p->cheapest[finding] = UINT64_MAX;
	for (size_t i = 0; i < f->places.n; i++)
		if (f->places.v[i].cost_ns < p->cheapest[finding])
			p->cheapest[finding] = f->places.v[i].cost_ns;
}

static void put_hold(struct places *p, uint32_t thread, const struct span *s, uint64_t end,
                     size_t *hints)
{
	uint32_t f = p->hold_of ? p->hold_of[s->gil.frame] : NONE;
	struct finding_place place = { thread, NONE, s->start_ns, end, 0 };

	if (f == NONE && (!p->hold_of || !s->gil.frame))
		f = p->group_of[p->a->groups.of[thread]];
	if (f == NONE || s->gil.index >= p->a->model->gils.n ||
	    (end - s->start_ns) * p->a->model->threads.n <= p->cheapest[f])
		return;
	place.cost_ns = owners_waited(&p->a->model->gils.v[s->gil.index], &hints[s->gil.index],
	                              s->start_ns, end);
	if (place.cost_ns)
		put_place(p, f, &place);
}

static void put_lock_wait(struct places *p, uint32_t thread, const struct span *s, uint64_t end)
{
	uint32_t at = p->lock_of ? p->lock_of[s->gil.frame] : NONE;
	struct finding *f;

	if (at == NONE)
		return;
	f = &p->of->v.v[at];
	f->count++;
	if (end - s->start_ns > f->longest_ns)
		f->longest_ns = end - s->start_ns;
	put_place(p, at,
	          &(struct finding_place){ thread, NONE, s->start_ns, end, end - s->start_ns });
}

static void walk_gil(struct places *p, uint32_t thread, size_t *hints)
{
	const struct lane *lane = &p->a->model->threads.v[thread].gil;

	memset(hints, 0, p->a->model->gils.n * sizeof(*hints));
	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *s = &lane->spans.v[i];
		uint64_t end = lane_span_end(lane, i);

		if (s->state == GIL_HOLD)
			put_hold(p, thread, s, end, hints);
		else if (s->state == GIL_LOCK_WAIT)
			put_lock_wait(p, thread, s, end);
		else if (s->state == GIL_STOPPING && p->stops != NONE)
			put_place(p, p->stops,
			          &(struct finding_place){ thread, NONE, s->start_ns, end,
			                                   end - s->start_ns });
	}
}

/* Counts the threads of which the walk has put waits for a lock. */
static void count_threads(struct places *p, uint64_t *before)
{
	for (size_t i = 0; i < p->of->v.n; i++) {
		p->of->v.v[i].threads += p->of->v.v[i].count > before[i];
		before[i] = p->of->v.v[i].count;
	}
}

static void walk_cpu(struct places *p, uint32_t thread)
{
	const struct lane *lane = &p->a->model->threads.v[thread].cpu;

	for (size_t i = 0; i < lane->spans.n; i++) {
		uint64_t start = lane->spans.v[i].start_ns, end = lane_span_end(lane, i);

		if (lane->spans.v[i].state == CPU_RUNNABLE && end - start >= RUNNABLE_LEAST)
			put_place(p, p->cpus,
			          &(struct finding_place){ thread, NONE, start, end, end - start });
	}
}

/* The longest single part of waiting that is charged to nobody, and the longest wait of a pattern's
 * thread. */
static void put_single(struct places *p, uint32_t at)
{
	struct finding *f = &p->of->v.v[at];
	const struct model *m = p->a->model;
	const struct model_blame *longest = NULL;

	if (f->kind == FINDING_HANDOFF || f->kind == FINDING_NO_CPU) {
		for (size_t i = 0; i < m->blame.n; i++)
			if (m->blame.v[i].holder == MODEL_NONE &&
			    (!longest || m->blame.v[i].longest_ns > longest->longest_ns))
				longest = &m->blame.v[i];
		if (longest)
			put_place(p, at,
			          &(struct finding_place){
					  longest->waiter, NONE, longest->longest_at_ns,
					  longest->longest_at_ns + longest->longest_ns,
					  longest->longest_ns });
	} else if (f->pattern && f->pattern->thread != MODEL_NONE) {
		const struct model_thread *t = &m->threads.v[f->pattern->thread];

		if (t->longest_wait_ns)
			put_place(p, at,
			          &(struct finding_place){
					  f->pattern->thread, NONE, t->longest_wait_at_ns,
					  t->longest_wait_at_ns + t->longest_wait_ns,
					  t->longest_wait_ns });
	}
}

/* Which finding the spans with a frame belong to. */
static void map_frames(struct places *p)
{
	const struct stacks *frames = functions_frames(p->a->pass);
	uint32_t n = frames ? stacks_count(frames) : 0;

	if (!n)
		return;
	p->hold_of = xcalloc(n, sizeof(*p->hold_of));
	p->lock_of = xcalloc(n, sizeof(*p->lock_of));
	for (uint32_t id = 0; id < n; id++) {
		p->hold_of[id] = p->lock_of[id] = NONE;
		for (uint32_t i = 0; i < p->of->v.n; i++) {
			const struct finding *f = &p->of->v.v[i];

			if (f->row && !f->ran && id && hogs_same_function(frames, f->frame, id))
				p->hold_of[id] = i;
			if (f->kind == FINDING_LOCK && same_line(frames, f->frame, id))
				p->lock_of[id] = i;
		}
	}
}

static int compare_places(const void *va, const void *vb)
{
	const struct finding_place *a = va, *b = vb;

	if (a->cost_ns != b->cost_ns)
		return a->cost_ns < b->cost_ns ? 1 : -1;
	return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

/* The waiting in one hold, by finding, of functions that ran in it according to their calls. */
struct charged_hold {
	struct places *places;
	const struct charges *charges;
	uint32_t thread, span;
	uint64_t ns[FINDINGS_MAX];
};

static void put_charged_hold(struct charged_hold *h)
{
	const struct lane *lane = &h->places->a->model->threads.v[h->thread].gil;

	for (uint32_t i = 0; i < h->places->of->v.n; i++) {
		if (h->ns[i])
			put_place(h->places, i,
			          &(struct finding_place){
					  h->thread, NONE, lane->spans.v[h->span].start_ns,
					  lane_span_end(lane, h->span), h->ns[i] });
		h->ns[i] = 0;
	}
}

static void see_charge(void *data, const struct stretch *s, uint32_t stack, uint64_t ns)
{
	struct charged_hold *h = data;
	const struct charges *c = h->charges;
	uint32_t at;

	if (s->span != h->span)
		put_charged_hold(h);
	h->span = s->span;
	at = stack ? c->finding[c->of[stacks_get(c->py.stacks, stack)->name]] : NONE;
	if (at != NONE)
		h->ns[at] += ns;
}

/* The holds in which functions ran that their calls tell. */
static void walk_calls(struct places *p, struct charges *c)
{
	struct charged_hold hold = { .places = p, .charges = c };
	bool any = false;

	c->finding = xcalloc(c->v.n + 1, sizeof(*c->finding));
	for (size_t i = 0; i < c->v.n; i++)
		c->finding[i] = NONE;
	for (uint32_t i = 0; i < p->of->v.n; i++)
		if (p->of->v.v[i].ran) {
			c->finding[p->of->v.v[i].charged] = i;
			any = true;
		}
	c->py.see = see_charge;
	c->py.data = &hold;
	for (uint32_t t = 0; any && t < p->a->model->threads.n; t++) {
		struct stretches stretches = stretches_blamed(p->a->model, t, p->a->pass->hogs);

		hold.thread = t;
		hold.span = 0;
		pystack_charge(&c->py, pystack_find(p->a->pass, t), &stretches);
		put_charged_hold(&hold);
		vec_done(&stretches);
	}
	c->py.see = NULL;
	c->py.data = NULL;
}

static void find_places(struct findings *of, const struct analysis *a, struct charges *c)
{
	CLEANUP(free) size_t *hints = xcalloc(a->model->gils.n + 1, sizeof(*hints));
	uint64_t counted[FINDINGS_MAX] = { 0 };
	struct places p = { .a = a, .of = of, .cpus = NONE, .stops = NONE };

	p.group_of = xcalloc(a->groups.v.n + 1, sizeof(*p.group_of));
	for (uint32_t g = 0; g < a->groups.v.n; g++)
		p.group_of[g] = NONE;
	for (uint32_t i = 0; i < of->v.n; i++) {
		const struct finding *f = &of->v.v[i];

		if (f->kind == FINDING_THREAD)
			p.group_of[f->group] = i;
		else if (f->kind == FINDING_CPUS_FEW || f->kind == FINDING_QUOTA)
			p.cpus = i;
		else if (f->kind == FINDING_STOPS)
			p.stops = i;
		else
			put_single(&p, i);
	}
	map_frames(&p);
	for (uint32_t t = 0; t < a->model->threads.n; t++) {
		walk_gil(&p, t, hints);
		count_threads(&p, counted);
		if (p.cpus != NONE)
			walk_cpu(&p, t);
	}
	if (c->keys)
		walk_calls(&p, c);
	for (size_t i = 0; i < of->v.n; i++)
		vec_sort(&of->v.v[i].places, compare_places);
	free(p.hold_of);
	free(p.lock_of);
	free(p.group_of);
}

static void find_all(struct findings *to, const struct analysis *a, struct charges *c)
{
	uint64_t of_ns = wanted_ns(a);

	find_gil(to, a, c, of_ns);
	find_locks(to, a, of_ns);
	find_stops(to, a, of_ns);
	find_tasks(to, a);
	find_cpus(to, a);
	find_patterns(to, a, of_ns);
	find_sampled(to, a);
}

void findings_find(struct findings *ret, const struct analysis *a)
{
	struct charges charges = { 0 };

	*ret = (struct findings){ 0 };
	if (a->verdict.kind != VERDICT_TOO_SHORT)
		find_all(ret, a, &charges);
	put_in_order(ret, a->verdict.kind);
	find_places(ret, a, &charges);
	charges_done(&charges);
}

void findings_done(struct findings *findings)
{
	for (size_t i = 0; i < findings->v.n; i++)
		finding_done(&findings->v.v[i]);
	vec_done(&findings->v);
}
