/* SPDX-License-Identifier: MIT */
/* Functions, with the waiting that they caused. */
#include "analysis/functions.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "session/session.h"
#include "trace/names.h"
#include "trace/source.h"
#include "trace/stacks.h"

const struct stacks *functions_frames(const struct recording_pass *pass)
{
	return pass->source ? pass->source->frames : NULL;
}

struct function function_at(const struct recording_pass *pass, uint32_t id)
{
	const struct stack_frame *frame;

	if (!id || !functions_frames(pass))
		return (struct function){ .file = "" };
	frame = stacks_get(pass->source->frames, id);
	return (struct function){
		.name = names_get(pass->source->names, frame->name),
		.file = names_get(pass->source->names, frame->module),
		.line = frame->line,
	};
}

struct function function_of(const struct recording_pass *pass, const struct hog *hog)
{
	return function_at(pass, hog->frame);
}

struct function function_caller(const struct recording_pass *pass, const struct hog *hog)
{
	if (!hog->frame || !functions_frames(pass))
		return function_at(pass, 0);
	return function_at(pass, stacks_get(pass->source->frames, hog->frame)->parent);
}

/* Whether the file is one of Python's own modules that start threads or feed them with work, and
 * therefore call everything. */
static bool is_plumbing(const char *file)
{
	static const char *const files[] = { "/threading.py", "/concurrent/futures/",
		                             "/multiprocessing/", "/asyncio/", "/runpy.py" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strstr(file, "/lib/python") && strstr(file, files[i]))
			return true;
	return false;
}

const char *const library_marks[] = { "/site-packages/", "/dist-packages/", "/lib/python",
	                              "/lib64/python",   "<frozen ",        NULL };

bool function_in_library(const char *file)
{
	for (const char *const *mark = library_marks; *mark; mark++)
		if (strstr(file, *mark))
			return true;
	return false;
}

const char *function_import_path(const char *path)
{
	for (const char *const *mark = library_marks; *mark; mark++) {
		const char *at = **mark == '/' ? strstr(path, *mark) : NULL;
		const char *slash = at ? strchr(at + strlen(*mark) - 1, '/') : NULL;

		if (slash)
			return slash + 1;
	}
	return path;
}

struct function function_user(const struct recording_pass *pass, const struct hog *hog)
{
	const struct stacks *frames = functions_frames(pass);

	for (uint32_t frame = frames ? hog->frame : 0; frame;
	     frame = stacks_get(frames, frame)->parent) {
		struct function f = function_at(pass, frame);

		if (*f.file && !function_in_library(f.file))
			return f;
	}
	return function_at(pass, 0);
}

const char *function_source(const struct recording *recording, const struct recording_pass *pass,
                            const struct hog *hog, struct function *ret_of)
{
	*ret_of = function_user(pass, hog);
	if (!ret_of->name)
		*ret_of = function_of(pass, hog);
	return recording->sources && ret_of->name && !function_is_inferred(pass, hog)
	               ? sources_find(recording->sources, ret_of->file, ret_of->line)
	               : NULL;
}

struct function function_telling_caller(const struct recording_pass *pass, const struct hog *hog)
{
	struct function f = function_of(pass, hog), caller = function_caller(pass, hog);
	struct function user = function_user(pass, hog);

	if (function_in_library(f.file) && user.name)
		return user;
	if (caller.name && (!strcmp(caller.file, f.file) || is_plumbing(caller.file)))
		caller.name = NULL;
	return caller;
}

const char *function_native(const struct recording_pass *pass, const struct hog *hog)
{
	const struct stacks *stacks = pass->source ? pass->source->stacks : NULL;

	if (!hog->native || !stacks)
		return NULL;
	return names_get(pass->source->names, stacks_get(stacks, hog->native)->name);
}

/* Whether the name is that of the collector, as trace/native.c reports it: of CPython 3.8 to 3.13,
 * earlier, and later. */
static bool is_collector(const char *native)
{
	return str_has_prefix(native, "gc_collect") || !strcmp(native, "collect") ||
	       str_has_prefix(native, "_Py_RunGC");
}

/* Whether Python's import system is among the frames. */
static bool is_import(const struct recording_pass *pass, uint32_t frame)
{
	const struct stacks *frames = functions_frames(pass);

	for (; frame; frame = stacks_get(frames, frame)->parent)
		if (str_has_prefix(function_at(pass, frame).file, "<frozen importlib._bootstrap"))
			return true;
	return false;
}

/* Whether the function only runs those that it was given, as Thread.run() does. */
static bool is_runner(const struct function *f)
{
	return f->name && is_plumbing(f->file) && strstr(f->name, "run");
}

/* Whether the C function is one of the interpreter without a symbol, or not known. */
static bool is_unnamed(const struct recording_pass *pass, const struct hog *hog)
{
	const char *native = function_native(pass, hog);

	return !native || str_has_prefix(native, "python3") || str_has_prefix(native, "libpython3");
}

bool function_is_inferred(const struct recording_pass *pass, const struct hog *hog)
{
	struct function f = function_of(pass, hog);

	return hog->inferred || function_cause(pass, hog) == CAUSE_DEALLOCATION ||
	       (is_runner(&f) && is_unnamed(pass, hog));
}

enum function_cause function_cause(const struct recording_pass *pass, const struct hog *hog)
{
	const char *native = function_native(pass, hog);

	if ((native && is_collector(native)) ||
	    (hog->overdue_ns && hog->collected_ns * 2 > hog->overdue_ns))
		return CAUSE_COLLECTOR;
	if (native && (strstr(native, "dealloc") || !strcmp(native, "PyObject_GC_Del")))
		return CAUSE_DEALLOCATION;
	return functions_frames(pass) && is_import(pass, hog->frame) ? CAUSE_IMPORT : CAUSE_CALL;
}

/* Without perf, a start does not sleep; with perf, it also takes long on a CPU, where the new thread's events are
 * made. */
#define SLOW_START_ASLEEP 10 /* percent */

bool function_is_slow_start(const struct recording_pass *pass, const struct hog *hog)
{
	struct function f = function_of(pass, hog);

	return f.name && pass->source->by_perf && strstr(f.file, "threading.py") &&
	       !strcmp(f.name, "Thread.start") &&
	       facts_percent(hog->asleep_ns, hog->overdue_ns) >= SLOW_START_ASLEEP;
}

bool function_wants_caller(const struct recording_pass *pass, const struct hog *hog)
{
	struct function f = function_of(pass, hog);

	return f.name && function_in_library(f.file) && !function_caller(pass, hog).name;
}

static struct function_row *find_row(struct function_rows *rows, const struct stacks *frames,
                                     const struct hog *hog)
{
	struct function_row *row;

	for (size_t i = 0; hog->frame && i < rows->v.n; i++)
		if (hogs_same_function(frames, rows->v.v[i].hog->frame, hog->frame))
			return &rows->v.v[i];
	row = vec_push(&rows->v);
	*row = (struct function_row){ .hog = hog };
	return row;
}

static void add_to_row(struct function_row *row, const struct hog *hog, bool overdue)
{
	uint64_t longest_ns = overdue ? hog->overdue_longest_ns : hog->longest_ns;

	row->threads++;
	row->holds += overdue ? hog->overdue_holds : hog->holds;
	row->ns += overdue ? hog->overdue_ns : hog->hold_ns;
	row->wait_ns += overdue ? hog->overdue_wait_ns : hog->wait_ns;
	row->off_cpu_ns += overdue ? hog->off_cpu_ns : hog->hold_off_cpu_ns;
	if (!row->hog->native)
		row->hog = hog;
	if (longest_ns <= row->longest_ns)
		return;
	row->longest_ns = longest_ns;
	row->longest_at_ns = overdue ? hog->overdue_longest_at_ns : hog->longest_at_ns;
	row->longest_thread = hog->thread;
}

static int compare_rows(const void *a, const void *b)
{
	const struct function_row *x = a, *y = b;

	if (x->wait_ns != y->wait_ns)
		return x->wait_ns < y->wait_ns ? 1 : -1;
	return (x->hog > y->hog) - (x->hog < y->hog);
}

struct function_rows functions_rows(const struct recording_pass *pass, bool overdue)
{
	const struct stacks *frames = functions_frames(pass);
	struct function_rows rows = { 0 };

	for (size_t i = 0; pass->hogs && i < pass->hogs->v.n; i++) {
		const struct hog *hog = &pass->hogs->v.v[i];

		if (overdue ? hog->overdue_holds : hog->frame && hog->wait_ns)
			add_to_row(find_row(&rows, frames, hog), hog, overdue);
	}
	for (size_t i = 0; i < rows.v.n; i++) {
		rows.wait_ns += rows.v.v[i].wait_ns;
		if (rows.v.v[i].longest_ns > rows.longest_ns)
			rows.longest_ns = rows.v.v[i].longest_ns;
	}
	vec_sort(&rows.v, compare_rows);
	return rows;
}

enum no_gain function_gain(const struct recording_pass *pass, const struct hog *hog,
                           uint64_t *ret_ns)
{
	if (function_is_slow_start(pass, hog))
		return NO_GAIN_SLOW_START;
	if (function_cause(pass, hog) != CAUSE_CALL)
		return NO_GAIN_NOT_A_CALL;
	if (hog->no_gain == GAIN_KNOWN)
		*ret_ns = hog->gain_ns;
	return hog->no_gain;
}

enum no_gain functions_gain(const struct recording_pass *pass, const struct hog *hog,
                            uint64_t *ret_ns)
{
	const struct stacks *frames = functions_frames(pass);
	uint64_t all_ns = 0;

	for (size_t i = 0; i < pass->hogs->v.n; i++) {
		const struct hog *other = &pass->hogs->v.v[i];
		uint64_t ns = 0;
		enum no_gain why;

		if (other != hog &&
		    (!hog->frame || !hogs_same_function(frames, other->frame, hog->frame)))
			continue;
		why = function_gain(pass, other, &ns);
		if (why != GAIN_KNOWN)
			return why;
		all_ns += ns;
	}
	*ret_ns = all_ns;
	return GAIN_KNOWN;
}
