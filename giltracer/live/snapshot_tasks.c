/* SPDX-License-Identifier: MIT */
/* Finds the kernel's thread that runs each PyThreadState. */
#include "live/snapshot_state.h"

#include "base/idmap.h"

/* Offset of tid in glibc's struct pthread (nptl/descr.h, since 2.4). A tid that was read there is
 * checked against the kernel's list. */
#ifdef __aarch64__
#define PTHREAD_TID 0xd0
#else
#define PTHREAD_TID 0x2d0
#endif

/* C stacks that are looked up in one snapshot. A stack that is found is remembered. */
#define STACKS_MAX 1000

/* Before 3.11, a PyThreadState does not contain the tid, but glibc's struct pthread, to which a
 * pthread_t points, does. If C code forks without telling CPython, the state of the child's thread
 * contains the parent's tid. */
static uint32_t native_id(const struct snapshots *s, const struct known_thread *thread)
{
	uint32_t tid = 0, number;
	uint64_t pthread;

	if (memory_at(s, MEMORY_NATIVE_ID) != PROBEDEF_NO_OFFSET)
		tid = (uint32_t)bytes_u64(thread->bytes, memory_at(s, MEMORY_NATIVE_ID));
	if (tid && tasks_find(&s->tasks, tid))
		return tid;
	pthread = bytes_u64(thread->bytes, memory_at(s, MEMORY_THREAD_ID));
	if (pthread && memory_u32(s->target->pid, pthread + PTHREAD_TID, &number) &&
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
	bool cached = memory_at(s, MEMORY_NATIVE_ID) == PROBEDEF_NO_OFFSET && thread->own_tid;
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
	if (of_main || s->target->def->minor >= 13 || thread->unborn)
		return;
	if (frame_at(s, FRAME_CURRENT2) != PROBEDEF_NO_OFFSET && thread->stack.frames.n)
		find_by_stack(s, thread, stacks);
	else if (shares_ident(s, thread))
		thread->run_tid = 0;
}

bool snapshots_find_tasks(struct snapshots *s)
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
