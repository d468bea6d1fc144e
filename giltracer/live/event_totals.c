/* SPDX-License-Identifier: MIT */
/* Keeps a state machine for each thread, which updates the thread's slot. */
#include "live/event_totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/idmap.h"
#include "base/procfs.h"
#include "base/str.h"
#include "base/vec.h"
#include "preload/totals.h"

#define PAGE_BYTES (TOTALS_SLOTS_AT + TOTALS_SLOTS * sizeof(struct totals_slot))
#define NONE       UINT32_MAX

/* How often to ask for the name of a thread that has none of its own yet. */
#define NAME_TRIES 50

/**
 * @slot: index in the page; NONE: the page is full, or the thread has not used a GIL yet
 * @gil: index in gils of the slot's GIL
 * @tries: how many more times to ask for its name
 * @wants: it has requested a GIL that was free
 * @released: it released the GIL while other threads waited
 */
struct thread {
	uint32_t tid, slot, gil, tries;
	bool wants, released;
};

/**
 * @holder: index in threads; NONE: it is free, or in an unknown state
 * @known: without a holder, it is free
 * @waiters: threads that wait for it; @wanting: threads that request it while it is free
 * @groups: how many groups its slots form
 */
struct gil {
	uint64_t address;
	uint32_t holder, waiters, wanting, groups;
	bool known;
};

/* A slot: what its successive threads have in common. @pattern: owned */
struct owner {
	char *pattern;
	uint32_t gil;
	bool used;
};

/**
 * @now: time of the last event; @reached: see event_totals_reach
 * @tids: index in threads
 */
struct event_totals {
	char *page;
	struct totals_header *head;
	struct totals_waited *waited;
	struct totals_gil *ages;
	struct totals_slot *slots;
	uint64_t now, reached;
	VEC(struct thread) threads;
	VEC(struct gil) gils;
	VEC(struct owner) owners;
	struct idmap tids;
	event_totals_name *name;
	void *data;
};

/* ---- the page */

static int read_stat(struct totals_header *head, pid_t pid, struct error *err)
{
	struct procfs_stat stat;

	if (!procfs_stat(&stat, pid, 0))
		return error_set(err, ESRCH, "process %d has ended", (int)pid);
	head->ppid = (uint32_t)stat.parent;
	head->start_time = stat.start_time;
	return 0;
}

int event_totals_new(struct event_totals **ret, pid_t pid, uint64_t now_ns, event_totals_name *name,
                     void *data, struct error *err)
{
	struct totals_header head = {
		.magic = TOTALS_MAGIC,
		.mult = UINT64_C(1) << 32,
		.stamp = now_ns,
		.ns = now_ns,
		.clock = TOTALS_CLOCK_MONOTONIC,
		.pid = (uint32_t)pid,
		.slot_size = sizeof(struct totals_slot),
	};
	struct event_totals *et;
	void *page;

	if (read_stat(&head, pid, err) < 0)
		return -1;
	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
	            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (page == MAP_FAILED)
		return error_errno(err, "page of totals");
	et = xcalloc(1, sizeof(*et));
	et->page = page;
	et->head = page;
	et->waited = (void *)(et->page + TOTALS_WAITED_AT);
	et->ages = (void *)(et->page + TOTALS_GILS_AT);
	et->slots = (void *)(et->page + TOTALS_SLOTS_AT);
	*et->head = head;
	et->now = et->reached = now_ns;
	et->name = name;
	et->data = data;
	*ret = et;
	return 0;
}

void event_totals_free(struct event_totals *et)
{
	if (!et)
		return;
	munmap(et->page, PAGE_BYTES);
	for (size_t i = 0; i < et->owners.n; i++)
		free(et->owners.v[i].pattern);
	vec_done(&et->owners);
	vec_done(&et->gils);
	vec_done(&et->threads);
	idmap_done(&et->tids);
	free(et);
}

const void *event_totals_page(const struct event_totals *et, size_t *ret_size)
{
	*ret_size = PAGE_BYTES;
	return et->page;
}

void event_totals_reach(struct event_totals *et, uint64_t at_ns)
{
	et->reached = at_ns;
}

/* ---- waits by holder, as in preload/waited_for.c */

static struct totals_waited *waited_of(struct event_totals *et, uint32_t gil)
{
	return gil < TOTALS_WAITED ? &et->waited[gil] : NULL;
}

/* Another group holds the GIL from this time on. */
static void change_holder(struct event_totals *et, uint32_t gil, uint32_t group, uint64_t when)
{
	struct totals_waited *w = waited_of(et, gil);

	if (!w)
		return;
	if (when > w->last) {
		w->held[w->holder] += when - w->last;
		w->last = when;
	}
	w->holder = group;
}

static void begin_comparing(struct event_totals *et, struct totals_slot *slot)
{
	struct totals_waited *w = et->gils.v[slot->gil].known ? waited_of(et, slot->gil) : NULL;

	slot->holder = w ? w->holder : TOTALS_OTHERS;
	slot->compared = w != NULL;
	if (!w)
		return;
	change_holder(et, slot->gil, w->holder, et->now);
	memcpy(slot->seen, w->held, sizeof(slot->seen));
}

/* Divides a wait of that length among the groups that held the GIL meanwhile. */
static void share_wait(struct event_totals *et, struct totals_slot *slot, uint64_t length)
{
	struct totals_waited *w = slot->compared ? waited_of(et, slot->gil) : NULL;

	if (w)
		change_holder(et, slot->gil, w->holder, et->now);
	for (unsigned i = 0; w && i < TOTALS_GROUPS; i++) {
		uint64_t held = w->held[i] - slot->seen[i];

		if (held > length)
			held = length;
		slot->wait_for[i] += held;
		length -= held;
	}
	slot->wait_for[slot->holder] += length;
}

/* ---- slots */

static void count_duration(uint64_t *histogram, uint64_t ns)
{
	uint64_t units = ns >> TOTALS_BUCKET_BITS;
	unsigned i = units ? 64 - (unsigned)__builtin_clzll(units) : 0;

	histogram[i < TOTALS_BUCKETS ? i : TOTALS_BUCKETS - 1]++;
}

static uint64_t change(struct totals_slot *slot, enum totals_state state, uint64_t when)
{
	uint64_t since = slot->since;

	if (when < since)
		when = since;
	slot->since = when;
	slot->state = state;
	return when - since;
}

static void end_hold(struct totals_slot *slot, enum totals_state next, uint64_t when)
{
	uint64_t ns = change(slot, next, when);

	slot->hold += ns;
	count_duration(slot->holds, ns);
	if (ns <= slot->longest_hold)
		return;
	slot->longest_hold = ns;
	slot->longest_hold_end = slot->since;
}

static void end_wait(struct event_totals *et, struct totals_slot *slot, enum totals_state next,
                     uint64_t when)
{
	uint64_t ns = change(slot, next, when);

	slot->wait += ns;
	share_wait(et, slot, ns);
	count_duration(slot->waits, ns);
	if (ns <= slot->longest_wait)
		return;
	slot->longest_wait = ns;
	slot->longest_wait_end = slot->since;
}

static struct totals_slot *slot_of(struct event_totals *et, const struct thread *t)
{
	return t->slot == NONE ? NULL : &et->slots[t->slot];
}

/* Ends a hold or a wait of the thread: from that time on, it neither holds nor wants the GIL. */
static void stop(struct event_totals *et, uint32_t thread, uint64_t when)
{
	struct thread *t = &et->threads.v[thread];
	struct totals_slot *slot = slot_of(et, t);
	struct gil *g = t->gil == NONE ? NULL : &et->gils.v[t->gil];

	t->released = false;
	if (!g)
		return;
	g->wanting -= t->wants;
	t->wants = false;
	if (slot && slot->state == TOTALS_WAIT) {
		end_wait(et, slot, TOTALS_FREE, when);
		g->waiters--;
	} else if (slot && slot->state == TOTALS_HOLD) {
		end_hold(slot, TOTALS_FREE, when);
	}
	if (g->holder == thread) {
		g->holder = NONE;
		change_holder(et, t->gil, TOTALS_NOBODY, when);
	}
}

static void leave(struct event_totals *et, uint32_t thread)
{
	struct thread *t = &et->threads.v[thread];
	struct totals_slot *slot = slot_of(et, t);

	stop(et, thread, et->now);
	if (slot) {
		change(slot, TOTALS_ENDED, et->now);
		slot->lived += slot->since - slot->began;
		et->owners.v[t->slot].used = false;
	}
	t->slot = t->gil = NONE;
}

static uint32_t find_slot(struct event_totals *et, uint32_t gil, const char *pattern)
{
	uint32_t group = 0;

	for (uint32_t i = 0; i < et->owners.n; i++) {
		struct owner *o = &et->owners.v[i];

		if (o->gil != gil || strcmp(o->pattern, pattern) != 0)
			continue;
		group = et->slots[i].group;
		if (!o->used)
			return i;
	}
	if (et->owners.n >= TOTALS_SLOTS)
		return NONE;
	if (!group)
		group = gil < TOTALS_WAITED && et->gils.v[gil].groups < TOTALS_OTHERS - 1
		                ? ++et->gils.v[gil].groups
		                : TOTALS_OTHERS;
	*vec_push(&et->owners) = (struct owner){ .pattern = xstrdup(pattern), .gil = gil };
	et->slots[et->owners.n - 1].group = group;
	et->head->slots = (uint32_t)et->owners.n;
	return (uint32_t)et->owners.n - 1;
}

/* Gives the thread a slot of its group. */
static void take_slot(struct event_totals *et, struct thread *t, uint32_t gil, const char *name)
{
	CLEANUP(str_done) struct str pattern = { 0 };
	struct totals_slot *slot;

	str_add_pattern(&pattern, name);
	t->gil = gil;
	t->slot = find_slot(et, gil, str_get(&pattern));
	slot = slot_of(et, t);
	if (!slot) {
		et->head->left_out++;
		return;
	}
	et->owners.v[t->slot].used = true;
	slot->gil = gil;
	slot->tid = t->tid;
	slot->threads++;
	memcpy(slot->name, name, TOTALS_NAME);
	change(slot, TOTALS_FREE, et->now);
	slot->began = slot->since;
}

/* The thread uses this GIL from now on. */
static void enter(struct event_totals *et, uint32_t thread, uint32_t gil)
{
	struct thread *t = &et->threads.v[thread];
	char name[TOTALS_NAME] = "";

	if (t->gil == gil)
		return;
	leave(et, thread);
	t->tries = et->name(et->data, t->tid, name) ? 0 : NAME_TRIES;
	take_slot(et, t, gil, name);
}

/* Moves a thread that neither holds the GIL nor waits to another slot once it has a name; its
 * previous times stay in the old slot. */
static void name_again(struct event_totals *et, uint32_t thread)
{
	struct thread *t = &et->threads.v[thread];
	const struct totals_slot *slot = slot_of(et, t);
	char name[TOTALS_NAME] = "";
	uint32_t gil = t->gil;

	if (!t->tries || !slot || slot->state != TOTALS_FREE || t->wants)
		return;
	t->tries--;
	if (!et->name(et->data, t->tid, name))
		return;
	leave(et, thread);
	t->tries = 0;
	take_slot(et, t, gil, name);
}

/* ---- events */

static uint32_t find_thread(struct event_totals *et, uint32_t tid)
{
	uint32_t thread;

	if (idmap_add(&et->tids, tid, (uint32_t)et->threads.n, &thread))
		*vec_push(&et->threads) = (struct thread){ .tid = tid, .slot = NONE, .gil = NONE };
	return thread;
}

/* NONE: there are too many GILs. */
static uint32_t find_gil(struct event_totals *et, uint64_t address)
{
	for (uint32_t i = 0; i < et->gils.n; i++)
		if (et->gils.v[i].address == address)
			return i;
	if (et->gils.n >= TOTALS_GILS)
		return NONE;
	*vec_push(&et->gils) = (struct gil){ .address = address, .holder = NONE };
	et->ages[et->gils.n - 1] = (struct totals_gil){ .number = et->gils.n, .made = et->now };
	return (uint32_t)et->gils.n - 1;
}

static void wait_from_now(struct event_totals *et, struct thread *t)
{
	struct totals_slot *slot = slot_of(et, t);

	if (!slot)
		return;
	change(slot, TOTALS_WAIT, et->now);
	begin_comparing(et, slot);
	et->gils.v[t->gil].waiters++;
}

/* If a thread's probes were opened twice, its requests appear twice; the second one, of a
 * waiting thread, is ignored. A request by a holder means that its release was missed. */
static void request(struct event_totals *et, uint32_t thread, uint32_t gil)
{
	struct thread *t = &et->threads.v[thread];
	struct totals_slot *slot;
	struct gil *g;

	if (et->threads.v[thread].gil == gil)
		name_again(et, thread);
	else
		enter(et, thread, gil);
	slot = slot_of(et, t);
	g = &et->gils.v[gil];
	if (t->wants || (slot && slot->state == TOTALS_WAIT))
		return;
	stop(et, thread, et->now);
	if (g->known && g->holder == NONE) {
		t->wants = true;
		g->wanting++;
	} else {
		wait_from_now(et, t);
	}
}

/* The GIL was taken: other threads that wanted it while it was free wait from now on. */
static void begin_waits(struct event_totals *et, uint32_t gil)
{
	for (size_t i = 0; et->gils.v[gil].wanting && i < et->threads.n; i++) {
		struct thread *t = &et->threads.v[i];

		if (t->gil != gil || !t->wants)
			continue;
		t->wants = false;
		et->gils.v[gil].wanting--;
		wait_from_now(et, t);
	}
}

/* Drops a wait for a GIL of which no holder or release has been seen: the GIL may have been
 * free. */
static void forget_wait(struct event_totals *et, const struct thread *t)
{
	struct totals_slot *slot = slot_of(et, t);

	if (!slot || slot->state != TOTALS_WAIT)
		return;
	change(slot, TOTALS_FREE, et->now);
	et->gils.v[t->gil].waiters--;
}

/* The thread's request named the GIL. If the request was missed, it is unknown which GIL the
 * thread holds, so free ones become unknown. */
static void acquire(struct event_totals *et, uint32_t thread)
{
	struct thread *t = &et->threads.v[thread];
	struct totals_slot *slot = slot_of(et, t);
	struct gil *g;

	if (t->gil == NONE) {
		for (size_t i = 0; i < et->gils.n; i++)
			et->gils.v[i].known = et->gils.v[i].holder != NONE;
		return;
	}
	g = &et->gils.v[t->gil];
	if (g->holder == thread)
		return;
	if (g->holder != NONE)
		stop(et, g->holder, et->now); /* its release was missed */
	if (!g->known)
		forget_wait(et, t);
	stop(et, thread, et->now);
	g->holder = thread;
	g->known = true;
	if (slot)
		change(slot, TOTALS_HOLD, et->now);
	change_holder(et, t->gil, slot ? slot->group : TOTALS_OTHERS, et->now);
	begin_waits(et, t->gil);
}

static void release(struct event_totals *et, uint32_t thread, uint32_t gil)
{
	struct gil *g;

	enter(et, thread, gil);
	g = &et->gils.v[gil];
	if (g->holder != thread && g->holder != NONE)
		return;
	stop(et, thread, et->now);
	g->known = true;
	/* Only a waiting thread can request a release, and only a holder that was asked waits in
	 * drop_gil. */
	et->threads.v[thread].released = g->waiters > 0;
}

/* The thread waited in drop_gil, from its release until another thread had taken the GIL. */
static void released(struct event_totals *et, uint32_t thread)
{
	struct thread *t = &et->threads.v[thread];
	struct totals_slot *slot = slot_of(et, t);

	if (slot && t->released && slot->state == TOTALS_FREE)
		slot->switch_wait += change(slot, TOTALS_FREE, et->now);
	t->released = false;
}

/* Holds and waits in progress may have ended when the first event was lost, so they are counted
 * until then; time that was already reported remains counted. */
static void lose(struct event_totals *et, uint64_t since)
{
	uint64_t when = since > et->reached ? since : et->reached;

	for (uint32_t i = 0; i < et->threads.n; i++)
		stop(et, i, when < et->now ? when : et->now);
	for (size_t i = 0; i < et->gils.n; i++)
		et->gils.v[i].known = false;
}

static void leave_all(struct event_totals *et)
{
	for (uint32_t i = 0; i < et->threads.n; i++)
		leave(et, i);
	for (size_t i = 0; i < et->gils.n; i++)
		et->gils.v[i].known = false;
}

static void feed_gil(struct event_totals *et, const struct event *ev)
{
	uint32_t thread = find_thread(et, ev->tid), gil = et->threads.v[thread].gil;

	if (ev->type == EV_REQUEST || (ev->type == EV_RELEASE && ev->gil.address))
		gil = find_gil(et, ev->gil.address);
	if (ev->type == EV_ACQUIRE)
		acquire(et, thread);
	else if (ev->type == EV_RELEASED)
		released(et, thread);
	else if (ev->type == EV_REQUEST && gil != NONE)
		request(et, thread, gil);
	else if (gil != NONE)
		release(et, thread, gil);
}

void event_totals_feed(struct event_totals *et, const struct event *ev)
{
	/* A late event counts as if it happened now. */
	if (ev->time_ns > et->now)
		et->now = ev->time_ns;
	if (et->reached > et->now)
		et->now = et->reached;
	if (ev->type <= EV_SAVE)
		feed_gil(et, ev);
	else if (ev->type == EV_EXIT && idmap_get(&et->tids, ev->tid) != IDMAP_NONE)
		leave(et, idmap_get(&et->tids, ev->tid));
	else if (ev->type == EV_COMM && ev->flags & EVF_EXEC)
		leave_all(et);
	else if (ev->type == EV_LOST)
		lose(et, ev->lost.since_ns);
}
