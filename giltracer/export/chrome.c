/* SPDX-License-Identifier: MIT */
/*
 * Trace Event Format (JSON), as VizTracer writes it: for vizviewer, chrome://tracing, catapult and
 * ui.perfetto.dev. A viewer's rows are threads, so each lane is a thread of its own: a thread's
 * calls have its tid, its GIL states that plus ROW_GIL, its CPU states that plus ROW_CPU, and a GIL
 * is ROW_OWNERS plus its index. Linux's tids are less than 2^22.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "export/export.h"
#include "export/walk.h"
#include "report/jsonw.h"
#include "trace/names.h"

#define ROW_GIL    (1u << 22)
#define ROW_CPU    (2u << 22)
#define ROW_OWNERS (3u << 22)

struct chrome {
	struct jsonw w;
	const struct analysis *a;
	uint64_t flow;
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

static void begin_at(struct chrome *c, const char *ph, uint32_t pid, uint32_t tid, const char *name,
                     const char *category, uint64_t start_ns)
{
	begin(c, ph, pid, tid, name);
	jsonw_string(&c->w, "cat", category);
	jsonw_us(&c->w, "ts", start_ns);
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

	begin_at(c, "X", t->pid, t->tid, names_get(c->a->pass->slices->names, call->name), "python",
	         call->start_ns);
	jsonw_us(&c->w, "dur", call->dur_ns);
	jsonw_end(&c->w);
}

/* From the wait to the hold of the other thread, at the moment when the wait begins. */
static void put_flow(struct chrome *c, const struct walk_span *span)
{
	const struct model_thread *t = &c->a->model->threads.v[span->thread];
	const struct model_thread *holder = &c->a->model->threads.v[span->holder];

	c->flow++;
	begin_at(c, "s", t->pid, t->tid + ROW_GIL, "held by", "flow", span->start_ns);
	jsonw_u64(&c->w, "id", c->flow);
	jsonw_end(&c->w);
	begin_at(c, "f", holder->pid, holder->tid + ROW_GIL, "held by", "flow", span->start_ns);
	jsonw_string(&c->w, "bp", "e");
	jsonw_u64(&c->w, "id", c->flow);
	jsonw_end(&c->w);
}

static void put_function(struct chrome *c, uint32_t frame)
{
	struct function f = function_at(c->a->pass, frame);

	jsonw_object(&c->w, "args");
	jsonw_string(&c->w, "function", f.name);
	jsonw_string(&c->w, "file", f.file);
	jsonw_u64(&c->w, "line", f.line);
	jsonw_end(&c->w);
}

static void put_span(void *data, const struct walk_span *span)
{
	struct chrome *c = data;
	const struct model_thread *t = &c->a->model->threads.v[span->thread];

	begin_at(c, "X", t->pid, row_of(span, t->tid), walk_state_name(span->lane, span->state),
	         span->lane == WALK_GIL ? "gil" : "cpu", span->start_ns);
	jsonw_us(&c->w, "dur", span->end_ns - span->start_ns);
	if (span->lane == WALK_GIL && span->span->gil.frame)
		put_function(c, span->span->gil.frame);
	jsonw_end(&c->w);
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

	if (owner->thread >= c->a->model->threads.n)
		return;
	begin_at(c, "X", pid, tid, facts_thread_name(c->a->pass, owner->thread), "owner",
	         owner->start_ns);
	jsonw_us(&c->w, "dur", owner->end_ns - owner->start_ns);
	jsonw_object(&c->w, "args");
	jsonw_u64(&c->w, "waiting", owner->waiters);
	jsonw_end(&c->w);
	jsonw_end(&c->w);
}

static void put_lost(void *data, const struct model_lost *lost)
{
	struct chrome *c = data;

	begin_at(c, "i", c->a->model->threads.n ? c->a->model->threads.v[0].pid : 0, 0,
	         "records lost", "lost", lost->end_ns);
	jsonw_string(&c->w, "s", "g");
	jsonw_object(&c->w, "args");
	jsonw_u64(&c->w, "count", lost->count);
	jsonw_u64(&c->w, "for_ns", lost->end_ns - lost->start_ns);
	jsonw_end(&c->w);
	jsonw_end(&c->w);
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
	struct chrome c = { .a = a };

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
	return 0;
}
