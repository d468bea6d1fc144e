/* SPDX-License-Identifier: MIT */
/* Writes folded stacks. */
#include "folded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "model/span.h"
#include "report/facts.h"
#include "report/pystack.h"
#include "report/utf8.h"
#include "trace/names.h"
#include "trace/source.h"

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
}

static void add_thread(struct str *out, const struct report_pass *pass, uint32_t thread)
{
	add_frame(out, facts_thread_name(pass, thread));
	str_addf(out, " %" PRIu32, pass->model->threads.v[thread].tid);
}

static void put_line(const struct report_pass *pass, uint32_t thread, const struct stacks *stacks,
                     uint32_t id, const char *without, uint64_t ns, FILE *out)
{
	CLEANUP(str_done) struct str line = { 0 };

	add_thread(&line, pass, thread);
	add_stack(&line, stacks, id);
	if (!id)
		str_addf(&line, ";%s", without);
	fprintf(out, "%s %" PRIu64 "\n", str_get(&line), ns);
}

/* Time in states of the GIL, by what Python ran. */
static void put_python(const struct report_pass *pass, uint32_t thread, uint32_t mask, FILE *out)
{
	struct stretches stretches = stretches_of_lane(&pass->model->threads.v[thread].gil, mask);
	struct pystack py;

	pystack_init(&py, pass->slices);
	pystack_charge(&py, pystack_find(pass, thread), &stretches);
	for (uint32_t id = 0; id < py.ns.n; id++)
		if (py.ns.v[id])
			put_line(pass, thread, py.stacks, id, "[no Python call]", py.ns.v[id], out);
	pystack_done(&py);
	vec_done(&stretches);
}

/* The same without a trace: the thread is all there is to tell. */
static void put_thread_only(const struct report_pass *pass, uint32_t thread, uint32_t mask,
                            FILE *out)
{
	const struct model_thread *t = &pass->model->threads.v[thread];
	uint64_t ns = 0;

	for (unsigned state = 0; state < GIL_STATES; state++)
		ns += mask >> state & 1 ? t->gil_ns[state] : 0;
	if (ns)
		put_line(pass, thread, NULL, 0, "[no Python trace]", ns, out);
}

/* Time off the CPU, by the stack that left it. */
static void put_native(const struct report_pass *pass, uint32_t thread, FILE *out)
{
	const struct lane *lane = &pass->model->threads.v[thread].cpu;
	const struct stacks *stacks = pass->source->stacks;
	CLEANUP(free) uint64_t *ns = xcalloc((size_t)stacks_count(stacks) + 1, sizeof(*ns));

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *span = &lane->spans.v[i];
		uint64_t end = lane_span_end(lane, i);

		if (span->state != CPU_RUNNING && span->state != CPU_UNKNOWN)
			ns[span->stack] += end - span->start_ns;
	}
	for (uint32_t id = 0; id < stacks_count(stacks); id++)
		if (ns[id])
			put_line(pass, thread, stacks, id, "[no stack]", ns[id], out);
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
		put_native(pass, i, out);
	return 0;
}

int report_folded(const struct report *report, enum folded_kind kind, FILE *out, struct error *err)
{
	const struct report_pass *pass = report_main_pass(report);
	uint32_t mask = kind == FOLDED_ON_GIL ? 1u << GIL_HOLD
	                                      : 1u << GIL_WAIT | 1u << GIL_SWITCH_WAIT;

	if (kind == FOLDED_OFF_CPU)
		return put_off_cpu(report, out, err);
	if (!pass->model->gil_events)
		return error_set(err, ENODATA, "the session has no events of a GIL");
	for (uint32_t i = 0; i < pass->model->threads.n; i++) {
		if (pass->slices)
			put_python(pass, i, mask, out);
		else
			put_thread_only(pass, i, mask, out);
	}
	return 0;
}
