/* SPDX-License-Identifier: MIT */
/*
 * Types and functions that the snapshot files share. snapshot.c makes a snapshot: snapshot_lists.c
 * finds the interpreters and threads, snapshot_stacks.c reads their stacks, and snapshot_tasks.c
 * finds the kernel's thread that runs each of them.
 */
#ifndef GILTRACER_LIVE_SNAPSHOT_STATE_H
#define GILTRACER_LIVE_SNAPSHOT_STATE_H

#include "live/cstack.h"
#include "python/memory.h"
#include "live/snapshot.h"
#include "python/stack_reader.h"
#include "live/tasks.h"

#define ATTEMPTS 8

/* The number of bytes read of a PyThreadState, at most, and of a GIL: its holder, locked and
 * switch_number. */
#define THREAD_BYTES 512
#define LOCK_BYTES   24

/* The code object that was last found in a frame, and its line. */
struct found_line {
	const struct live_code *code;
	uint64_t instruction;
	uint32_t line;
};

/**
 * A PyThreadState.
 * @interpreter: index in snapshots.interpreters
 * @own_tid: tid of the thread it was made for, in the process's PID namespace; 0: unknown
 * @name: the program's name for the thread; "": unknown
 * @ident: the thread's pthread_t; @unborn: the new thread does not run yet, and ident is that of
 * the thread that created the state
 * @looked: ident has been examined since the lists were last walked
 * @run_tid, @run_ident: tid and pthread_t of the thread that runs the state, which need not be the
 * one it was made for; 0: unknown
 * @same_tid: index of the next state that the same thread runs, SIZE_MAX: none; @is_later: it is not
 * the first one
 * @cstack: the C stack by which the running thread was last found
 * @bytes: the beginning of the PyThreadState, as last read
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
	size_t same_tid;
	bool is_later;
	struct cstack cstack;
	uint8_t bytes[THREAD_BYTES];
	struct raw_stack stack;
	VEC(struct found_line) lines; /* of stack.frames, outermost first */
};

/**
 * A PyInterpreterState.
 * @next, @threads: the next interpreter and the first PyThreadState
 * @gil: address of its GIL when the lists were walked, 0: unknown; @gil_now: as last read
 * @id: its number
 * @lock: the GIL's bytes before the stacks are read; @lock_after: afterwards
 */
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
	uint64_t first; /* address of the first interpreter */
	VEC(struct known_interpreter) interpreters;
	VEC(struct known_thread *) threads; /* in the order of the process's lists */
	VEC(struct raw_stack *) wanted;
	VEC(uint64_t) addresses; /* of the interpreters */
	size_t thread_bytes;
	size_t changes; /* how often an own_tid has changed */
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

/* Address of the PyThreadState that holds the interpreter's GIL; 0: none does. */
static inline uint64_t snapshots_holder_of(const struct snapshots *s,
                                           const struct known_interpreter *k)
{
	uint32_t locked_at = memory_at(s, MEMORY_LOCKED) - memory_at(s, MEMORY_HOLDER);

	if (!k->gil || locked_at > LOCK_BYTES - 4 || bytes_u32(k->lock, locked_at) != 1)
		return 0;
	return bytes_u64(k->lock, 0);
}

/* In snapshot_lists.c */

/* Find the present interpreters and threads. False: the process runs no Python, or has ended. */
bool snapshots_find_threads(struct snapshots *s);
void known_thread_free(struct known_thread *thread);

/* In snapshot_stacks.c */

/* Read the stacks of all threads. Those without a consistent reading are marked as torn. */
void snapshots_find_stacks(struct snapshots *s);

/* In snapshot_tasks.c */

/* Find the kernel's thread that runs each state. Returns whether one of them is missing in the
 * kernel's list as last read. */
bool snapshots_find_tasks(struct snapshots *s);

#endif
