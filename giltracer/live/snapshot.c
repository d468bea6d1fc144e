/* SPDX-License-Identifier: MIT */
/* Takes snapshots without stopping the process. Why the stacks are consistent
 * nevertheless is explained where they are read. */
#include "live/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/idmap.h"
#include "live/tasks.h"
#include "python/memory.h"
#include "python/stack_reader.h"

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
 * @gil_on: 0: it is off, as it may be in a free-threaded build
 * @id: its number
 * @lock: the GIL's bytes before the stacks are read; @lock_after: afterwards
 */
struct known_interpreter {
	uint64_t address, next, threads, gil, gil_now, id;
	uint32_t gil_on;
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

static uint32_t memory_at(const struct snapshots *s, enum python_memory_key key)
{
	return s->target->def->layout.memory[key];
}

static uint32_t frame_at(const struct snapshots *s, enum python_frame_key key)
{
	return s->target->def->layout.frame[key];
}

static bool snapshots_know_gil(const struct snapshots *s)
{
	return memory_at(s, MEMORY_GIL) != PYTHON_NO_OFFSET;
}

static void snapshots_add_lock(struct snapshots *s, const struct known_interpreter *interpreter,
                               uint8_t *to)
{
	if (interpreter->gil)
		batch_add(&s->batch, interpreter->gil + memory_at(s, MEMORY_HOLDER), to,
		          LOCK_BYTES);
}

/* Address of the PyThreadState that holds the interpreter's GIL; 0: none does. */
static uint64_t snapshots_holder_of(const struct snapshots *s, const struct known_interpreter *k)
{
	uint32_t locked_at = memory_at(s, MEMORY_LOCKED) - memory_at(s, MEMORY_HOLDER);

	if (!k->gil || !k->gil_on || locked_at > LOCK_BYTES - 4 ||
	    bytes_u32(k->lock, locked_at) != 1)
		return 0;
	return bytes_u64(k->lock, 0);
}

/*
 * ---- Finds the interpreters and threads. The elements that the last walk found are read first, in few
 * system calls (python/memory.h), because the lists seldom change. If these elements no longer form
 * the lists, the lists are walked again.
 */

/* More than any program has. The walks need limits because the memory of a process that is ending,
 * or that belongs to an attacker, may contain anything. */
#define INTERPRETERS_MAX 4096
#define THREADS_EXTRA    1000

static void known_thread_free(struct known_thread *thread)
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
	k->gil_on = 1;
	if (k->gil && memory_at(s, MEMORY_GIL_ON) != PYTHON_NO_OFFSET)
		batch_add(&s->batch, k->gil + memory_at(s, MEMORY_GIL_ON), &k->gil_on, 4);
	if (k->gil && !s->target->def->shared)
		batch_add(&s->batch, k->address + memory_at(s, MEMORY_GIL), &k->gil_now, 8);
	if (id_at != PYTHON_NO_OFFSET)
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

/* Find the present interpreters and threads. False: the process runs no Python, or has ended. */
static bool snapshots_find_threads(struct snapshots *s)
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

/*
 * ---- Reads the stacks of all threads. Only the thread that holds the GIL can change its Python stack,
 * so the stacks of the others are consistent if the GIL was not handed on while they were read.
 * Otherwise, and for the holder, a stack is read until two consecutive readings are equal.
 */

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

		if (k->gil && k->gil_on && !memcmp(k->lock, k->lock_after, LOCK_BYTES) &&
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

/* Read the stacks of all threads. Those without a consistent reading are marked as torn. */
static void snapshots_find_stacks(struct snapshots *s)
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

/* ---- finds the kernel's thread that runs each PyThreadState */

/* C stacks that are looked up in one snapshot. A stack that is found is remembered. */
#define STACKS_MAX 1000

/* Before 3.11, a PyThreadState does not contain the tid. If C code forks without telling CPython, the
 * state of the child's thread contains the parent's tid. */
static uint32_t native_id(const struct snapshots *s, const struct known_thread *thread)
{
	uint32_t tid = 0, number;
	uint64_t pthread;

	if (memory_at(s, MEMORY_NATIVE_ID) != PYTHON_NO_OFFSET)
		tid = (uint32_t)bytes_u64(thread->bytes, memory_at(s, MEMORY_NATIVE_ID));
	if (tid && tasks_find(&s->tasks, tid))
		return tid;
	pthread = bytes_u64(thread->bytes, memory_at(s, MEMORY_THREAD_ID));
	if (pthread && memory_pthread_tid(s->target->pid, pthread, &number) &&
	    (!tid || tasks_find(&s->tasks, number)))
		return number;
	return tid;
}

/* The idents of the states from index first on that are born; the value is the interpreter. States
 * are examined from the last one on, so one interpreter's follow those of all later ones. */
struct born {
	struct idmap idents;
	size_t first;
};

/* Whether an older state of the same interpreter has the same ident. New states are inserted at the
 * beginning of the list. */
static bool is_unborn(const struct snapshots *s, struct born *born, size_t i)
{
	const struct known_thread *thread = s->threads.v[i];

	while (born->first > i + 1) {
		const struct known_thread *other = s->threads.v[--born->first];

		if (!other->unborn)
			idmap_set(&born->idents,
			          bytes_u64(other->bytes, memory_at(s, MEMORY_THREAD_ID)),
			          (uint32_t)other->interpreter);
	}
	return idmap_get(&born->idents, thread->ident) == thread->interpreter;
}

/* Until its own thread runs, a new state has the ident and tid of the thread that created it. */
static void look_at_ident(struct snapshots *s, struct born *born, size_t i)
{
	struct known_thread *thread = s->threads.v[i];
	uint64_t ident = bytes_u64(thread->bytes, memory_at(s, MEMORY_THREAD_ID));
	bool cached = memory_at(s, MEMORY_NATIVE_ID) == PYTHON_NO_OFFSET && thread->own_tid;
	uint32_t tid = thread->own_tid;

	if (!thread->looked || thread->unborn || ident != thread->ident) {
		cached = false;
		thread->ident = ident;
		thread->unborn = !thread->stack.frames.n && is_unborn(s, born, i);
	}
	if (thread->unborn)
		thread->own_tid = 0;
	else if (!cached)
		thread->own_tid = native_id(s, thread);
	thread->looked = true;
	if (thread->own_tid == tid)
		return;
	*thread->name = '\0';
	s->changes++;
}

/* ---- the thread that runs a state: before 3.13, the first state of a subinterpreter has the ident
 * and tid of the thread that created it, whichever thread runs it */

/* Whether another state has the same ident and a stack. */
static bool shares_ident(const struct snapshots *s, const struct known_thread *thread)
{
	for (size_t i = 0; i < s->threads.n; i++) {
		const struct known_thread *other = s->threads.v[i];

		if (other != thread && other->ident == thread->ident && other->stack.frames.n)
			return true;
	}
	return false;
}

static const struct known_thread *main_thread(const struct snapshots *s)
{
	for (size_t i = s->threads.n; i--;) {
		const struct task *task = tasks_find(&s->tasks, s->threads.v[i]->own_tid);

		if (task && task->tid == (uint32_t)s->target->pid)
			return s->threads.v[i];
	}
	return NULL;
}

/* The thread to whose C stack an address belongs: the one with the lowest pthread_t above it,
 * because a pthread_t points to the end of its stack's mapping. */
static const struct known_thread *owner_of_stack(const struct snapshots *s,
                                                 const struct cstack *cstack, uint64_t address)
{
	const struct known_thread *ret = NULL;

	if (cstack->of_main)
		return main_thread(s);
	for (size_t i = 0; i < s->threads.n; i++) {
		const struct known_thread *t = s->threads.v[i];

		if (t->own_tid && t->ident > address && t->ident < cstack->high &&
		    (!ret || t->ident <= ret->ident)) /* of equal ones, the oldest */
			ret = t;
	}
	return ret;
}

/* In 3.11 and 3.12, the state points to a struct of the innermost call of the evaluation loop,
 * which is on the C stack of the thread that runs it. */
static void find_by_stack(struct snapshots *s, struct known_thread *thread, unsigned *stacks)
{
	uint64_t address = bytes_u64(thread->bytes, frame_at(s, FRAME_CURRENT));
	const struct known_thread *owner;

	if ((address < thread->cstack.low || address >= thread->cstack.high) &&
	    (*stacks)++ < STACKS_MAX)
		thread->cstack = cstack_find(s->target->pid, address);
	owner = owner_of_stack(s, &thread->cstack, address);
	thread->run_tid = owner ? owner->own_tid : 0;
	thread->run_ident = owner ? owner->ident : 0;
}

static void find_runner(struct snapshots *s, struct known_thread *thread, unsigned *stacks)
{
	bool of_main = thread->interpreter + 1 == s->interpreters.n;

	thread->run_tid = thread->own_tid;
	thread->run_ident = thread->ident;
	if (of_main || s->target->def->layout.states_know_thread || thread->unborn)
		return;
	if (frame_at(s, FRAME_CURRENT2) != PYTHON_NO_OFFSET && thread->stack.frames.n)
		find_by_stack(s, thread, stacks);
	else if (shares_ident(s, thread))
		thread->run_tid = 0;
}

/* Find the kernel's thread that runs each state. Returns whether one of them is missing in the
 * kernel's list as last read. */
static bool snapshots_find_tasks(struct snapshots *s)
{
	struct born born = { .first = s->threads.n };
	unsigned stacks = 0;
	bool missing = false;

	for (size_t i = s->threads.n; i--;)
		look_at_ident(s, &born, i);
	idmap_done(&born.idents);
	for (size_t i = s->threads.n; i--;) {
		struct known_thread *thread = s->threads.v[i];

		find_runner(s, thread, &stacks);
		if (thread->unborn || !thread->run_tid || tasks_find(&s->tasks, thread->run_tid))
			continue;
		missing = true;
		thread->looked = false;
	}
	return missing;
}

static size_t thread_bytes(const struct snapshots *s)
{
	const uint32_t ends[] = {
		memory_at(s, MEMORY_NEXT_THREAD) + 8,
		frame_at(s, FRAME_CURRENT) + 8,
		memory_at(s, MEMORY_THREAD_ID) + 8,
		memory_at(s, MEMORY_NATIVE_ID) == PYTHON_NO_OFFSET
			? 0
			: memory_at(s, MEMORY_NATIVE_ID) + 8,
		memory_at(s, MEMORY_REQUESTS_GIL) == PYTHON_NO_OFFSET
			? 0
			: memory_at(s, MEMORY_REQUESTS_GIL) + 4,
	};
	size_t size = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		size = ends[i] > size ? ends[i] : size;
	return size;
}

struct snapshots *snapshots_new(struct target *target)
{
	struct snapshots *s = xcalloc(1, sizeof(*s));

	s->target = target;
	s->thread_bytes = thread_bytes(s);
	stack_reader_init(&s->reader, target);
	return s;
}

void snapshots_free(struct snapshots *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->threads.n; i++)
		known_thread_free(s->threads.v[i]);
	vec_done(&s->threads);
	vec_done(&s->interpreters);
	vec_done(&s->wanted);
	stack_reader_done(&s->reader);
	batch_done(&s->batch);
	tasks_done(&s->tasks);
	pythreads_done(&s->names);
	vec_done(&s->addresses);
	free(s);
}

/* ---- threads */

/* The frames that the interpreter inserts where C calls Python have no code object or, in 3.12, one
 * that does not belong to a function. */
static bool is_function(const struct live_code *code)
{
	return code && strcmp(code->file, "<shim>") != 0;
}

/* The line of frame i. It is looked up only if the code object or instruction of the frame at that
 * depth has changed. */
static uint32_t line_of(struct snapshots *s, struct known_thread *known, size_t i,
                        const struct live_code *code)
{
	uint64_t instruction = known->stack.frames.v[i].instruction;
	size_t at = known->stack.frames.n - 1 - i; /* from the outermost, which changes least */
	struct found_line *found;

	while (known->lines.n <= at)
		*vec_push(&known->lines) = (struct found_line){ 0 };
	found = &known->lines.v[at];
	if (found->code != code || found->instruction != instruction)
		*found = (struct found_line){ code, instruction,
			                      target_line(s->target, code, instruction) };
	return found->line;
}

static void add_frames(struct snapshots *s, struct known_thread *known,
                       struct snapshot_thread *thread)
{
	for (size_t i = 0; i < known->stack.frames.n; i++) {
		const struct live_code *code = target_code(s->target,
		                                           known->stack.frames.v[i].code);

		if (!known->torn && is_function(code))
			*vec_push(&thread->frames) =
				(struct snapshot_frame){ code, line_of(s, known, i, code) };
	}
}

/* From 3.15 on, a thread says itself that it requests the GIL, also while it is on a CPU or runnable
 * again. Before, it is known only of one that sleeps. */
static bool waits_for_gil(const struct snapshots *s, const struct known_thread *known, uint64_t gil,
                          const struct task *task)
{
	uint32_t requests = memory_at(s, MEMORY_REQUESTS_GIL);

	if (requests != PYTHON_NO_OFFSET)
		return bytes_u32(known->bytes, requests) == 1;
	return gil && task && task->futex >= gil &&
	       task->futex - gil < memory_at(s, MEMORY_GIL_SIZE);
}

static enum gil_relation relation_of(const struct snapshots *s, const struct known_thread *known,
                                     const struct task *task)
{
	const struct known_interpreter *k = &s->interpreters.v[known->interpreter];

	if (!k->gil)
		return GIL_NOT_KNOWN;
	if (!k->gil_on)
		return GIL_NONE;
	if (snapshots_holder_of(s, k) == known->address)
		return GIL_HOLDS;
	return waits_for_gil(s, known, k->gil, task) ? GIL_WAITS : GIL_NONE;
}

/* Of the states of a thread, the one with the highest rank is in use. */
static int rank_of(const struct snapshots *s, const struct known_thread *known,
                   const struct task *task)
{
	enum gil_relation gil = relation_of(s, known, task);

	return gil == GIL_HOLDS ? 3 : gil == GIL_WAITS ? 2 : known->stack.frames.n > 0;
}

/* The state in use of the thread whose first state is i: the one that holds a GIL, else the one
 * that waits for one, else one with a stack. Of equal ones, that of the newest interpreter. */
static struct known_thread *innermost(const struct snapshots *s, size_t i, const struct task *task)
{
	struct known_thread *ret = s->threads.v[i];

	if (!task || s->interpreters.n == 1)
		return ret;
	for (size_t j = ret->same_tid; j < s->threads.n; j = s->threads.v[j]->same_tid)
		if (rank_of(s, s->threads.v[j], task) > rank_of(s, ret, task))
			ret = s->threads.v[j];
	return ret;
}

/* Append the frames in the thread's other interpreters, which called the present one. */
static void add_callers(struct snapshots *s, size_t i, const struct known_thread *known,
                        struct snapshot_thread *thread)
{
	for (; thread->tid && s->interpreters.n > 1 && i < s->threads.n;
	     i = s->threads.v[i]->same_tid) {
		struct known_thread *other = s->threads.v[i];

		if (other == known)
			continue;
		thread->torn |= other->torn;
		add_frames(s, other, thread);
	}
	if (thread->torn)
		thread->frames.n = 0;
}

/* Use the program's name for the thread. If several interpreters have one, that of the oldest
 * counts: it is last in the list. */
static void add_name(const struct snapshots *s, size_t i, struct snapshot_thread *thread)
{
	for (; i < s->threads.n; i = s->threads.v[i]->same_tid) {
		const struct known_thread *known = s->threads.v[i];

		if (known->run_ident != known->ident || !*known->name)
			continue;
		memcpy(thread->name, known->name, sizeof(known->name));
		thread->named = true;
	}
}

/* The number of the interpreter that a GIL was made with: the oldest one that has it. */
static uint32_t owner_of(const struct snapshots *s, uint64_t gil)
{
	for (size_t i = s->interpreters.n; gil && i--;)
		if (s->interpreters.v[i].gil == gil)
			return (uint32_t)s->interpreters.v[i].id;
	return 0;
}

/* Add the thread whose first state is i, including its later states. */
static void add_thread(struct snapshots *s, struct snapshot *snapshot, size_t i)
{
	const struct task *task = tasks_find(&s->tasks, s->threads.v[i]->run_tid);
	struct known_thread *known = innermost(s, i, task);
	struct snapshot_thread *thread = vec_push(&snapshot->threads);
	uint64_t gil = s->interpreters.v[known->interpreter].gil;

	*thread = (struct snapshot_thread){
		.gil_address = gil,
		.gil_of = owner_of(s, gil),
		.gil = relation_of(s, known, task),
		.ident = known->run_ident,
		.torn = known->torn,
		.state = '?',
	};
	if (task) {
		thread->tid = task->tid;
		thread->state = task->state;
		thread->activity = task->activity;
		thread->futex = thread->gil == GIL_NONE ? task->futex : 0;
		thread->sp = task->sp;
		memcpy(thread->name, task->name, sizeof(task->name));
		add_name(s, i, thread);
	}
	add_frames(s, known, thread);
	add_callers(s, i, known, thread);
}

/* Whether the state is unused as far as known: it has no thread, no stack and no GIL. */
static bool is_idle(const struct snapshots *s, const struct known_thread *known)
{
	return !known->run_tid && !known->stack.frames.n &&
	       relation_of(s, known, NULL) != GIL_HOLDS;
}

/* Chain the states that the same thread runs. */
static void link_states(struct snapshots *s)
{
	struct idmap first = { 0 };

	for (size_t i = 0; i < s->threads.n; i++)
		s->threads.v[i]->is_later = false;
	for (size_t i = s->threads.n; i--;) {
		struct known_thread *thread = s->threads.v[i];
		uint32_t next = thread->run_tid ? idmap_get(&first, thread->run_tid) : IDMAP_NONE;

		thread->same_tid = next == IDMAP_NONE ? SIZE_MAX : next;
		if (next != IDMAP_NONE)
			s->threads.v[next]->is_later = true;
		if (thread->run_tid)
			idmap_set(&first, thread->run_tid, (uint32_t)i);
	}
	idmap_done(&first);
}

/* Whether an earlier state belongs to the same thread, which was added with that state. */
static bool is_added(const struct snapshots *s, size_t i)
{
	return s->interpreters.n > 1 && s->threads.v[i]->is_later;
}

static uint32_t count_gils(const struct snapshots *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->interpreters.n; i++) {
		size_t j = 0;

		while (s->interpreters.v[j].gil != s->interpreters.v[i].gil)
			j++;
		n += j == i && s->interpreters.v[i].gil_on;
	}
	return n;
}

static int compare_threads(const void *a, const void *b)
{
	static const int rank[] = {
		[GIL_HOLDS] = 0, [GIL_WAITS] = 1, [GIL_NONE] = 2, [GIL_NOT_KNOWN] = 2
	};
	const struct snapshot_thread *x = a, *y = b;

	if (rank[x->gil] != rank[y->gil])
		return rank[x->gil] - rank[y->gil];
	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* ---- one snapshot */

/* Read the names that the program gave its threads. pythreads_look skips this most times, because
 * names seldom change. */
static void look_at_names(struct snapshots *s)
{
	s->addresses.n = 0;
	for (size_t i = 0; i < s->interpreters.n; i++)
		*vec_push(&s->addresses) = s->interpreters.v[i].address;
	if (!pythreads_look(&s->names, s->target, s->addresses.v, s->addresses.n, s->changes))
		return;
	for (size_t i = 0; i < s->threads.n; i++) {
		struct known_thread *thread = s->threads.v[i];
		const char *name = thread->unborn ? NULL : pythreads_name(&s->names, thread->ident);

		snprintf(thread->name, sizeof(thread->name), "%s", name ? name : "");
	}
}

static void empty(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->threads.n; i++)
		vec_done(&snapshot->threads.v[i].frames);
	snapshot->threads.n = 0;
}

int snapshot_take(struct snapshot *ret, struct snapshots *s, struct error *err)
{
	*ret = (struct snapshot){ .time_ns = clock_now_ns(), .gil_known = snapshots_know_gil(s) };
	target_begin(s->target);
	if (s->thread_bytes > THREAD_BYTES || tasks_look(&s->tasks, s->target->pid, false, err) < 0)
		return s->thread_bytes > THREAD_BYTES
		               ? error_set(err, ENOTSUP, "threads of this Python cannot be read")
		               : -1;
	ret->time_ns = clock_now_ns();
	if (!snapshots_find_threads(s))
		return error_set(
			err, EAGAIN,
			"process %d: its threads changed each time they were read, or it no "
			"longer runs Python",
			(int)s->target->pid);
	stack_reader_begin(&s->reader);
	snapshots_find_stacks(s);
	if (s->reader.is_over)
		return error_set(err, E2BIG,
		                 "process %d: its threads have more than %d Python frames in all",
		                 (int)s->target->pid, STACK_READER_FRAMES);
	if (snapshots_find_tasks(s) && tasks_look(&s->tasks, s->target->pid, true, err) < 0)
		return -1;
	look_at_names(s);
	link_states(s);
	for (size_t i = 0; i < s->threads.n; i++)
		if (!is_idle(s, s->threads.v[i]) && !is_added(s, i))
			add_thread(s, ret, i);
	ret->gils = count_gils(s);
	vec_sort(&ret->threads, compare_threads);
	return 0;
}

void snapshot_done(struct snapshot *snapshot)
{
	empty(snapshot);
	vec_done(&snapshot->threads);
}

const struct snapshot_thread *snapshot_holder(const struct snapshot *snapshot, uint64_t gil)
{
	for (size_t i = 0; i < snapshot->threads.n; i++)
		if (snapshot->threads.v[i].gil == GIL_HOLDS && snapshot->threads.v[i].tid &&
		    snapshot->threads.v[i].gil_address == gil)
			return &snapshot->threads.v[i];
	return NULL;
}
