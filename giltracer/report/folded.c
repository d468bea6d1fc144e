/* SPDX-License-Identifier: MIT */
/* Writes folded stacks. */
#include "folded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/vec.h"
#include "model/span.h"
#include "report/facts.h"
#include "report/functions.h"
#include "report/locks.h"
#include "report/pystack.h"
#include "report/utf8.h"
#include "trace/names.h"
#include "trace/source.h"

/* Asleep, or in line for a CPU. */
#define OFF_CPU (((1u << CPU_STATES) - 1) & ~(1u << CPU_UNKNOWN) & ~(1u << CPU_RUNNING))

/* ';' ends a frame and a newline a stack; nothing else may drive the terminal either. */
static void add_frame(struct str *out, const char *text)
{
	uint32_t cp;

	while ((cp = utf8_next(&text)))
		utf8_add(out, cp == ';' ? ':' : utf8_is_unsafe(cp) ? '?' : cp);
}

static void add_stack(struct str *out, const struct stacks *stacks, uint32_t id)
{
	const struct stack_frame *frame;

	if (!id)
		return;
	frame = stacks_get(stacks, id);
	add_stack(out, stacks, frame->parent);
	str_addc(out, ';');
	add_frame(out, names_get(stacks_names(stacks), frame->name));
	if (frame->flags & STACK_MISMATCH)
		str_adds(out, " (?)");
}

static void add_thread(struct str *out, const struct report_pass *pass, uint32_t thread)
{
	add_frame(out, facts_thread_name(pass, thread));
	str_addf(out, " %" PRIu32, pass->model->threads.v[thread].tid);
}

/* One line: a stack as text, and the time in it. */
struct line {
	char *text;
	uint64_t ns;
};

/* Of one thread: stacks that differ in what the text leaves out, as lines of code, are one. */
struct lines {
	struct line *v;
	size_t n;
	size_t alloc;
};

static void add_line(struct lines *lines, const struct report_pass *pass, uint32_t thread,
                     const struct stacks *stacks, uint32_t id, const char *without, uint64_t ns)
{
	struct str line = { 0 };

	add_thread(&line, pass, thread);
	add_stack(&line, stacks, id);
	if (!id)
		str_addf(&line, ";%s", without);
	*vec_push(lines) = (struct line){ str_take(&line), ns };
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

static void put_lines(struct lines *lines, FILE *out)
{
	uint64_t ns = 0;

	if (lines->n)
		qsort(lines->v, lines->n, sizeof(*lines->v), compare_lines);
	for (size_t i = 0; i < lines->n; i++) {
		ns += lines->v[i].ns;
		if (i + 1 < lines->n && !compare_lines(&lines->v[i], &lines->v[i + 1]))
			continue;
		fprintf(out, "%s %" PRIu64 "\n", lines->v[i].text, ns);
		ns = 0;
	}
	for (size_t i = 0; i < lines->n; i++)
		free(lines->v[i].text);
	vec_done(lines);
}

/* Time in states of the GIL, by what Python ran. */
static void put_python(const struct report_pass *pass, uint32_t thread, uint32_t mask, FILE *out)
{
	struct stretches stretches = stretches_of_lane(&pass->model->threads.v[thread].gil, mask);
	struct lines lines = { 0 };
	struct pystack py;

	pystack_init(&py, pass->slices);
	pystack_charge(&py, pystack_find(pass, thread), &stretches);
	for (uint32_t id = 0; id < py.ns.n; id++)
		if (py.ns.v[id])
			add_line(&lines, pass, thread, py.stacks, id, "[no Python call]",
			         py.ns.v[id]);
	put_lines(&lines, out);
	pystack_done(&py);
	vec_done(&stretches);
}

/* Time in states of a lane, by the stack of each span. */
static void put_spans(const struct report_pass *pass, uint32_t thread, const struct lane *lane,
                      uint32_t mask, const struct stacks *stacks, const char *without, FILE *out)
{
	CLEANUP(free) uint64_t *ns = xcalloc((size_t)stacks_count(stacks) + 1, sizeof(*ns));
	struct lines lines = { 0 };

	for (size_t i = 0; i < lane->spans.n; i++)
		if (mask >> lane->spans.v[i].state & 1)
			ns[lane->spans.v[i].stack] += lane_span_end(lane, i) -
			                              lane->spans.v[i].start_ns;
	for (uint32_t id = 0; id < stacks_count(stacks); id++)
		if (ns[id])
			add_line(&lines, pass, thread, stacks, id, without, ns[id]);
	put_lines(&lines, out);
}

/* Without a trace: by the frames that the probes read; else the thread is all there is to tell. */
static void put_frames(const struct report_pass *pass, uint32_t thread, uint32_t mask, FILE *out)
{
	const struct stacks *frames = functions_frames(pass);
	const struct model_thread *t = &pass->model->threads.v[thread];
	struct lines lines = { 0 };
	uint64_t ns = 0;

	if (frames) {
		put_spans(pass, thread, &t->gil, mask, frames, "[no Python frame]", out);
		return;
	}
	for (unsigned state = 0; state < GIL_STATES; state++)
		ns += mask >> state & 1 ? t->gil_ns[state] : 0;
	if (ns)
		add_line(&lines, pass, thread, NULL, 0, "[no Python frame]", ns);
	put_lines(&lines, out);
}

static const struct report_pass *find_stacks(const struct report *report)
{
	for (size_t i = 0; i < report->pass_count; i++) {
		const struct report_pass *pass = &report->passes[i];

		if (!strcmp(pass->name, "stacks") && pass->source && pass->source->stacks &&
		    stacks_count(pass->source->stacks) > 1)
			return pass;
	}
	return NULL;
}

static int put_off_cpu(const struct report *report, FILE *out, struct error *err)
{
	const struct report_pass *pass = find_stacks(report);

	if (!pass)
		return error_set(err, ENODATA,
		                 "the session has no call stacks; record with --state-detect");
	for (uint32_t i = 0; i < pass->model->threads.n; i++)
		put_spans(pass, i, &pass->model->threads.v[i].cpu, OFF_CPU, pass->source->stacks,
		          "[no stack]", out);
	return 0;
}

/* States of the GIL, or of what blocks instead of one. */
static uint32_t states_of(const struct report_pass *pass, enum folded_kind kind)
{
	if (locks_of_pass(pass))
		return kind == FOLDED_ON_GIL ? 1u << GIL_STOPPING
		                             : 1u << GIL_LOCK_WAIT | 1u << GIL_STOPPED;
	return kind == FOLDED_ON_GIL ? 1u << GIL_HOLD : 1u << GIL_WAIT | 1u << GIL_SWITCH_WAIT;
}

int report_folded(const struct report *report, enum folded_kind kind, FILE *out, struct error *err)
{
	const struct report_pass *pass = report_main_pass(report);
	uint32_t mask = states_of(pass, kind);

	if (kind == FOLDED_OFF_CPU)
		return put_off_cpu(report, out, err);
	if (!pass->model->gil_events && !locks_of_pass(pass))
		return error_set(err, ENODATA, "the session has no events of a GIL");
	for (uint32_t i = 0; i < pass->model->threads.n; i++) {
		if (pystack_find(pass, i))
			put_python(pass, i, mask, out);
		else
			put_frames(pass, i, mask, out);
	}
	return 0;
}
