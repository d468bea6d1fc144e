/* SPDX-License-Identifier: MIT */
/* GIL lanes. An acquire by one thread ends the hold of any other, so no instant has two holders;
 * events that contradict this are counted. */
#include "model/gil.h"

#include "model/locks.h"
#include "model/lost.h"
#include "model/owners.h"
#include "model/private.h"

static void set(struct model *m, uint32_t thread, uint64_t t, enum gil_state state, uint32_t gil,
                uint8_t flags)
{
	struct span span = gil_span(t, state, gil, flags);

	lane_push(&m->threads.v[thread].gil, &span, true);
}

static struct span *last(struct model *m, uint32_t thread)
{
	return lane_last(&m->threads.v[thread].gil);
}

void gil_without(struct model *m, uint32_t thread, uint64_t t)
{
	struct span span = locks_span(m, thread, t);

	lane_push(&m->threads.v[thread].gil, &span, true);
}

static uint32_t find_address(const struct model *m, uint32_t proc, uint64_t address)
{
	uint64_t key = address_key(proc, address);
	uint32_t gil;

	while ((gil = idmap_get(&m->priv->gil_keys, key++)) != IDMAP_NONE)
		if (m->gils.v[gil].address == address && m->priv->gils.v[gil].proc == proc)
			return gil;
	return MODEL_NONE;
}

static void set_address(struct model *m, uint32_t gil, uint64_t address)
{
	uint64_t key = address_key(m->priv->gils.v[gil].proc, address);

	m->gils.v[gil].address = address;
	while (idmap_get(&m->priv->gil_keys, key) != IDMAP_NONE)
		key++;
	idmap_set(&m->priv->gil_keys, key, gil);
}

static uint32_t gil_new(struct model *m, uint32_t proc, uint64_t address, uint64_t t)
{
	struct process *p = &m->priv->procs.v[proc];
	uint32_t gil = (uint32_t)m->gils.n;

	*vec_push(&m->gils) = (struct model_gil){ .pid = p->pid, .start_ns = t };
	*vec_push(&m->priv->gils) = (struct gil_tracker){
		.holder = MODEL_NONE, .proc = proc, .next = p->first_gil, .dirty = p->lost
	};
	p->first_gil = gil;
	if (address)
		set_address(m, gil, address);
	else
		p->nameless = gil;
	owners_mark(m, gil, t);
	return gil;
}

/* The GIL at an address. If the process has a GIL whose address is not known yet, it is assumed to
 * be this one. */
static uint32_t find(struct model *m, uint32_t proc, uint64_t address)
{
	struct process *p = &m->priv->procs.v[proc];
	uint32_t gil = find_address(m, proc, address);

	if (gil == MODEL_NONE && p->nameless != MODEL_NONE) {
		gil = p->nameless;
		p->nameless = MODEL_NONE;
		set_address(m, gil, address);
	}
	return gil;
}

static void move_start_hold(struct model *m, uint32_t thread, uint32_t gil);

/* The GIL that an event of the thread is about. */
static uint32_t resolve(struct model *m, uint32_t thread, uint64_t address, uint64_t t)
{
	struct thread_state *ts = &m->priv->threads.v[thread];
	uint32_t gil = ts->gil;

	if (gil != MODEL_NONE && (!address || m->gils.v[gil].address == address))
		return gil;
	gil = address ? find(m, ts->proc, address) : m->priv->procs.v[ts->proc].first_gil;
	if (gil == MODEL_NONE)
		gil = gil_new(m, ts->proc, address, t);
	if (ts->flags & THREAD_START && ts->gil != gil)
		move_start_hold(m, thread, gil);
	ts->gil = gil;
	return gil;
}

static void know(struct model *m, uint32_t gil, uint64_t t)
{
	struct gil_tracker *gs = &m->priv->gils.v[gil];

	if (!gs->known)
		gs->known_ns = t;
	gs->known = true;
}

static void dirty_process(struct model *m, uint32_t thread)
{
	struct process *p = &m->priv->procs.v[m->priv->threads.v[thread].proc];

	/* GILs that were added later are marked when they are added. */
	if (p->lost)
		return;
	p->lost = true;
	for (uint32_t g = p->first_gil; g != MODEL_NONE; g = m->priv->gils.v[g].next)
		m->priv->gils.v[g].dirty = true;
}

/* A thread that complies so quickly releases the GIL in the function that was asked to. */
#define COMPLIES_NS 1000000

/* Whether the hold that ends was kept by an unknown function: the interpreter checks for requests
 * only at some instructions, the next of which may be in a function that is called later. */
static bool is_elsewhere(const struct model *m, uint32_t thread, uint64_t t)
{
	const struct thread_state *ts = &m->priv->threads.v[thread];

	return ts->flags & THREAD_ASKED && t > ts->asked_ns + COMPLIES_NS;
}

/* Ends the thread's open span, a hold; its GIL is now free. */
static void free_hold(struct model *m, uint32_t thread, uint64_t t, uint8_t flags)
{
	struct span *s = last(m, thread);
	struct gil_tracker *gs = &m->priv->gils.v[s->gil.index];

	s->flags |= flags;
	if (!s->gil.frame && is_elsewhere(m, thread, t))
		s->flags |= SPAN_ELSEWHERE;
	if (gs->holder == thread)
		gs->holder = MODEL_NONE;
	gs->freed_ns = t;
	owners_mark(m, s->gil.index, t);
}

/* Ends the thread's open span, a wait; its GIL has one waiter fewer. */
static void free_wait(struct model *m, uint32_t thread, uint64_t t)
{
	struct span *s = last(m, thread);

	m->priv->gils.v[s->gil.index].waiters--;
	owners_mark(m, s->gil.index, t);
}

/* An event is missing in the open wait, so it is not certain that the thread waited throughout, and
 * the span becomes unknown. */
static void make_wait_unknown(struct model *m, uint32_t thread, uint64_t t)
{
	struct span *s = last(m, thread);

	free_wait(m, thread, t);
	s->state = GIL_UNKNOWN;
	s->gil.index = MODEL_NONE;
	s->flags |= SPAN_LOST;
	dirty_process(m, thread);
}

static void take(struct model *m, uint32_t thread, uint32_t gil, uint64_t t, uint8_t flags)
{
	know(m, gil, t);
	m->priv->gils.v[gil].holder = thread;
	m->priv->threads.v[thread].gil = gil;
	set(m, thread, t, GIL_HOLD, gil, flags);
	owners_mark(m, gil, t);
	last(m, thread)->gil.owner_hint = owners_mark_of(&m->gils.v[gil]);
}

/* Kept out of prove(), which is inlined because it is called for each event. */
__attribute__((noinline)) static void set_since_loss(struct model *m, uint32_t thread,
                                                     enum gil_state state, uint32_t gil)
{
	struct span span = gil_span(m->priv->threads.v[thread].lost_ns, state, gil,
	                            SPAN_INFERRED_START);

	if (state != GIL_NO) {
		lost_doubt(&m->threads.v[thread].gil);
		m->priv->gils.v[gil].dirty = true;
		if (m->gils.v[gil].start_ns > span.start_ns)
			m->gils.v[gil].start_ns = span.start_ns;
	}
	if (state == GIL_HOLD)
		m->priv->gils.v[gil].holder = thread;
	else if (state == GIL_WAIT)
		m->priv->gils.v[gil].waiters++;
	lane_push(&m->threads.v[thread].gil, &span, true);
}

/* No event of the thread is missing since the last loss, so its next event proves the state that it
 * has been in since. */
static inline void prove(struct model *m, uint32_t thread, uint64_t t, enum gil_state state,
                         uint32_t gil)
{
	if (last(m, thread)->flags & SPAN_LOST && m->priv->threads.v[thread].lost_ns < t)
		set_since_loss(m, thread, state, gil);
}

/* Does nothing if another thread has held the GIL since the loss, because then this thread cannot
 * have held it throughout. */
static void prove_hold(struct model *m, uint32_t thread, uint64_t t, uint32_t gil)
{
	const struct gil_tracker *gs = &m->priv->gils.v[gil];

	if (gs->holder == MODEL_NONE && gs->freed_ns <= m->priv->threads.v[thread].lost_ns)
		prove(m, thread, t, GIL_HOLD, gil);
}

void gil_prove_without(struct model *m, uint32_t thread, uint64_t t)
{
	if (m->priv->options.all_releases)
		prove(m, thread, t, GIL_NO, MODEL_NONE);
}

/* The thread that switches tracing on holds a GIL whose address is learnt later: from the next
 * event of its process, or from the first of its own if that disagrees. */
void gil_start_hold(struct model *m, uint32_t thread, uint64_t t)
{
	uint32_t gil = gil_new(m, m->priv->threads.v[thread].proc, 0, t);

	take(m, thread, gil, t, SPAN_INFERRED_START);
	m->priv->threads.v[thread].flags |= THREAD_START;
}

/* The hold at the start was of another GIL than assumed, so an acquire of the assumed GIL cannot
 * have ended it. */
static void move_start_hold(struct model *m, uint32_t thread, uint32_t gil)
{
	struct thread_state *ts = &m->priv->threads.v[thread];
	struct lane *lane = &m->threads.v[thread].gil;
	struct gil_tracker *was = &m->priv->gils.v[ts->gil];
	struct gil_tracker *is = &m->priv->gils.v[gil];

	if (is->known || lane->spans.v[0].state != GIL_HOLD)
		return;
	if (ts->flags & THREAD_CUT)
		lane->spans.n = 1;
	ts->flags &= ~(uint32_t)THREAD_CUT;
	lane->spans.v[0].gil.index = gil;
	lane->spans.v[0].flags &= (uint8_t)~SPAN_INFERRED_END;
	if (was->holder == thread)
		was->holder = MODEL_NONE;
	is->holder = thread;
	is->known = true;
	is->known_ns = m->gils.v[gil].start_ns = lane->spans.v[0].start_ns;
	was->dirty = is->dirty = true;
}

/* The frame of a request also belongs to the hold before it, since no Python code has run in
 * between. */
static void set_frames(struct model *m, uint32_t thread, uint32_t frame)
{
	struct lane *lane = &m->threads.v[thread].gil;
	size_t i = lane->spans.n - 1;

	lane->spans.v[i].gil.frame = frame;
	while (i-- > 0 && lane->spans.v[i].state != GIL_UNKNOWN) {
		struct span *s = &lane->spans.v[i];

		if (s->state != GIL_HOLD && s->state != GIL_WAIT)
			continue;
		if (s->state == GIL_HOLD && !s->gil.frame && !(s->flags & SPAN_ELSEWHERE))
			s->gil.frame = frame;
		break;
	}
}

/* The thread that was assumed to hold the GIL at the start requests it as its first event. It
 * released the GIL before tracing began, or the release was not seen, so the length of its hold is
 * unknown. */
static void withdraw_start_hold(struct model *m, uint32_t thread)
{
	struct span *s = last(m, thread);
	struct gil_tracker *gs = &m->priv->gils.v[s->gil.index];

	owners_forget(m, s->gil.index);
	gs->holder = MODEL_NONE;
	gs->known = false;
	*s = gil_span(s->start_ns, GIL_UNKNOWN, MODEL_NONE, 0);
}

/*
 * Whether the thread cannot have held the GIL: it existed when another thread of its process
 * switched tracing on while holding the GIL, or was born since, and has not acquired it, nor is any
 * event of it lost that may be an acquire.
 */
static bool never_held(const struct model *m, uint32_t thread)
{
	const struct model_private *p = m->priv;
	const struct lane *lane = &m->threads.v[thread].gil;

	return p->start_thread != MODEL_NONE && thread != p->start_thread &&
	       p->threads.v[thread].proc == p->threads.v[p->start_thread].proc &&
	       lane->spans.n == 1 && lane->spans.v[0].state == GIL_UNKNOWN &&
	       !(lane->spans.v[0].flags & SPAN_LOST);
}

/* The thread, which has never held the GIL, was without it until until_ns: since its life began or,
 * if it may have been born in losses, since the last one. */
static void set_never_held(struct model *m, uint32_t thread, uint64_t until_ns)
{
	uint64_t since_ns = later(m->priv->threads.v[thread].lost_ns,
	                          m->threads.v[thread].start_ns);

	if (since_ns == m->threads.v[thread].start_ns)
		last(m, thread)->state = GIL_NO;
	else if (since_ns < until_ns)
		set(m, thread, since_ns, GIL_NO, MODEL_NONE, 0);
}

void gil_request(struct model *m, uint32_t thread, uint64_t t, uint64_t address, uint32_t frame)
{
	struct thread_state *ts = &m->priv->threads.v[thread];
	uint32_t gil = resolve(m, thread, address, t);
	struct span *s;

	gil_prove_without(m, thread, t);
	s = last(m, thread);
	if (s->state == GIL_HOLD && ts->flags & THREAD_START) {
		withdraw_start_hold(m, thread);
	} else if (s->state == GIL_HOLD) {
		free_hold(m, thread, t, ts->flags & THREAD_INHERITED ? 0 : SPAN_INFERRED_END);
	} else if (s->state == GIL_WAIT) {
		lost_or_anomaly(m, CAVEAT_REQUEST_NO_ACQUIRE, t);
		make_wait_unknown(m, thread, t);
	} else if (never_held(m, thread)) {
		set_never_held(m, thread, t);
	}
	ts->flags &= ~(uint32_t)THREAD_GIL_FLAGS;
	set(m, thread, t, GIL_WAIT, gil, 0);
	m->priv->gils.v[gil].waiters++;
	owners_mark(m, gil, t);
	last(m, thread)->gil.owner_hint = owners_mark_of(&m->gils.v[gil]);
	if (frame)
		set_frames(m, thread, frame);
}

void gil_acquire(struct model *m, uint32_t thread, uint64_t t)
{
	struct thread_state *ts = &m->priv->threads.v[thread];
	struct span *s = last(m, thread);
	uint32_t gil = s->state == GIL_WAIT ? s->gil.index : resolve(m, thread, 0, t), holder;

	prove(m, thread, t, GIL_WAIT, gil);
	s = last(m, thread);
	if (s->state == GIL_WAIT) {
		m->priv->gils.v[gil].waiters--;
	} else {
		if (!(s->flags & SPAN_LOST))
			lost_or_anomaly(m, CAVEAT_ACQUIRE_NO_REQUEST, t);
		if (s->state == GIL_HOLD)
			free_hold(m, thread, t, SPAN_INFERRED_END);
	}
	ts->flags &= ~(uint32_t)THREAD_GIL_FLAGS;
	holder = m->priv->gils.v[gil].holder;
	if (holder != MODEL_NONE && holder != thread) {
		free_hold(m, holder, t, SPAN_INFERRED_END);
		set(m, holder, t, GIL_NO, MODEL_NONE, 0);
		m->priv->threads.v[holder].flags |= THREAD_CUT;
	}
	take(m, thread, gil, t, 0);
}

/* If PyEval_SaveThread calls drop_gil, that is the actual release, so the hold lasts until now
 * unless another thread has held the GIL since. */
static bool extend_hold(struct model *m, uint32_t thread, uint64_t t)
{
	struct lane *lane = &m->threads.v[thread].gil;
	const struct span *hold = lane_last(lane) - 1;

	/* A hold that began in lost records is not among the owners yet. */
	if (m->priv->gils.v[hold->gil.index].freed_ns > lane_last(lane)->start_ns ||
	    !owners_claim(m, hold->gil.index, thread, lane_last(lane)->start_ns))
		return false;
	lane->spans.n--;
	m->priv->gils.v[hold->gil.index].holder = thread;
	free_hold(m, thread, t, 0);
	return true;
}

/* A release by a thread that is not known to hold the GIL. If its acquire was lost, the end of the
 * previous thread's hold was lost, too. */
static void release_unheld(struct model *m, uint32_t thread, uint32_t gil, uint64_t t)
{
	struct span *s = last(m, thread);
	uint32_t holder = m->priv->gils.v[gil].holder;

	if (s->flags & SPAN_LOST && holder != MODEL_NONE)
		gil_lost(m, holder, later(s->start_ns, last(m, holder)->start_ns), t);
	else if (m->priv->threads.v[thread].flags & THREAD_CUT || holder != MODEL_NONE)
		lost_or_anomaly(m, CAVEAT_TWO_HOLDERS, t);
	else if (!(s->flags & SPAN_LOST))
		lost_or_anomaly(m, CAVEAT_RELEASE_NO_HOLD, t);
	if (s->state == GIL_WAIT)
		make_wait_unknown(m, thread, t);
	know(m, gil, t);
	owners_mark(m, gil, t);
}

void gil_asked(struct model *m, uint32_t thread, uint64_t t, uint32_t frame)
{
	struct thread_state *ts = &m->priv->threads.v[thread];
	struct span *s = last(m, thread);

	if (s->state != GIL_HOLD)
		return;
	ts->flags |= THREAD_ASKED;
	ts->asked_ns = t;
	s->gil.frame = frame;
	if (frame)
		s->flags |= SPAN_ASKED;
}

void gil_held_in(struct model *m, uint32_t thread, uint64_t t, uint32_t frame)
{
	struct span *s = last(m, thread);

	if (s->state == GIL_HOLD && !s->gil.frame && !is_elsewhere(m, thread, t))
		s->gil.frame = frame;
}

void gil_release(struct model *m, uint32_t thread, uint64_t t, uint64_t address, bool save)
{
	struct thread_state *ts = &m->priv->threads.v[thread];
	uint32_t gil = resolve(m, thread, address, t);
	bool held;

	prove_hold(m, thread, t, gil);
	held = last(m, thread)->state == GIL_HOLD;
	if (held)
		free_hold(m, thread, t, 0);
	else if (save || !(ts->flags & THREAD_SAVED) || !extend_hold(m, thread, t))
		release_unheld(m, thread, gil, t);
	ts->flags &= ~(uint32_t)THREAD_GIL_FLAGS;
	/* A thread waits in drop_gil only after a release request, and only waiting threads make
	 * requests. */
	ts->flags |= (m->priv->gils.v[gil].waiters ? THREAD_RELEASED : 0) |
	             (save && held ? THREAD_SAVED : 0);
	gil_without(m, thread, t);
}

void gil_released(struct model *m, uint32_t thread, uint64_t t)
{
	struct thread_state *ts = &m->priv->threads.v[thread];
	struct span *s = last(m, thread);

	if (s->state == GIL_NO && ts->flags & THREAD_RELEASED) {
		s->state = GIL_SWITCH_WAIT;
		s->gil.index = ts->gil;
		gil_without(m, thread, t);
	} else if (s->state == GIL_UNKNOWN) {
		gil_without(m, thread, t);
	}
	ts->flags &= ~(uint32_t)(THREAD_RELEASED | THREAD_SAVED);
}

/* fork(2) copies the lock as it is: a child of the holder holds its copy. */
void gil_inherit(struct model *m, uint32_t child, uint32_t parent, uint64_t t)
{
	const struct span *s = last(m, parent);
	uint32_t gil;

	if (s->state != GIL_HOLD)
		return;
	gil = gil_new(m, m->priv->threads.v[child].proc, m->gils.v[s->gil.index].address, t);
	take(m, child, gil, t, SPAN_INFERRED_START);
	m->priv->threads.v[child].flags |= THREAD_INHERITED;
	m->caveats[CAVEAT_FORKED]++;
}

/* Closes the open span because the thread, the program or the recording has ended. */
static void close_span(struct model *m, uint32_t thread, uint64_t t)
{
	struct span *s = last(m, thread);

	if (s->state == GIL_HOLD) {
		free_hold(m, thread, t, SPAN_OPEN_END);
	} else if (s->state == GIL_WAIT) {
		s->flags |= SPAN_OPEN_END;
		free_wait(m, thread, t);
	}
}

/* The thread ends, or executes another program. If its process ran a CPython, but has made no event
 * of a GIL, that GIL was not recorded. */
static void doubt_python(struct model *m, uint32_t thread, uint64_t t)
{
	struct process *p = &m->priv->procs.v[m->priv->threads.v[thread].proc];
	struct lane *lane = &m->threads.v[thread].gil;
	struct span unknown = gil_span(later(p->python_ns, m->threads.v[thread].start_ns),
	                               GIL_UNKNOWN, MODEL_NONE, 0);

	if (!p->python_ns || unknown.start_ns >= t || lane_last(lane)->state != GIL_NO)
		return;
	lane_overwrite(lane, &unknown, true);
	m->caveats[CAVEAT_OTHER_PYTHON] += !p->unrecorded;
	p->unrecorded = true;
}

void gil_exec(struct model *m, uint32_t thread, uint64_t t)
{
	locks_judge(m, thread);
	close_span(m, thread, t);
	locks_forget(m, thread, false);
	doubt_python(m, thread, t);
	m->priv->threads.v[thread].flags &= ~(uint32_t)THREAD_GIL_FLAGS;
	m->priv->threads.v[thread].gil = MODEL_NONE;
	set(m, thread, t, GIL_NO, MODEL_NONE, 0);
}

/* If a GIL stays free for this long, no thread was waiting for it, since a waiter would have
 * acquired it. */
#define FREE_NS 10000000

static bool was_free(const struct model_gil *g)
{
	for (size_t i = 0; i < g->owners.n; i++) {
		const struct gil_owner *o = &g->owners.v[i];
		uint64_t end_ns = i + 1 < g->owners.n ? o[1].start_ns : g->end_ns;

		if (o->thread == MODEL_NONE && end_ns - o->start_ns >= FREE_NS)
			return true;
	}
	return false;
}

/* Threads without any GIL event, such as those of OpenBLAS, did not wait for the GIL if it was free
 * for a while, so they were without it all their lives. */
void gil_finish(struct model *m)
{
	bool free = true, any = false;

	if (m->priv->start_thread == MODEL_NONE)
		return;
	for (uint32_t g =
	             m->priv->procs.v[m->priv->threads.v[m->priv->start_thread].proc].first_gil;
	     g != MODEL_NONE && free; g = m->priv->gils.v[g].next) {
		any = true;
		free = was_free(&m->gils.v[g]);
	}
	for (uint32_t i = 0; any && free && i < m->threads.n; i++)
		if (never_held(m, i))
			set_never_held(m, i, m->threads.v[i].gil.end_ns);
}

void gil_exit(struct model *m, uint32_t thread, uint64_t t, bool died)
{
	const struct span *s = last(m, thread);

	if (s->state == GIL_HOLD && (died || !m->priv->options.end_ns))
		lost_or_anomaly(m, CAVEAT_OPEN_HOLD, t);
	if (s->state == GIL_WAIT && died)
		lost_or_anomaly(m, CAVEAT_REQUEST_NO_ACQUIRE, t);
	locks_judge(m, thread);
	close_span(m, thread, t);
	locks_forget(m, thread, true);
	doubt_python(m, thread, t);
	lane_finish(&m->threads.v[thread].gil, t, true);
}

/* Records are missing from since_ns on: the thread's state from then on is unknown. */
void gil_lost(struct model *m, uint32_t thread, uint64_t since_ns, uint64_t t)
{
	struct lane *lane = &m->threads.v[thread].gil;
	struct span unknown = gil_span(since_ns, GIL_UNKNOWN, MODEL_NONE, SPAN_LOST);

	if (m->priv->threads.v[thread].flags & THREAD_ALIVE) {
		if (lane_last(lane)->state == GIL_HOLD)
			free_hold(m, thread, t, 0);
		else if (lane_last(lane)->state == GIL_WAIT)
			free_wait(m, thread, t);
		locks_forget(m, thread, false);
		m->priv->threads.v[thread].flags &= ~(uint32_t)THREAD_GIL_FLAGS;
	}
	m->priv->threads.v[thread].lost_ns = t;
	lane_overwrite(lane, &unknown, true);
	if (lane->spans.n > 1 && (lane_last(lane) - 1)->state == GIL_HOLD)
		(lane_last(lane) - 1)->flags |= SPAN_INFERRED_END;
	dirty_process(m, thread);
}
