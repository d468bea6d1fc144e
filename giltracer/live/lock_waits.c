/* SPDX-License-Identifier: MIT */
#include "live/lock_waits.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "python/layout.h"
#include "python/memory.h"

#define SOURCE_BYTES (1u << 20)  /* the largest file that is read */
#define PARKED_NEAR  (16u << 10) /* from the stack pointer to what a parked thread waits for */

/* The file is that of another process, perhaps of another user. */
static char *read_source(pid_t pid, const char *file)
{
	CLEANUP(free)
	char *path = xasprintf("/proc/%d/%s/%s", (int)pid, *file == '/' ? "root" : "cwd", file);
	CLEANUP(close) int fd = *file == '<' ? -1 : file_open_regular(path, &(struct error){ 0 });
	CLEANUP(free) char *text = xcalloc(SOURCE_BYTES + 1, 1);
	size_t used = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, text + used, SOURCE_BYTES - used)) > 0)
		used += (size_t)n;
	return fd < 0 || used == SOURCE_BYTES ? NULL : take(text);
}

/* The beginning of a line; NULL: there is none, or the source cannot be read. */
static const char *line_at(struct lock_waits *l, const char *file, uint32_t line)
{
	const char *at;
	size_t i = 0;

	while (i < l->sources.n && strcmp(l->sources.v[i].file, file) != 0)
		i++;
	if (i == l->sources.n)
		*vec_push(&l->sources) = (struct lock_source){ file,
			                                       read_source(l->target->pid, file) };
	at = l->sources.v[i].text;
	while (at && --line)
		at = (at = strchr(at, '\n')) ? at + 1 : NULL;
	return at;
}

/* The beginning of the line before; NULL: it is the first one of the text. */
static const char *line_before(const char *text, const char *line)
{
	if (line-- == text)
		return NULL;
	while (line > text && line[-1] != '\n')
		line--;
	return line;
}

static size_t indent_of(const char *line)
{
	return strspn(line, " \t");
}

static bool is_in_expression(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* The lock that the line takes, "with EXPRESSION:" or "EXPRESSION.acquire("; NULL: none. */
static char *lock_in(const char *line, bool with_only)
{
	const char *end = line + strcspn(line, "\n"), *from = line + indent_of(line), *to;

	if (!strncmp(from, "with ", 5)) {
		from += 5;
		for (to = from; is_in_expression(*to); to++)
			;
		return to > from && strchr(":, ", *to) && *to ? xstrndup(from, (size_t)(to - from))
		                                              : NULL;
	}
	to = strstr(line, ".acquire(");
	if (with_only || !to || to > end)
		return NULL;
	for (from = to; from > line && is_in_expression(from[-1]); from--)
		;
	return to > from ? xstrndup(from, (size_t)(to - from)) : NULL;
}

/* Whether two expressions may mean the same lock, such as an attribute of an object that one function calls
 * "self". */
static bool may_be_same(const char *a, const char *b)
{
	const char *dot_a = strrchr(a, '.'), *dot_b = strrchr(b, '.');

	return !strcmp(a, b) || (dot_a && dot_b && !strcmp(dot_a, dot_b));
}

/* Whether the frame executes a line of a block "with EXPRESSION:". */
static bool is_within(struct lock_waits *l, const struct snapshot_frame *frame,
                      const char *expression)
{
	const char *line = frame->line ? line_at(l, frame->code->file, frame->line) : NULL;
	const char *text = line ? line_at(l, frame->code->file, 1) : NULL;
	size_t indent = line ? indent_of(line) : 0;

	for (uint32_t n = frame->line; line && indent && --n > (uint32_t)frame->code->first_line;) {
		CLEANUP(free) char *lock = NULL;

		line = line_before(text, line);
		if (!line || indent_of(line) >= indent || strchr("#\n", line[indent_of(line)]))
			continue;
		indent = indent_of(line);
		lock = lock_in(line, true);
		if (lock && may_be_same(lock, expression))
			return true;
	}
	return false;
}

/* Whether two functions of a file may mean the same by "self". */
static bool same_class(const char *a, const char *b)
{
	const char *dot_a = strrchr(a, '.'), *dot_b = strrchr(b, '.');

	return !dot_a || !dot_b || (dot_a - a == dot_b - b && !strncmp(a, b, (size_t)(dot_a - a)));
}

static void infer_holder(struct lock_waits *l, size_t waiter)
{
	const struct snapshot_frame *in = &l->snapshot->threads.v[waiter].frames.v[0];
	struct lock_wait *wait = &l->waits.v[waiter];
	unsigned found = 0;

	for (size_t i = 0; i < l->snapshot->threads.n; i++) {
		const struct snapshot_thread *t = &l->snapshot->threads.v[i];
		bool within = false;

		for (size_t k = 0; i != waiter && k < t->frames.n && !within; k++)
			within = !strcmp(t->frames.v[k].code->file, in->code->file) &&
			         (strncmp(wait->expression, "self.", 5) != 0 ||
			          same_class(t->frames.v[k].code->name, in->code->name)) &&
			         is_within(l, &t->frames.v[k], wait->expression);
		if (!within)
			continue;
		wait->holder = i;
		found++;
	}
	wait->inferred = found == 1;
	if (found != 1)
		wait->holder = SIZE_MAX;
}

/* An RLock that is a PyMutex: it is followed by the pthread_t of the thread that has it. */
static void look_at_owner(struct lock_waits *l, struct lock_wait *wait)
{
	char name[sizeof(PYTHON_RLOCK_NAME)] = "";
	uint64_t type, text, owner;
	pid_t pid = l->target->pid;

	if (!memory_u64(pid, wait->address - sizeof(type), &type) ||
	    !memory_u64(pid, type + PYTHON_TYPE_NAME, &text) ||
	    !memory_read(pid, text, name, sizeof(name)) ||
	    memcmp(name, PYTHON_RLOCK_NAME, sizeof(name)) != 0 ||
	    !memory_u64(pid, wait->address + PYTHON_RLOCK_OWNER - PYTHON_LOCK_MUTEX, &owner) ||
	    !owner)
		return;
	for (size_t i = 0; i < l->snapshot->threads.n; i++)
		if (l->snapshot->threads.v[i].ident == owner)
			wait->holder = i;
}

/* What these functions of threading wait for is no lock that a thread has. */
static bool waits_for_signal(const struct live_code *code)
{
	static const char *const names[] = { "wait", "join", "_wait_for_tstate_lock" };
	const char *slash = strrchr(code->file, '/'), *dot = strrchr(code->name, '.');

	for (size_t i = 0; slash && i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(slash, "/threading.py") &&
		    !strcmp(dot ? dot + 1 : code->name, names[i]))
			return true;
	return false;
}

/* Whether an earlier thread waits for the same lock in the same line, so that lock_waits_find() takes what was
 * inferred for that one: there may be hundreds. */
static bool is_like_earlier(const struct lock_waits *l, size_t i)
{
	const struct snapshot_frame *in = &l->snapshot->threads.v[i].frames.v[0];

	for (size_t k = 0; l->waits.v[i].address && k < i; k++) {
		const struct snapshot_frame *other = l->snapshot->threads.v[k].frames.v;

		if (l->waits.v[k].expression && l->waits.v[k].address == l->waits.v[i].address &&
		    other->code == in->code && other->line == in->line)
			return true;
	}
	return false;
}

static void find_wait(struct lock_waits *l, size_t i)
{
	const struct snapshot_thread *t = &l->snapshot->threads.v[i];
	struct lock_wait *wait = vec_push(&l->waits);
	const struct snapshot_frame *in = t->frames.n ? &t->frames.v[0] : NULL;
	bool parked = t->futex - t->sp < PARKED_NEAR;
	const char *line;

	*wait = (struct lock_wait){ .holder = SIZE_MAX };
	if (!t->futex || !in || !in->line || waits_for_signal(in->code))
		return;
	line = line_at(l, in->code->file, in->line);
	wait->expression = line ? lock_in(line, false) : NULL;
	if (!wait->expression)
		return;
	wait->address = t->futex;
	/* The semaphore of a parked thread follows the address of the lock, on its stack. */
	if (parked && !memory_u64(l->target->pid, t->futex - 8, &wait->address))
		wait->address = 0;
	if (parked && wait->address && !l->target->process.python->free_threaded)
		look_at_owner(l, wait);
	if (wait->holder == SIZE_MAX && !is_like_earlier(l, i))
		infer_holder(l, i);
}

/* Threads that wait for the same lock may call it by different names. */
void lock_waits_find(struct lock_waits *l, const struct target *target,
                     const struct snapshot *snapshot)
{
	*l = (struct lock_waits){ .target = target, .snapshot = snapshot };
	for (size_t i = 0; i < l->snapshot->threads.n; i++)
		find_wait(l, i);
	for (size_t i = 0; i < l->waits.n; i++)
		for (size_t k = 0; k < l->waits.n && l->waits.v[i].holder == SIZE_MAX; k++) {
			const struct lock_wait *other = &l->waits.v[k];

			if (!l->waits.v[i].address || other->address != l->waits.v[i].address)
				continue;
			l->waits.v[i].holder = other->holder == i ? SIZE_MAX : other->holder;
			l->waits.v[i].inferred = other->inferred;
		}
}

void lock_waits_done(struct lock_waits *l)
{
	for (size_t i = 0; i < l->waits.n; i++)
		free(l->waits.v[i].expression);
	for (size_t i = 0; i < l->sources.n; i++)
		free(l->sources.v[i].text);
	vec_done(&l->waits);
	vec_done(&l->sources);
}
