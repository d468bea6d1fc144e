/* SPDX-License-Identifier: MIT */
/* The page's blocks, read again and compared with what went in. */
#include <inttypes.h>
#include <pthread.h>

#include "payload-decode.h"
#include "report-fixture.h"
#include "report/html/blocks.h"
#include "report/html/encode.h"

#include "tap.h"

/* What came out: totals per thread and lane, and the last values of everything else. */
struct got {
	const struct fixture *f;
	uint64_t gil_ns[8][GIL_STATES], cpu_ns[8][CPU_STATES], end_ns[8][2], spans[8][2];
	uint64_t inferred, wakers, gil_refs, stack_refs;
	uint64_t calls, calls_ns, call_end[8][4], max_name;
	char names[8][64], stack_names[16][64];
	uint64_t name_count, stack_name_count, frames, counter_sum, counter_n, lost, lost_cpu;
	uint64_t bad;
};

static uint64_t key(const struct decoded *s, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(s->head, name));
}

static bool is_kind(const struct decoded *s, const char *kind)
{
	return !strcmp(json_string_value(json_object_get(s->head, "kind")), kind);
}

/* What the states of a section of locks mean. */
static const enum gil_state lock_states[8] = { GIL_UNKNOWN, GIL_NO, GIL_LOCK_WAIT, GIL_STOPPED,
	                                       GIL_STOPPING };

/* Any lane: the spans must go on where the last section of the track ended. */
static void got_lane(struct decoded *s, struct got *got, bool cpu)
{
	uint64_t thread = key(s, "thread"), at = key(s, "start");
	uint64_t *durs = decode_column(s, s->n);
	uint64_t *first = decode_sparse(s, 99), *second = decode_sparse(s, 0);
	uint64_t *stacks = decode_sparse(s, 0);

	got->bad += got->spans[thread][cpu] && at != got->end_ns[thread][cpu];
	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t dur = durs[i] >> 3, state = durs[i] & 7;

		if (is_kind(s, "locks"))
			state = lock_states[state];
		if (cpu)
			got->cpu_ns[thread][state] += dur;
		else
			got->gil_ns[thread][state] += dur;
		at += dur;
		got->inferred += !cpu && second[i] == SPAN_INFERRED_END;
		got->wakers += cpu && second[i] == 2;
		got->gil_refs += !cpu && first[i] != 99;
		got->stack_refs += stacks[i];
	}
	got->end_ns[thread][cpu] = at;
	got->spans[thread][cpu] += s->n;
	free(durs);
	free(first);
	free(second);
	free(stacks);
}

static void got_slices(struct decoded *s, struct got *got)
{
	uint64_t thread = key(s, "thread"), depth = key(s, "depth"), at = 0;
	uint64_t *gaps = decode_column(s, s->n), *durs = decode_column(s, s->n);
	uint64_t *names = decode_column(s, s->n), *flags = decode_sparse(s, 0);

	for (uint32_t i = 0; i < s->n; i++) {
		at += gaps[i];
		got->bad += at < got->call_end[thread][depth];
		at += durs[i];
		got->call_end[thread][depth] = at;
		got->calls_ns += durs[i];
		got->max_name = names[i] > got->max_name ? names[i] : got->max_name;
	}
	got->calls += s->n;
	free(gaps);
	free(durs);
	free(names);
	free(flags);
}

static void got_names(struct decoded *s, struct got *got)
{
	bool stacks = !strcmp(json_string_value(json_object_get(s->head, "table")), "stacks");
	uint64_t id = key(s, "start");

	for (uint32_t i = 0; i < s->n; i++, id++) {
		uint64_t len = decode_varint(s);

		if (len > (uint64_t)(s->end - s->p) || len > 63 || id >= (stacks ? 16 : 8)) {
			s->bad = true;
			return;
		}
		memcpy(stacks ? got->stack_names[id] : got->names[id], s->p, len);
		s->p += len;
	}
	*(stacks ? &got->stack_name_count : &got->name_count) = id;
}

/* The frames of GIL events follow the stacks. */
static const struct stack_frame *frame_at(const struct source *source, uint32_t id)
{
	uint32_t count = stacks_count(source->stacks);

	return id < count ? stacks_get(source->stacks, id)
	                  : stacks_get(source->frames, id - count + 1);
}

static void got_stacks(struct decoded *s, struct got *got)
{
	uint64_t *columns[5];
	uint64_t id = key(s, "start");

	for (unsigned c = 0; c < 5; c++)
		columns[c] = decode_column(s, s->n);
	for (uint32_t i = 0; i < s->n; i++, id++) {
		const struct stack_frame *frame = frame_at(&got->f->source, (uint32_t)id);

		got->bad += (columns[0][i] ? id - columns[0][i] : 0) != frame->parent ||
		            columns[1][i] != frame->name || columns[2][i] != frame->module ||
		            columns[3][i] != frame->line || columns[4][i] != frame->flags;
	}
	got->frames += s->n;
	for (unsigned c = 0; c < 5; c++)
		free(columns[c]);
}

static void got_rest(struct decoded *s, struct got *got)
{
	bool counter = is_kind(s, "counter");
	uint64_t *columns[4] = { 0 };

	for (unsigned c = 0; c < (counter ? 2 : 4); c++)
		columns[c] = decode_column(s, s->n);
	for (uint32_t i = 0; i < s->n; i++) {
		got->counter_sum += counter ? columns[1][i] : 0;
		got->lost += counter ? 0 : columns[2][i];
		got->lost_cpu += counter ? 0 : columns[3][i];
	}
	got->counter_n += counter ? s->n : 0;
	for (unsigned c = 0; c < 4; c++)
		free(columns[c]);
}

static void got_section(struct decoded *s, void *data)
{
	struct got *got = data;

	if (is_kind(s, "gil") || is_kind(s, "locks") || is_kind(s, "cpu"))
		got_lane(s, got, is_kind(s, "cpu"));
	else if (is_kind(s, "slices"))
		got_slices(s, got);
	else if (is_kind(s, "names"))
		got_names(s, got);
	else if (is_kind(s, "stacks"))
		got_stacks(s, got);
	else
		got_rest(s, got);
}

/* Write the fixture's blocks and read them again. */
static int round_trip(const struct fixture *f, struct got *got, uint64_t *ret_dropped)
{
	struct payload *payload = NULL;
	struct rows rows;
	struct error err;
	char *html = NULL;
	size_t len;
	FILE *out = open_memstream(&html, &len);
	int blocks;

	memset(got, 0, sizeof(*got));
	got->f = f;
	rows_init(&rows, &f->pass);
	ok(payload_start(&payload, &f->report, &rows, &err) == 0, "blocks are made");
	payload_write(payload, out);
	payload_free(payload);
	fclose(out);
	blocks = decode_blocks(html, got_section, got);
	*ret_dropped = rows.dropped;
	is_u64(got->calls, rows.kept, "as many calls as the meta says");
	rows_done(&rows);
	free(html);
	is_u64(got->bad, 0, "every section goes on where the last one ended");
	return blocks;
}

static void same_totals(const struct fixture *f, const struct got *got)
{
	for (size_t i = 0; i < f->model.threads.n; i++) {
		const struct model_thread *t = &f->model.threads.v[i];

		ok(!memcmp(got->gil_ns[i], t->gil_ns, sizeof(t->gil_ns)),
		   "thread %zu: GIL lane and totals are the same to the nanosecond", i);
		ok(!memcmp(got->cpu_ns[i], t->cpu_ns, sizeof(t->cpu_ns)),
		   "thread %zu: state lane and totals are the same to the nanosecond", i);
	}
}

static void add_stacks(struct fixture *f)
{
	struct stack_frame frame = { .name = names_id(f->source.names, "main", 4), .line = 3 };
	uint32_t root = stacks_id(f->source.stacks, &frame);

	frame = (struct stack_frame){
		.parent = root,
		.name = names_id(f->source.names, FIXTURE_HOSTILE, strlen(FIXTURE_HOSTILE)),
		.module = names_id(f->source.names, "libc.so.6", 9),
		.flags = STACK_KERNEL,
	};
	f->model.threads.v[0].cpu.spans.v[1].cpu.stack = stacks_id(f->source.stacks, &frame);
	f->source.frames = stacks_new(f->source.names);
	frame = (struct stack_frame){
		.name = names_id(f->source.names, "handle", 6),
		.line = 7,
		.flags = STACK_PYTHON,
	};
	f->model.threads.v[1].gil.spans.v[1].gil.frame = stacks_id(f->source.frames, &frame);
}

static void add_calls(struct fixture *f)
{
	fixture_slices(f, 2);
	f->slices.threads[0].pid = f->slices.threads[1].pid = 100;
	f->slices.threads[0].tid = 101;
	f->slices.threads[1].tid = 999;
	fixture_slice(f, 0, "outer", 0, 1, 50);
	fixture_slice(f, 0, "inner", 1, 2, 10);
	fixture_slice(f, 0, "inner", 1, 20, 10);
	fixture_slice(f, 0, "inner", 1, 25, 10);          /* overlaps */
	fixture_slice(f, 0, FIXTURE_HOSTILE, 0, 60, 100); /* longer than the recording */
	fixture_slice(f, 0, "late", 0, 101, 5);           /* outside */
	fixture_slice(f, 1, "nobody", 0, 1, 5);           /* of no thread */
}

static void test_hog(void)
{
	struct fixture f;
	struct got got;
	uint64_t dropped;

	fixture_hog(&f);
	add_stacks(&f);
	add_calls(&f);
	for (uint64_t i = 0; i < 3; i++)
		*vec_push(&f.model.counts) = (struct model_counter_sample){
			.time_ns = fixture_time(i), .value = 10 + i, .thread = 1
		};
	*vec_push(&f.model.lost) = (struct model_lost){ fixture_time(5), fixture_time(6), 7, -1 };
	*vec_push(&f.model.lost) = (struct model_lost){ fixture_time(3), fixture_time(9), 5, 1 };
	is_u64((uint64_t)round_trip(&f, &got, &dropped), 1, "one block");
	same_totals(&f, &got);
	is_u64(got.inferred, 1, "flags of spans");
	is_u64(got.wakers, 1, "the waker");
	is_u64(got.gil_refs, 0, "one GIL needs no column");
	is_u64(got.stack_refs, 2 + 3, "the stack of a sleep, and the frame of a hold behind them");
	is_u64(got.frames, 3, "all frames");
	is_str(got.stack_names[2], "</script><b>\"'&\x1b[31m\xe2\x80\xae\xef\xbf\xbd",
	       "names are UTF-8 whatever they were");
	is_u64(got.calls, 4, "calls that are in the recording and nest");
	is_u64(dropped, 3, "the others are counted");
	is_u64(got.calls_ns, 110 * FIXTURE_MS, "they end with the recording");
	is_str(got.names[0], "inner", "names by how often they occur");
	is_u64(got.name_count, 3, "only those that are used");
	is_u64(got.counter_sum, 33, "counters");
	is_u64(got.lost, 12, "losses");
	is_u64(got.lost_cpu, 2, "and where");
	fixture_done(&f);
}

static void test_large(void)
{
	struct fixture f;
	struct got got;
	uint64_t dropped;
	uint32_t t;

	fixture_init(&f, 300000);
	t = fixture_thread(&f, 1, 1, "x");
	fixture_cpu(&f, t, CPU_UNKNOWN, 300000);
	for (int i = 0; i < 150000; i++) {
		fixture_gil(&f, t, GIL_HOLD, 1)->gil.index = (uint32_t)(i / 1000 % 2);
		fixture_gil(&f, t, GIL_NO, 1)->gil.frame = (uint32_t)i;
	}
	ok(round_trip(&f, &got, &dropped) >= 1, "many sections");
	same_totals(&f, &got);
	is_u64(got.spans[0][0], 300000, "every span");
	ok(got.gil_refs >= 149 && got.gil_refs <= 160, "a GIL only where it changes");
	fixture_done(&f);
}

static void count_sections(struct decoded *s, void *data)
{
	s->p = s->end;
	++*(uint64_t *)data;
}

struct adder {
	struct blocks *blocks;
	uint8_t raw[400000];
};

/* 50 sections, three to a block. */
static void *add_sections(void *data)
{
	struct adder *adder = data;

	for (uint32_t i = 0; i < 50; i++) {
		blocks_add(adder->blocks, adder->raw + i, 350000);
		blocks_section(adder->blocks, i + 1, "\"kind\":\"x\",\"i\":%" PRIu32, i);
	}
	blocks_end(adder->blocks);
	return NULL;
}

/* More blocks than the ring holds, with and without workers: the same page. */
static void test_blocks(void)
{
	struct adder *adder = xcalloc(1, sizeof(*adder));
	char *html[2] = { NULL, NULL };
	uint64_t sections = 0;
	struct error err;
	pthread_t thread;
	size_t len[2];

	for (size_t i = 0; i < sizeof(adder->raw); i++)
		adder->raw[i] = (uint8_t)(i * i >> 3);
	for (unsigned k = 0; k < 2; k++) {
		FILE *out = open_memstream(&html[k], &len[k]);

		if (!ok(blocks_new(&adder->blocks, k ? 3 : 0, &err) == 0, "%u workers", k * 3) ||
		    !ok(pthread_create(&thread, NULL, add_sections, adder) == 0, "one adds"))
			return;
		blocks_drain(adder->blocks, out);
		pthread_join(thread, NULL);
		blocks_free(adder->blocks);
		fclose(out);
	}
	ok(len[0] == len[1] && !memcmp(html[0], html[1], len[0]), "workers change nothing");
	is_u64((uint64_t)decode_blocks(html[1], count_sections, &sections), 17, "17 blocks");
	is_u64(sections, 50, "of 50 sections");
	free(html[0]);
	free(html[1]);
	ok(blocks_new(&adder->blocks, 1, &err) == 0 &&
	           pthread_create(&thread, NULL, add_sections, adder) == 0,
	   "one that nobody drains");
	blocks_cancel(adder->blocks);
	pthread_join(thread, NULL);
	blocks_free(adder->blocks);
	ok(true, "ends when it is cancelled");
	free(adder);
}

/* Without a GIL, what blocks instead has lanes of its own. */
static void test_locks(void)
{
	struct fixture f;
	struct got got;
	uint64_t dropped;
	uint32_t t;

	fixture_init(&f, 100);
	f.pass.free_threaded = f.report.python.free_threaded = true;
	f.model.gil_events = 0;
	f.model.park_events = 1;
	t = fixture_thread(&f, 100, 100, "python3");
	fixture_gil(&f, t, GIL_UNKNOWN, 10);
	fixture_gil(&f, t, GIL_NO, 60);
	fixture_gil(&f, t, GIL_STOPPING, 30);
	is_u64((uint64_t)round_trip(&f, &got, &dropped), 1, "one block");
	is_u64(got.spans[t][0], 3, "a lane of locks");
	same_totals(&f, &got);
	fixture_done(&f);
}

int main(void)
{
	test_locks();
	test_hog();
	test_large();
	test_blocks();
	return done_testing();
}
