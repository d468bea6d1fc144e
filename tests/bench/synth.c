/* SPDX-License-Identifier: MIT */
/*
 * A synthetic report of any size through the real model and the real writer:
 *
 *	synth [-1] [-j JSON] [-t THREADS] EVENTS FILE
 *
 * There are EVENTS spans and calls in all: about half of them are Python calls, the others GIL
 * states and CPU states of eight threads, or THREADS, one of which hogs the GIL now and then.
 * Unless -1 is given, there is a second pass with call stacks, a tenth as large. The same
 * arguments give the same page.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "report/report.h"
#include "trace/names.h"
#include "trace/stacks.h"

#define THREADS   8 /* unless told otherwise */
#define PID       4000
#define FUNCTIONS 2000
#define STACKS    3000
#define START_NS  UINT64_C(81123456789012)
#define HOSTILE   "</script><img src=x onerror=alert(1)>\"'&\x1b[31m\xff"
#define NEVER     UINT64_MAX

enum doing { WORKING, WAITING, HOLDING };

/* A thread of the simulated program: its state, the end of that state, and the start of its run. */
struct actor {
	enum doing doing;
	uint64_t until_ns, began_ns;
};

/**
 * @threads: the number of actors
 * @stacks: this is a stacks pass: sleeps have stacks, and there are no GIL events
 * @entries: spans and calls made so far, of @want
 */
struct synth {
	uint64_t rng;
	struct source source;
	struct model *model;
	struct slices *slices;
	unsigned threads;
	struct actor *actors;
	uint32_t functions[FUNCTIONS], stacks[STACKS];
	size_t *room;
	uint64_t entries, want, now_ns;
	bool unwound;
};

static uint64_t random_bits(struct synth *s)
{
	s->rng ^= s->rng << 13;
	s->rng ^= s->rng >> 7;
	s->rng ^= s->rng << 17;
	return s->rng >> 11;
}

/* From low to high, mostly near low: the square of an even distribution. */
static uint64_t skewed(struct synth *s, uint64_t low, uint64_t high)
{
	uint64_t x = random_bits(s) & 0xffff;

	return low + (high - low) * (x * x >> 16) / 65536;
}

static void emit(struct synth *s, enum event_type type, unsigned actor, struct event ev)
{
	ev.time_ns = s->now_ns;
	ev.pid = PID;
	ev.tid = PID + actor;
	ev.type = (uint16_t)type;
	model_feed(s->model, &ev);
	s->source.stats.events++;
}

static void call(struct synth *s, unsigned actor, unsigned depth, uint64_t start_ns,
                 uint64_t dur_ns)
{
	struct slice_thread *st = &s->slices->threads[actor];

	if (st->n == s->room[actor]) {
		s->room[actor] = s->room[actor] * 3 / 2 + 64;
		st->v = xreallocarray(st->v, s->room[actor], sizeof(*st->v));
	}
	st->v[st->n++] = (struct slice){
		.start_ns = start_ns,
		.dur_ns = dur_ns,
		.name = s->functions[skewed(s, 0, FUNCTIONS - 1)],
		.depth = (uint16_t)depth,
	};
	if (depth > st->max_depth)
		st->max_depth = (uint16_t)depth;
	s->entries++;
	s->slices->total++;
}

/* Add nested calls for the time for which the thread held the GIL. */
static void add_calls(struct synth *s, unsigned actor, uint64_t start_ns, uint64_t end_ns)
{
	unsigned inner = 3 + (unsigned)(random_bits(s) % 4);
	uint64_t each = (end_ns - start_ns) / inner;

	call(s, actor, 1, start_ns, end_ns - start_ns);
	for (unsigned i = 0; i < inner; i++) {
		uint64_t from = start_ns + i * each + each / 10;

		call(s, actor, 2, from, each / 2 + skewed(s, 0, each / 4));
		if (i % 3 == 0)
			call(s, actor, 3, from + each / 20, each / 3);
	}
}

static void request(struct synth *s, unsigned i)
{
	struct actor *a = &s->actors[i];

	if (!s->unwound)
		emit(s, EV_REQUEST, i, (struct event){ .gil.address = 0x7f5a10203040 });
	emit(s, EV_SCHED_OUT, i,
	     (struct event){ .cpu = (int32_t)(i % 2),
	                     .sched = { EV_STATE_INTERRUPTIBLE,
	                                s->unwound ? s->stacks[random_bits(s) % STACKS] : 0, 0,
	                                0 } });
	emit(s, EV_SWITCH_OUT, i, (struct event){ .cpu = (int32_t)(i % 2) });
	a->doing = WAITING;
	a->until_ns = NEVER;
	a->began_ns = s->now_ns;
}

/* The thread that waited longest gets the GIL after a while. Returns it, s->threads if none
 * waits. */
static unsigned grant(struct synth *s, unsigned waker)
{
	unsigned next = s->threads;

	for (unsigned i = 0; i < s->threads; i++)
		if (s->actors[i].doing == WAITING &&
		    (next == s->threads || s->actors[i].began_ns < s->actors[next].began_ns))
			next = i;
	if (next == s->threads)
		return next;
	emit(s, EV_WAKING, waker, (struct event){ .waking.tid = PID + next });
	s->now_ns += skewed(s, 2000, 40000);
	emit(s, EV_SWITCH_IN, next, (struct event){ .cpu = (int32_t)(next % 2) });
	if (!s->unwound)
		emit(s, EV_ACQUIRE, next, (struct event){ 0 });
	s->actors[next].doing = HOLDING;
	s->actors[next].began_ns = s->now_ns;
	s->actors[next].until_ns = s->now_ns + (next == 1 && random_bits(s) % 50 == 0
	                                                ? skewed(s, 5000000, 80000000)
	                                                : skewed(s, 10000, 400000));
	s->entries += 6;
	return next;
}

static void release(struct synth *s, unsigned i)
{
	struct actor *a = &s->actors[i];

	if (!s->unwound) {
		emit(s, EV_RELEASE, i, (struct event){ .gil.address = 0x7f5a10203040 });
		emit(s, EV_RELEASED, i, (struct event){ 0 });
		add_calls(s, i, a->began_ns, s->now_ns);
	}
	if (random_bits(s) % 64 == 0)
		emit(s, EV_COUNT, i, (struct event){ .count = { random_bits(s) % 1000, 0 } });
	a->doing = WORKING;
	a->until_ns = s->now_ns + skewed(s, 5000, i == 3 ? 3000000 : 900000);
}

static unsigned earliest(const struct synth *s)
{
	unsigned best = 0;

	for (unsigned i = 1; i < s->threads; i++)
		if (s->actors[i].until_ns < s->actors[best].until_ns)
			best = i;
	return best;
}

static void simulate(struct synth *s)
{
	unsigned holder = s->threads;

	for (unsigned i = 0; i < s->threads; i++) {
		const char *name = i == 2 ? HOSTILE : i ? "worker" : "python3";

		emit(s, EV_COMM, i,
		     (struct event){ .comm.name = names_id(s->source.names, name, strlen(name)) });
		emit(s, EV_SWITCH_IN, i, (struct event){ .cpu = (int32_t)(i % 2) });
		s->actors[i].until_ns = s->now_ns + 1000 * (i + 1);
	}
	while (s->entries < s->want) {
		unsigned i = earliest(s);

		if (s->now_ns < s->actors[i].until_ns)
			s->now_ns = s->actors[i].until_ns;
		if (s->actors[i].doing == WORKING) {
			request(s, i);
		} else {
			release(s, i);
			holder = s->threads;
		}
		if (holder == s->threads)
			holder = grant(s, i);
	}
	emit(s, EV_LOST, 0, (struct event){ .cpu = 1, .lost = { s->now_ns - 2000000, 77 } });
	model_finish(s->model);
}

static void make_names(struct synth *s)
{
	char text[96];

	s->slices->names = names_new();
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		int len = snprintf(text, sizeof(text), "%s_%u (/srv/app/module_%u.py:%u)",
		                   i == 7 ? HOSTILE : "function", i, i % 40, i * 7 % 900 + 1);

		s->functions[i] = names_id(s->slices->names, text, (size_t)len);
	}
}

static void make_stacks(struct synth *s)
{
	char text[64];

	for (unsigned i = 0; i < STACKS; i++) {
		int len = snprintf(text, sizeof(text), "symbol_%u", i % 700);
		struct stack_frame frame = {
			.parent = i < 4 ? 0 : s->stacks[(i - 4) / 3],
			.name = names_id(s->source.names, text, (size_t)len),
			.module = names_id(s->source.names, "libpython3.12.so.1.0", 20),
			.flags = i % 5 == 0    ? STACK_EVAL
			         : i % 11 == 0 ? STACK_TAKE_GIL
			                       : 0,
		};

		s->stacks[i] = stacks_id(s->source.stacks, &frame);
	}
}

static struct synth *make_pass(uint64_t want, unsigned threads, bool unwound)
{
	static const char *counters[] = { "page-faults" };
	struct synth *s = xcalloc(1, sizeof(*s));
	struct model_options options = { .start_ns = START_NS, .start_pid = PID, .start_tid = PID };

	s->rng = UINT64_C(0x9e3779b97f4a7c15) + unwound;
	s->want = want;
	s->threads = threads;
	s->actors = xcalloc(threads, sizeof(*s->actors));
	s->room = xcalloc(threads, sizeof(*s->room));
	s->unwound = unwound;
	s->now_ns = START_NS;
	s->source.names = names_new();
	s->source.stacks = stacks_new(s->source.names);
	s->source.counters = counters;
	s->source.counter_count = 1;
	s->slices = xcalloc(1, sizeof(*s->slices));
	s->slices->threads = xcalloc(s->threads, sizeof(*s->slices->threads));
	s->slices->thread_count = s->threads;
	make_names(s);
	if (unwound)
		make_stacks(s);
	for (unsigned i = 0; i < s->threads; i++) {
		s->slices->threads[i].pid = PID;
		s->slices->threads[i].tid = PID + i;
	}
	options.names = s->source.names;
	options.stacks = unwound ? s->source.stacks : NULL;
	s->model = model_new(&options);
	simulate(s);
	return s;
}

static int write_with(const struct analysis *analysis, const char *path,
                      int (*writer)(const struct analysis *, FILE *, struct error *),
                      struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };

	if (filewriter_open(&w, path, err) < 0 || writer(analysis, w.out, err) < 0)
		return -1;
	return filewriter_commit(&w, err);
}

static int write_report(uint64_t want, unsigned threads, bool one, const char *html,
                        const char *json, struct error *err)
{
	static const char *const command[] = { "synth.py", HOSTILE, NULL };
	struct recording_pass passes[2] = { { .kind = PASS_GIL }, { .kind = PASS_STACKS } };
	struct recording report = {
		.version = PACKAGE_VERSION,
		.command = command,
		.created = "2026-01-31T12:00:00Z",
		.host = "Linux 6.18.0, x86_64, 2 CPUs, perf 6.1",
		.cpus = 2,
		.state_detect = !one,
		.gil_detect = true,
		.python = { "/usr/bin/python3", "3.12.1", "CPython", "ab12", false, NULL, NULL, 0 },
		.passes = passes,
		.pass_count = one ? 1 : 2,
	};
	struct analysis *analysis;
	int status = 0;

	for (size_t i = 0; i < report.pass_count; i++) {
		struct synth *s = make_pass(i ? want / 10 : want, threads, i);

		passes[i].model = s->model;
		passes[i].source = &s->source;
		passes[i].slices = i ? NULL : s->slices;
		passes[i].slices_note = "the Python-side trace belongs to the other pass";
		passes[i].wall_ns = s->model->end_ns - s->model->start_ns;
		if (model_check(s->model, err) < 0)
			return -1;
	}
	analysis = analysis_new(&report);
	if (json)
		status = write_with(analysis, json, report_json, err);
	if (status == 0)
		status = write_with(analysis, html, report_html, err);
	analysis_free(analysis);
	return status;
}

int main(int argc, char **argv)
{
	const char *json = NULL;
	unsigned long threads = THREADS;
	bool one = false;
	struct error err;
	int c;

	while ((c = getopt(argc, argv, "1j:t:")) != -1) {
		if (c == '1')
			one = true;
		else if (c == 'j')
			json = optarg;
		else if (c == 't')
			threads = strtoul(optarg, NULL, 10);
		else
			return 2;
	}
	if (argc - optind != 2 || !threads || threads > 100000) {
		fprintf(stderr, "usage: synth [-1] [-j JSON] [-t THREADS] EVENTS FILE\n");
		return 2;
	}
	if (write_report(strtoull(argv[optind], NULL, 10), (unsigned)threads, one, argv[optind + 1],
	                 json, &err) < 0) {
		log_error("%s", err.text);
		return 1;
	}
	return 0;
}
