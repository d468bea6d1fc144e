/* SPDX-License-Identifier: MIT */
/*
 * Nothing stops the process. Only the thread that has the GIL can change its Python stack, so the
 * stacks of the others are right if the GIL was not passed on while they were read; else, and of the
 * thread that has it, a stack is read until two readings in a row are equal.
 *
 * Where everything was the last time is read first, in few system calls (live/batch.h): lists of
 * threads seldom change. If what was read is not that list any more, it is walked.
 */
#include "live/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "live/cstack.h"
#include "live/memory.h"
#include "live/stack_reader.h"
#include "live/tasks.h"

/* More than any program has; a limit, because memory of a dying process may contain anything. */
#define INTERPRETERS_MAX 4096
#define THREADS_MAX      65536
#define ATTEMPTS         8

/* Bytes of a PyThreadState that are read, and of a GIL: its holder, locked, switch_number. */
#define THREAD_BYTES 512
#define LOCK_BYTES   24

/* struct pthread.tid of glibc, which Python did not tell before 3.11; checked against the kernel's
 * list. nptl/descr.h, since 2.4. */
#ifdef __aarch64__
#define PTHREAD_TID 0xd0
#else
#define PTHREAD_TID 0x2d0
#endif

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
 * @run_tid, @run_ident: of the thread that runs it, which need not be the one it was made for; 0: not
 * known; @cstack: on which that was found
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

/* A PyInterpreterState. @gil: its GIL, and @gil_now, where it has a pointer to it; @lock: of the GIL at
 * the time of the snapshot; @lock_after: later */
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

static uint32_t memory_at(const struct snapshots *s, enum probedef_memory_key key)
{
	return s->target->def->memory[key];
}

static uint32_t frame_at(const struct snapshots *s, enum probedef_frame_key key)
{
	return s->target->def->frame[key];
}

static bool knows_gil(const struct snapshots *s)
{
	return memory_at(s, MEMORY_GIL) != PROBEDEF_NO_OFFSET &&
	       !s->target->process.python->free_threaded;
}

static size_t thread_bytes(const struct snapshots *s)
{
	const uint32_t ends[] = {
		memory_at(s, MEMORY_NEXT_THREAD) + 8,
		frame_at(s, FRAME_CURRENT) + 8,
		memory_at(s, MEMORY_THREAD_ID) + 8,
		memory_at(s, MEMORY_NATIVE_ID) == PROBEDEF_NO_OFFSET
			? 0
			: memory_at(s, MEMORY_NATIVE_ID) + 8,
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

static void free_thread(struct known_thread *thread)
{
	raw_stack_done(&thread->stack);
	vec_done(&thread->lines);
	free(thread);
}

void snapshots_free(struct snapshots *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->threads.n; i++)
		free_thread(s->threads.v[i]);
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

/* ---- the lists, walked */

static struct known_thread *take_known(struct known_thread **old, size_t n, uint64_t address)
{
	for (size_t i = 0; i < n; i++)
		if (old[i] && old[i]->address == address)
			return take(old[i]);
	return NULL;
}

/* A thread state whose memory was reused may belong to another thread. */
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

	if (!knows_gil(s))
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

/* Keep what is known of threads that still exist. */
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
			free_thread(old[i]);
	return walked;
}

/* ---- the lists, where they were the last time */

static void add_lock(struct snapshots *s, const struct known_interpreter *interpreter, uint8_t *to)
{
	if (interpreter->gil)
		batch_add(&s->batch, interpreter->gil + memory_at(s, MEMORY_HOLDER), to,
		          LOCK_BYTES);
}

/* The memory of an interpreter that has ended may be that of another one. */
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
		add_lock(s, k, k->lock);
	}
	for (size_t i = 0; i < s->threads.n; i++)
		batch_add(&s->batch, s->threads.v[i]->address, s->threads.v[i]->bytes,
		          s->thread_bytes);
	return s->interpreters.n && batch_read(&s->batch, s->target->pid);
}

/* Whether each element that was read leads to the next one. */
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

static bool find_threads(struct snapshots *s)
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

/* ---- stacks */

/* The state of the thread that holds the GIL; 0: no thread does. */
static uint64_t holder_of(const struct snapshots *s, const struct known_interpreter *k)
{
	uint32_t locked_at = memory_at(s, MEMORY_LOCKED) - memory_at(s, MEMORY_HOLDER);

	if (!k->gil || locked_at > LOCK_BYTES - 4 || bytes_u32(k->lock, locked_at) != 1)
		return 0;
	return bytes_u64(k->lock, 0);
}

/* Read the stacks of threads that are marked as torn: at first, of all. */
static bool read_stacks(struct snapshots *s)
{
	s->wanted.n = 0;
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i]->torn)
			*vec_push(&s->wanted) = &s->threads.v[i]->stack;
	return stack_reader_read(&s->reader, s->wanted.v, s->wanted.n);
}

/* Read again where the stacks begin, and whether the GILs have changed. */
static bool look_again(struct snapshots *s)
{
	for (size_t i = 0; i < s->interpreters.n; i++)
		add_lock(s, &s->interpreters.v[i], s->interpreters.v[i].lock_after);
	for (size_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i]->torn)
			batch_add(&s->batch, s->threads.v[i]->address + frame_at(s, FRAME_CURRENT),
			          &s->threads.v[i]->stack.current, 8);
	return batch_read(&s->batch, s->target->pid);
}

/* Clear the mark of threads whose stacks cannot have changed. */
static void trust_others(struct snapshots *s)
{
	for (size_t i = 0; i < s->threads.n; i++) {
		struct known_thread *thread = s->threads.v[i];
		const struct known_interpreter *k = &s->interpreters.v[thread->interpreter];

		if (k->gil && !memcmp(k->lock, k->lock_after, LOCK_BYTES) &&
		    holder_of(s, k) != thread->address)
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

static void find_stacks(struct snapshots *s)
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

/* ---- what is told of it */

/* Frames of the interpreter's own, where C calls Python, have no code object, or in 3.12 one that
 * is no function's. */
static bool is_function(const struct live_code *code)
{
	return code && strcmp(code->file, "<shim>") != 0;
}

/* The line of frame i; it is looked up once for as long as the frame stays there. */
static uint32_t line_of(struct snapshots *s, struct known_thread *known, size_t i,
                        const struct live_code *code)
{
	uint64_t instruction = known->stack.frames.v[i].instruction;
	size_t at = known->stack.frames.n - 1 - i; /* outer frames stay, inner ones come and go */
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

/* Before 3.11 only the C library's own record of the thread has it. */
static uint32_t native_id(const struct snapshots *s, const struct known_thread *thread)
{
	uint32_t tid;
	uint64_t pthread;

	if (memory_at(s, MEMORY_NATIVE_ID) != PROBEDEF_NO_OFFSET)
		return (uint32_t)bytes_u64(thread->bytes, memory_at(s, MEMORY_NATIVE_ID));
	pthread = bytes_u64(thread->bytes, memory_at(s, MEMORY_THREAD_ID));
	if (!pthread || !memory_u32(s->target->pid, pthread + PTHREAD_TID, &tid))
		return 0;
	return tid;
}

static bool sleeps_for_gil(const struct snapshots *s, uint64_t gil, const struct task *task)
{
	return gil && task && task->futex >= gil &&
	       task->futex - gil < memory_at(s, MEMORY_GIL_SIZE);
}

static enum gil_state gil_state_of(const struct snapshots *s, const struct known_thread *known,
                                   const struct task *task)
{
	const struct known_interpreter *k = &s->interpreters.v[known->interpreter];

	if (!k->gil)
		return GIL_NOT_KNOWN;
	if (holder_of(s, k) == known->address)
		return GIL_HOLDS;
	return sleeps_for_gil(s, k->gil, task) ? GIL_WAITS : GIL_NONE;
}

/* How much a state says of where its thread is. */
static int rank_of(const struct snapshots *s, const struct known_thread *known,
                   const struct task *task)
{
	enum gil_state gil = gil_state_of(s, known, task);

	return gil == GIL_HOLDS ? 3 : gil == GIL_WAITS ? 2 : known->stack.frames.n > 0;
}

/* The state, from i on, that its thread is in: that of the newest interpreter unless it has a GIL, or
 * waits for one. */
static struct known_thread *innermost(const struct snapshots *s, size_t i, const struct task *task)
{
	struct known_thread *ret = s->threads.v[i];

	for (size_t j = i + 1; task && s->interpreters.n > 1 && j < s->threads.n; j++)
		if (s->threads.v[j]->run_tid == ret->run_tid &&
		    rank_of(s, s->threads.v[j], task) > rank_of(s, ret, task))
			ret = s->threads.v[j];
	return ret;
}

/* Behind those of the interpreter that the thread is in, those of the interpreters that called it. */
static void add_callers(struct snapshots *s, size_t i, const struct known_thread *known,
                        struct snapshot_thread *thread)
{
	for (; thread->tid && s->interpreters.n > 1 && i < s->threads.n; i++) {
		struct known_thread *other = s->threads.v[i];

		if (other == known || other->run_tid != known->run_tid)
			continue;
		thread->torn |= other->torn;
		add_frames(s, other, thread);
	}
	if (thread->torn)
		thread->frames.n = 0;
}

/* What the program calls it, in the oldest of its interpreters. */
static void add_name(const struct snapshots *s, size_t i, struct snapshot_thread *thread)
{
	const struct known_thread *first = s->threads.v[i];

	for (; i < s->threads.n; i++) {
		const struct known_thread *known = s->threads.v[i];

		if (known->run_tid != first->run_tid || known->run_ident != known->ident ||
		    !*known->name)
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

/* The thread that state i is of, with its later states. */
static void add_thread(struct snapshots *s, struct snapshot *snapshot, size_t i)
{
	const struct task *task = tasks_find(&s->tasks, s->threads.v[i]->run_tid);
	struct known_thread *known = innermost(s, i, task);
	struct snapshot_thread *thread = vec_push(&snapshot->threads);
	uint64_t gil = s->interpreters.v[known->interpreter].gil;

	*thread = (struct snapshot_thread){
		.gil_address = gil,
		.gil_of = owner_of(s, gil),
		.gil = gil_state_of(s, known, task),
		.torn = known->torn,
		.state = '?',
	};
	if (task) {
		thread->tid = task->tid;
		thread->state = task->state;
		thread->activity = task->activity;
		memcpy(thread->name, task->name, sizeof(task->name));
		add_name(s, i, thread);
	}
	add_frames(s, known, thread);
	add_callers(s, i, known, thread);
}

/* Whether nothing is known of it: neither a thread nor a stack nor that it has a GIL. */
static bool is_idle(const struct snapshots *s, const struct known_thread *known)
{
	return !known->run_tid && !known->stack.frames.n &&
	       gil_state_of(s, known, NULL) != GIL_HOLDS;
}

/* Whether an earlier state is of the same thread. */
static bool is_added(const struct snapshots *s, size_t i)
{
	uint32_t tid = s->threads.v[i]->run_tid;

	for (size_t j = 0; s->interpreters.n > 1 && tid && j < i; j++)
		if (s->threads.v[j]->run_tid == tid)
			return true;
	return false;
}

static uint32_t count_gils(const struct snapshots *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->interpreters.n; i++) {
		size_t j = 0;

		while (s->interpreters.v[j].gil != s->interpreters.v[i].gil)
			j++;
		n += j == i;
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

/* Whether an older thread of the interpreter has the ident: new ones come first in its list. */
static bool is_unborn(const struct snapshots *s, size_t i)
{
	const struct known_thread *thread = s->threads.v[i];

	for (size_t j = i + 1; j < s->threads.n; j++) {
		const struct known_thread *other = s->threads.v[j];

		if (other->interpreter == thread->interpreter && !other->unborn &&
		    bytes_u64(other->bytes, memory_at(s, MEMORY_THREAD_ID)) == thread->ident)
			return true;
	}
	return false;
}

/* A new state has the numbers of the thread that made it, until its own thread runs. */
static void look_at_ident(struct snapshots *s, size_t i)
{
	struct known_thread *thread = s->threads.v[i];
	uint64_t ident = bytes_u64(thread->bytes, memory_at(s, MEMORY_THREAD_ID));
	bool cached = memory_at(s, MEMORY_NATIVE_ID) == PROBEDEF_NO_OFFSET && thread->own_tid;
	uint32_t tid = thread->own_tid;

	if (!thread->looked || thread->unborn || ident != thread->ident) {
		cached = false;
		thread->ident = ident;
		thread->unborn = !thread->stack.frames.n && is_unborn(s, i);
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

/* ---- the thread that runs a state: before 3.13, a subinterpreter's first one has the numbers of the
 * thread that made it, whoever runs it */

/* Whether another state that is in use was made for the same thread. */
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

/* The thread whose pthread_t is the next one above an address in its stack. */
static const struct known_thread *owner_of_stack(const struct snapshots *s,
                                                 const struct cstack *cstack, uint64_t address)
{
	const struct known_thread *ret = NULL;

	if (cstack->of_main)
		return main_thread(s);
	for (size_t i = 0; i < s->threads.n; i++) {
		const struct known_thread *t = s->threads.v[i];

		if (t->own_tid && t->ident > address && t->ident < cstack->high &&
		    (!ret || t->ident <= ret->ident)) /* the oldest interpreter's */
			ret = t;
	}
	return ret;
}

/* 3.11 and 3.12: the innermost call of the interpreter's loop is on the stack of its thread. */
static void find_by_stack(struct snapshots *s, struct known_thread *thread)
{
	uint64_t address = bytes_u64(thread->bytes, frame_at(s, FRAME_CURRENT));
	const struct known_thread *owner;

	if (address < thread->cstack.low || address >= thread->cstack.high)
		thread->cstack = cstack_find(s->target->pid, address);
	owner = owner_of_stack(s, &thread->cstack, address);
	thread->run_tid = owner ? owner->own_tid : 0;
	thread->run_ident = owner ? owner->ident : 0;
}

static void find_runner(struct snapshots *s, struct known_thread *thread)
{
	bool of_main = thread->interpreter + 1 == s->interpreters.n;

	thread->run_tid = thread->own_tid;
	thread->run_ident = thread->ident;
	if (of_main || s->target->def->minor >= 13 || thread->unborn)
		return;
	if (frame_at(s, FRAME_CURRENT2) != PROBEDEF_NO_OFFSET && thread->stack.frames.n)
		find_by_stack(s, thread);
	else if (shares_ident(s, thread))
		thread->run_tid = 0;
}

/* Whether a thread is missing in the kernel's list. */
static bool find_tasks(struct snapshots *s)
{
	bool missing = false;

	for (size_t i = s->threads.n; i--;)
		look_at_ident(s, i);
	for (size_t i = s->threads.n; i--;) {
		struct known_thread *thread = s->threads.v[i];

		find_runner(s, thread);
		if (thread->unborn || !thread->run_tid || tasks_find(&s->tasks, thread->run_tid))
			continue;
		missing = true;
		thread->looked = false;
	}
	return missing;
}

/* Read the names that the program gave its threads; not each time, since they seldom change. */
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
	*ret = (struct snapshot){ .time_ns = clock_now_ns(), .gil_known = knows_gil(s) };
	s->target->look++;
	if (s->thread_bytes > THREAD_BYTES || tasks_look(&s->tasks, s->target->pid, false, err) < 0)
		return s->thread_bytes > THREAD_BYTES
		               ? error_set(err, ENOTSUP, "threads of this Python cannot be read")
		               : -1;
	ret->time_ns = clock_now_ns();
	if (!find_threads(s))
		return error_set(err, ESRCH, "process %d has ended or no longer runs Python",
		                 (int)s->target->pid);
	find_stacks(s);
	if (find_tasks(s) && tasks_look(&s->tasks, s->target->pid, true, err) < 0)
		return -1;
	look_at_names(s);
	for (size_t i = 0; i < s->threads.n; i++)
		if (!is_idle(s, s->threads.v[i]) && !is_added(s, i))
			add_thread(s, ret, i);
	ret->gils = count_gils(s);
	if (ret->threads.n)
		qsort(ret->threads.v, ret->threads.n, sizeof(*ret->threads.v), compare_threads);
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
