/* SPDX-License-Identifier: MIT */
/* Functions by the waiting they caused. */
#include "functions.h"

#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "report/utf8.h"
#include "trace/names.h"
#include "trace/source.h"
#include "trace/stacks.h"

const struct stacks *functions_frames(const struct report_pass *pass)
{
	return pass->source ? pass->source->frames : NULL;
}

struct function function_at(const struct report_pass *pass, uint32_t id)
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

struct function function_of(const struct report_pass *pass, const struct hog *hog)
{
	return function_at(pass, hog->frame);
}

/* The caller of function_of; its name is NULL if it was not fetched. */
static struct function caller_of(const struct report_pass *pass, const struct hog *hog)
{
	if (!hog->frame || !functions_frames(pass))
		return function_at(pass, 0);
	return function_at(pass, stacks_get(pass->source->frames, hog->frame)->parent);
}

/* Whether the file is one of Python's own that starts or feeds threads: it calls everything. */
static bool is_plumbing(const char *file)
{
	static const char *const files[] = { "/threading.py", "/concurrent/futures/",
		                             "/multiprocessing/", "/asyncio/", "/runpy.py" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strstr(file, "/lib/python") && strstr(file, files[i]))
			return true;
	return false;
}

/* The same if it tells something: in another file, and no plumbing. */
static struct function telling_caller_of(const struct report_pass *pass, const struct hog *hog)
{
	struct function f = function_of(pass, hog), caller = caller_of(pass, hog);

	if (caller.name && (!strcmp(caller.file, f.file) || is_plumbing(caller.file)))
		caller.name = NULL;
	return caller;
}

unsigned function_add(struct str *out, const struct function *f, unsigned columns)
{
	const char *base = strrchr(f->file, '/');
	unsigned used;
	size_t len;

	if (!f->name)
		return utf8_add_safe(out, "(unknown)", columns);
	used = utf8_add_safe(out, f->name, columns);
	if (!*f->file)
		return used;
	str_adds(out, " (");
	used += 2 + utf8_add_safe(out, base ? base + 1 : f->file, columns);
	len = out->len;
	if (f->line)
		str_addf(out, ":%u", f->line);
	str_addc(out, ')');
	return used + (unsigned)(out->len - len);
}

const char *function_native(const struct report_pass *pass, const struct hog *hog)
{
	const struct stacks *stacks = pass->source ? pass->source->stacks : NULL;

	if (!hog->native || !stacks)
		return NULL;
	return names_get(pass->source->names, stacks_get(stacks, hog->native)->name);
}

bool function_is_slow_start(const struct report_pass *pass, const struct hog *hog)
{
	struct function f = function_of(pass, hog);

	return f.name && strstr(f.file, "threading.py") && !strcmp(f.name, "Thread.start") &&
	       hog->asleep_ns * 2 > hog->late_ns;
}

unsigned function_add_row(struct str *out, const struct report_pass *pass, const struct hog *hog,
                          unsigned columns)
{
	struct function f = function_of(pass, hog), caller = telling_caller_of(pass, hog);
	const char *native = function_native(pass, hog);
	unsigned used = function_add(out, &f, columns);

	if (native) {
		str_adds(out, " in ");
		used += 4 + utf8_add_safe(out, native, columns);
	}
	if (caller.name) {
		str_adds(out, ", called by ");
		used += 12 + function_add(out, &caller, columns);
	}
	if (function_is_slow_start(pass, hog)) {
		str_adds(out, ": slow under perf");
		used += 17;
	}
	return used;
}

bool function_wants_caller(const struct report_pass *pass, const struct hog *hog)
{
	struct function f = function_of(pass, hog);

	return f.name && strstr(f.file, "/lib/python") && !caller_of(pass, hog).name;
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

static void add_to_row(struct function_row *row, const struct hog *hog, bool late)
{
	uint64_t longest_ns = late ? hog->late_longest_ns : hog->longest_ns;

	row->threads++;
	row->holds += late ? hog->late_holds : hog->holds;
	row->ns += late ? hog->late_ns : hog->hold_ns;
	row->wait_ns += late ? hog->late_wait_ns : hog->wait_ns;
	row->off_cpu_ns += hog->off_cpu_ns;
	if (!row->hog->native)
		row->hog = hog;
	if (longest_ns <= row->longest_ns)
		return;
	row->longest_ns = longest_ns;
	row->longest_thread = hog->thread;
}

static int compare_rows(const void *a, const void *b)
{
	const struct function_row *x = a, *y = b;

	if (x->wait_ns != y->wait_ns)
		return x->wait_ns < y->wait_ns ? 1 : -1;
	return (x->hog > y->hog) - (x->hog < y->hog);
}

struct function_rows functions_rows(const struct report_pass *pass, bool late,
                                    const struct crowds *crowds, uint32_t crowd)
{
	const struct stacks *frames = functions_frames(pass);
	struct function_rows rows = { 0 };

	for (size_t i = 0; pass->hogs && i < pass->hogs->v.n; i++) {
		const struct hog *hog = &pass->hogs->v.v[i];

		if (crowds && crowds->of[hog->thread] != crowd)
			continue;
		if (late ? hog->late_holds : hog->frame && hog->wait_ns)
			add_to_row(find_row(&rows, frames, hog), hog, late);
	}
	if (rows.v.n)
		qsort(rows.v.v, rows.v.n, sizeof(*rows.v.v), compare_rows);
	return rows;
}

static void put_place(struct jsonw *w, const struct function *f)
{
	jsonw_string(w, "function", f->name);
	jsonw_string(w, "file", *f->file ? f->file : NULL);
	if (f->line)
		jsonw_u64(w, "line", f->line);
	else
		jsonw_null(w, "line");
}

static void put_caller(struct jsonw *w, const struct report_pass *pass, const struct hog *hog)
{
	struct function f = caller_of(pass, hog);

	if (!f.name) {
		jsonw_null(w, "caller");
		return;
	}
	jsonw_object(w, "caller");
	put_place(w, &f);
	jsonw_end(w);
}

uint64_t function_gain(const struct report_pass *pass, const struct hog *hog)
{
	return function_is_slow_start(pass, hog) ? HOGS_NO_GAIN : hog->gain_ns;
}

uint64_t functions_gain(const struct report_pass *pass, const struct hog *hog)
{
	const struct stacks *frames = functions_frames(pass);
	uint64_t gain_ns = 0;

	for (size_t i = 0; i < pass->hogs->v.n; i++) {
		const struct hog *other = &pass->hogs->v.v[i];

		if (other != hog &&
		    (!hog->frame || !hogs_same_function(frames, other->frame, hog->frame)))
			continue;
		if (function_gain(pass, other) == HOGS_NO_GAIN)
			return HOGS_NO_GAIN;
		gain_ns += function_gain(pass, other);
	}
	return gain_ns;
}

static void put_function(struct jsonw *w, const struct report_pass *pass, const struct hog *hog)
{
	struct function f = function_of(pass, hog);

	put_place(w, &f);
	json_tid(w, "tid", pass->model, hog->thread);
	put_caller(w, pass, hog);
}

static void put_hog(struct jsonw *w, const struct report_pass *pass, const struct hog *hog)
{
	jsonw_object(w, NULL);
	put_function(w, pass, hog);
	jsonw_string(w, "native", function_native(pass, hog));
	jsonw_u64(w, "holds", hog->late_holds);
	jsonw_u64(w, "hold_ns", hog->late_ns);
	jsonw_u64(w, "longest_hold_ns", hog->late_longest_ns);
	jsonw_u64(w, "longest_hold_at_ns", hog->late_longest_at_ns - pass->model->start_ns);
	jsonw_u64(w, "wait_caused_ns", hog->late_wait_ns);
	jsonw_u64(w, "held_off_cpu_ns", hog->off_cpu_ns);
	jsonw_u64(w, "held_asleep_ns", hog->asleep_ns);
	if (function_gain(pass, hog) == HOGS_NO_GAIN)
		jsonw_null(w, "gain_ns");
	else
		jsonw_u64(w, "gain_ns", function_gain(pass, hog));
	jsonw_end(w);
}

static void put_all(struct jsonw *w, const struct report_pass *pass, const struct hog *hog)
{
	jsonw_object(w, NULL);
	put_function(w, pass, hog);
	jsonw_u64(w, "holds", hog->holds);
	jsonw_u64(w, "hold_ns", hog->hold_ns);
	jsonw_u64(w, "longest_hold_ns", hog->longest_ns);
	jsonw_u64(w, "longest_hold_at_ns", hog->longest_at_ns - pass->model->start_ns);
	jsonw_u64(w, "wait_caused_ns", hog->wait_ns);
	jsonw_end(w);
}

void functions_json(struct jsonw *w, const struct report_pass *pass)
{
	size_t n = pass->hogs ? pass->hogs->v.n : 0;

	jsonw_array(w, "hogs");
	for (size_t i = 0; i < n && pass->hogs->v.v[i].late_holds; i++)
		put_hog(w, pass, &pass->hogs->v.v[i]);
	jsonw_end(w);
	jsonw_array(w, "functions");
	for (size_t i = 0; i < n; i++)
		if (pass->hogs->v.v[i].wait_ns)
			put_all(w, pass, &pass->hogs->v.v[i]);
	jsonw_end(w);
}
