/* SPDX-License-Identifier: MIT */
/*
 * Trace Event Format (JSON), in VizTracer's form, for vizviewer, chrome://tracing, catapult and
 * ui.perfetto.dev. A viewer shows a row per thread, so each lane is written as a thread of its own:
 * a thread's calls have its tid, its GIL states that plus ROW_GIL, its CPU states that plus
 * ROW_CPU, and a GIL is ROW_OWNERS plus its index. Linux's tids are less than 2^22.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "export/export.h"
#include "export/walk.h"
#include "base/jsonw.h"
#include "trace/names.h"
#include "trace/stacks.h"

#define ROW_GIL    (1u << 22)
#define ROW_CPU    (2u << 22)
#define ROW_OWNERS (3u << 22)

/**
 * @row: the beginning of an event in the row (row_pid, row_tid)
 * @names, @threads, @states: of calls, threads and states, as JSON, by number; NULL: not made yet
 * @functions: the same for the arguments with a frame's file and line
 */
struct chrome {
	struct jsonw w;
	const struct analysis *a;
	uint64_t flow;
	uint32_t row_pid, row_tid;
	struct str row;
	char **names, **threads, **functions;
	char *states[GIL_STATES + CPU_STATES];
};

static uint32_t row_of(const struct walk_span *span, uint32_t tid)
{
	return tid + (span->lane == WALK_GIL ? ROW_GIL : ROW_CPU);
}

static void begin(struct chrome *c, const char *ph, uint32_t pid, uint32_t tid, const char *name)
{
	jsonw_object(&c->w, NULL);
	jsonw_string(&c->w, "ph", ph);
	jsonw_u64(&c->w, "pid", pid);
	jsonw_u64(&c->w, "tid", tid);
	jsonw_string(&c->w, "name", name);
}

/* Begins a slice, whose name is JSON; put_times() adds its times. */
static struct outbuf *begin_slice(struct chrome *c, uint32_t pid, uint32_t tid, const char *name,
                                  const char *category)
{
	struct outbuf *out = jsonw_value(&c->w);

	if (!c->row.len || c->row_pid != pid || c->row_tid != tid) {
		c->row_pid = pid;
		c->row_tid = tid;
		str_done(&c->row);
		str_addf(&c->row,
		         "{\"ph\":\"X\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"name\":", pid,
		         tid);
	}
	outbuf_add(out, c->row.s, c->row.len);
	outbuf_adds(out, name);
	outbuf_adds(out, category);
	return out;
}

/* To be followed by the slice's arguments and its end. */
static void put_times(struct outbuf *out, uint64_t start_ns, uint64_t dur_ns)
{
	outbuf_adds(out, ",\"ts\":");
	outbuf_add_us(out, start_ns);
	outbuf_adds(out, ",\"dur\":");
	outbuf_add_us(out, dur_ns);
}

static const char *quoted(char **made, const char *text)
{
	if (!*made)
		*made = jsonw_quoted(text);
	return *made;
}

static void name_row(struct chrome *c, uint32_t pid, uint32_t tid, const char *name, uint64_t place)
{
	begin(c, "M", pid, tid, "thread_name");
	jsonw_object(&c->w, "args");
	jsonw_string(&c->w, "name", name);
	jsonw_end(&c->w);
	jsonw_end(&c->w);
	begin(c, "M", pid, tid, "thread_sort_index");
	jsonw_object(&c->w, "args");
	jsonw_u64(&c->w, "sort_index", place);
	jsonw_end(&c->w);
	jsonw_end(&c->w);
}

static void put_thread(void *data, uint32_t thread)
{
	struct chrome *c = data;
	const struct model_thread *t = &c->a->model->threads.v[thread];
	const char *name = facts_thread_name(c->a->pass, thread);
	CLEANUP(str_done) struct str row = { 0 };

	name_row(c, t->pid, t->tid, name, 4 * (uint64_t)thread + 4);
	str_addf(&row, "%s: GIL", name);
	name_row(c, t->pid, t->tid + ROW_GIL, str_get(&row), 4 * (uint64_t)thread + 5);
	if (t->cpu_ns[CPU_UNKNOWN] == t->end_ns - t->start_ns)
		return;
	str_done(&row);
	str_addf(&row, "%s: CPU", name);
	name_row(c, t->pid, t->tid + ROW_CPU, str_get(&row), 4 * (uint64_t)thread + 6);
}

static void put_call(void *data, uint32_t thread, const struct slice *call)
{
	struct chrome *c = data;
	const struct model_thread *t = &c->a->model->threads.v[thread];
	const char *name = quoted(&c->names[call->name],
	                          names_get(c->a->pass->slices->names, call->name));
	struct outbuf *out = begin_slice(c, t->pid, t->tid, name, ",\"cat\":\"python\"");

	put_times(out, call->start_ns, call->dur_ns);
	outbuf_addc(out, '}');
}

static void put_arrow(struct chrome *c, const char *ph, const struct model_thread *t,
                      uint64_t at_ns)
{
	struct outbuf *out = jsonw_value(&c->w);

	outbuf_adds(out, "{\"ph\":");
	outbuf_adds(out, ph);
	outbuf_adds(out, ",\"pid\":");
	outbuf_add_u64(out, t->pid);
	outbuf_adds(out, ",\"tid\":");
	outbuf_add_u64(out, t->tid + ROW_GIL);
	outbuf_adds(out, ",\"name\":\"held by\",\"cat\":\"flow\",\"ts\":");
	outbuf_add_us(out, at_ns);
	outbuf_adds(out, ",\"id\":");
	outbuf_add_u64(out, c->flow);
	outbuf_addc(out, '}');
}

/* An arrow from the wait to the other thread's hold, at the beginning of the wait. */
static void put_flow(struct chrome *c, const struct walk_span *span)
{
	c->flow++;
	put_arrow(c, "\"s\"", &c->a->model->threads.v[span->thread], span->start_ns);
	put_arrow(c, "\"f\",\"bp\":\"e\"", &c->a->model->threads.v[span->holder], span->start_ns);
}

static char *make_function(const struct analysis *a, uint32_t frame)
{
	struct function f = function_at(a->pass, frame);
	CLEANUP(free) char *name = jsonw_quoted(f.name ? f.name : "");
	CLEANUP(free) char *file = jsonw_quoted(f.file);

	return xasprintf(",\"args\":{\"function\":%s,\"file\":%s,\"line\":%" PRIu32 "}",
	                 f.name ? name : "null", file, f.line);
}

static void put_function(struct chrome *c, struct outbuf *out, uint32_t frame)
{
	if (!c->functions[frame])
		c->functions[frame] = make_function(c->a, frame);
	outbuf_adds(out, c->functions[frame]);
}

static const char *state_name(struct chrome *c, const struct walk_span *span)
{
	char **name = &c->states[(span->lane == WALK_GIL ? 0 : GIL_STATES) + span->state];

	return quoted(name, walk_state_name(span->lane, span->state));
}

static void put_span(void *data, const struct walk_span *span)
{
	struct chrome *c = data;
	const struct model_thread *t = &c->a->model->threads.v[span->thread];
	bool gil = span->lane == WALK_GIL;
	struct outbuf *out;

	out = begin_slice(c, t->pid, row_of(span, t->tid), state_name(c, span),
	                  gil ? ",\"cat\":\"gil\"" : ",\"cat\":\"cpu\"");
	put_times(out, span->start_ns, span->end_ns - span->start_ns);
	if (gil && span->span->gil.frame)
		put_function(c, out, span->span->gil.frame);
	outbuf_addc(out, '}');
	if (span->holder != MODEL_NONE)
		put_flow(c, span);
}

static void put_gil(void *data, uint32_t gil)
{
	struct chrome *c = data;
	const struct model_gil *g = &c->a->model->gils.v[gil];
	CLEANUP(str_done) struct str name = { 0 };

	str_addf(&name, "GIL %#" PRIx64, g->address);
	name_row(c, g->pid, ROW_OWNERS + gil, str_get(&name), gil);
}

static void put_owner(void *data, const struct walk_owner *owner)
{
	struct chrome *c = data;
	uint32_t pid = c->a->model->gils.v[owner->gil].pid, tid = ROW_OWNERS + owner->gil;
	const char *name;
	struct outbuf *out;

	if (owner->thread >= c->a->model->threads.n)
		return;
	name = quoted(&c->threads[owner->thread], facts_thread_name(c->a->pass, owner->thread));
	out = begin_slice(c, pid, tid, name, ",\"cat\":\"owner\"");
	put_times(out, owner->start_ns, owner->end_ns - owner->start_ns);
	outbuf_adds(out, ",\"args\":{\"waiting\":");
	outbuf_add_u64(out, owner->waiters);
	outbuf_adds(out, "}}");
}

static void put_lost(void *data, const struct model_lost *lost)
{
	struct chrome *c = data;

	begin(c, "i", c->a->model->threads.n ? c->a->model->threads.v[0].pid : 0, 0,
	      "records lost");
	jsonw_string(&c->w, "cat", "lost");
	jsonw_us(&c->w, "ts", lost->end_ns);
	jsonw_string(&c->w, "s", "g");
	jsonw_object(&c->w, "args");
	jsonw_u64(&c->w, "count", lost->count);
	jsonw_u64(&c->w, "for_ns", lost->end_ns - lost->start_ns);
	jsonw_end(&c->w);
	jsonw_end(&c->w);
}

static void free_texts(char **texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
}

static void done(struct chrome *c, size_t names, size_t functions)
{
	free_texts(c->names, names);
	free_texts(c->threads, c->a->model->threads.n);
	free_texts(c->functions, functions);
	free_texts(c->states, GIL_STATES + CPU_STATES);
	free(c->names);
	free(c->threads);
	free(c->functions);
	str_done(&c->row);
}

int export_chrome(const struct analysis *a, FILE *out, struct error *err)
{
	static const struct walk_ops ops = {
		.thread = put_thread,
		.call = put_call,
		.span = put_span,
		.gil = put_gil,
		.owner = put_owner,
		.lost = put_lost,
	};
	const struct stacks *frames = functions_frames(a->pass);
	size_t names = a->pass->slices ? names_count(a->pass->slices->names) : 0;
	size_t functions = frames ? stacks_count(frames) : 1;
	struct chrome c = {
		.a = a,
		.names = xcalloc(names, sizeof(*c.names)),
		.threads = xcalloc(a->model->threads.n, sizeof(*c.threads)),
		.functions = xcalloc(functions, sizeof(*c.functions)),
	};

	(void)err;
	jsonw_init(&c.w, out, 0);
	jsonw_object(&c.w, NULL);
	jsonw_string(&c.w, "displayTimeUnit", "ns");
	jsonw_object(&c.w, "otherData");
	jsonw_string(&c.w, "giltracer", a->recording->version);
	jsonw_string(&c.w, "clock", "CLOCK_MONOTONIC");
	jsonw_end(&c.w);
	jsonw_array(&c.w, "traceEvents");
	walk(a, &ops, &c);
	jsonw_end(&c.w);
	jsonw_end(&c.w);
	jsonw_finish(&c.w);
	done(&c, names, functions);
	return 0;
}
