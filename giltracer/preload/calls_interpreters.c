/* SPDX-License-Identifier: MIT */
#include "preload/calls_interpreters.h"

#include "preload/calls_record.h"

#include <sys/mman.h>

/* CPython numbers interpreters from 0 and never reuses a number. Interpreters with higher numbers
 * than this are not recorded. */
#define INTERPRETERS_MAX (1 << 24)
#define WORD_BITS        64

/* @begun: a bit for each interpreter in which recording has begun or cannot begin */
static struct {
	void *main;
	uint64_t *begun;
} interpreters;

static __thread const void *last_thread __attribute__((tls_model("initial-exec")));

bool calls_interpreters_runs(const void *thread)
{
	return thread && thread == last_thread;
}

void calls_interpreters_note(const void *thread)
{
	last_thread = thread;
}

/* Whether to start recording in an interpreter: true once for each. Starting raises events
 * itself. */
static bool claim(uint64_t id)
{
	uint64_t bit = 1ull << id % WORD_BITS, *word = &interpreters.begun[id / WORD_BITS];

	if (LIKELY(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
		return false;
	return !(__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit);
}

static void say_unrecorded(uint64_t id)
{
	process_log(&(struct preload_entry){ .type = PRELOAD_UNRECORDED, .number = id }, NULL, 0);
}

static void start_here(uint64_t id)
{
	PyObject *type, *value, *trace;
	const char *why;

	python.PyErr_Fetch(&type, &value, &trace);
	why = calls_codes_have_index() ? calls_start_here() : "it has another index";
	python.PyErr_Clear();
	if (why)
		say_unrecorded(id);
	python.PyErr_Restore(type, value, trace);
}

/* An event may be raised while there is no current thread state. */
static int on_event(const char *event, PyObject *arguments, void *nothing)
{
	void *thread = python_thread(), *interpreter;
	int64_t id;

	(void)event;
	(void)arguments;
	(void)nothing;
	if (!thread)
		return 0;
	interpreter = python_interpreter();
	if (LIKELY(interpreter == interpreters.main))
		return 0;
	last_thread = thread;
	id = python.PyInterpreterState_GetID(interpreter);
	if (UNLIKELY(id >= 0 && id < INTERPRETERS_MAX && !calls.ended && claim((uint64_t)id)))
		start_here((uint64_t)id);
	return 0;
}

/* Count the interpreters that exist already as not recorded: code that runs in them may not raise
 * any event. */
static void give_up_older(void)
{
	void *interpreter = python.PyInterpreterState_Head();

	for (; interpreter; interpreter = python.PyInterpreterState_Next(interpreter)) {
		int64_t id = python.PyInterpreterState_GetID(interpreter);

		if (interpreter != interpreters.main && id >= 0 && id < INTERPRETERS_MAX &&
		    claim((uint64_t)id))
			say_unrecorded((uint64_t)id);
	}
}

void calls_interpreters_watch(void)
{
	void *map;

	if (interpreters.begun || !python.PySys_AddAuditHook || !python.PyInterpreterState_GetID ||
	    !python.PyInterpreterState_Head || !python.PyInterpreterState_Next)
		return;
	map = mmap(NULL, INTERPRETERS_MAX / 8, PROT_READ | PROT_WRITE,
	           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return;
	interpreters.begun = map;
	interpreters.main = python_interpreter();
	give_up_older();
	if (python.PySys_AddAuditHook(on_event, NULL) < 0)
		python.PyErr_Clear();
}
