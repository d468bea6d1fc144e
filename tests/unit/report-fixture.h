/* SPDX-License-Identifier: MIT */
/*
 * Small reports made by hand: models whose numbers are obvious, with hostile names in them. Times
 * are in ms of the recording, which starts at FIXTURE_START.
 */
#ifndef GILTRACER_TESTS_REPORT_FIXTURE_H
#define GILTRACER_TESTS_REPORT_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/span.h"
#include "report/report.h"
#include "trace/names.h"
#include "trace/slices.h"
#include "trace/source.h"
#include "trace/stacks.h"

#define FIXTURE_START UINT64_C(81123456789012)
#define FIXTURE_MS    UINT64_C(1000000)

/* Markup, quotes, an escape sequence, a bidi control, bytes that are no UTF-8. */
#define FIXTURE_HOSTILE "</script><b>\"'&\x1b[31m\xe2\x80\xae\xff"

struct fixture {
	struct model model;
	struct source source;
	struct slices slices;
	struct recording_pass pass;
	struct recording report;
	const char *command[4];
};

static inline uint64_t fixture_time(uint64_t ms)
{
	return FIXTURE_START + ms * FIXTURE_MS;
}

static inline void fixture_init(struct fixture *f, uint64_t dur_ms)
{
	memset(f, 0, sizeof(*f));
	f->model.start_ns = FIXTURE_START;
	f->model.end_ns = fixture_time(dur_ms);
	f->model.gil_events = 100;
	f->source.stats.events = 100;
	f->source.by_perf = true;
	f->source.names = names_new();
	f->source.stacks = stacks_new(f->source.names);
	f->pass = (struct recording_pass){
		.kind = PASS_GIL,
		.wall_ns = dur_ms * FIXTURE_MS,
		.model = &f->model,
		.source = &f->source,
		.slices_note = "VizTracer is not installed",
	};
	f->command[0] = "hog.py";
	f->command[1] = FIXTURE_HOSTILE;
	f->report = (struct recording){
		.version = "1.2.3",
		.command = f->command,
		.created = "2026-01-31T12:00:00Z",
		.host = "Linux 6.18, x86_64, 2 CPUs",
		.cpus = 2,
		.gil_detect = true,
		.python = { .executable = "/usr/bin/python3", .version = "3.11.2" },
		.passes = &f->pass,
		.pass_count = 1,
	};
}

static inline void fixture_done(struct fixture *f)
{
	for (size_t i = 0; i < f->model.threads.n; i++) {
		vec_done(&f->model.threads.v[i].gil.spans);
		vec_done(&f->model.threads.v[i].cpu.spans);
	}
	vec_done(&f->model.threads);
	vec_done(&f->model.blame);
	vec_done(&f->model.lost);
	vec_done(&f->model.counts);
	vec_done(&f->model.gils);
	vec_done(&f->model.locks);
	vec_done(&f->model.lock_blame);
	vec_done(&f->model.imports);
	vec_done(&f->model.cpu_blame);
	for (size_t i = 0; i < f->slices.thread_count; i++)
		free(f->slices.threads[i].v);
	free(f->slices.threads);
	names_free(f->slices.names);
	stacks_free(f->source.stacks);
	stacks_free(f->source.frames);
	names_free(f->source.names);
}

/* A thread that lives as long as the recording; its lanes are to be filled without a gap. */
static inline uint32_t fixture_thread(struct fixture *f, uint32_t pid, uint32_t tid,
                                      const char *name)
{
	struct model_thread *t = vec_push(&f->model.threads);

	memset(t, 0, sizeof(*t));
	t->pid = pid;
	t->tid = tid;
	t->name = name;
	t->main = pid == tid;
	t->start_ns = t->gil.end_ns = t->cpu.end_ns = f->model.start_ns;
	t->end_ns = f->model.end_ns;
	return (uint32_t)f->model.threads.n - 1;
}

static inline struct span *fixture_push(struct lane *lane, struct span span, uint64_t dur_ns)
{
	*vec_push(&lane->spans) = span;
	lane->end_ns += dur_ns;
	return lane_last(lane);
}

/* Append dur_ms of a GIL state to the thread's lane, with the totals that go with it. */
static inline struct span *fixture_gil(struct fixture *f, uint32_t thread, enum gil_state state,
                                       uint64_t dur_ms)
{
	struct model_thread *t = &f->model.threads.v[thread];
	uint64_t dur = dur_ms * FIXTURE_MS, at = t->gil.end_ns;
	uint32_t gil = state >= GIL_HOLD ? 0 : MODEL_NONE;
	struct span *span = fixture_push(&t->gil, gil_span(at, state, gil, 0), dur);

	t->gil_ns[state] += dur;
	if (state == GIL_HOLD) {
		t->holds++;
		t->releases_probed++;
		if (dur > t->longest_hold_ns) {
			t->longest_hold_ns = dur;
			t->longest_hold_at_ns = at;
		}
	}
	if (state == GIL_WAIT) {
		t->waits++;
		t->contended_waits++;
		if (dur > t->longest_wait_ns) {
			t->longest_wait_ns = dur;
			t->longest_wait_at_ns = at;
		}
	}
	return span;
}

static inline struct span *fixture_cpu(struct fixture *f, uint32_t thread, enum cpu_state state,
                                       uint64_t dur_ms)
{
	struct model_thread *t = &f->model.threads.v[thread];
	struct span *span = fixture_push(&t->cpu, cpu_span(t->cpu.end_ns, state, MODEL_NONE, 0),
	                                 dur_ms * FIXTURE_MS);

	t->cpu_ns[state] += dur_ms * FIXTURE_MS;
	if (state == CPU_RUNNING)
		span->cpu.number = (int16_t)(thread % 2);
	return span;
}

static inline void fixture_blame(struct fixture *f, uint32_t waiter, uint32_t holder,
                                 uint64_t wait_ms, uint64_t longest_ms, uint64_t at_ms)
{
	*vec_push(&f->model.blame) = (struct model_blame){
		.waiter = waiter,
		.holder = holder,
		.wait_ns = wait_ms * FIXTURE_MS,
		.longest_ns = longest_ms * FIXTURE_MS,
		.longest_at_ns = fixture_time(at_ms),
	};
}

/* Give the pass a Python-side trace. */
static inline void fixture_slices(struct fixture *f, size_t thread_count)
{
	f->slices.names = names_new();
	f->slices.threads = xcalloc(thread_count, sizeof(*f->slices.threads));
	f->slices.thread_count = thread_count;
	f->pass.slices = &f->slices;
	f->pass.slices_note = NULL;
}

static inline uint32_t fixture_name(struct fixture *f, const char *text)
{
	return names_id(f->slices.names, text, strlen(text));
}

/* Calls of the i-th thread of the trace; in order of time, as struct slice_thread wants them. */
static inline void fixture_slice(struct fixture *f, size_t i, const char *name, uint16_t depth,
                                 uint64_t start_ms, uint64_t dur_ms)
{
	struct slice_thread *st = &f->slices.threads[i];

	st->v = xreallocarray(st->v, st->n + 1, sizeof(*st->v));
	st->v[st->n++] = (struct slice){
		.start_ns = fixture_time(start_ms),
		.dur_ns = dur_ms * FIXTURE_MS,
		.name = fixture_name(f, name),
		.depth = depth,
	};
	if (depth > st->max_depth)
		st->max_depth = depth;
	f->slices.total++;
}

/*
 * 100 ms: a hog that holds for 40 ms, twice, while a worker with a hostile name waits; the main
 * thread sleeps. 5 ms of the worker are unknown.
 */
static inline void fixture_hog(struct fixture *f)
{
	uint32_t m, hog, worker;

	fixture_init(f, 100);
	m = fixture_thread(f, 100, 100, "python3");
	hog = fixture_thread(f, 100, 101, "hog");
	worker = fixture_thread(f, 100, 102, FIXTURE_HOSTILE);
	fixture_gil(f, m, GIL_HOLD, 2);
	fixture_gil(f, m, GIL_NO, 98);
	fixture_cpu(f, m, CPU_RUNNING, 2);
	fixture_cpu(f, m, CPU_SLEEPING, 98);
	fixture_gil(f, hog, GIL_NO, 10);
	fixture_gil(f, hog, GIL_HOLD, 40);
	fixture_gil(f, hog, GIL_SWITCH_WAIT, 1);
	fixture_gil(f, hog, GIL_WAIT, 4);
	fixture_gil(f, hog, GIL_HOLD, 40);
	fixture_gil(f, hog, GIL_NO, 5);
	fixture_cpu(f, hog, CPU_SLEEPING, 10);
	fixture_cpu(f, hog, CPU_RUNNING, 41);
	fixture_cpu(f, hog, CPU_GIL_SLEEP, 4);
	fixture_cpu(f, hog, CPU_RUNNING, 45);
	fixture_gil(f, worker, GIL_UNKNOWN, 5);
	fixture_gil(f, worker, GIL_NO, 6);
	fixture_gil(f, worker, GIL_WAIT, 39);
	fixture_gil(f, worker, GIL_HOLD, 5)->flags = SPAN_INFERRED_END;
	fixture_gil(f, worker, GIL_WAIT, 41);
	fixture_gil(f, worker, GIL_HOLD, 4);
	fixture_cpu(f, worker, CPU_UNKNOWN, 5);
	fixture_cpu(f, worker, CPU_SLEEPING, 6)->cpu.waker = hog;
	fixture_cpu(f, worker, CPU_GIL_SLEEP, 39);
	fixture_cpu(f, worker, CPU_RUNNING, 5);
	fixture_cpu(f, worker, CPU_GIL_SLEEP, 41);
	fixture_cpu(f, worker, CPU_RUNNABLE, 4);
	fixture_blame(f, worker, hog, 79, 40, 55);
	fixture_blame(f, worker, MODEL_NONE, 1, 1, 95);
	fixture_blame(f, hog, worker, 4, 4, 51);
	*vec_push(&f->model.gils) = (struct model_gil){
		.pid = 100,
		.address = 0x7f0000001000,
		.start_ns = FIXTURE_START,
		.end_ns = fixture_time(100),
		.held_ns = 91 * FIXTURE_MS,
		.wanted_ns = 84 * FIXTURE_MS,
		.handover_ns = 1 * FIXTURE_MS,
	};
}

#endif
