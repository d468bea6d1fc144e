/* SPDX-License-Identifier: MIT */
/* Reads the calls that the preload library recorded. A thread's records may be in several
 * consecutive files, and a file may have records of several threads. */
#include "trace/calls/from_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/filemap.h"
#include "trace/calls/reader.h"
#include "trace/names.h"

/* ---- threads */

static int by_thread(const void *va, const void *vb)
{
	const struct part *a = va, *b = vb;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->stamp != b->stamp)
		return a->stamp < b->stamp ? -1 : 1;
	return a->records.p < b->records.p ? -1 : a->records.p > b->records.p;
}

static bool is_same_thread(const struct part *a, const struct part *b)
{
	return a->process == b->process && a->tid == b->tid;
}

/* Read the parts of one thread, and of later threads that had the same number. Returns the number
 * of parts. */
static size_t read_thread(struct reader *r, const struct part *parts, size_t count,
                          struct slice_thread *ret)
{
	struct calls calls = { 0 };
	size_t i = 0;

	do {
		if (parts[i].begins) {
			calls_tasks_close(&r->tasks, calls.last_ns);
			calls_close_open(r, &calls, r->names.v[parts[i].process].last_ns);
			calls.depth = 0;
		}
		calls_read_part(r, &calls, &parts[i]);
	} while (++i < count && is_same_thread(&parts[0], &parts[i]));
	calls_tasks_close(&r->tasks, calls.last_ns);
	calls_forget_greenlets(r);
	*ret = (struct slice_thread){ .pid = parts->pid,
		                      .tid = parts->tid,
		                      .max_depth = calls.max_depth,
		                      .recorded = calls.recorded,
		                      .v = calls.v.v,
		                      .n = calls.v.n };
	r->open.n = 0;
	return i;
}

/* The time until which calls and tasks of a process last that have not ended. No record tells that a
 * forked process was killed: it ends with its last record. */
static uint64_t process_end_ns(const struct reader *r, size_t process)
{
	const struct preload_process *p = &r->log.processes.v[process];
	uint64_t last_ns = r->names.v[process].last_ns, end_ns;
	size_t near = 0;

	if (!p->forked || p->lives_on || r->log.stop_stamp == UINT64_MAX)
		return r->end_ns ? r->end_ns : last_ns;
	end_ns = p->ended_stamp ? preload_log_time(&r->log, p->ended_stamp, &near) : 0;
	return end_ns > last_ns ? end_ns : last_ns;
}

static void close_thread(struct slice_thread *t, uint64_t end_ns)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].flags & SLICE_OPEN && !t->v[i].dur_ns)
			t->v[i].dur_ns = end_ns > t->v[i].start_ns ? end_ns - t->v[i].start_ns : 0;
}

static void make_tasks(struct reader *r)
{
	CLEANUP(free)
	struct aio_process *processes = xcalloc(r->names.n + 1, sizeof(*processes));

	if (!r->tasks.events.n)
		return;
	for (size_t i = 0; i < r->names.n; i++)
		processes[i] = (struct aio_process){
			.pid = r->log.processes.v[i].pid,
			.end_ns = process_end_ns(r, i),
		};
	r->ret->tasks = xcalloc(1, sizeof(*r->ret->tasks));
	aio_make(r->ret->tasks, r->tasks.events.v, r->tasks.events.n, processes);
	vec_done(&r->tasks.events);
}

/* Number of processes that were started afresh and did not record their calls. The first one is the
 * recorded program itself. */
static uint64_t count_afresh(const struct reader *r)
{
	uint64_t n = 0;

	for (size_t i = 1; i < r->log.processes.n; i++)
		n += !r->log.processes.v[i].forked && !r->log.processes.v[i].calls;
	return n;
}

static void read_collections(struct reader *r)
{
	size_t n = r->log.collections.n, near = 0;

	r->ret->collections = xcalloc(n + 1, sizeof(*r->ret->collections));
	for (size_t i = 0; i < n; i++) {
		const struct preload_collection *c = &r->log.collections.v[i];

		near = 0;
		r->ret->collections[i] = (struct slice_collection){
			c->pid,
			c->tid,
			preload_log_time(&r->log, c->from, &near),
			preload_log_time(&r->log, c->to, &near),
		};
	}
	r->ret->collection_count = n;
}

static void read_threads(struct reader *r)
{
	struct slices *ret = r->ret;
	VEC(struct slice_thread) threads = { 0 };
	VEC(uint32_t) processes = { 0 };

	while (r->names.n < r->log.processes.n) {
		*vec_push(&r->names) = (struct process_names){ .last_ns = 0 };
		calls_find_trio(&r->names.v[r->names.n - 1], &r->log.processes.v[r->names.n - 1]);
	}
	for (size_t i = 0; i < r->parts.n; i++)
		r->parts.v[i].stamp = calls_first_stamp(&r->parts.v[i]);
	vec_sort(&r->parts, by_thread);
	for (size_t i = 0; i < r->parts.n;) {
		struct slice_thread *t = vec_push(&threads);

		calls_tasks_thread(&r->tasks, r->parts.v[i].process, (uint32_t)threads.n - 1);
		*vec_push(&processes) = r->parts.v[i].process;
		i += read_thread(r, &r->parts.v[i], r->parts.n - i, t);
		idmap_set(&ret->by_id, idmap_pair(t->pid, t->tid), (uint32_t)threads.n - 1);
	}
	for (size_t i = 0; i < threads.n; i++)
		close_thread(&threads.v[i], process_end_ns(r, processes.v[i]));
	make_tasks(r);
	read_collections(r);
	calls_keep_last(r, threads.v, processes.v, threads.n);
	vec_done(&processes);
	ret->threads = threads.v;
	ret->thread_count = threads.n;
	ret->call_cost_ps = r->log.call_cost_ps;
	if (r->overflow) {
		ret->flaw = SLICES_OVERFLOW;
	} else if (r->cut) {
		ret->flaw = SLICES_CUT;
	} else if (r->log.unrecorded) {
		ret->flaw = SLICES_UNRECORDED;
		ret->flawed = r->log.unrecorded;
	} else if (r->log.aside) {
		ret->flaw = SLICES_ASIDE;
		ret->flawed = r->log.aside;
	} else if (r->overlapping) {
		ret->flaw = SLICES_OVERLAPPING;
		ret->flawed = r->overlapping;
	} else if ((ret->flawed = count_afresh(r))) {
		ret->flaw = SLICES_AFRESH;
	}
}

/* ---- the folder */

static int add_file(void *data, const char *path, struct error *err)
{
	struct reader *r = data;
	struct filemap map = { 0 };

	if (filemap_open(&map, path, err) < 0)
		return -1;
	*vec_push(&r->maps) = map;
	if (calls_add_records(r, map.data, map.size, err) < 0)
		return filemap_check(&map, err) < 0 ? -1 : error_prefix(err, "%s", path);
	return 0;
}

static int add_log(void *data, const char *path, struct error *err)
{
	struct reader *r = data;
	return preload_log_read(&r->log, path, err);
}

static struct reader *reader_new(const struct privacy *privacy)
{
	struct reader *r = xcalloc(1, sizeof(*r));

	r->log.stop_stamp = UINT64_MAX;
	r->ret = xcalloc(1, sizeof(*r->ret));
	r->ret->names = names_new_private(privacy);
	return r;
}

static void reader_free(struct reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->maps.n; i++)
		filemap_done(&r->maps.v[i]);
	for (size_t i = 0; i < r->names.n; i++)
		vec_done(&r->names.v[i].ids);
	vec_done(&r->maps);
	vec_done(&r->names);
	vec_done(&r->parts);
	vec_done(&r->open);
	calls_forget_greenlets(r);
	calls_tasks_done(&r->tasks);
	str_done(&r->text);
	preload_log_done(&r->log);
	slices_free(r->ret);
	free(r);
}

DEFINE_CLEANUP(struct reader *, reader_free);

/* The filters are applied here, because the library drops old calls only by the window, and does
 * not know how long a call takes. */
static int read_control(struct reader *r, const char *dir, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/" PRELOAD_CONTROL, dir);
	CLEANUP(filemap_done) struct filemap map = { 0 };
	struct preload_control control = { 0 };

	if (filemap_open(&map, path, err) < 0)
		return -1;
	memcpy(&control, map.data, map.size < sizeof(control) ? map.size : sizeof(control));
	r->entries = control.entries;
	r->shortest_ns = control.shortest_ns;
	return 0;
}

int from_calls_read(struct slices **ret, const char *dir, const struct from_calls_options *options,
                    struct error *err)
{
	CLEANUP(reader_free) struct reader *r = reader_new(options->privacy);

	r->start_ns = options->start_ns;
	r->end_ns = options->end_ns;
	if (read_control(r, dir, err) < 0)
		return -1;
	if (folder_each(dir, PRELOAD_LOG_SUFFIX, add_log, r, err) < 0)
		return -1;
	preload_log_finish(&r->log);
	if (r->log.unwritten_stamp)
		calls_note_unwritten(r, r->log.unwritten_stamp);
	if (folder_each(dir, PRELOAD_CALLS_SUFFIX, add_file, r, err) < 0)
		return -1;
	read_threads(r);
	for (size_t i = 0; i < r->maps.n; i++)
		if (filemap_check(&r->maps.v[i], err) < 0)
			return -1;
	if (preload_log_check(&r->log, err) < 0)
		return -1;
	*ret = take(r->ret);
	return 0;
}

int from_calls_read_memory(struct slices **ret, const void *log, size_t log_size,
                           const void *records, size_t size,
                           const struct from_calls_options *options, struct error *err)
{
	CLEANUP(reader_free) struct reader *r = reader_new(options->privacy);

	r->end_ns = options->end_ns;
	preload_log_parse(&r->log, log, log_size);
	preload_log_finish(&r->log);
	if (calls_add_records(r, records, size, err) < 0)
		return -1;
	read_threads(r);
	*ret = take(r->ret);
	return 0;
}
