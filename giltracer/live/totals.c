/* SPDX-License-Identifier: MIT */
/* Reads pages of totals, whose contents are untrusted. */
#include "live/totals.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/filemap.h"
#include "base/procfs.h"
#include "base/str.h"
#include "python/process.h"
#include "preload/totals.h"

/*
 * ---- A slot of the page of totals contains only completed holds and waits. The one in progress is
 * added when the slot is read. All times are in ticks.
 */

/* The numbers last reported for a slot. A torn slot may yield lower ones; then these are reported
 * again. */
struct totals_reported {
	uint64_t hold, wait, switch_wait, kept, life;
	uint64_t wait_for[TOTALS_GROUPS];
};

/**
 * The moment at which a slot was copied.
 * @whole: the slot was not being written
 * @knows: held is valid: that of the slot's GIL at now
 */
struct totals_moment {
	uint64_t now;
	bool whole, knows;
	struct totals_waited held;
};

static uint64_t totals_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint32_t totals_group_index(uint32_t group)
{
	return group < TOTALS_GROUPS ? group : TOTALS_OTHERS;
}

/* ---- adds holds and waits in progress to totals */

static uint64_t grown(uint64_t *reported, uint64_t value)
{
	if (*reported < value)
		*reported = value;
	return *reported;
}

/* Adds the wait in progress, which has lasted for on ticks: for each group, the time for which it
 * has held the GIL since the wait began. The rest, or everything without held, goes to the group
 * that held the GIL when the wait began. */
static void add_present(struct totals_slot *slot, const struct totals_waited *held, uint64_t now,
                        uint64_t on)
{
	for (unsigned i = 0; held && i < TOTALS_GROUPS; i++) {
		uint64_t ticks = totals_less(held->held[i], slot->seen[i]);

		if (i == totals_group_index(held->holder))
			ticks += totals_less(now, held->last);
		if (ticks > on)
			ticks = on;
		slot->wait_for[i] += ticks;
		on -= ticks;
	}
	slot->wait_for[totals_group_index(slot->holder)] += on;
}

/* Makes the parts of the wait add up to it, although the slot and held may be of different moments.
 * No part becomes lower than the one last reported. */
static void fit_wait(struct totals_slot *slot, uint64_t *reported)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < TOTALS_GROUPS; i++) {
		if (slot->wait_for[i] < reported[i])
			slot->wait_for[i] = reported[i];
		sum += slot->wait_for[i];
	}
	for (unsigned i = 0; sum > slot->wait && i < TOTALS_GROUPS; i++) {
		uint64_t cut = slot->wait_for[i] - reported[i];

		if (cut > sum - slot->wait)
			cut = sum - slot->wait;
		slot->wait_for[i] -= cut;
		sum -= cut;
	}
	slot->wait_for[TOTALS_OTHERS] += totals_less(slot->wait, sum);
	memcpy(reported, slot->wait_for, sizeof(slot->wait_for));
}

/* Adds the hold or wait in progress at the moment m, unless the slot was being written. asked: when
 * the holder was asked to release the GIL; 0: it was not. No number becomes lower than the one last
 * reported. */
static void totals_settle(struct totals_slot *slot, uint64_t asked, const struct totals_moment *m,
                          struct totals_reported *reported)
{
	uint64_t now = m->now, on = m->whole ? totals_less(now, slot->since) : 0;

	if (slot->state != TOTALS_ENDED)
		slot->lived += totals_less(now, slot->began);
	if (slot->state == TOTALS_HOLD) {
		slot->hold += on;
		slot->kept += on && asked >= slot->since ? totals_less(now, asked) : 0;
	} else if (slot->state == TOTALS_WAIT) {
		slot->wait += on;
		add_present(slot, m->knows ? &m->held : NULL, now, on);
	} else if (slot->state == TOTALS_SWITCH) {
		slot->switch_wait += on;
	}
	slot->hold = grown(&reported->hold, slot->hold);
	slot->wait = grown(&reported->wait, slot->wait);
	fit_wait(slot, reported->wait_for);
	slot->switch_wait = grown(&reported->switch_wait, slot->switch_wait);
	slot->kept = grown(&reported->kept, slot->kept);
	/* The slot may have changed after now; then its life until now is too short. */
	if (slot->lived < slot->hold + slot->wait + slot->switch_wait)
		slot->lived = slot->hold + slot->wait + slot->switch_wait;
	slot->lived = grown(&reported->life, slot->lived);
}

/* After this time, a store is certain to be visible to every CPU. */
#define VISIBLE_NS 1000

/* A slot that is being written is read again, at once up to SPINS times. Its thread may be
 * preempted, so the CPU is then yielded before each reading, for PATIENCE_NS in total for all
 * slots. */
#define SPINS       256
#define PATIENCE_NS (20 * NS_PER_MS)

/**
 * @path: of the file; @map: its first bytes
 * @reported, @copies: arrays of slots elements
 */
struct totals {
	int fd;
	char *path;
	struct filemap map;
	struct totals_header head; /* as it was when opened */
	struct totals_reported *reported;
	struct totals_slot *copies;
	uint32_t slots;
};

/* ---- the file */

static bool is_page(const struct totals_header *head)
{
	return head->magic == TOTALS_MAGIC && head->mult &&
	       head->slot_size == sizeof(struct totals_slot) &&
#if defined(__x86_64__)
	       head->clock <= TOTALS_CLOCK_TSC;
#else
	       head->clock == TOTALS_CLOCK_MONOTONIC;
#endif
}

/* Map the whole file, but at most the size of a page with all slots. */
static bool map_file(struct totals *t)
{
	const size_t most = TOTALS_SLOTS_AT + TOTALS_SLOTS * sizeof(struct totals_slot);
	struct filemap map;
	struct error ignored;

	if (filemap_open_fd(&map, t->fd, t->path, most, &ignored) < 0)
		return false;
	if (map.size < TOTALS_SLOTS_AT) {
		filemap_done(&map);
		return false;
	}
	filemap_done(&t->map);
	t->map = map;
	return true;
}

int totals_open(struct totals **ret, const char *path, struct error *err)
{
	CLEANUP(totals_close) struct totals *t = xcalloc(1, sizeof(*t));

	t->fd = file_open_member(path, err);
	if (t->fd < 0)
		return -1;
	t->path = xstrdup(path);
	if (pread(t->fd, &t->head, sizeof(t->head), 0) != (ssize_t)sizeof(t->head) ||
	    !is_page(&t->head) || !map_file(t))
		return error_set(err, ENODATA, "%s: not a page of totals of this version", path);
	*ret = take(t);
	return 0;
}

void totals_close(struct totals *t)
{
	if (!t)
		return;
	filemap_done(&t->map);
	if (t->fd >= 0)
		close(t->fd);
	free(t->path);
	free(t->reported);
	free(t->copies);
	free(t);
}

bool totals_is_joined(const struct totals *t)
{
	return t->head.joined;
}

bool totals_is_over(const struct totals *t)
{
	const struct totals_header *head = (const void *)t->map.data;

	return __atomic_load_n(&head->over, __ATOMIC_ACQUIRE) != 0;
}

/* The error for a process without a page. If it does not run Python, the error states that
 * instead. */
static int no_page(pid_t pid, struct error *err)
{
	struct process_python process;

	if (process_python_find(&process, pid, err) < 0)
		return -1;
	process_python_done(&process);
	return error_set(err, ENODATA,
	                 "process %d does not count its GIL's time: start it with "
	                 "giltracer --metrics",
	                 (int)pid);
}

char *totals_path(pid_t pid)
{
	CLEANUP(free) char *maps = procfs_read(pid, 0, "maps", NULL);
	struct procfs_mapping m;
	char *rest = maps;

	while (procfs_next_mapping(&m, &rest))
		if (*m.path == '/' && str_has_suffix(m.path, TOTALS_SUFFIX))
			return xasprintf("/proc/%d/root%s", (int)pid, m.path);
	return NULL;
}

int totals_find(char **ret, pid_t pid, struct error *err)
{
	if (process_check(pid, err) < 0)
		return -1;
	*ret = totals_path(pid);
	return *ret ? 0 : no_page(pid, err);
}

int totals_open_process(struct totals **ret, pid_t pid, struct error *err)
{
	CLEANUP(free) char *path = NULL;

	return totals_find(&path, pid, err) < 0 ? -1 : totals_open(ret, path, err);
}

pid_t totals_parent(const struct totals *t)
{
	return (pid_t)t->head.ppid;
}

uint64_t totals_stamp(const struct totals *t)
{
	return t->head.stamp;
}

uint64_t totals_began_ns(const struct totals *t)
{
	return t->head.ns;
}

bool totals_alive(const struct totals *t, pid_t pid)
{
	struct procfs_stat stat;

	return procfs_stat(&stat, pid, 0) && stat.state != 'Z' && stat.state != 'X' &&
	       (!t->head.start_time || stat.start_time == t->head.start_time);
}

/* ---- reading */

static uint64_t ticks_now(const struct totals *t)
{
#if defined(__x86_64__)
	unsigned cpu;
#endif

#if defined(__x86_64__)
	if (t->head.clock == TOTALS_CLOCK_TSC) {
		uint64_t now = __rdtscp(&cpu);

		_mm_lfence(); /* no later load is executed before it */
		return now;
	}
#endif
	return clock_now_ns();
}

static void copy_words(void *to, const void *from, size_t bytes)
{
	uint64_t *out = to;
	const uint64_t *in = from;

	for (size_t i = 0; i < bytes / sizeof(*out); i++)
		out[i] = __atomic_load_n(&in[i], __ATOMIC_RELAXED);
}

/* False: the slot's thread did not complete a write in time; then each number is correct by
 * itself. */
static bool copy_slot(struct totals_slot *ret, const struct totals_slot *slot, uint64_t until_ns)
{
	for (unsigned i = 0;; i++) {
		uint64_t seq = __atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE);

		copy_words(ret, slot, sizeof(*ret));
		atomic_thread_fence(memory_order_acquire);
		if (!(seq & 1) && __atomic_load_n(&slot->seq, __ATOMIC_RELAXED) == seq)
			return true;
		if (i < SPINS)
			continue;
		if (clock_now_ns() > until_ns)
			break;
		sched_yield();
	}
	return false;
}

/**
 * The instant of a snapshot, in ticks of the page and in ns of CLOCK_MONOTONIC.
 */
struct instant {
	uint64_t ticks, ns;
};

static uint64_t ns_of(const struct totals *t, const struct instant *at, uint64_t stamp)
{
	uint64_t mult = t->head.mult, ns;

	if (!stamp)
		return 0;
	if (stamp >= at->ticks)
		return at->ns + TOTALS_NS(stamp - at->ticks, mult);
	ns = TOTALS_NS(at->ticks - stamp, mult);
	return ns < at->ns ? at->ns - ns : 0;
}

static bool copy_waited(struct totals_waited *ret, const struct totals_waited *from)
{
	uint64_t seq = __atomic_load_n(&from->seq, __ATOMIC_ACQUIRE);

	copy_words(ret, from, sizeof(*ret));
	atomic_thread_fence(memory_order_acquire);
	return !(seq & 1) && __atomic_load_n(&from->seq, __ATOMIC_RELAXED) == seq;
}

static void convert(struct totals_thread *ret, const struct totals_slot *slot,
                    const struct totals *t, const struct instant *at)
{
	uint64_t mult = t->head.mult;

	*ret = (struct totals_thread){
		.used = slot->threads,
		.state = slot->state <= TOTALS_SWITCH ? (enum totals_state)slot->state
		                                      : TOTALS_FREE,
		.since_ns = ns_of(t, at, slot->since),
		.gil = slot->gil < TOTALS_GILS ? slot->gil : 0,
		.hold_ns = TOTALS_NS(slot->hold, mult),
		.switch_ns = TOTALS_NS(slot->switch_wait, mult),
		.kept_ns = TOTALS_NS(slot->kept, mult),
		.life_ns = TOTALS_NS(slot->lived, mult),
		.held_ns = TOTALS_NS(slot->reserved[0], mult),
		.waited_ns = TOTALS_NS(slot->reserved[1], mult),
		.longest_hold_ns = TOTALS_NS(slot->longest_hold, mult),
		.longest_hold_end_ns = ns_of(t, at, slot->longest_hold_end),
		.longest_wait_ns = TOTALS_NS(slot->longest_wait, mult),
		.longest_wait_end_ns = ns_of(t, at, slot->longest_wait_end),
		.group = totals_group_index(slot->group),
		.tid = slot->tid,
		.threads = slot->threads,
	};
	for (unsigned i = 0; i < TOTALS_GROUPS; i++) {
		ret->wait_for_ns[i] = TOTALS_NS(slot->wait_for[i], mult);
		ret->wait_ns += ret->wait_for_ns[i];
	}
	memcpy(ret->name, slot->name, sizeof(ret->name) - 1);
	memcpy(ret->holds, slot->holds, sizeof(ret->holds));
	memcpy(ret->waits, slot->waits, sizeof(ret->waits));
	for (unsigned i = 0; i < TOTALS_LOCKS; i++)
		ret->lock_wait_ns[i] = TOTALS_NS(slot->lock_wait[i], mult);
}

static void read_gils(const struct totals *t, struct totals_snapshot *ret, const struct instant *at)
{
	const struct totals_gil *gils = (const void *)(t->map.data + TOTALS_GILS_AT);

	for (unsigned i = 0; i < TOTALS_GILS; i++) {
		struct totals_gil gil;

		copy_words(&gil, &gils[i], sizeof(gil));
		ret->gils[i] = (struct totals_gil_age){
			.number = gil.number,
			.age_ns = gil.made ? TOTALS_NS(totals_less(at->ticks, gil.made),
			                               t->head.mult)
			                   : 0,
			.gone = gil.gone,
		};
	}
}

/* The number of used slots that are mapped. If the file has grown, it is mapped again. */
static uint32_t count_slots(struct totals *t)
{
	const struct totals_header *head = (const void *)t->map.data;
	uint32_t used = __atomic_load_n(&head->slots, __ATOMIC_ACQUIRE), mapped;

	if (used > TOTALS_SLOTS)
		used = TOTALS_SLOTS;
	if (TOTALS_SLOTS_AT + used * sizeof(struct totals_slot) > t->map.size)
		map_file(t);
	mapped = (uint32_t)((t->map.size - TOTALS_SLOTS_AT) / sizeof(struct totals_slot));
	return used < mapped ? used : mapped;
}

static uint64_t visible_now(const struct totals *t)
{
	return totals_less(ticks_now(t), ((uint64_t)VISIBLE_NS << 32) / t->head.mult);
}

/* If the slot of a waiting thread is unchanged after held was read, the thread was still waiting at
 * held.last, so the moment may be that late. */
static bool look_at_held(const struct totals *t, struct totals_moment *ret,
                         const struct totals_slot *copy, const struct totals_slot *slot)
{
	const struct totals_waited *waited = (const void *)(t->map.data + TOTALS_WAITED_AT);
	uint64_t now = visible_now(t);

	if (!copy_waited(&ret->held, &waited[copy->gil]) || ret->held.last > ticks_now(t) ||
	    __atomic_load_n(&slot->seq, __ATOMIC_RELAXED) != copy->seq)
		return false;
	ret->now = now > ret->held.last ? now : ret->held.last;
	ret->knows = true;
	return true;
}

static void look(const struct totals *t, struct totals_moment *ret, struct totals_slot *copy,
                 const struct totals_slot *slot, uint64_t until_ns)
{
	for (unsigned i = 0;; i++) {
		ret->now = visible_now(t);
		ret->whole = copy_slot(copy, slot, until_ns);
		if (!ret->whole || copy->state != TOTALS_WAIT || !copy->compared ||
		    copy->gil >= TOTALS_WAITED || look_at_held(t, ret, copy, slot))
			return;
		if (i < SPINS)
			continue;
		if (clock_now_ns() > until_ns)
			break;
		sched_yield();
	}
	ret->whole = false;
}

/* Copy slot i and add what is in progress. All times stay in ticks. */
static void read_slot(struct totals *t, uint32_t i, uint64_t until_ns, unsigned *torn)
{
	const struct totals_slot *slots = (const void *)(t->map.data + TOTALS_SLOTS_AT);
	const struct totals_gil *gils = (const void *)(t->map.data + TOTALS_GILS_AT);
	struct totals_slot *copy = &t->copies[i];
	struct totals_moment m = { .knows = false };
	uint32_t gil = __atomic_load_n(&slots[i].gil, __ATOMIC_RELAXED);
	uint64_t asked = gil < TOTALS_GILS ? __atomic_load_n(&gils[gil].asked, __ATOMIC_ACQUIRE)
	                                   : 0;

	/* A release request after asked was read is not included in this reading. */
	look(t, &m, copy, &slots[i], until_ns);
	copy->reserved[0] = copy->hold;
	copy->reserved[1] = copy->wait;
	*torn += !m.whole;
	totals_settle(copy, copy->gil == gil ? asked : 0, &m, &t->reported[i]);
}

static void make_room(struct totals *t, uint32_t slots)
{
	if (slots <= t->slots)
		return;
	t->reported = xreallocarray(t->reported, slots, sizeof(*t->reported));
	memset(&t->reported[t->slots], 0, (slots - t->slots) * sizeof(*t->reported));
	t->copies = xreallocarray(t->copies, slots, sizeof(*t->copies));
	t->slots = slots;
}

/* Slots that come into use meanwhile are read, too, so that every thread that another one waited
 * for is in the snapshot. */
static uint32_t read_slots(struct totals *t, unsigned *torn)
{
	uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
	uint32_t done = 0;
	bool more = true;

	while (more && !filemap_is_cut(&t->map)) {
		uint32_t slots = count_slots(t);
		const struct totals_slot *in = (const void *)(t->map.data + TOTALS_SLOTS_AT);

		more = false;
		make_room(t, slots);
		for (uint32_t i = 0; i < slots; i++) {
			if (i < done && (t->copies[i].threads ||
			                 !__atomic_load_n(&in[i].threads, __ATOMIC_ACQUIRE)))
				continue;
			read_slot(t, i, until_ns, torn);
			more = true;
		}
		done = slots;
	}
	return done;
}

static void read_all(struct totals *t, struct totals_snapshot *ret)
{
	const struct totals_header *head;
	struct instant at;
	uint32_t slots;

	ret->torn = 0;
	slots = read_slots(t, &ret->torn);
	vec_reserve(&ret->threads, slots);
	ret->threads.n = slots;
	at = (struct instant){ .ticks = ticks_now(t), .ns = clock_now_ns() };
	head = (const void *)t->map.data;
	ret->at_ns = at.ns;
	ret->age_ns = TOTALS_NS(totals_less(at.ticks, t->head.stamp), t->head.mult);
	ret->left_out = __atomic_load_n(&head->left_out, __ATOMIC_RELAXED);
	read_gils(t, ret, &at);
	memcpy(ret->locks, t->map.data + TOTALS_LOCKS_AT, sizeof(ret->locks));
	for (unsigned i = 0; i < TOTALS_LOCKS; i++)
		ret->locks[i].where[TOTALS_LOCK_TEXT - 1] = '\0';
	for (uint32_t i = 0; i < slots; i++)
		convert(&ret->threads.v[i], &t->copies[i], t, &at);
}

bool totals_read(struct totals *t, struct totals_snapshot *ret)
{
	read_all(t, ret);
	return !filemap_is_cut(&t->map) && !totals_is_over(t);
}

const struct totals_thread *totals_first_of_group(const struct totals_snapshot *snapshot,
                                                  uint32_t gil, uint32_t group)
{
	if (group == TOTALS_NOBODY || group == TOTALS_OTHERS)
		return NULL;
	for (size_t i = 0; i < snapshot->threads.n; i++) {
		const struct totals_thread *t = &snapshot->threads.v[i];

		if (t->used && t->gil == gil && t->group == group)
			return t;
	}
	return NULL;
}

void totals_snapshot_done(struct totals_snapshot *snapshot)
{
	vec_done(&snapshot->threads);
}
