/* SPDX-License-Identifier: MIT */
/*
 * Nothing stops the process, so a stack is read until two readings in a row are equal; a GIL's
 * holder is read before and after that.
 */
#include "live/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "live/memory.h"
#include "live/tasks.h"

/* More than any program has: what is read of a dying process may be anything. */
#define INTERPRETERS_MAX 4096
#define THREADS_MAX      65536
#define FRAMES_MAX       20000
#define ATTEMPTS         8

/* struct pthread.tid of glibc, which Python did not tell before 3.11; checked against the kernel's
 * list. nptl/descr.h, since 2.4. */
#ifdef __aarch64__
#define PTHREAD_TID 0xd0
#else
#define PTHREAD_TID 0x2d0
#endif

/* A frame as it is in the process. */
struct raw_frame {
	uint64_t code, instruction;
};

struct raw_stack {
	VEC(struct raw_frame) frames;
};

/* One snapshot being taken. @gil: of the interpreter at hand */
struct taking {
	struct target *target;
	struct snapshot *snapshot;
	struct tasks tasks;
	uint64_t gil, holder;
};

static uint32_t memory_at(const struct taking *t, enum probedef_memory_key key)
{
	return t->target->def->memory[key];
}

static uint32_t frame_at(const struct taking *t, enum probedef_frame_key key)
{
	return t->target->def->frame[key];
}

/* ---- stacks */

/* The running frame of a thread's state. */
static bool read_current(const struct taking *t, uint64_t tstate, uint64_t *ret)
{
	pid_t pid = t->target->pid;

	if (!memory_u64(pid, tstate + frame_at(t, FRAME_CURRENT), ret))
		return false;
	if (frame_at(t, FRAME_CURRENT2) == PROBEDEF_NO_OFFSET || !*ret)
		return true;
	return memory_u64(pid, *ret + frame_at(t, FRAME_CURRENT2), ret);
}

static bool read_frame(const struct taking *t, uint64_t address, struct raw_frame *ret,
                       uint64_t *ret_previous)
{
	const uint32_t code = frame_at(t, FRAME_CODE), previous = frame_at(t, FRAME_PREVIOUS);
	const uint32_t at = frame_at(t, FRAME_INSTRUCTION),
		       size = frame_at(t, FRAME_INSTRUCTION_SIZE);
	uint8_t raw[256];
	uint32_t end = at + size;

	end = code + 8 > end ? code + 8 : end;
	end = previous + 8 > end ? previous + 8 : end;
	if (end > sizeof(raw) || !memory_read(t->target->pid, address, raw, end))
		return false;
	/* From 3.14 on the lowest bits are a tag (_PyStackRef). */
	ret->code = bytes_u64(raw, code) & ~(uint64_t)7;
	ret->instruction = size == 8 ? bytes_u64(raw, at) : bytes_u32(raw, at);
	*ret_previous = bytes_u64(raw, previous);
	return true;
}

static bool read_stack(const struct taking *t, uint64_t tstate, struct raw_stack *ret)
{
	uint64_t frame;

	ret->frames.n = 0;
	if (!read_current(t, tstate, &frame))
		return false;
	while (frame && ret->frames.n < FRAMES_MAX)
		if (!read_frame(t, frame, vec_push(&ret->frames), &frame))
			return false;
	return true;
}

static bool is_same(const struct raw_stack *a, const struct raw_stack *b)
{
	if (a->frames.n != b->frames.n)
		return false;
	for (size_t i = 0; i < a->frames.n; i++)
		if (a->frames.v[i].code != b->frames.v[i].code)
			return false;
	return true;
}

/* Frames of the interpreter's own, where C calls Python, have no code object, or in 3.12 one that
 * is no function's. */
static bool is_function(const struct live_code *code)
{
	return code && strcmp(code->file, "<shim>") != 0;
}

static void add_frames(struct taking *t, struct snapshot_thread *thread,
                       const struct raw_stack *stack)
{
	for (size_t i = 0; i < stack->frames.n; i++) {
		const struct raw_frame *raw = &stack->frames.v[i];
		const struct live_code *code = target_code(t->target, raw->code);

		if (is_function(code))
			*vec_push(&thread->frames) = (struct snapshot_frame){
				code, target_line(t->target, code, raw->instruction)
			};
	}
}

static void read_frames(struct taking *t, struct snapshot_thread *thread, uint64_t tstate)
{
	struct raw_stack stacks[2] = { 0 };
	bool read = false, same = false;

	for (unsigned i = 0; i < ATTEMPTS && !same; i++) {
		bool again = read_stack(t, tstate, &stacks[i & 1]);

		same = read && again && is_same(&stacks[0], &stacks[1]);
		read = again;
	}
	thread->torn = !same;
	if (same)
		add_frames(t, thread, &stacks[0]);
	vec_done(&stacks[0].frames);
	vec_done(&stacks[1].frames);
}

/* ---- threads */

/* Before 3.11 it is in the C library's own record of the thread. */
static const struct task *find_task(const struct taking *t, uint64_t tstate)
{
	pid_t pid = t->target->pid;
	uint64_t native;
	uint32_t tid;

	if (memory_at(t, MEMORY_NATIVE_ID) != PROBEDEF_NO_OFFSET)
		return memory_u64(pid, tstate + memory_at(t, MEMORY_NATIVE_ID), &native)
		               ? tasks_find(&t->tasks, (uint32_t)native)
		               : NULL;
	if (!memory_u64(pid, tstate + memory_at(t, MEMORY_THREAD_ID), &native) || !native ||
	    !memory_u32(pid, native + PTHREAD_TID, &tid))
		return NULL;
	return tasks_find(&t->tasks, tid);
}

static bool sleeps_for_gil(const struct taking *t, const struct task *task)
{
	return task->futex >= t->gil && task->futex - t->gil < memory_at(t, MEMORY_GIL_SIZE);
}

static void add_thread(struct taking *t, uint64_t tstate)
{
	const struct task *task = find_task(t, tstate);
	struct snapshot_thread *thread = vec_push(&t->snapshot->threads);

	*thread = (struct snapshot_thread){ .gil_address = t->gil, .state = '?' };
	if (!t->gil && !t->target->process.python->free_threaded)
		thread->gil = GIL_NOT_KNOWN;
	if (task) {
		thread->tid = task->tid;
		thread->state = task->state;
		thread->activity = task->activity;
		memcpy(thread->name, task->name, sizeof(thread->name));
	}
	if (t->gil && tstate == t->holder)
		thread->gil = GIL_HOLDS;
	else if (t->gil && task && sleeps_for_gil(t, task))
		thread->gil = GIL_WAITS;
	read_frames(t, thread, tstate);
}

/* The state of the thread that holds the GIL; 0: none does. */
static uint64_t read_holder(const struct taking *t)
{
	pid_t pid = t->target->pid;
	uint64_t holder;
	uint32_t locked;

	if (!t->gil || !memory_u32(pid, t->gil + memory_at(t, MEMORY_LOCKED), &locked) ||
	    locked != 1 || !memory_u64(pid, t->gil + memory_at(t, MEMORY_HOLDER), &holder))
		return 0;
	return holder;
}

static uint64_t find_gil(const struct taking *t, uint64_t interpreter)
{
	uint32_t offset = memory_at(t, MEMORY_GIL);
	uint64_t gil;

	if (offset == PROBEDEF_NO_OFFSET || t->target->process.python->free_threaded)
		return 0;
	if (t->target->def->shared)
		return t->target->root + offset;
	return memory_u64(t->target->pid, interpreter + offset, &gil) ? gil : 0;
}

/* A thread that let the GIL go while the stacks were read did not hold it at one moment with them.
 */
static void recheck_holder(const struct taking *t, size_t first)
{
	struct snapshot *snapshot = t->snapshot;

	if (!t->holder || read_holder(t) == t->holder)
		return;
	for (size_t i = first; i < snapshot->threads.n; i++)
		if (snapshot->threads.v[i].gil == GIL_HOLDS)
			snapshot->threads.v[i].gil = GIL_NONE;
}

static bool read_interpreter(struct taking *t, uint64_t interpreter)
{
	pid_t pid = t->target->pid;
	size_t first = t->snapshot->threads.n;
	uint64_t tstate;

	t->gil = find_gil(t, interpreter);
	t->holder = read_holder(t);
	if (!memory_u64(pid, interpreter + memory_at(t, MEMORY_THREADS), &tstate))
		return false;
	while (tstate && t->snapshot->threads.n < THREADS_MAX) {
		add_thread(t, tstate);
		if (!memory_u64(pid, tstate + memory_at(t, MEMORY_NEXT_THREAD), &tstate))
			return false;
	}
	recheck_holder(t, first);
	return true;
}

static bool read_interpreters(struct taking *t)
{
	pid_t pid = t->target->pid;
	uint64_t interpreter;
	unsigned n = 0;

	if (!memory_u64(pid, t->target->root + memory_at(t, MEMORY_INTERPRETERS), &interpreter))
		return false;
	for (; interpreter && n < INTERPRETERS_MAX; n++)
		if (!read_interpreter(t, interpreter) ||
		    !memory_u64(pid, interpreter + memory_at(t, MEMORY_NEXT_INTERPRETER),
		                &interpreter))
			return false;
	return true;
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

static void empty(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->threads.n; i++)
		vec_done(&snapshot->threads.v[i].frames);
	snapshot->threads.n = 0;
}

int snapshot_take(struct snapshot *ret, struct target *target, struct error *err)
{
	struct taking t = { .target = target, .snapshot = ret };
	bool read = false;

	*ret = (struct snapshot){ .time_ns = clock_now_ns() };
	ret->gil_known = memory_at(&t, MEMORY_GIL) != PROBEDEF_NO_OFFSET &&
	                 !target->process.python->free_threaded;
	if (tasks_read(&t.tasks, target->pid, err) < 0)
		return -1;
	/* A list of threads that changes under our eyes may lead anywhere: begin again. */
	for (unsigned i = 0; i < ATTEMPTS && !read; i++) {
		empty(ret);
		read = read_interpreters(&t);
	}
	tasks_done(&t.tasks);
	if (!read) {
		snapshot_done(ret);
		return error_set(err, ESRCH, "process %d: it ended, or has no Python any more",
		                 (int)target->pid);
	}
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
		if (snapshot->threads.v[i].gil == GIL_HOLDS &&
		    snapshot->threads.v[i].gil_address == gil)
			return &snapshot->threads.v[i];
	return NULL;
}
