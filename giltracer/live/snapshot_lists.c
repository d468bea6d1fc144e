/* SPDX-License-Identifier: MIT */
/*
 * Finds the interpreters and threads. The elements that the last walk found are read first, in few
 * system calls (python/memory.h), because the lists seldom change. If these elements no longer form
 * the lists, the lists are walked again.
 */
#include "live/snapshot_state.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/idmap.h"

/* More than any program has. The walks need limits because the memory of a process that is ending,
 * or that belongs to an attacker, may contain anything. */
#define INTERPRETERS_MAX 4096
#define THREADS_EXTRA    1000

void known_thread_free(struct known_thread *thread)
{
	raw_stack_done(&thread->stack);
	vec_done(&thread->lines);
	free(thread);
}

/* ---- walking the lists */

/**
 * @old, @n: the states that were known before; those that are found again are taken
 * @by_address: their indices
 * @seen: addresses of the states that this walk has found; @interpreters: of the interpreters
 * @most: the number of states that a process with that many threads may have
 */
struct walk {
	struct known_thread **old;
	size_t n, most;
	struct idmap by_address, seen, interpreters;
};

static void walk_begin(struct walk *w, struct snapshots *s)
{
	*w = (struct walk){
		.old = s->threads.v,
		.n = s->threads.n,
		.most = 2 * s->tasks.v.n + THREADS_EXTRA,
	};
	for (size_t i = 0; i < w->n; i++)
		idmap_set(&w->by_address, w->old[i]->address, (uint32_t)i);
	s->threads.v = NULL;
	s->threads.n = s->threads.alloc = 0;
	s->interpreters.n = 0;
}

static void walk_end(struct walk *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->old[i])
			known_thread_free(w->old[i]);
	free(w->old);
	idmap_done(&w->by_address);
	idmap_done(&w->seen);
	idmap_done(&w->interpreters);
}

/* Whether the walk meets an element for the first time: a list that leads back to itself is
 * invalid. */
static bool is_first(struct idmap *seen, uint64_t address)
{
	uint32_t ignored;

	return idmap_add(seen, address, 0, &ignored);
}

/* The memory of a state may have been reused for another thread, so its ident is examined again. */
static struct known_thread *thread_at(struct walk *w, uint64_t address, size_t interpreter)
{
	uint32_t at = idmap_get(&w->by_address, address);
	struct known_thread *thread = at == IDMAP_NONE ? xcalloc(1, sizeof(*thread))
	                                               : take(w->old[at]);

	thread->address = address;
	thread->interpreter = interpreter;
	thread->looked = false;
	return thread;
}

static uint64_t find_gil(const struct snapshots *s, uint64_t interpreter)
{
	uint32_t offset = memory_at(s, MEMORY_GIL);
	uint64_t gil;

	if (!snapshots_know_gil(s))
		return 0;
	if (s->target->def->shared)
		return s->target->root + offset;
	return memory_u64(s->target->pid, interpreter + offset, &gil) ? gil : 0;
}

static bool walk_threads(struct snapshots *s, struct walk *w, uint64_t address)
{
	pid_t pid = s->target->pid;

	while (address) {
		if (s->threads.n >= w->most + s->interpreters.n || !is_first(&w->seen, address))
			return false;
		*vec_push(&s->threads) = thread_at(w, address, s->interpreters.n - 1);
		if (!memory_u64(pid, address + memory_at(s, MEMORY_NEXT_THREAD), &address))
			return false;
	}
	return true;
}

static bool walk_interpreters(struct snapshots *s, struct walk *w)
{
	pid_t pid = s->target->pid;
	uint64_t address;

	if (!memory_u64(pid, s->target->root + memory_at(s, MEMORY_INTERPRETERS), &address))
		return false;
	while (address && s->interpreters.n < INTERPRETERS_MAX) {
		struct known_interpreter *interpreter;

		if (!is_first(&w->interpreters, address))
			return false;
		interpreter = vec_push(&s->interpreters);
		*interpreter = (struct known_interpreter){ .address = address,
			                                   .gil = find_gil(s, address) };
		if (!memory_u64(pid, address + memory_at(s, MEMORY_THREADS),
		                &interpreter->threads) ||
		    !walk_threads(s, w, interpreter->threads) ||
		    !memory_u64(pid, address + memory_at(s, MEMORY_NEXT_INTERPRETER), &address))
			return false;
	}
	return true;
}

/* Walk the lists. What is known of states that still exist is kept. */
static void walk_lists(struct snapshots *s)
{
	struct walk w;

	walk_begin(&w, s);
	/* If the lists are invalid, reading them again finds that. */
	walk_interpreters(s, &w);
	walk_end(&w);
}

/* ---- reading the known elements again */

/* The memory of an ended interpreter may have been reused for another one, which has another number
 * and may have another GIL. */
static void add_gil(struct snapshots *s, struct known_interpreter *k)
{
	uint32_t id_at = memory_at(s, MEMORY_INTERPRETER_ID);

	k->gil_now = k->gil;
	if (k->gil && !s->target->def->shared)
		batch_add(&s->batch, k->address + memory_at(s, MEMORY_GIL), &k->gil_now, 8);
	if (id_at != PROBEDEF_NO_OFFSET)
		batch_add(&s->batch, k->address + id_at, &k->id, 8);
}

static bool read_lists(struct snapshots *s)
{
	uint64_t root = s->target->root;

	batch_add(&s->batch, root + memory_at(s, MEMORY_INTERPRETERS), &s->first, 8);
	for (size_t i = 0; i < s->interpreters.n; i++) {
		struct known_interpreter *k = &s->interpreters.v[i];

		batch_add(&s->batch, k->address + memory_at(s, MEMORY_NEXT_INTERPRETER), &k->next,
		          8);
		batch_add(&s->batch, k->address + memory_at(s, MEMORY_THREADS), &k->threads, 8);
		add_gil(s, k);
		snapshots_add_lock(s, k, k->lock);
	}
	for (size_t i = 0; i < s->threads.n; i++)
		batch_add(&s->batch, s->threads.v[i]->address, s->threads.v[i]->bytes,
		          s->thread_bytes);
	return s->interpreters.n && batch_read(&s->batch, s->target->pid);
}

/* Whether each element that was read leads to the next one, and the GILs are the same. */
static bool lists_are_same(const struct snapshots *s)
{
	uint64_t interpreter = s->first;
	size_t t = 0;

	for (size_t i = 0; i < s->interpreters.n; i++) {
		uint64_t thread = s->interpreters.v[i].threads;

		if (interpreter != s->interpreters.v[i].address ||
		    s->interpreters.v[i].gil != s->interpreters.v[i].gil_now)
			return false;
		for (; t < s->threads.n && s->threads.v[t]->interpreter == i; t++) {
			if (thread != s->threads.v[t]->address)
				return false;
			thread = bytes_u64(s->threads.v[t]->bytes,
			                   memory_at(s, MEMORY_NEXT_THREAD));
		}
		if (thread)
			return false;
		interpreter = s->interpreters.v[i].next;
	}
	return !interpreter && t == s->threads.n;
}

bool snapshots_find_threads(struct snapshots *s)
{
	s->batch.here.n = s->batch.there.n = 0;
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		if (read_lists(s) && lists_are_same(s))
			return true;
		s->batch.here.n = s->batch.there.n = 0;
		walk_lists(s);
	}
	return false;
}
