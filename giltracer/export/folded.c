/* SPDX-License-Identifier: MIT */
/* Folded stacks: lines "thread;caller;callee NS", outermost first, as read by flamegraph.pl and
 * inferno-flamegraph. */
#include "export/export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts.h"
#include "analysis/functions.h"
#include "analysis/locks.h"
#include "analysis/pystack.h"
#include "analysis/sampled.h"
#include "base/idmap.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "model/span.h"
#include "report/phrases.h"
#include "trace/names.h"
#include "trace/source.h"

/* Asleep or runnable. */
#define OFF_CPU (((1u << CPU_STATES) - 1) & ~(1u << CPU_UNKNOWN) & ~(1u << CPU_RUNNING))

/* Where the path begins in a name such as "loads (/usr/lib/python3.11/json/__init__.py:299)"; NULL: none. */
static const char *find_path(const char *text)
{
	const char *last = NULL;

	for (const char *at = text; (at = strstr(at, " (/")); at++)
		last = at + strlen(" (");
	return last;
}

/* ';' ends a frame and a newline a stack; unsafe characters must not reach a terminal, either. end: where to
 * stop, the end of a character, or NULL. */
static void add_text(struct str *out, const char *text, const char *end)
{
	uint32_t cp;

	while (text != end && (cp = utf8_next(&text)))
		utf8_add(out, cp == ';' ? ':' : utf8_is_unsafe(cp) ? '?' : cp);
}

static void add_frame(struct str *out, const char *name)
{
	const char *path = find_path(name);

	add_text(out, name, path);
	if (path) /* without the library's folder: each line contains the files of a whole stack */
		add_text(out, function_import_path(path), NULL);
}

static size_t depth_of(const struct stacks *stacks, uint32_t id)
{
	size_t depth = 0;

	for (; id; id = stacks_get(stacks, id)->parent)
		depth++;
	return depth;
}

/* From the outermost frame on; frames deeper than PYSTACK_DEPTH_MAX are omitted. */
static void add_stack(struct str *out, const struct stacks *stacks, uint32_t id)
{
	const struct stack_frame *frames[PYSTACK_DEPTH_MAX];
	size_t depth = depth_of(stacks, id);
	unsigned known = 0; /* whether there was a Python frame */

	for (; depth > PYSTACK_DEPTH_MAX; depth--)
		id = stacks_get(stacks, id)->parent;
	for (size_t i = depth; i-- > 0; id = frames[i]->parent)
		frames[i] = stacks_get(stacks, id);
	for (size_t i = 0; i < depth; i++)
		known |= frames[i]->flags & STACK_PYTHON;
	for (size_t i = 0; i < depth; i++) {
		str_addc(out, ';');
		add_frame(out, names_get(stacks_names(stacks), frames[i]->name));
		if (frames[i]->flags & STACK_MISMATCH &&
		    (!known || frames[i]->flags & STACK_PYTHON))
			str_adds(out, " (?)");
	}
}

static void add_thread(struct str *out, const char *name, uint32_t tid)
{
	add_text(out, name, NULL);
	str_addf(out, " %" PRIu32, tid);
}

/* One line: a stack as text, and its time. */
struct line {
	char *text;
	uint64_t ns;
};

/* The lines of one thread. Stacks that differ only in parts that the text omits, such as line
 * numbers, are merged. */
struct lines {
	const struct recording_pass *pass;
	uint32_t thread;
	VEC(struct line) v;
};

/* Adds the time in stack id of stacks; without: the text if id is 0. */
static void add_line(struct lines *lines, const struct stacks *stacks, uint32_t id,
                     const char *without, uint64_t ns)
{
	struct str line = { 0 };

	add_thread(&line, facts_thread_name(lines->pass, lines->thread),
	           lines->pass->model->threads.v[lines->thread].tid);
	add_stack(&line, stacks, id);
	if (!id)
		str_addf(&line, ";%s", without);
	*vec_push(&lines->v) = (struct line){ str_take(&line), ns };
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

static void put_lines(struct lines *lines, FILE *out)
{
	uint64_t ns = 0;

	vec_sort(&lines->v, compare_lines);
	for (size_t i = 0; i < lines->v.n; i++) {
		ns += lines->v.v[i].ns;
		if (i + 1 < lines->v.n && !compare_lines(&lines->v.v[i], &lines->v.v[i + 1]))
			continue;
		fprintf(out, "%s %" PRIu64 "\n", lines->v.v[i].text, ns);
		ns = 0;
	}
	for (size_t i = 0; i < lines->v.n; i++)
		free(lines->v.v[i].text);
	vec_done(&lines->v);
}

/* Time in states of the GIL, by the Python stack. */
static void put_python(const struct recording_pass *pass, uint32_t thread, uint32_t mask, FILE *out)
{
	struct stretches stretches = stretches_of_lane(&pass->model->threads.v[thread].gil, mask);
	struct lines lines = { .pass = pass, .thread = thread };
	struct pystack py;

	pystack_init(&py, pass->slices);
	pystack_charge(&py, pystack_find(pass, thread), &stretches);
	for (uint32_t id = 0; id < py.ns.n; id++)
		if (py.ns.v[id])
			add_line(&lines, py.stacks, id, phrase(PHRASE_no_python_call), py.ns.v[id]);
	put_lines(&lines, out);
	pystack_done(&py);
	vec_done(&stretches);
}

/* The stacks of a lane: Python frames in a GIL lane, call stacks in a CPU lane. */
struct lane_stacks {
	const struct lane *lane;
	bool is_gil;
	const struct stacks *stacks;
	const char *without; /* for spans without a stack */
};

struct stack_time {
	uint32_t stack;
	uint64_t ns;
};

/* Time in states of a lane, by the stack of each span. */
static void put_spans(const struct recording_pass *pass, uint32_t thread,
                      const struct lane_stacks *of, uint32_t mask, FILE *out)
{
	const struct lane *lane = of->lane;
	VEC(struct stack_time) sums = { 0 };
	struct idmap by_stack = { 0 };
	struct lines lines = { .pass = pass, .thread = thread };

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *span = &lane->spans.v[i];
		uint32_t stack = of->is_gil ? span->gil.frame : span->cpu.stack;
		uint32_t at;

		if (!(mask >> span->state & 1) || lane_span_end(lane, i) == span->start_ns)
			continue;
		if (idmap_add(&by_stack, stack, (uint32_t)sums.n, &at))
			*vec_push(&sums) = (struct stack_time){ .stack = stack };
		sums.v[at].ns += lane_span_end(lane, i) - span->start_ns;
	}
	for (size_t i = 0; i < sums.n; i++)
		add_line(&lines, of->stacks, sums.v[i].stack, of->without, sums.v[i].ns);
	put_lines(&lines, out);
	vec_done(&sums);
	idmap_done(&by_stack);
}

/* Without a trace of calls, uses the frames read by the probes; without those, only the thread is
 * known. */
static void put_frames(const struct recording_pass *pass, uint32_t thread, uint32_t mask, FILE *out)
{
	const struct model_thread *t = &pass->model->threads.v[thread];
	struct lane_stacks of = { &t->gil, true, functions_frames(pass),
		                  phrase(PHRASE_no_python_frame) };
	struct lines lines = { .pass = pass, .thread = thread };
	uint64_t ns = 0;

	if (of.stacks) {
		put_spans(pass, thread, &of, mask, out);
		return;
	}
	for (unsigned state = 0; state < GIL_STATES; state++)
		ns += mask >> state & 1 ? t->gil_ns[state] : 0;
	if (ns)
		add_line(&lines, NULL, 0, phrase(PHRASE_no_python_frame), ns);
	put_lines(&lines, out);
}

static const struct recording_pass *find_stacks(const struct recording *recording)
{
	for (size_t i = 0; i < recording->pass_count; i++) {
		const struct recording_pass *pass = &recording->passes[i];

		if (pass->kind == PASS_STACKS && pass->source && pass->source->stacks &&
		    stacks_count(pass->source->stacks) > 1)
			return pass;
	}
	return NULL;
}

/* The time without a CPU by thread and the stack that left it, from the stacks pass. */
int export_folded_off_cpu(const struct analysis *a, FILE *out, struct error *err)
{
	const struct recording_pass *pass = find_stacks(a->recording);

	if (!pass)
		return error_set(err, ENODATA,
		                 "the session has no call stacks; record with --state-detect");
	for (uint32_t i = 0; i < pass->model->threads.n; i++) {
		struct lane_stacks of = { &pass->model->threads.v[i].cpu, false,
			                  pass->source->stacks, phrase(PHRASE_no_stack) };

		put_spans(pass, i, &of, OFF_CPU, out);
	}
	return 0;
}

/* Time in states of the GIL, or of its counterparts in a free-threaded interpreter. */
static int put_gil(const struct analysis *a, uint32_t mask, FILE *out, struct error *err)
{
	const struct recording_pass *pass = a->pass;

	if (!pass->model->gil_events && !a->locks)
		return error_set(err, ENODATA, "the session has no events of a GIL");
	for (uint32_t i = 0; i < pass->model->threads.n; i++) {
		if (pystack_find(pass, i))
			put_python(pass, i, mask, out);
		else
			put_frames(pass, i, mask, out);
	}
	return 0;
}

/* The holds of the GIL by thread and Python stack; without a GIL, the stops of other threads. */
int export_folded(const struct analysis *a, FILE *out, struct error *err)
{
	return put_gil(a, locks_of_pass(a->pass) ? 1u << GIL_STOPPING : 1u << GIL_HOLD, out, err);
}

/* The waits for locks of the program by thread and Python stack. */
int export_folded_lock_waits(const struct analysis *a, FILE *out, struct error *err)
{
	if (!a->pass->locks_known)
		return error_set(err, ENODATA, "waits for locks were not recorded");
	return put_gil(a, 1u << GIL_LOCK_WAIT, out, err);
}

/* The waits for the GIL by thread and Python stack; without a GIL, all blocked time. */
int export_folded_waits(const struct analysis *a, FILE *out, struct error *err)
{
	return put_gil(a,
	               locks_of_pass(a->pass) ? 1u << GIL_LOCK_WAIT | 1u << GIL_STOPPED
	                                      : 1u << GIL_WAIT | 1u << GIL_SWITCH_WAIT,
	               out, err);
}

/* ---- samples */

static void add_sampled(struct lines *lines, const struct samples *s, const char *name,
                        uint32_t tid, const struct sampled_stack *sum)
{
	struct str line = { 0 };

	add_thread(&line, name, tid);
	add_stack(&line, s->stacks, sum->stack);
	if (!sum->stack)
		str_addf(&line, ";%s",
		         phrase(sum->torn ? PHRASE_no_stack : PHRASE_no_python_frame));
	str_addf(&line, ";[%s]", sampled_what_name(sum->what));
	*vec_push(&lines->v) = (struct line){ str_take(&line), sum->samples };
}

static void put_sampled(const struct recording_pass *pass, const struct sample_thread *thread,
                        FILE *out)
{
	const struct samples *s = pass->samples;
	uint32_t of = sampled_model_thread(pass, thread);
	const char *name = of == MODEL_NONE ? names_get(s->names, thread->name)
	                                    : facts_thread_name(pass, of);
	struct lines lines = { 0 };
	struct sampled_stacks sums = sampled_stacks_of(s, thread);

	for (size_t i = 0; i < sums.v.n; i++)
		add_sampled(&lines, s, name, thread->tid, &sums.v.v[i]);
	put_lines(&lines, out);
	vec_done(&sums.v);
}

/* The activities of threads by Python stack, in numbers of samples instead of ns. */
int export_folded_samples(const struct analysis *a, FILE *out, struct error *err)
{
	const struct samples *s = a->pass->samples;

	if (!s)
		return error_set(err, ENODATA, "the session has no samples; record with --sample");
	for (size_t i = 0; i < s->threads.n; i++)
		put_sampled(a->pass, &s->threads.v[i], out);
	return 0;
}
