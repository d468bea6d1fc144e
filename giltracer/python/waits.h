/* SPDX-License-Identifier: MIT */
/* What a thread waits for that waits for a lock in this code of Python's library. The library in
 * the program uses this, too: it needs only libc. */
#ifndef GILTRACER_PYTHON_WAITS_H
#define GILTRACER_PYTHON_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What is known from its frames about a thread that waits for a lock. */
enum python_wait {
	PYTHON_WAIT_ANY,    /* nothing */
	PYTHON_WAIT_SIGNAL, /* it waits for a signal */
	PYTHON_WAIT_NOTICE, /* the same, if the lock is a PyMutex */
	PYTHON_WAIT_TURN,   /* it waits for its turn */
};

/* A code object. @line: the line at an offset of its instructions */
struct python_code {
	const char *name, *file;
	size_t name_len, file_len;
	uint32_t (*line)(const struct python_code *code, int32_t offset);
	const void *data;
};

/* The compiler copies the body of a finally clause, so that its lines are in several places, in
 * this part of the code. */
#define PYTHON_FINALLY_MAX 4096

static inline bool python_file_ends(const struct python_code *code, const char *end)
{
	size_t len = strlen(end);

	return code->file_len >= len && !memcmp(code->file + code->file_len - len, end, len);
}

/* Whether the code is the function or method of this name in that file. */
static inline bool python_code_is(const struct python_code *code, const char *file,
                                  const char *name)
{
	size_t len = strlen(name);

	return code->name_len >= len && !memcmp(code->name + code->name_len - len, name, len) &&
	       (code->name_len == len || code->name[code->name_len - len - 1] == '.') &&
	       python_file_ends(code, file);
}

static inline bool python_is_copied(const struct python_code *code, int32_t offset)
{
	uint32_t line = code->line(code, offset), before = 0, places = 0;

	for (int32_t at = 0; at < PYTHON_FINALLY_MAX && places < 2; at += 2) {
		uint32_t now = code->line(code, at);

		places += now == line && before != line;
		before = now;
	}
	return places > 1;
}

/*
 * Of the innermost frame. Thread.join waits for a lock that the other thread has until it ends. If
 * locks are PyMutexes, the library cannot tell whether a thread in Condition.wait waits for the
 * lock that stands for the notification, or for the condition's own lock afterwards, which it takes
 * in a finally clause. A thread that waits for a module that another one imports has itself taken
 * the lock by which it is woken.
 */
static inline enum python_wait python_wait_in(const struct python_code *code, int32_t offset)
{
	if (python_code_is(code, "/threading.py", "_wait_for_tstate_lock") ||
	    python_code_is(code, "/threading.py", "_shutdown"))
		return PYTHON_WAIT_SIGNAL;
	if (python_code_is(code, "/threading.py", "Condition.wait") &&
	    !python_is_copied(code, offset))
		return PYTHON_WAIT_NOTICE;
	if (python_code_is(code, "<frozen importlib._bootstrap>", "acquire"))
		return PYTHON_WAIT_TURN;
	return PYTHON_WAIT_ANY;
}

/* Of the frame that called the innermost one: a thread that waits in Condition.wait for a semaphore
 * waits for its turn. */
static inline bool python_calls_for_turn(const struct python_code *code)
{
	return python_code_is(code, "/threading.py", "acquire");
}

/* The part of Python's library behind which a program waits for locks. */
static inline bool python_waits_behind(const struct python_code *code)
{
	static const char *const files[] = {
		"/threading.py",
		"/queue.py",
		"/logging/__init__.py",
		"<frozen importlib._bootstrap>",
		"<frozen importlib._bootstrap_external>",
		"/concurrent/futures/_base.py",
		"/concurrent/futures/thread.py",
		"/asyncio/base_events.py",
		"/asyncio/unix_events.py",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (python_file_ends(code, files[i]))
			return true;
	return false;
}

#endif
