/* SPDX-License-Identifier: MIT */
#include "trace/samples.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/filemap.h"
#include "base/idmap.h"
#include "base/cursor.h"
#include "trace/names.h"
#include "trace/stacks.h"

#define HEADER      24
#define NAME_MAX_   (1u << 20)
#define SAMPLES_MAX (1u << 31)
#define PARTS_MAX   64 /* each looks at all threads */

/**
 * @names, @frames, @threads: numbers in the file -> ours; @gil_of: by number of a thread
 * @new_part: the next sample contains the state of each thread
 */
struct reader {
	struct cursor c;
	struct samples *s;
	VEC(uint32_t) names;
	VEC(uint32_t) frames;
	VEC(uint32_t) threads;
	VEC(uint32_t) gil_of;
	struct idmap by_thread;
	unsigned parts;
	bool new_part;
	uint64_t now_ns;
	bool ended, wrong; /* wrong: it contains errors that truncation cannot explain */
};

static bool is_bad(const struct reader *r)
{
	return r->wrong || r->c.bad;
}

static uint64_t get(struct reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = cursor_u8(&r->c);

		value |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128))
			return value;
	}
	r->wrong = true;
	return 0;
}

/* Our number for a number in the file; an unknown one makes the record invalid. */
static uint32_t look_up(struct reader *r, const uint32_t *ids, size_t n, uint64_t number)
{
	if (number < n)
		return ids[number];
	r->wrong |= !r->c.bad;
	return 0;
}

static void read_name(struct reader *r)
{
	uint64_t len = get(r);
	const uint8_t *text = len <= NAME_MAX_ ? cursor_bytes(&r->c, len) : NULL;

	r->wrong |= len > NAME_MAX_;
	if (text && !r->wrong)
		*vec_push(&r->names) = names_id(r->s->names, (const char *)text, len);
}

static void read_frame(struct reader *r)
{
	struct stack_frame frame = { .flags = STACK_PYTHON };

	frame.parent = look_up(r, r->frames.v, r->frames.n, get(r));
	frame.name = look_up(r, r->names.v, r->names.n, get(r));
	frame.module = look_up(r, r->names.v, r->names.n, get(r));
	frame.line = (uint32_t)get(r);
	if (!is_bad(r))
		*vec_push(&r->frames) = stacks_id(r->s->stacks, &frame);
}

static uint32_t thread_index(struct reader *r, uint32_t pid, uint32_t tid)
{
	uint32_t index;

	if (idmap_add(&r->by_thread, idmap_pair(pid, tid), (uint32_t)r->s->threads.n, &index))
		*vec_push(&r->s->threads) = (struct sample_thread){ .pid = pid, .tid = tid };
	return index;
}

static void read_thread(struct reader *r)
{
	uint32_t pid = (uint32_t)get(r), tid = (uint32_t)get(r), index;
	uint32_t name = look_up(r, r->names.v, r->names.n, get(r));

	if (is_bad(r))
		return;
	index = thread_index(r, pid, tid);
	r->s->threads.v[index].name = name;
	*vec_push(&r->threads) = index;
	*vec_push(&r->gil_of) = 0;
}

static void read_other_name(struct reader *r)
{
	uint32_t thread = look_up(r, r->threads.v, r->threads.n, get(r));
	uint32_t name = look_up(r, r->names.v, r->names.n, get(r));

	if (!is_bad(r))
		r->s->threads.v[thread].name = name;
}

static void read_gil(struct reader *r)
{
	uint64_t number = get(r), gil_of = get(r);

	look_up(r, r->threads.v, r->threads.n, number);
	if (!is_bad(r))
		r->gil_of.v[number] = (uint32_t)gil_of;
}

static void begin_part(struct reader *r)
{
	r->wrong |= ++r->parts > PARTS_MAX;
	r->names.n = r->frames.n = 1;
	r->threads.n = r->gil_of.n = 0;
	r->new_part = true;
}

/* All threads have ended, unless the sample contains them. */
static void end_all_runs(struct samples *s)
{
	const struct sample_run gone = { .sample = (uint32_t)s->times.n - 1, .flags = SAMPLE_GONE };

	for (size_t i = 0; i < s->threads.n; i++) {
		struct sample_thread *t = &s->threads.v[i];

		if (t->runs.n && !(t->runs.v[t->runs.n - 1].flags & SAMPLE_GONE))
			*vec_push(&t->runs) = gone;
	}
}

static bool goes_on(const struct sample_run *a, const struct sample_run *b)
{
	return a->stack == b->stack && a->gil == b->gil && a->gil_of == b->gil_of &&
	       a->activity == b->activity && a->flags == b->flags;
}

static void add_run(const struct reader *r, struct sample_thread *t, const struct sample_run *run)
{
	if (r->new_part && t->runs.n && t->runs.v[t->runs.n - 1].sample == run->sample) {
		t->runs.n--;
		if (t->runs.n && goes_on(&t->runs.v[t->runs.n - 1], run))
			return;
	}
	*vec_push(&t->runs) = *run;
}

static void read_change(struct reader *r)
{
	struct samples *s = r->s;
	uint64_t number = get(r), how = get(r);
	uint32_t thread = look_up(r, r->threads.v, r->threads.n, number);
	uint32_t stack = look_up(r, r->frames.v, r->frames.n, get(r));
	struct sample_run run = {
		.sample = (uint32_t)s->times.n - 1,
		.stack = stack,
		.gil = how & 3,
		.flags = how >> 2 & 3,
		.activity = how >> 4 & 15,
	};

	r->wrong |= !r->c.bad && (how > 255 || run.activity >= SAMPLE_ACTIVITIES);
	if (is_bad(r))
		return;
	run.gil_of = r->gil_of.v[number];
	add_run(r, &s->threads.v[thread], &run);
}

static void read_sample(struct reader *r)
{
	uint64_t elapsed = get(r), n = get(r);

	r->wrong |= elapsed > INT64_MAX - r->now_ns || r->s->times.n >= SAMPLES_MAX;
	if (is_bad(r))
		return;
	r->now_ns += elapsed;
	*vec_push(&r->s->times) = r->now_ns;
	if (r->new_part)
		end_all_runs(r->s);
	for (uint64_t i = 0; i < n && !is_bad(r); i++)
		read_change(r);
	r->new_part = false;
}

static void read_end(struct reader *r)
{
	uint64_t elapsed = get(r);

	r->s->end_ns = r->now_ns + (elapsed <= INT64_MAX - r->now_ns ? elapsed : 0);
	r->ended = !is_bad(r);
}

static bool read_record(struct reader *r, uint8_t kind)
{
	switch (kind) {
	case 'N':
		read_name(r);
		return true;
	case 'F':
		read_frame(r);
		return true;
	case 'T':
		read_thread(r);
		return true;
	case 'S':
		read_sample(r);
		return true;
	case 'A':
		read_other_name(r);
		return true;
	case 'G':
		read_gil(r);
		return true;
	case 'R':
		begin_part(r);
		return true;
	case 'M':
		r->s->missed += get(r);
		return true;
	case 'E':
		read_end(r);
		return true;
	}
	return false;
}

/* A sample that is truncated in the middle is dropped, because it is incomplete. */
static void drop_last(struct samples *s)
{
	if (!s->times.n)
		return;
	s->times.n--;
	for (size_t i = 0; i < s->threads.n; i++)
		while (s->threads.v[i].runs.n &&
		       s->threads.v[i].runs.v[s->threads.v[i].runs.n - 1].sample >= s->times.n)
			s->threads.v[i].runs.n--;
}

static int read_records(struct reader *r, const uint8_t *begin, struct error *err)
{
	while (cursor_left(&r->c) && !r->ended) {
		size_t at = (size_t)(r->c.p - begin), samples = r->s->times.n;
		uint8_t kind = cursor_u8(&r->c);

		if (!read_record(r, kind))
			return error_set(err, EINVAL, "record at %#zx: of unknown kind %u", at,
			                 kind);
		if (!is_bad(r))
			continue;
		if (r->wrong)
			return error_set(err, EINVAL, "record at %#zx: bad '%c'", at, kind);
		if (r->s->times.n > samples)
			drop_last(r->s);
		break;
	}
	r->s->cut = !r->ended;
	return 0;
}

static void count_stacks(struct samples *s)
{
	for (size_t i = 0; i < s->threads.n; i++)
		for (size_t j = 0; j < s->threads.v[i].runs.n; j++) {
			const struct sample_run *run = &s->threads.v[i].runs.v[j];
			uint32_t n = sample_run_end(s, &s->threads.v[i], j) - run->sample;

			if (run->flags & SAMPLE_GONE)
				continue;
			s->stacks_read += n;
			s->torn += run->flags & SAMPLE_TORN ? n : 0;
		}
}

static int parse(struct reader *r, struct error *err)
{
	const uint8_t *begin = r->c.p, *magic = cursor_bytes(&r->c, 8);

	if (!magic || memcmp(magic, SAMPLES_MAGIC, 8) != 0)
		return error_set(err, EINVAL, "not a file of samples");
	r->s->hz = cursor_u32(&r->c);
	r->s->gil_only = cursor_u8(&r->c) & 1;
	cursor_skip(&r->c, 3);
	r->s->start_ns = r->s->end_ns = r->now_ns = cursor_u64(&r->c);
	if (r->c.bad || !r->s->hz)
		return error_set(err, EINVAL, "not a file of samples: its header is cut");
	if (r->now_ns > INT64_MAX)
		return error_set(err, EINVAL, "not a file of samples: its time is out of range");
	/* Number 0 means no name, and no frame. */
	*vec_push(&r->names) = 0;
	*vec_push(&r->frames) = 0;
	if (read_records(r, begin, err) < 0)
		return -1;
	if (r->s->end_ns < r->now_ns)
		r->s->end_ns = r->now_ns;
	count_stacks(r->s);
	return 0;
}

int samples_parse(struct samples **ret, const void *data, size_t size,
                  const struct privacy *privacy, struct error *err)
{
	CLEANUP(samples_close) struct samples *s = xcalloc(1, sizeof(*s));
	struct reader r = { .c = cursor_make(data, size), .s = s };
	int status;

	s->names = names_new_private(privacy);
	s->stacks = stacks_new(s->names);
	status = parse(&r, err);
	vec_done(&r.names);
	vec_done(&r.frames);
	vec_done(&r.threads);
	vec_done(&r.gil_of);
	idmap_done(&r.by_thread);
	if (status == 0)
		*ret = take(s);
	return status;
}

int samples_open(struct samples **ret, const char *path, const struct privacy *privacy,
                 struct error *err)
{
	CLEANUP(filemap_done) struct filemap map = { 0 };
	CLEANUP(samples_close) struct samples *samples = NULL;

	if (filemap_open(&map, path, err) < 0)
		return -1;
	if (samples_parse(&samples, map.data, map.size, privacy, err) < 0)
		return filemap_check(&map, err) < 0 ? -1 : error_prefix(err, "%s", path);
	if (filemap_check(&map, err) < 0)
		return -1;
	*ret = take(samples);
	return 0;
}

void samples_close(struct samples *samples)
{
	if (!samples)
		return;
	for (size_t i = 0; i < samples->threads.n; i++)
		vec_done(&samples->threads.v[i].runs);
	vec_done(&samples->threads);
	vec_done(&samples->times);
	stacks_free(samples->stacks);
	names_free(samples->names);
	free(samples);
}
