/* SPDX-License-Identifier: MIT */
/* What the locks of a program are called. */
#include <string.h>

#include "analysis/functions.h"
#include "analysis/locks.h"
#include "python/waits.h"
#include "session/session.h"
#include "trace/stacks.h"

/**
 * Code of Python's library behind which the program waits.
 * @file: the end of its path; @of: a class, or the whole name of a function
 * @kind: NULL: that of the code that it calls
 * @is_named: the line of the program that calls it names the lock
 */
struct library {
	const char *file, *of;
	enum lock_kind kind;
	bool is_named;
};

static const struct library libraries[] = {
	{ "/threading.py", "Condition", LOCK_CONDITION, true },
	{ "/threading.py", "Semaphore", LOCK_SEMAPHORE, true },
	{ "/threading.py", "BoundedSemaphore", LOCK_SEMAPHORE, true },
	{ "/threading.py", "Event", LOCK_EVENT, true },
	{ "/threading.py", "Barrier", LOCK_BARRIER, true },
	{ "/threading.py", "_RLock", LOCK_RLOCK, true },
	{ "/threading.py", "", LOCK_THREAD, false },
	{ "/queue.py", "", LOCK_QUEUE, true },
	{ "/logging/__init__.py", "Handler", LOCK_LOGGING, false },
	{ "/logging/__init__.py", "", LOCK_UNKNOWN, false },
	{ "<frozen importlib._bootstrap>", "", LOCK_IMPORT, false },
	{ "<frozen importlib._bootstrap_external>", "", LOCK_UNKNOWN, false },
	{ "/concurrent/futures/_base.py", "", LOCK_FUTURES, false },
	{ "/concurrent/futures/thread.py", "", LOCK_FUTURES, false },
	{ "/asyncio/base_events.py", "", LOCK_ASYNCIO, false },
	{ "/asyncio/unix_events.py", "", LOCK_ASYNCIO, false },
};

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && !strcmp(text + len - n, end);
}

/* Whether the function is one of the class, which older interpreters do not tell. */
static bool is_of(const struct function *f, const struct source_line *line, const char *of)
{
	size_t n = strlen(of);

	if (!n)
		return true;
	if (strchr(f->name, '.'))
		return !strncmp(f->name, of, n) && f->name[n] == '.';
	return line && line->of && !strcmp(line->of, of);
}

static const struct library *library_of(const struct function *f, const struct source_line *line)
{
	for (size_t i = 0; f->name && i < sizeof(libraries) / sizeof(*libraries); i++)
		if (ends_with(f->file, libraries[i].file) && is_of(f, line, libraries[i].of))
			return &libraries[i];
	return NULL;
}

static bool is_of_library(const struct function *f)
{
	const struct python_code code = { .file = f->file, .file_len = strlen(f->file) };

	return python_waits_behind(&code);
}

static enum lock_kind kind_of_class(const char *name)
{
	static const struct {
		const char *name;
		enum lock_kind kind;
	} classes[] = {
		{ "Lock", LOCK_PLAIN },          { "RLock", LOCK_RLOCK },
		{ "Condition", LOCK_CONDITION }, { "Semaphore", LOCK_SEMAPHORE },
		{ "Event", LOCK_EVENT },         { "BoundedSemaphore", LOCK_SEMAPHORE },
		{ "Barrier", LOCK_BARRIER },     { "Queue", LOCK_QUEUE },
		{ "LifoQueue", LOCK_QUEUE },     { "PriorityQueue", LOCK_QUEUE },
		{ "SimpleQueue", LOCK_QUEUE },
	};

	for (size_t i = 0; name && i < sizeof(classes) / sizeof(*classes); i++)
		if (!strcmp(classes[i].name, name))
			return classes[i].kind;
	return LOCK_UNKNOWN;
}

/* Whether the function runs a thread, so that no code of the program calls it. */
static bool runs_thread(const struct function *f)
{
	return f->name && ends_with(f->file, "/threading.py") &&
	       (ends_with(f->name, "run") || ends_with(f->name, "_bootstrap") ||
	        ends_with(f->name, "_bootstrap_inner"));
}

uint32_t lock_user_frame(const struct recording_pass *pass, uint32_t frame)
{
	uint32_t id = frame;

	while (id) {
		struct function f = function_at(pass, id);

		if (runs_thread(&f))
			break;
		if (!is_of_library(&f))
			return id;
		id = stacks_get(functions_frames(pass), id)->parent;
	}
	return frame;
}

/* Whether the line itself takes the lock: other calls in it may wait for locks of their own. */
static bool takes(const struct source_line *line)
{
	return !strncmp(line->text, "with ", strlen("with ")) || strstr(line->text, ".acquire(") ||
	       (line->kind && !strcmp(line->kind, "SimpleQueue"));
}

struct lock_name lock_name_of(const struct recording *recording, const struct recording_pass *pass,
                              uint32_t frame)
{
	struct lock_name name = { .in = function_at(pass, frame) };
	const struct source_line *line = NULL;
	bool is_named = true;

	for (uint32_t id = frame; id; id = stacks_get(functions_frames(pass), id)->parent) {
		struct function f = function_at(pass, id);
		const struct library *library;

		if (runs_thread(&f))
			break;
		line = recording->sources ? sources_line(recording->sources, f.file, f.line) : NULL;
		library = library_of(&f, line);
		if (!library) {
			name.in = f;
			break;
		}
		name.called = f.name;
		name.kind = library->kind != LOCK_UNKNOWN ? library->kind : name.kind;
		is_named = is_named && library->is_named;
		line = NULL;
	}
	if (!line || !is_named || !line->lock || (!name.called && !takes(line)))
		return name;
	name.expression = line->lock;
	name.made = line->made;
	if (!strncmp(line->lock, "self.", strlen("self.")) ||
	    !strncmp(line->lock, "cls.", strlen("cls.")))
		name.of = line->of;
	if (kind_of_class(line->kind) != LOCK_UNKNOWN)
		name.kind = kind_of_class(line->kind);
	return name;
}
