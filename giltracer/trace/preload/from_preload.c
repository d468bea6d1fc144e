/* SPDX-License-Identifier: MIT */
/* Turns the files of the preload library into events in the order of time. */
#include "trace/preload/from_preload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "preload/format.h"
#include "trace/names.h"
#include "trace/preload/stream.h"
#include "python/pycode.h"
#include "trace/stacks.h"

/**
 * @heap: indices of streams with records, the earliest stamp first
 * @pending: events of the last record that have not been yielded yet
 * @idle: of the log's idle threads that have no records, how many have been yielded; @importer,
 * @import: the same for the imports of each process
 * @cut_stamp: the recording is complete until then; some thread could not write later records
 */
struct from_preload {
	struct source source;
	struct preload_log log;
	VEC(struct preload_stream) streams;
	VEC(uint32_t) heap;
	struct event pending[PRELOAD_STREAM_EVENTS];
	unsigned pending_at, pending_count;
	size_t idle, importer, import;
	uint64_t cut_stamp, unwritten;
	uint64_t last_ns, last_stamp;
	bool ended, borrows; /* names and frames */
};

const char from_preload_names[] = PRELOAD_NAMES;

/* ---- streams in the order of stamps */

static bool is_before(const struct from_preload *fp, uint32_t a, uint32_t b)
{
	const struct preload_stream *x = &fp->streams.v[a], *y = &fp->streams.v[b];

	/* At the same time, a release comes before an acquire. */
	if (x->stamp == y->stamp)
		return x->type == PRELOAD_RELEASE && y->type != PRELOAD_RELEASE;
	return x->stamp < y->stamp;
}

static void sift_down(struct from_preload *fp, size_t i)
{
	uint32_t *heap = fp->heap.v;

	for (;;) {
		size_t least = i;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2; child++)
			if (child < fp->heap.n && is_before(fp, heap[child], heap[least]))
				least = child;
		if (least == i)
			return;
		uint32_t swapped = heap[i];
		heap[i] = heap[least];
		heap[least] = swapped;
		i = least;
	}
}

static void make_heap(struct from_preload *fp)
{
	fp->heap.n = 0;
	for (uint32_t i = 0; i < fp->streams.n; i++)
		if (fp->streams.v[i].stamp != UINT64_MAX)
			*vec_push(&fp->heap) = i;
	for (size_t i = fp->heap.n; i-- > 0;)
		sift_down(fp, i);
}

/* ---- events */

static void stamp_event(struct from_preload *fp, struct event *ev)
{
	if (ev->time_ns < fp->last_ns)
		ev->time_ns = fp->last_ns;
	fp->last_ns = ev->time_ns;
	fp->source.stats.events++;
}

static void name_event(struct from_preload *fp, const struct preload_stream *s, struct event *ev)
{
	const char *name = str_base(s->process->exe);

	ev->comm.name = names_id(fp->source.names, name, strlen(name));
}

/* No record tells that a process was killed, or that it executed another program; unless it is
 * still alive, it ends with its last record. */
static void end_killed(struct from_preload *fp, const struct preload_process *p, uint64_t stamp)
{
	for (size_t i = 0; i < fp->streams.n; i++)
		if (fp->streams.v[i].process == p)
			preload_stream_end(&fp->streams.v[i], stamp);
	make_heap(fp);
}

/* The first stream of the heap has no more records; the last one was at that stamp. */
static void end_stream(struct from_preload *fp, struct preload_stream *s, uint64_t stamp)
{
	struct preload_process *p = &fp->log.processes.v[s->process - fp->log.processes.v];

	if (p->ended_stamp && !p->lives_on)
		preload_stream_end(s, p->ended_stamp > stamp ? p->ended_stamp : stamp);
	if (s->stamp == UINT64_MAX)
		fp->heap.v[0] = fp->heap.v[--fp->heap.n];
	sift_down(fp, 0);
	if (p->open && !--p->open && !p->ended_stamp && !p->lives_on &&
	    fp->log.stop_stamp != UINT64_MAX)
		end_killed(fp, p, stamp);
}

static void read_record(struct from_preload *fp)
{
	struct preload_stream *s = &fp->streams.v[fp->heap.v[0]];
	uint64_t stamp = s->stamp;

	fp->pending_at = 0;
	fp->pending_count = preload_stream_next(s, fp->pending);
	if (s->map.size)
		filemap_drop(&s->map, (size_t)(s->at.p - s->map.data));
	fp->source.stats.records++;
	for (unsigned i = 0; i < fp->pending_count; i++)
		if (fp->pending[i].type == EV_COMM)
			name_event(fp, s, &fp->pending[i]);
	if (s->stamp == UINT64_MAX)
		end_stream(fp, s, stamp);
	else
		sift_down(fp, 0);
}

/* Yields EV_LOST for unwritten records, after all others. */
static int end(struct from_preload *fp, struct event *ret)
{
	size_t near = 0;

	if (fp->ended || !fp->unwritten || fp->cut_stamp >= fp->log.stop_stamp)
		return 0;
	fp->ended = true;
	*ret = (struct event){
		.type = EV_LOST, .flags = EVF_UNWRITTEN, .cpu = -1, .time_ns = fp->last_ns
	};
	ret->lost.since_ns = preload_log_time(&fp->log, fp->cut_stamp, &near);
	ret->lost.count = fp->unwritten < UINT32_MAX ? (uint32_t)fp->unwritten : UINT32_MAX;
	if (ret->time_ns < ret->lost.since_ns)
		ret->time_ns = ret->lost.since_ns;
	fp->source.stats.lost += fp->unwritten;
	return 1;
}

static int check(const struct from_preload *fp, struct error *err)
{
	for (size_t i = 0; i < fp->streams.n; i++)
		if (filemap_check(&fp->streams.v[i].map, err) < 0)
			return -1;
	return preload_log_check(&fp->log, err);
}

/* The thread begins without the GIL. */
static void idle_event(const struct from_preload *fp, const struct preload_idle *idle,
                       struct event *ret)
{
	*ret = (struct event){
		.type = EV_FORK,
		.cpu = -1,
		.pid = idle->pid,
		.tid = idle->tid,
		.time_ns = fp->last_ns,
	};
	ret->fork.parent_pid = idle->pid;
}

/* Yields the modules that need the GIL, before all else: most are imported before tracing starts. */
static bool import_event(struct from_preload *fp, struct event *ret)
{
	while (fp->importer < fp->log.processes.n) {
		const struct preload_process *p = &fp->log.processes.v[fp->importer];
		const struct preload_import *i;
		uint32_t list;

		if (fp->import == p->imports.n) {
			fp->importer++;
			fp->import = 0;
			continue;
		}
		i = &p->imports.v[fp->import++];
		list = idmap_get(&p->list_ids, i->frames);
		*ret = (struct event){ .type = EV_NEEDS_GIL, .cpu = -1, .pid = p->pid };
		ret->import.name = i->len ? names_id(fp->source.names, i->text, i->len) : 0;
		ret->import.frame = i->frames && list != IDMAP_NONE ? p->lists.v[list].stack : 0;
		return true;
	}
	return false;
}

static int from_preload_next(struct source *source, struct event *ret, struct error *err)
{
	struct from_preload *fp = (struct from_preload *)source;

	if (import_event(fp, ret)) {
		stamp_event(fp, ret);
		return 1;
	}
	while (fp->pending_at == fp->pending_count) {
		if (fp->source.stats.records && fp->idle < fp->log.idle.n) {
			idle_event(fp, &fp->log.idle.v[fp->idle++], ret);
			stamp_event(fp, ret);
			return 1;
		}
		if (!fp->heap.n || fp->streams.v[fp->heap.v[0]].stamp > fp->log.stop_stamp)
			return end(fp, ret) ? 1 : check(fp, err);
		read_record(fp);
	}
	*ret = fp->pending[fp->pending_at++];
	stamp_event(fp, ret);
	return 1;
}

static void from_preload_close(struct source *source)
{
	struct from_preload *fp = (struct from_preload *)source;

	for (size_t i = 0; i < fp->streams.n; i++)
		filemap_done(&fp->streams.v[i].map);
	vec_done(&fp->streams);
	vec_done(&fp->heap);
	preload_log_done(&fp->log);
	if (!fp->borrows) {
		stacks_free(source->frames);
		names_free(source->names);
	}
	free(fp);
}

/* ---- frames */

static uint32_t add_frame(struct from_preload *fp, const struct preload_code *code, int32_t offset,
                          uint32_t parent)
{
	const struct stack_frame frame = {
		.parent = parent,
		.flags = STACK_PYTHON,
		.name = names_id(fp->source.names, code->name, code->name_len),
		.module = names_id(fp->source.names, code->file, code->file_len),
		.line = pycode_table_line(code->minor, code->first_line, code->table,
		                          code->table_len, offset),
	};

	return preload_log_is_own(&fp->log, code) ? 0 : stacks_id(fp->source.frames, &frame);
}

static uint32_t line_in(const struct python_code *code, int32_t offset)
{
	const struct preload_code *of = code->data;

	return pycode_table_line(of->minor, of->first_line, of->table, of->table_len, offset);
}

static struct python_code python_code(const struct preload_code *code)
{
	return (struct python_code){ code->name,     code->file, code->name_len,
		                     code->file_len, line_in,    code };
}

static void add_list(struct from_preload *fp, const struct preload_process *p,
                     struct preload_list *list)
{
	uint32_t stack = 0;

	list->wait = PYTHON_WAIT_ANY;
	for (uint32_t i = list->count; i-- > 0;) {
		struct preload_frame frame;
		struct python_code of;
		uint32_t code;

		memcpy(&frame, list->frames + i * sizeof(frame), sizeof(frame));
		code = preload_log_code(p, frame.function);
		stack = code == IDMAP_NONE ? 0
		                           : add_frame(fp, &p->codes.v[code], frame.offset, stack);
		if (code == IDMAP_NONE)
			continue;
		of = python_code(&p->codes.v[code]);
		if (i == 1 && python_calls_for_turn(&of))
			list->wait = PYTHON_WAIT_TURN;
		else if (i == 0 && list->wait == PYTHON_WAIT_ANY)
			list->wait = python_wait_in(&of, frame.offset);
	}
	list->stack = stack;
}

static void name_object(struct from_preload *fp, struct preload_object *object)
{
	size_t len = strnlen(object->text, object->len);
	const char *name = object->text + len + 1;

	if (object->runtime) {
		object->name = len ? names_id(fp->source.names, object->text, len) : 0;
		return;
	}
	object->of = names_id(fp->source.names, object->text, len);
	if (object->len > len + 1 && *name)
		object->name = names_id(fp->source.names, name,
		                        strnlen(name, object->len - len - 1));
}

static void add_objects(struct from_preload *fp)
{
	for (size_t i = 0; i < fp->log.processes.n; i++)
		for (size_t j = 0; j < fp->log.processes.v[i].objects.n; j++)
			name_object(fp, &fp->log.processes.v[i].objects.v[j]);
}

static void add_frames(struct from_preload *fp)
{
	for (size_t i = 0; i < fp->log.processes.n; i++) {
		struct preload_process *p = &fp->log.processes.v[i];

		for (size_t j = 0; j < p->lists.n; j++)
			add_list(fp, p, &p->lists.v[j]);
	}
}

/* ---- the folder */

static int begin_stream(struct from_preload *fp, struct preload_stream *s, const void *data,
                        size_t size, struct error *err)
{
	fp->source.stats.bytes += size;
	if (preload_stream_begin(s, &fp->log, data, size, err) < 0)
		return -1;
	fp->source.stats.unfinished += s->unlogged;
	if (!s->process)
		return 0;
	fp->log.processes.v[s->process - fp->log.processes.v].open += s->stamp != UINT64_MAX;
	if (s->unwritten) {
		fp->unwritten += s->unwritten;
		if (s->unwritten_stamp < fp->cut_stamp)
			fp->cut_stamp = s->unwritten_stamp;
	}
	return 0;
}

static int add_stream(void *data, const char *path, struct error *err)
{
	struct from_preload *fp = data;
	struct preload_stream *s = vec_push(&fp->streams);

	*s = (struct preload_stream){ 0 };
	if (filemap_open(&s->map, path, err) < 0)
		return -1;
	if (begin_stream(fp, s, s->map.data, s->map.size, err) < 0)
		return filemap_check(&s->map, err) < 0 ? -1 : error_prefix(err, "%s", path);
	return 0;
}

static int add_log(void *data, const char *path, struct error *err)
{
	struct from_preload *fp = data;
	return preload_log_read(&fp->log, path, err);
}

static struct from_preload *new_source(const struct source *with, const struct privacy *privacy)
{
	static const struct source_ops ops = {
		.next = from_preload_next,
		.close = from_preload_close,
	};
	struct from_preload *fp = xcalloc(1, sizeof(*fp));

	fp->source.ops = &ops;
	fp->borrows = with;
	fp->source.names = with ? with->names : names_new_private(privacy);
	fp->source.frames = with ? with->frames : stacks_new(fp->source.names);
	fp->cut_stamp = fp->log.stop_stamp = UINT64_MAX;
	return fp;
}

/* To be called after all logs have been read, when everything that records refer to is known. */
static void finish_logs(struct from_preload *fp)
{
	preload_log_finish(&fp->log);
	add_frames(fp);
	add_objects(fp);
	if (fp->log.cut_stamp <= fp->log.stop_stamp)
		fp->source.stats.unfinished += fp->log.cut;
	if (!fp->log.unwritten_stamp)
		return;
	fp->unwritten++;
	fp->cut_stamp = fp->log.unwritten_stamp;
}

static void add_threads(const struct preload_stream *s, struct idmap *threads)
{
	struct cursor c = s->at;
	uint64_t word;

	idmap_set(threads, s->tid, 0); /* of the next record */
	while ((word = cursor_u64(&c)) != PRELOAD_END)
		if ((word & ((1u << PRELOAD_TYPE_BITS) - 1)) == PRELOAD_OF_THREAD)
			idmap_set(threads, word >> PRELOAD_TYPE_BITS, 0);
}

/* Keeps only those idle threads that have no records: what others did before is not known. */
static void find_idle(struct from_preload *fp)
{
	struct idmap threads = { 0 };
	size_t n = 0;

	if (!fp->log.idle.n)
		return;
	for (size_t i = 0; i < fp->streams.n; i++)
		if (fp->streams.v[i].process)
			add_threads(&fp->streams.v[i], &threads);
	for (size_t i = 0; i < fp->log.idle.n; i++)
		if (idmap_get(&threads, fp->log.idle.v[i].tid) == IDMAP_NONE)
			fp->log.idle.v[n++] = fp->log.idle.v[i];
	fp->log.idle.n = n;
	idmap_done(&threads);
}

static void close_source(struct from_preload *fp)
{
	if (fp)
		from_preload_close(&fp->source);
}

DEFINE_CLEANUP(struct from_preload *, close_source);

int from_preload_open(struct source **ret, const char *dir, const struct source *with,
                      const struct privacy *privacy, struct error *err)
{
	CLEANUP(close_source) struct from_preload *fp = new_source(with, privacy);

	if (folder_each(dir, PRELOAD_LOG_SUFFIX, add_log, fp, err) < 0)
		return -1;
	finish_logs(fp);
	if (folder_each(dir, PRELOAD_GIL_SUFFIX, add_stream, fp, err) < 0)
		return -1;
	find_idle(fp);
	make_heap(fp);
	*ret = &take(fp)->source;
	return 0;
}

static uint64_t last_event_ns(struct source *source)
{
	struct event ev;
	struct error ignored;

	while (source_next(source, &ev, &ignored) > 0)
		continue;
	return ((struct from_preload *)source)->last_ns;
}

int from_preload_window(uint64_t *ret_start, uint64_t *ret_end, const char *dir, uint64_t kept_ns,
                        uint64_t end_ns, struct error *err)
{
	struct from_preload *fp;
	struct source *source;
	uint64_t dropped = 0, dropped_ns = 0, first_ns;
	size_t near = 0;

	if (from_preload_open(&source, dir, NULL, NULL, err) < 0)
		return -1;
	fp = (struct from_preload *)source;
	for (size_t i = 0; i < fp->streams.n; i++)
		if (fp->streams.v[i].dropped_stamp > dropped)
			dropped = fp->streams.v[i].dropped_stamp;
	first_ns = fp->heap.n
	                   ? preload_log_time(&fp->log, fp->streams.v[fp->heap.v[0]].stamp, &near)
	                   : 0;
	/* What was dropped ends with this instant, at which another event may be. */
	if (dropped)
		dropped_ns = preload_log_time(&fp->log, dropped, &near) + 1;
	if (!end_ns)
		end_ns = last_event_ns(source);
	*ret_start = end_ns > kept_ns ? end_ns - kept_ns : 0;
	if (*ret_start < dropped_ns)
		*ret_start = dropped_ns;
	else if (*ret_start < first_ns)
		*ret_start = 0;
	*ret_end = end_ns;
	source_close(source);
	return 0;
}

int from_preload_open_memory(struct source **ret, const void *log, size_t log_size,
                             const void *records, size_t size, struct error *err)
{
	CLEANUP(close_source) struct from_preload *fp = new_source(NULL, NULL);
	struct preload_stream *s = vec_push(&fp->streams);

	*s = (struct preload_stream){ 0 };
	preload_log_parse(&fp->log, log, log_size);
	finish_logs(fp);
	if (begin_stream(fp, s, records, size, err) < 0)
		return -1;
	make_heap(fp);
	*ret = &take(fp)->source;
	return 0;
}
