/* SPDX-License-Identifier: MIT */
/* VizTracer's JSON, in Chrome's trace event format: an object whose traceEvents is an array, or
 * only the array. Read in one pass over the mapped file, whose pages are released after reading. */
#include "trace/slices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/filemap.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "trace/viztracer/jsonscan.h"
#include "trace/names.h"

#define NAME_CACHE  16384 /* recently seen names, a power of two */
#define NAME_PROBES 4
#define GIVE_BACK   (8u << 20) /* bytes of the file to keep in memory */
#define PAGE        4096
#define NO_THREAD   UINT32_MAX
#define NO_TIME     INT64_MIN

/* A name as in the file, and its id. */
struct cached_name {
	const char *text; /* from names; NULL: empty */
	uint32_t len, id;
};

struct thread {
	VEC(struct slice) slices;
	VEC(size_t) open; /* slices of "B" events that wait for their "E" */
	uint64_t last_ns;
	uint32_t pid, tid, name;
};

struct reader {
	struct jsonscan json;
	struct slices *ret;
	VEC(struct thread) threads;
	struct idmap by_id; /* of pid and tid */
	struct hash_seed seed;
	uint32_t last; /* thread of the last event */
	int64_t base_ns;
	uint64_t skipped, overlapping;
	bool events, overflow;
	const uint8_t *kept; /* the file's pages before it have been released */
	struct str text;
	struct cached_name cache[NAME_CACHE];
};

/* One element of traceEvents. */
struct raw {
	struct jsontext name;
	const uint8_t *args; /* where its value starts, or NULL */
	int64_t ts_ns, dur_ns;
	uint32_t pid, tid;
	char phase;
};

/* The index of a thread; adding a new one moves those after it. */
static uint32_t thread_index(struct reader *r, uint32_t pid, uint32_t tid)
{
	uint32_t i;

	if (r->last != NO_THREAD && r->threads.v[r->last].tid == tid &&
	    r->threads.v[r->last].pid == pid)
		return r->last;
	if (idmap_add(&r->by_id, idmap_pair(pid, tid), (uint32_t)r->threads.n, &i))
		*vec_push(&r->threads) = (struct thread){ .pid = pid, .tid = tid };
	r->last = i;
	return i;
}

/* The result is valid until the next call. */
static struct thread *thread_of(struct reader *r, const struct raw *e)
{
	uint32_t i = thread_index(r, e->pid, e->tid);

	return &r->threads.v[i];
}

static uint32_t decode_name(struct reader *r, const struct jsontext *t)
{
	r->text.len = 0;
	jsontext_decode(t, &r->text);
	return names_id(r->ret->names, str_get(&r->text), r->text.len);
}

/* A few functions make most of the calls, so their names are found again without decoding. */
static uint32_t name_of(struct reader *r, const struct jsontext *t)
{
	uint32_t hash = (uint32_t)hash_text(r->seed, t->s, t->len), id;
	struct cached_name *c = NULL;
	const char *text;

	for (uint32_t i = 0; i < NAME_PROBES; i++) {
		c = &r->cache[(hash + i) % NAME_CACHE];
		if (!c->text)
			break;
		if (c->len == t->len && !memcmp(c->text, t->s, t->len))
			return c->id;
	}
	id = decode_name(r, t);
	text = names_get(r->ret->names, id);
	if (r->text.len == t->len && !memcmp(text, t->s, t->len))
		*c = (struct cached_name){ text, (uint32_t)t->len, id };
	return id;
}

static void read_member(struct reader *r, struct raw *e)
{
	struct jsonscan *j = &r->json;
	struct jsontext key, phase;
	bool ok;

	if (!jsonscan_key(j, &key))
		return;
	if (jsontext_is(&key, "ts", 2)) {
		e->ts_ns = jsonscan_milli(j, &ok);
		if (!ok)
			e->ts_ns = NO_TIME;
	} else if (jsontext_is(&key, "dur", 3)) {
		e->dur_ns = jsonscan_milli(j, &ok);
		if (!ok)
			e->dur_ns = NO_TIME;
	} else if (jsontext_is(&key, "pid", 3)) {
		e->pid = jsonscan_u32(j);
	} else if (jsontext_is(&key, "tid", 3)) {
		e->tid = jsonscan_u32(j);
	} else if (jsontext_is(&key, "ph", 2) && jsonscan_peek(j) == '"') {
		if (jsonscan_string(j, &phase))
			e->phase = phase.len == 1 ? (char)phase.s[0] : '?';
	} else if (jsontext_is(&key, "name", 4) && jsonscan_peek(j) == '"') {
		jsonscan_string(j, &e->name);
	} else {
		if (jsontext_is(&key, "args", 4))
			e->args = j->p;
		jsonscan_skip(j);
	}
}

/* The time on our clock; false if there is none. */
static bool time_of(const struct reader *r, const struct raw *e, uint64_t *ret)
{
	int64_t t;

	if (e->ts_ns == NO_TIME || __builtin_add_overflow(e->ts_ns, r->base_ns, &t) || t < 0)
		return false;
	*ret = (uint64_t)t;
	return true;
}

static void add_slice(struct reader *r, const struct raw *e, bool open)
{
	struct thread *t = thread_of(r, e);
	uint64_t start_ns;

	r->ret->total++;
	if (!time_of(r, e, &start_ns) || (!open && e->dur_ns < 0)) {
		r->ret->dropped++;
		return;
	}
	if (open)
		*vec_push(&t->open) = t->slices.n;
	*vec_push(&t->slices) = (struct slice){
		.start_ns = start_ns,
		.dur_ns = open ? 0 : (uint64_t)e->dur_ns,
		.name = name_of(r, &e->name),
		.flags = open ? SLICE_OPEN : 0,
	};
	start_ns += open ? 0 : (uint64_t)e->dur_ns;
	if (start_ns > t->last_ns)
		t->last_ns = start_ns;
}

/* "E" ends the call that began last in its thread. */
static void end_slice(struct reader *r, const struct raw *e)
{
	struct thread *t = thread_of(r, e);
	struct slice *s;
	uint64_t end_ns;

	if (!t->open.n || !time_of(r, e, &end_ns)) {
		r->ret->dropped++;
		return;
	}
	s = &t->slices.v[t->open.v[--t->open.n]];
	s->dur_ns = end_ns > s->start_ns ? end_ns - s->start_ns : 0;
	s->flags = 0;
	if (end_ns > t->last_ns)
		t->last_ns = end_ns;
}

/* "M": thread_name, with the name in args. process_name is not used, because the recording has
 * the process's name. */
static void name_thread(struct reader *r, const struct raw *e)
{
	struct jsonscan j = r->json;
	struct jsontext key, value;
	struct thread *thread;

	if (!e->args || !jsontext_is(&e->name, "thread_name", 11))
		return;
	thread = thread_of(r, e);
	j.p = e->args;
	if (jsonscan_peek(&j) != '{')
		return;
	for (bool more = jsonscan_open(&j, '{'); more; more = jsonscan_more(&j, '}')) {
		if (jsonscan_key(&j, &key) && jsontext_is(&key, "name", 4) &&
		    jsonscan_peek(&j) == '"' && jsonscan_string(&j, &value))
			thread->name = decode_name(r, &value);
		else
			jsonscan_skip(&j);
	}
}

static void read_event(struct reader *r)
{
	struct raw e = { .name.s = (const uint8_t *)"", .ts_ns = NO_TIME, .dur_ns = NO_TIME };

	for (bool more = jsonscan_open(&r->json, '{'); more; more = jsonscan_more(&r->json, '}'))
		read_member(r, &e);
	if (r->json.bad)
		return;
	switch (e.phase) {
	case 'X':
		add_slice(r, &e, false);
		break;
	case 'B':
		add_slice(r, &e, true);
		break;
	case 'E':
		end_slice(r, &e);
		break;
	case 'M':
		name_thread(r, &e);
		break;
	default:
		r->skipped++;
	}
}

/* Releases pages that have been read, so that the whole file is never in memory. */
static void give_back(struct reader *r)
{
	uintptr_t from = (uintptr_t)r->kept & ~(uintptr_t)(PAGE - 1);
	uintptr_t to = (uintptr_t)r->json.p & ~(uintptr_t)(PAGE - 1);

	madvise((void *)from, to - from, MADV_DONTNEED);
	r->kept = r->json.p;
}

static void read_events(struct reader *r)
{
	struct jsonscan *j = &r->json;

	r->events = true;
	for (bool more = jsonscan_open(j, '['); more; more = jsonscan_more(j, ']')) {
		read_event(r);
		if (j->p - r->kept >= GIVE_BACK)
			give_back(r);
	}
}

static void read_metadata(struct reader *r)
{
	struct jsonscan *j = &r->json;
	struct jsontext key;

	for (bool more = jsonscan_open(j, '{'); more; more = jsonscan_more(j, '}')) {
		if (!jsonscan_key(j, &key))
			break;
		if (jsontext_is(&key, "overflow", 8))
			r->overflow |= jsonscan_peek(j) == 't';
		jsonscan_skip(j);
	}
}

static void read_document(struct reader *r)
{
	struct jsonscan *j = &r->json;
	struct jsontext key;

	if (jsonscan_peek(j) == '[') {
		read_events(r);
		return;
	}
	for (bool more = jsonscan_open(j, '{'); more; more = jsonscan_more(j, '}')) {
		if (!jsonscan_key(j, &key))
			break;
		if (jsontext_is(&key, "traceEvents", 11) && jsonscan_peek(j) == '[')
			read_events(r);
		else if (jsontext_is(&key, "viztracer_metadata", 18) && jsonscan_peek(j) == '{')
			read_metadata(r);
		else
			jsonscan_skip(j);
	}
}

/* A call that never ended lasts until the last event of its thread. */
static void close_open(struct thread *t)
{
	for (size_t i = 0; i < t->open.n; i++) {
		struct slice *s = &t->slices.v[t->open.v[i]];

		s->dur_ns = t->last_ns - s->start_ns;
	}
}

static void finish(struct reader *r)
{
	struct slices *ret = r->ret;

	ret->threads = xcalloc(r->threads.n, sizeof(*ret->threads));
	ret->thread_count = r->threads.n;
	ret->by_id = r->by_id;
	r->by_id = (struct idmap){ 0 };
	for (size_t i = 0; i < r->threads.n; i++) {
		struct thread *t = &r->threads.v[i];

		close_open(t);
		ret->threads[i] = (struct slice_thread){ .pid = t->pid,
			                                 .tid = t->tid,
			                                 .name = t->name,
			                                 .v = t->slices.v,
			                                 .n = t->slices.n };
		t->slices.v = NULL;
		r->overlapping += slice_thread_finish(&ret->threads[i]);
	}
	if (r->overflow) {
		ret->flaw = SLICES_OVERFLOW;
	} else if (ret->dropped) {
		ret->flaw = SLICES_DROPPED;
		ret->flawed = ret->dropped;
	} else if (r->overlapping) {
		ret->flaw = SLICES_OVERLAPPING;
		ret->flawed = r->overlapping;
	}
}

static void reader_free(struct reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->threads.n; i++) {
		vec_done(&r->threads.v[i].slices);
		vec_done(&r->threads.v[i].open);
	}
	vec_done(&r->threads);
	idmap_done(&r->by_id);
	str_done(&r->text);
	slices_free(r->ret);
	free(r);
}

DEFINE_CLEANUP(struct reader *, reader_free);

int from_viztracer_read(struct slices **ret, const char *path, int64_t base_ns,
                        const struct privacy *privacy, struct error *err)
{
	CLEANUP(filemap_done) struct filemap map = { 0 };
	CLEANUP(reader_free) struct reader *r = xcalloc(1, sizeof(*r));
	struct jsonscan *j = &r->json;

	if (filemap_open(&map, path, err) < 0)
		return -1;
	jsonscan_init(j, map.data, map.size);
	r->kept = map.data;
	r->base_ns = base_ns;
	r->last = NO_THREAD;
	r->seed = hash_seed();
	r->ret = xcalloc(1, sizeof(*r->ret));
	r->ret->names = names_new_private(privacy);
	read_document(r);
	if (filemap_check(&map, err) < 0)
		return -1;
	if (!j->bad && jsonscan_peek(j))
		jsonscan_fail(j, "data after the end");
	if (j->bad)
		return error_set(err, EINVAL, "%s: byte %zu: %s", path, j->bad_at, j->bad);
	if (!r->events)
		return error_set(err, EINVAL, "%s: no traceEvents", path);
	finish(r);
	*ret = take(r->ret);
	return 0;
}
