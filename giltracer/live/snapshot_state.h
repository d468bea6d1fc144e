/* SPDX-License-Identifier: MIT */
/*
 * What the snapshot files share. snapshot.c asks snapshot_lists.c which interpreters and threads
 * there are, snapshot_stacks.c for their stacks, and snapshot_tasks.c which of the kernel's threads
 * runs each of them.
 */
#ifndef GILTRACER_LIVE_SNAPSHOT_STATE_H
#define GILTRACER_LIVE_SNAPSHOT_STATE_H

#include "live/cstack.h"
#include "live/memory.h"
#include "live/snapshot.h"
#include "live/stack_reader.h"
#include "live/tasks.h"

#define ATTEMPTS 8

/* Bytes of a PyThreadState that are read, and of a GIL: its holder, locked, switch_number. */
#define THREAD_BYTES 512
#define LOCK_BYTES   24

/* The code object that was last found in a frame, and its line. */
struct found_line {
	const struct live_code *code;
	uint64_t instruction;
	uint32_t line;
};

/**
 * A PyThreadState. It moves with the list that it is in, but its stack does not.
 * @interpreter: index; @own_tid: 0: not known; @name: the program's, "": not known
 * @ident: its pthread_t; @unborn: still that of the thread that made the state for a new one
 * @looked: at ident, since the lists were walked
 * @run_tid, @run_ident: of the thread that runs it, which need not be the one it was made for; 0:
 * not known; @cstack: on which that was found
 */
struct known_thread {
	uint64_t address;
	size_t interpreter;
	uint32_t own_tid;
	char name[PYTHREAD_NAME];
	uint64_t ident;
	bool looked, unborn, torn;
	uint32_t run_tid;
	uint64_t run_ident;
	struct cstack cstack;
	uint8_t bytes[THREAD_BYTES];
	struct raw_stack stack;
	VEC(struct found_line) lines; /* as stack.frames */
};

/* A PyInterpreterState. @gil: its GIL, and @gil_now, where it has a pointer to it; @lock: of the
 * GIL at the time of the snapshot; @lock_after: later */
struct known_interpreter {
	uint64_t address, next, threads, gil, gil_now, id;
	uint8_t lock[LOCK_BYTES], lock_after[LOCK_BYTES];
};

struct snapshots {
	struct target *target;
	struct tasks tasks;
	struct pythreads names;
	struct stack_reader reader;
	struct batch batch;
	uint64_t first; /* interpreter */
	VEC(struct known_interpreter) interpreters;
	VEC(struct known_thread *) threads; /* in the order of the process's lists */
	VEC(struct raw_stack *) wanted;
	VEC(uint64_t) addresses; /* of the interpreters */
	size_t thread_bytes;
	size_t changes; /* of own_tids */
};

static inline uint32_t memory_at(const struct snapshots *s, enum probedef_memory_key key)
{
	return s->target->def->memory[key];
}

static inline uint32_t frame_at(const struct snapshots *s, enum probedef_frame_key key)
{
	return s->target->def->frame[key];
}

static inline bool snapshots_know_gil(const struct snapshots *s)
{
	return memory_at(s, MEMORY_GIL) != PROBEDEF_NO_OFFSET &&
	       !s->target->process.python->free_threaded;
}

static inline void snapshots_add_lock(struct snapshots *s,
                                      const struct known_interpreter *interpreter, uint8_t *to)
{
	if (interpreter->gil)
		batch_add(&s->batch, interpreter->gil + memory_at(s, MEMORY_HOLDER), to,
		          LOCK_BYTES);
}

/* The state of the thread that holds the GIL; 0: no thread does. */
static inline uint64_t snapshots_holder_of(const struct snapshots *s,
                                           const struct known_interpreter *k)
{
	uint32_t locked_at = memory_at(s, MEMORY_LOCKED) - memory_at(s, MEMORY_HOLDER);

	if (!k->gil || locked_at > LOCK_BYTES - 4 || bytes_u32(k->lock, locked_at) != 1)
		return 0;
	return bytes_u64(k->lock, 0);
}

/* In snapshot_lists.c */

/* The interpreters and threads that there are now. False: the process runs no Python, or has
 * ended. */
bool snapshots_find_threads(struct snapshots *s);
void known_thread_free(struct known_thread *thread);

/* In snapshot_stacks.c */

/* Read the stacks of all threads. Those that changed meanwhile are torn. */
void snapshots_find_stacks(struct snapshots *s);

/* In snapshot_tasks.c */

/* Find the kernel's thread of each. Returns whether one is missing in the kernel's list. */
bool snapshots_find_tasks(struct snapshots *s);

#endif
