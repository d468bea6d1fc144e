/* SPDX-License-Identifier: MIT */
/* Files of samples: what is written is read again, and nothing else is believed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/filemap.h"
#include "live/keep.h"
#include "live/sample_file.h"
#include "live/snapshot.h"
#include "tap.h"
#include "trace/from_samples.h"
#include "trace/names.h"
#include "trace/samples.h"
#include "trace/stacks.h"

static struct live_code outer = { .name = (char[]){ "outer" }, .file = (char[]){ "a.py" } };
static struct live_code inner = { .name = (char[]){ "inner" }, .file = (char[]){ "b.py" } };

/* outer calls inner in line. */
static struct snapshot_thread thread_in(uint32_t tid, enum gil_relation gil, uint32_t line)
{
	struct snapshot_thread t = { .tid = tid, .gil = gil, .activity = SAMPLE_LOCK };

	snprintf(t.name, sizeof(t.name), "thread %u", tid);
	if (line)
		*vec_push(&t.frames) = (struct snapshot_frame){ &inner, line };
	*vec_push(&t.frames) = (struct snapshot_frame){ &outer, 7 };
	return t;
}

static void add(struct sample_file *f, uint32_t tid, enum gil_relation gil, uint32_t line)
{
	struct snapshot_thread t = thread_in(tid, gil, line);

	sample_file_thread(f, 100, &t);
	vec_done(&t.frames);
}

/* In interpreter 2, which has a GIL of its own. */
static void add_inner(struct sample_file *f, uint32_t tid, enum gil_relation gil)
{
	struct snapshot_thread t = thread_in(tid, gil, 0);

	t.gil_of = 2;
	sample_file_thread(f, 100, &t);
	vec_done(&t.frames);
}

/* Three samples of two threads; the second one is gone in the last. */
static void write_file(const char *path)
{
	const struct sample_file_plan plan = { path, 200, false, 1000, 1 << 20 };
	struct sample_file *f;
	struct error err;

	if (!ok(sample_file_open(&f, &plan, &err) == 0, "the file is made"))
		return;
	sample_file_begin(f, 1500);
	add(f, 1, GIL_HOLDS, 3);
	add(f, 2, GIL_WAITS, 0);
	sample_file_end(f);
	sample_file_begin(f, 2500);
	add(f, 1, GIL_HOLDS, 4);
	add(f, 2, GIL_WAITS, 0);
	sample_file_end(f);
	sample_file_missed(f, 5);
	sample_file_begin(f, 3500);
	add(f, 1, GIL_NOT_KNOWN, 4);
	sample_file_end(f);
	ok(sample_file_finish(f, 4000, &err) == 0, "and finished");
	sample_file_close(f);
}

static void check_first(const struct samples *s, const struct sample_thread *t)
{
	const struct stack_frame *frame;

	is_u64(t->runs.n, 3, "a run for each line, and for each state");
	is_u64(t->runs.v[0].gil, SAMPLE_GIL_HOLDS, "who had the GIL");
	is_u64(t->runs.v[2].gil, SAMPLE_GIL_UNKNOWN, "and when that was not known");
	frame = stacks_get(s->stacks, t->runs.v[1].stack);
	is_str(names_get(s->names, frame->name), "inner", "the innermost frame");
	is_u64(frame->line, 4, "with its line");
	frame = stacks_get(s->stacks, frame->parent);
	is_str(names_get(s->names, frame->module), "a.py", "and its caller's file");
}

static void test_round(const char *path)
{
	CLEANUP(samples_close) struct samples *s = NULL;
	struct error err;

	if (!ok(samples_open(&s, path, NULL, &err) == 0, "it is read"))
		return;
	is_u64(s->times.n, 3, "three samples");
	is_u64(s->times.v[2], 3500, "at their times");
	is_u64(s->end_ns, 4000, "up to the end");
	is_u64(s->missed, 5, "some were missed");
	ok(!s->cut, "it is whole");
	is_u64(s->stacks_read, 5, "stacks that were read");
	check_first(s, &s->threads.v[0]);
	is_u64(s->threads.v[1].runs.n, 2, "what stays the same is one run");
	is_u64(s->threads.v[1].runs.v[1].flags, SAMPLE_GONE, "a thread that is not read is gone");
	is_u64(sample_run_end(s, &s->threads.v[1], 0), 2, "from the sample on that lacks it");
}

/* Two samples: a thread is in the main interpreter, then in another one; a second one always was. */
static void test_gils(const char *path)
{
	const struct sample_file_plan plan = { path, 200, false, 1000, 1 << 20 };
	CLEANUP(samples_close) struct samples *s = NULL;
	struct sample_file *f;
	struct error err;

	if (!ok(sample_file_open(&f, &plan, &err) == 0, "a file with two GILs is made"))
		return;
	sample_file_begin(f, 1500);
	add(f, 1, GIL_HOLDS, 0);
	add_inner(f, 2, GIL_HOLDS);
	sample_file_end(f);
	sample_file_begin(f, 2500);
	add_inner(f, 1, GIL_HOLDS);
	add_inner(f, 2, GIL_HOLDS);
	sample_file_end(f);
	ok(sample_file_finish(f, 3000, &err) == 0, "and finished");
	sample_file_close(f);
	if (!ok(samples_open(&s, path, NULL, &err) == 0, "and read"))
		return;
	is_u64(s->threads.v[0].runs.n, 2, "a thread that has another GIL is in another state");
	is_u64(s->threads.v[0].runs.v[0].gil_of, 0, "first it had the main interpreter's");
	is_u64(s->threads.v[0].runs.v[1].gil_of, 2, "then that of interpreter 2");
	is_u64(s->threads.v[1].runs.n, 1, "what stays the same is one run");
	is_u64(s->threads.v[1].runs.v[0].gil_of, 2, "of its GIL");
}

/* However short it is cut, it is read up to there or refused; and never is a thread in a sample
 * that is not there. */
static void test_cuts(const char *path, uint64_t samples)
{
	CLEANUP(filemap_done) struct filemap map = { 0 };
	struct error err;
	size_t refused = 0, wrong = 0, last = 0;

	if (filemap_open(&map, path, &err) < 0)
		return;
	for (size_t size = 0; size < map.size; size++) {
		CLEANUP(samples_close) struct samples *s = NULL;

		if (samples_parse(&s, map.data, size, NULL, &err) < 0) {
			refused++;
			continue;
		}
		wrong += !s->cut || s->times.n < last;
		last = s->times.n;
		for (size_t i = 0; i < s->threads.n; i++)
			for (size_t j = 0; j < s->threads.v[i].runs.n; j++)
				wrong += s->threads.v[i].runs.v[j].sample >= s->times.n;
	}
	is_u64(refused, 24, "what is cut in its header is refused");
	is_u64(wrong, 0, "what is cut later counts up to there");
	is_u64(last, samples, "to the last sample");
}

/* ---- samples that are kept */

/* A snapshot of thread 1, in line, and of a second one with the number tid. */
static void keep_two(struct keep *keep, uint64_t time_ns, uint32_t line, uint32_t tid,
                     const char *name)
{
	struct snapshot snapshot = { .time_ns = time_ns };

	*vec_push(&snapshot.threads) = thread_in(1, GIL_HOLDS, line);
	*vec_push(&snapshot.threads) = thread_in(tid, GIL_WAITS, 0);
	snprintf(snapshot.threads.v[1].name, sizeof(snapshot.threads.v[1].name), "%s", name);
	keep_add(keep, 100, &snapshot);
	snapshot_done(&snapshot);
}

#define TENTH 100000000u

/* Ten samples a second for 100 s; 40 s of them are kept. Thread 2 lives for 90 s, thread 3 then. */
static void test_kept(const char *path)
{
	const struct keep_plan plan = { 10, 40, 1 << 20 };
	CLEANUP(keep_free) struct keep *keep = keep_new(&plan, TENTH);
	CLEANUP(samples_close) struct samples *s = NULL;
	const struct sample_thread *second, *third;
	struct error err;

	for (uint32_t i = 1; i <= 1000; i++)
		keep_two(keep, (uint64_t)i * TENTH, 3, i <= 900 ? 2 : 3, i <= 950 ? "old" : "new");
	keep_missed(keep, 7);
	if (!ok(keep_write(keep, path, 1001ull * TENTH, &err) == 0 &&
	                samples_open(&s, path, NULL, &err) == 0,
	        "samples that were kept are a file"))
		return;
	ok(s->times.n >= 400 && s->times.n <= 451, "of the last 40 s: %zu samples", s->times.n);
	is_u64(s->start_ns, keep_start_ns(keep), "from the first one on");
	is_u64(s->times.v[s->times.n - 1], 1000ull * TENTH, "to the last one");
	is_u64(s->end_ns, 1001ull * TENTH, "which is not the end");
	is_u64(s->missed, 7, "those that were missed are said");
	ok(!s->cut && !keep_is_short(keep), "it is whole");
	if (!ok(s->threads.n == 3, "a thread is one in all parts"))
		return;
	is_u64(s->threads.v[0].runs.n, 1, "and what stays the same one run");
	second = &s->threads.v[1];
	third = &s->threads.v[2];
	is_u64(second->runs.n, 2, "a thread ends");
	is_u64(s->times.v[second->runs.v[1].sample], 901ull * TENTH,
	       "when it is not there any more");
	is_str(names_get(s->names, second->name), "old", "with the name that it had");
	is_str(names_get(s->names, third->name), "new", "another has its newest name");
	is_u64(third->runs.v[0].sample, second->runs.v[1].sample, "and begins then");
	is_u64(s->stacks_read, 2 * s->times.n, "no stack is missing");
}

/* More than memory is for: less than was asked for is kept, and that is known. */
static void test_kept_short(const char *path)
{
	const struct keep_plan plan = { 10, 40, 4096 };
	CLEANUP(keep_free) struct keep *keep = keep_new(&plan, TENTH);
	CLEANUP(samples_close) struct samples *s = NULL;
	CLEANUP(filemap_done) struct filemap map = { 0 };
	struct error err;

	for (uint32_t i = 1; i <= 1000; i++)
		keep_two(keep, (uint64_t)i * TENTH, i, 2, "second");
	ok(keep_is_short(keep), "with little memory, less is kept");
	if (!ok(keep_write(keep, path, 1000ull * TENTH, &err) == 0 &&
	                samples_open(&s, path, NULL, &err) == 0 &&
	                filemap_open(&map, path, &err) == 0,
	        "which is a file, too"))
		return;
	ok(map.size <= 4096 + 512, "no larger than memory may be, but by a sample: %zu", map.size);
	ok(s->times.n > 50 && s->times.n < 400, "of the last samples: %zu", s->times.n);
	is_u64(s->times.v[s->times.n - 1], 1000ull * TENTH, "to the last one");
	is_u64(stacks_get(s->stacks, s->threads.v[0].runs.v[0].stack)->line, 1001 - s->times.n,
	       "each with its line");
}

/* Where the code object of a function was, there is now that of another one. */
static void test_kept_codes(const char *path)
{
	const struct keep_plan plan = { 10, 40, 1 << 20 };
	CLEANUP(keep_free) struct keep *keep = keep_new(&plan, TENTH);
	CLEANUP(samples_close) struct samples *s = NULL;
	const struct sample_thread *first;
	char *name = inner.name;
	struct error err;

	keep_two(keep, 2 * TENTH, 3, 2, "second");
	inner.name = (char[]){ "other" };
	keep_forget_codes(keep);
	keep_two(keep, 3 * TENTH, 3, 2, "second");
	inner.name = name;
	if (!ok(keep_write(keep, path, 4 * TENTH, &err) == 0 &&
	                samples_open(&s, path, NULL, &err) == 0,
	        "samples before and after code objects were forgotten"))
		return;
	first = &s->threads.v[0];
	if (ok(first->runs.n == 2, "are of two functions"))
		is_str(names_get(s->names, stacks_get(s->stacks, first->runs.v[1].stack)->name),
		       "other", "each with its name");
}

static void refuses(const char *rest, size_t len, const char *text, const char *what)
{
	uint8_t data[64] = "GTSAMPL1\x01";
	struct samples *s;
	struct error err;

	memcpy(data + 24, rest, len);
	ok(samples_parse(&s, data, 24 + len, NULL, &err) < 0, "%s is refused", what);
	ok(strstr(err.text, text) != NULL, "  with where it is: %s", err.text);
}

/* The undefined-behaviour sanitizer reports what is done to arrays that are NULL. */
static void test_nobody(const char *path)
{
	const struct sample_file_plan plan = { .path = path, .hz = 10, .start_ns = 1000 };
	CLEANUP(samples_close) struct samples *s = NULL;
	struct sample_file *f;
	struct source *source;
	struct error err;
	struct event ev;

	if (!ok(sample_file_open(&f, &plan, &err) == 0, "a file without threads is made"))
		return;
	sample_file_begin(f, 2000);
	sample_file_end(f);
	if (!ok(sample_file_finish(f, 3000, &err) == 0 && samples_open(&s, path, NULL, &err) == 0,
	        "and read"))
		return;
	sample_file_close(f);
	source = from_samples(s);
	ok(source_next(source, &ev, &err) == 0, "it has no events");
	source_close(source);
}

int main(void)
{
	char path[] = "/tmp/test-samples-XXXXXX";
	int fd = mkstemp(path);

	if (fd >= 0)
		close(fd);
	write_file(path);
	test_round(path);
	test_cuts(path, 3);
	test_gils(path);
	test_kept(path);
	test_kept_short(path);
	test_kept_codes(path);
	test_nobody(path);
	unlink(path);
	refuses("?", 1, "record at 0x18: of unknown kind 63", "a record of an unknown kind");
	refuses("F\1\0\0\0", 5, "record at 0x18: bad 'F'", "a frame without its caller");
	refuses("S\1\1\0\0\0", 6, "record at 0x18: bad 'S'", "a thread that is not there");
	refuses("RA\0\0", 4, "bad 'A'", "a name of a thread that is not there");
	refuses("G\0\2", 3, "bad 'G'", "a GIL of a thread that is not there");
	refuses("N\377\377\377\377\377\377\377\377\377\377\1", 12, "bad 'N'",
	        "a number without end");
	return done_testing();
}
