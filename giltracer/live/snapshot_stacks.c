/* SPDX-License-Identifier: MIT */
/*
 * Reads the stacks of all threads. Only the thread that holds the GIL can change its Python stack,
 * so the stacks of the others are consistent if the GIL was not handed on while they were read.
 * Otherwise, and for the holder, a stack is read until two consecutive readings are equal.
 */
#include "live/snapshot_state.h"

#include <string.h>

/* Read the stacks that are marked as torn. At first, all are. */
static bool read_stacks(struct snapshots *s)
{
	s->wanted.n = 0;
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i]->torn)
			*vec_push(&s->wanted) = &s->threads.v[i]->stack;
	return stack_reader_read(&s->reader, s->wanted.v, s->wanted.n);
}

/* Read the GILs again and, for stacks that are marked as torn, where they begin. */
static bool look_again(struct snapshots *s)
{
	for (size_t i = 0; i < s->interpreters.n; i++)
		snapshots_add_lock(s, &s->interpreters.v[i], s->interpreters.v[i].lock_after);
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i]->torn)
			batch_add(&s->batch, s->threads.v[i]->address + frame_at(s, FRAME_CURRENT),
			          &s->threads.v[i]->stack.current, 8);
	return batch_read(&s->batch, s->target->pid);
}

/* Clear the mark of threads whose stacks cannot have changed: they did not hold the GIL, and the
 * GIL was not handed on. */
static void trust_others(struct snapshots *s)
{
	for (size_t i = 0; i < s->threads.n; i++) {
		struct known_thread *thread = s->threads.v[i];
		const struct known_interpreter *k = &s->interpreters.v[thread->interpreter];

		if (k->gil && !memcmp(k->lock, k->lock_after, LOCK_BYTES) &&
		    snapshots_holder_of(s, k) != thread->address)
			thread->torn = false;
	}
}

static void compare_readings(struct snapshots *s)
{
	for (size_t i = 0; i < s->threads.n; i++)
		s->threads.v[i]->torn &= !raw_stack_is_same(&s->threads.v[i]->stack);
}

static bool any_torn(const struct snapshots *s)
{
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i]->torn)
			return true;
	return false;
}

void snapshots_find_stacks(struct snapshots *s)
{
	bool read;

	for (size_t i = 0; i < s->threads.n; i++) {
		struct known_thread *thread = s->threads.v[i];

		thread->torn = true;
		thread->stack.current = bytes_u64(thread->bytes, frame_at(s, FRAME_CURRENT));
	}
	read = read_stacks(s);
	if (!look_again(s))
		return;
	if (read)
		trust_others(s);
	for (unsigned i = 0; i < ATTEMPTS && any_torn(s); i++) {
		bool again = read_stacks(s);

		if (read && again)
			compare_readings(s);
		read = again;
		if (!look_again(s))
			return;
	}
}
