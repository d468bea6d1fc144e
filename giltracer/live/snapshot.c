/* SPDX-License-Identifier: MIT */
/* Takes snapshots without stopping the process. snapshot_stacks.c explains why the stacks are
 * consistent nevertheless. */
#include "live/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/idmap.h"
#include "live/snapshot_state.h"

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

static bool sleeps_for_gil(const struct snapshots *s, uint64_t gil, const struct task *task)
{
	return gil && task && task->futex >= gil &&
	       task->futex - gil < memory_at(s, MEMORY_GIL_SIZE);
}

static enum gil_relation relation_of(const struct snapshots *s, const struct known_thread *known,
                                     const struct task *task)
{
	const struct known_interpreter *k = &s->interpreters.v[known->interpreter];

	if (!k->gil)
		return GIL_NOT_KNOWN;
	if (snapshots_holder_of(s, k) == known->address)
		return GIL_HOLDS;
	return sleeps_for_gil(s, k->gil, task) ? GIL_WAITS : GIL_NONE;
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
