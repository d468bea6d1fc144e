/* SPDX-License-Identifier: MIT */
/*
 * Finds the interpreters and threads. The elements that the last walk found are read first, in few
 * system calls (live/batch.h), because the lists seldom change. If these elements no longer form
 * the lists, the lists are walked again.
 */
#include "live/snapshot_state.h"

#include <stdlib.h>

#include "base/alloc.h"

/* More than any program has. The walks need a limit because the memory of a process that is ending
 * may contain anything. */
#define INTERPRETERS_MAX 4096
#define THREADS_MAX      65536

void known_thread_free(struct known_thread *thread)
{
	raw_stack_done(&thread->stack);
	vec_done(&thread->lines);
	free(thread);
}

/* ---- walking the lists */

static struct known_thread *take_known(struct known_thread **old, size_t n, uint64_t address)
{
	for (size_t i = 0; i < n; i++)
		if (old[i] && old[i]->address == address)
			return take(old[i]);
	return NULL;
}

/* The memory of a state may have been reused for another thread, so its ident is examined again. */
static struct known_thread *thread_at(struct known_thread **old, size_t n, uint64_t address,
                                      size_t interpreter)
{
	struct known_thread *thread = take_known(old, n, address);

	if (!thread)
		thread = xcalloc(1, sizeof(*thread));
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

static bool walk_threads(struct snapshots *s, struct known_thread **old, size_t n, uint64_t address)
{
	pid_t pid = s->target->pid;

	while (address && s->threads.n < THREADS_MAX) {
		*vec_push(&s->threads) = thread_at(old, n, address, s->interpreters.n - 1);
		if (!memory_u64(pid, address + memory_at(s, MEMORY_NEXT_THREAD), &address))
			return false;
	}
	return true;
}

static bool walk_interpreters(struct snapshots *s, struct known_thread **old, size_t n)
{
	pid_t pid = s->target->pid;
	uint64_t address;

	if (!memory_u64(pid, s->target->root + memory_at(s, MEMORY_INTERPRETERS), &address))
		return false;
	while (address && s->interpreters.n < INTERPRETERS_MAX) {
		struct known_interpreter *interpreter = vec_push(&s->interpreters);

		*interpreter = (struct known_interpreter){ .address = address,
			                                   .gil = find_gil(s, address) };
		if (!memory_u64(pid, address + memory_at(s, MEMORY_THREADS),
		                &interpreter->threads) ||
		    !walk_threads(s, old, n, interpreter->threads) ||
		    !memory_u64(pid, address + memory_at(s, MEMORY_NEXT_INTERPRETER), &address))
			return false;
	}
	return true;
}

/* Walk the lists. What is known of states that still exist is kept. */
static bool walk_lists(struct snapshots *s)
{
	size_t n = s->threads.n;
	CLEANUP(free) struct known_thread **old = s->threads.v;
	bool walked;

	s->threads.v = NULL;
	s->threads.n = s->threads.alloc = 0;
	s->interpreters.n = 0;
	walked = walk_interpreters(s, old, n);
	for (size_t i = 0; i < n; i++)
		if (old[i])
			known_thread_free(old[i]);
	return walked;
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
