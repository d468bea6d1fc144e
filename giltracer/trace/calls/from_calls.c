/* SPDX-License-Identifier: MIT */
/* The calls of the preload library. A thread's records may be in several consecutive files, and a
 * file may have records of several threads. */
#include "trace/calls/from_calls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "perfdata/cursor.h"
#include "preload/format.h"
#include "trace/calls/tasks.h"
#include "trace/names.h"
#include "trace/preload/log.h"

#define NO_SLICE UINT32_MAX
/* How many callers further out to search for the end of a call. */
#define SEARCH_MAX 256

#define NO_NAME UINT32_MAX

/* Records of one thread in one file. */
struct part {
	struct cursor records;
	uint32_t pid, tid;
	uint32_t process; /* index in the log */
	uint64_t stamp;   /* of its start */
	bool begins;      /* with the thread's first record */
};

/* A call that has not ended. slice: NO_SLICE: it is not shown */
struct open_call {
	uint32_t slice, code;
};

/**
 * A process's names.
 * @ids: by index of its function; NO_NAME: not looked up yet
 * @trio: the folder of trio's package, with a slash at its end, not terminated; NULL: unknown
 */
struct process_names {
	VEC(uint32_t) ids;
	uint64_t last_ns;
	const char *trio;
	size_t trio_len;
};

struct reader {
	struct preload_log log;
	VEC(struct filemap) maps;
	VEC(struct part) parts;
	VEC(struct process_names) names;
	VEC(struct open_call) open;
	struct calls_tasks tasks;
	struct str text;
	uint64_t end_ns, overlapping;
	uint64_t entries, shortest_ns; /* see struct preload_control */
	bool overflow, cut;
	struct slices *ret;
};

static unsigned type_of(uint64_t word)
{
	return (unsigned)(word & ((1u << PRELOAD_CALL_TYPE_BITS) - 1));
}

static uint32_t number_of(uint64_t word)
{
	return (uint32_t)(word >> PRELOAD_CALL_TYPE_BITS) & ((1u << PRELOAD_CALL_CODE_BITS) - 1);
}

static uint64_t value_of(uint64_t word)
{
	return word >> (PRELOAD_CALL_TYPE_BITS + PRELOAD_CALL_CODE_BITS);
}

static bool says(uint64_t word, enum preload_say what)
{
	return type_of(word) == PRELOAD_CALL_SAY && number_of(word) == what;
}

/* ---- files into parts */

static void end_part(struct reader *r, const struct cursor *at)
{
	if (r->parts.n)
		r->parts.v[r->parts.n - 1].records.end = at->p;
}

static void begin_part(struct reader *r, const struct cursor *at, uint32_t process, uint64_t word)
{
	const struct preload_process *p = &r->log.processes.v[process];

	*vec_push(&r->parts) = (struct part){
		.records = *at,
		.pid = p->pid,
		.tid = (uint32_t)value_of(word),
		.process = process,
		.begins = says(word, PRELOAD_SAY_BEGIN),
	};
}

/* A stretch of records that belong to one thread. */
static void split(struct reader *r, struct cursor c, uint32_t process)
{
	size_t first = r->parts.n;

	for (;;) {
		const struct cursor at = c;
		uint64_t word = cursor_u64(&c);
		bool begins = says(word, PRELOAD_SAY_BEGIN);

		if (c.bad || !word) {
			if (r->parts.n > first)
				end_part(r, &at);
			return;
		}
		if (begins || (says(word, PRELOAD_SAY_THREAD) && r->parts.n == first)) {
			if (r->parts.n > first)
				end_part(r, &at);
			begin_part(r, &at, process, word);
		}
	}
}

/* The records in the window, if they are not the end of what the file already has. */
static bool find_window(struct cursor *ret, const void *data, size_t size, uint64_t written)
{
	struct cursor c = cursor_make(data, size);
	uint64_t word;

	cursor_skip(&c, PRELOAD_CALLS_WINDOW_AT);
	if (cursor_left(&c) > PRELOAD_CALLS_WINDOW_MAX)
		c.end = c.p + PRELOAD_CALLS_WINDOW_MAX;
	*ret = c;
	word = cursor_u64(&c);
	return !c.bad && says(word, PRELOAD_SAY_WINDOW) &&
	       value_of(word) == (written & ((1ull << PRELOAD_CALL_STAMP_BITS) - 1));
}

/* The stamp of its first call. */
static uint64_t first_stamp(const struct part *part)
{
	struct cursor c = part->records;
	uint64_t high = 0;

	while (cursor_left(&c)) {
		uint64_t word = cursor_u64(&c);

		if (type_of(word) != PRELOAD_CALL_SAY)
			return high | value_of(word);
		if (number_of(word) == PRELOAD_SAY_TIME)
			high = value_of(word) << PRELOAD_CALL_STAMP_BITS;
	}
	return high;
}

/* If one thread's records end because there was no more room, all threads end there: what came
 * later is incomplete. */
static void note_unwritten(struct reader *r, uint64_t stamp)
{
	if (stamp >= r->log.stop_stamp)
		return;
	r->log.stop_stamp = stamp;
	r->cut = true;
}

static int check_magic(uint64_t magic, struct error *err)
{
	if (magic == PRELOAD_CALLS_MAGIC)
		return 0;
	if ((magic ^ PRELOAD_CALLS_MAGIC) >> PRELOAD_VERSION_SHIFT &&
	    !((magic ^ PRELOAD_CALLS_MAGIC) << (64 - PRELOAD_VERSION_SHIFT)))
		return error_set(err, EINVAL,
		                 "Python calls in the format of another version of giltracer: "
		                 "report with the version that recorded them, or record again");
	return error_set(err, EINVAL, "not a recording of giltracer's library");
}

static int add_records(struct reader *r, const void *data, size_t size, struct error *err)
{
	struct cursor c = cursor_make(data, size);
	uint64_t magic = cursor_u64(&c), stamp = cursor_u64(&c), unwritten, first, written;
	uint64_t unwritten_stamp;
	uint32_t pid = cursor_u32(&c);
	int process;

	/* Nothing was written yet: the header comes before all records. */
	if (size < PRELOAD_RECORDS_AT || (!pid && (!magic || magic == PRELOAD_CALLS_MAGIC)))
		return 0;
	cursor_skip(&c, sizeof(uint32_t));
	unwritten = cursor_u64(&c);
	unwritten_stamp = cursor_u64(&c);
	first = cursor_u64(&c);
	written = cursor_u64(&c);
	if (check_magic(magic, err) < 0)
		return -1;
	process = preload_log_find(&r->log, pid, stamp);
	if (process < 0) {
		r->cut |= stamp <= r->log.stop_stamp;
		return 0;
	}
	if (unwritten)
		note_unwritten(r, unwritten_stamp);
	r->overflow |= first != 0;
	c = cursor_make(data, size);
	cursor_skip(&c, PRELOAD_CALLS_DATA_AT);
	c = cursor_sub(&c, written < cursor_left(&c) ? written : cursor_left(&c));
	cursor_skip(&c, first);
	split(r, c, (uint32_t)process);
	if (find_window(&c, data, size, written))
		split(r, c, (uint32_t)process);
	return 0;
}

/* ---- names */

static uint32_t make_name(struct reader *r, const struct preload_code *code)
{
	r->text.len = 0;
	if (code->native)
		str_addf(&r->text, "%.*s (C)", (int)code->name_len, code->name);
	else
		str_addf(&r->text, "%.*s (%.*s:%" PRIu32 ")", (int)code->name_len, code->name,
		         (int)code->file_len, code->file, code->first_line);
	return names_id(r->ret->names, str_get(&r->text), r->text.len);
}

static uint32_t unknown_name(struct reader *r)
{
	static const char text[] = "unknown function";

	return names_id(r->ret->names, text, sizeof(text) - 1);
}

/* NO_NAME: a function of giltracer itself, which is not shown. */
static uint32_t find_name(struct reader *r, const struct preload_code *code)
{
	if (!code->name)
		return unknown_name(r);
	return preload_log_is_own(&r->log, code) ? NO_NAME : make_name(r, code);
}

#define NOT_ASKED (UINT32_MAX - 1)

static uint32_t name_of(struct reader *r, const struct part *part, uint32_t number)
{
	const struct preload_process *p = &r->log.processes.v[part->process];
	struct process_names *names = &r->names.v[part->process];
	uint32_t at = idmap_get(&p->called_ids, number);

	if (at == IDMAP_NONE)
		return unknown_name(r);
	while (names->ids.n < p->called.n)
		*vec_push(&names->ids) = NOT_ASKED;
	if (names->ids.v[at] == NOT_ASKED)
		names->ids.v[at] = find_name(r, &p->called.v[at]);
	return names->ids.v[at];
}

/* ---- records into calls */

/* @depth: of what is shown; @recorded: all calls; @last_ns: the latest time so far: none is
 * before it */
struct calls {
	VEC(struct slice) v;
	uint16_t max_depth;
	unsigned depth;
	uint64_t last_ns, recorded;
};

static void begin_call(struct reader *r, struct calls *calls, const struct part *part,
                       uint32_t code, uint64_t t)
{
	uint32_t name = name_of(r, part, code);
	uint16_t depth = (uint16_t)(calls->depth < UINT16_MAX ? calls->depth : UINT16_MAX);

	calls->recorded++;
	if (name == NO_NAME || calls->v.n == NO_SLICE) {
		*vec_push(&r->open) = (struct open_call){ NO_SLICE, code };
		return;
	}
	*vec_push(&r->open) = (struct open_call){ (uint32_t)calls->v.n, code };
	*vec_push(&calls->v) =
		(struct slice){ .start_ns = t, .name = name, .depth = depth, .flags = SLICE_OPEN };
	if (depth > calls->max_depth)
		calls->max_depth = depth;
	calls->depth++;
	r->ret->total++;
}

static void close_slice(struct calls *calls, uint32_t i, uint64_t t)
{
	struct slice *s;

	if (i == NO_SLICE)
		return;
	s = &calls->v.v[i];
	s->dur_ns = t - s->start_ns;
	s->flags = 0;
	calls->depth--;
}

/* ---- tasks */

/* How many callers are looked at for the one that is none of trio's or of Python's own. */
#define CALLERS_MAX 16

/* sys.monitoring tells whether a coroutine begins or goes on. */
#define TELLS_START 12

static const struct preload_code *code_of(const struct reader *r, const struct part *part,
                                          uint32_t number)
{
	const struct preload_process *p = &r->log.processes.v[part->process];
	uint32_t at = idmap_get(&p->called_ids, number);

	return at == IDMAP_NONE ? NULL : &p->called.v[at];
}

static bool has(const char *text, size_t len, const char *what)
{
	return memmem(text, len, what, strlen(what)) != NULL;
}

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(text + len - n, end, n);
}

static void find_trio(struct process_names *names, const struct preload_process *p)
{
	static const char loop[] = "/trio/_core/_run.py", rest[] = "_core/_run.py";

	for (size_t i = 0; !names->trio && i < p->called.n; i++) {
		const struct preload_code *code = &p->called.v[i];

		if (!code->name || !ends_with(code->file, code->file_len, loop))
			continue;
		names->trio = code->file;
		names->trio_len = code->file_len - (sizeof(rest) - 1);
	}
}

static bool is_trio(const struct reader *r, const struct part *part,
                    const struct preload_code *code)
{
	const struct process_names *names = &r->names.v[part->process];

	return names->trio && code->file_len > names->trio_len &&
	       !memcmp(code->file, names->trio, names->trio_len);
}

/* Whether the function belongs to Python's own library or to trio. */
static bool is_library(const struct reader *r, const struct part *part,
                       const struct preload_code *code)
{
	return has(code->file, code->file_len, "<frozen ") ||
	       (has(code->file, code->file_len, "/lib/python3.") &&
	        !has(code->file, code->file_len, "-packages/")) ||
	       is_trio(r, part, code);
}

/* Up to 3.10 a code object knows its plain name only. */
static bool is_named(const struct preload_code *code, const char *name)
{
	return ends_with(code->name, code->name_len, name);
}

static bool creates_task(const struct preload_code *code)
{
	return is_named(code, "create_task") || is_named(code, "ensure_future") ||
	       is_named(code, "spawn_impl");
}

/* Whether the function is the caller to report: one of the program, or a coroutine of Python's own
 * library. */
static bool is_caller(const struct reader *r, const struct part *part,
                      const struct preload_code *code)
{
	return !code || !code->name || !is_library(r, part, code) ||
	       (code->coroutine && !is_trio(r, part, code));
}

/* Which function has the loop's library put something into the queue. Beyond what the loop runs
 * is the loop, which trio's is itself. */
static void put_ready(struct reader *r, const struct part *part, uint64_t t)
{
	struct calls_tasks *c = &r->tasks;
	size_t first = c->runs.n ? c->runs.v[c->runs.n - 1].calls : 0;
	size_t least = r->open.n > CALLERS_MAX ? r->open.n - CALLERS_MAX : 0;
	uint32_t function = 0;
	bool creates = false;

	for (size_t i = r->open.n; !function && i > (first > least ? first : least); i--) {
		uint32_t number = r->open.v[i - 1].code;
		const struct preload_code *code = code_of(r, part, number);

		if (code && code->native)
			continue;
		if (is_caller(r, part, code))
			function = name_of(r, part, number);
		else if (is_trio(r, part, code) && is_named(code, "unrolled_run"))
			break;
		else
			creates |= creates_task(code);
	}
	calls_tasks_ready(c, t, function == NO_NAME ? 0 : function, creates);
}

/* Of what was said: with a time, or for a record that follows. */
static void say(struct reader *r, const struct part *part, uint64_t word)
{
	const struct preload_process *p = &r->log.processes.v[part->process];
	uint64_t value = value_of(word);
	const char *name;

	if (number_of(word) == PRELOAD_SAY_NAME) {
		name = value < p->task_names.n ? p->task_names.v[value] : NULL;
		value = name ? names_id(r->ret->names, name, strlen(name)) : 0;
	}
	calls_tasks_say(&r->tasks, number_of(word), value);
}

static void begin_coroutine(struct reader *r, const struct part *part, uint64_t word)
{
	const struct preload_code *code = code_of(r, part, number_of(word));

	if (code && code->coroutine)
		calls_tasks_begin(&r->tasks, name_of(r, part, number_of(word)),
		                  type_of(word) == PRELOAD_CALL_START &&
		                          code->minor >= TELLS_START);
}

static void end_coroutine(struct reader *r, const struct part *part, uint64_t word)
{
	const struct preload_code *code = code_of(r, part, number_of(word));

	if (code && code->coroutine)
		calls_tasks_end(&r->tasks, type_of(word), name_of(r, part, number_of(word)),
		                is_library(r, part, code));
}

/* Calls of functions in C whose end was not recorded: they end with their caller. */
static void end_native(struct reader *r, struct calls *calls, const struct part *part, size_t from,
                       uint64_t t)
{
	for (size_t i = from; i < r->open.n; i++) {
		const struct preload_code *code = code_of(r, part, r->open.v[i].code);

		if (!code || !code->native)
			return;
	}
	while (r->open.n > from)
		close_slice(calls, r->open.v[--r->open.n].slice, t);
}

/* An end without a beginning belongs to a call that was running before. If the call that ends is
 * not the innermost, those that it called end first: the program switched to another stack, as
 * greenlets do. */
static void end_call(struct reader *r, struct calls *calls, const struct part *part, uint32_t code,
                     uint64_t t)
{
	size_t i = r->open.n, least = i > SEARCH_MAX ? i - SEARCH_MAX : 0;

	while (i > least && r->open.v[i - 1].code != code)
		i--;
	if (i-- == least)
		return;
	end_native(r, calls, part, i + 1, t);
	close_slice(calls, r->open.v[i].slice, t);
	r->overlapping += r->open.n - 1 - i;
	memmove(&r->open.v[i], &r->open.v[i + 1], (r->open.n - 1 - i) * sizeof(*r->open.v));
	r->open.n--;
}

/* A call that never ended lasts until the end of the recording, or of what is known. */
static void close_open(struct reader *r, const struct calls *calls, uint64_t t)
{
	for (size_t i = 0; i < r->open.n; i++) {
		struct slice *s;

		if (r->open.v[i].slice == NO_SLICE)
			continue;
		s = &calls->v.v[r->open.v[i].slice];
		s->dur_ns = t > s->start_ns ? t - s->start_ns : 0;
	}
	r->open.n = 0;
}

static bool has_stamp(uint64_t word)
{
	return type_of(word) != PRELOAD_CALL_SAY || says(word, PRELOAD_SAY_ASIDE) ||
	       (number_of(word) >= PRELOAD_SAY_READY && number_of(word) <= PRELOAD_SAY_RAN);
}

static void read_record(struct reader *r, struct calls *calls, const struct part *part,
                        uint64_t word, uint64_t t)
{
	if (says(word, PRELOAD_SAY_READY)) {
		put_ready(r, part, t);
	} else if (says(word, PRELOAD_SAY_ASIDE)) {
		close_open(r, calls, t);
		calls->depth = 0;
	} else if (type_of(word) == PRELOAD_CALL_SAY) {
		calls_tasks_mark(&r->tasks, number_of(word), t, r->open.n);
	} else if (type_of(word) < PRELOAD_CALL_RETURN) {
		begin_call(r, calls, part, number_of(word), t);
		if (r->tasks.runs.n)
			begin_coroutine(r, part, word);
	} else {
		if (r->tasks.runs.n)
			end_coroutine(r, part, word);
		end_call(r, calls, part, number_of(word), t);
	}
}

static void read_part(struct reader *r, struct calls *calls, const struct part *part)
{
	struct cursor c = part->records;
	struct process_names *names = &r->names.v[part->process];
	uint64_t high = 0;
	size_t near = 0;

	while (cursor_left(&c)) {
		uint64_t word = cursor_u64(&c), stamp, t;

		if (says(word, PRELOAD_SAY_TIME))
			high = value_of(word) << PRELOAD_CALL_STAMP_BITS;
		if (!has_stamp(word)) {
			say(r, part, word);
			continue;
		}
		stamp = high | value_of(word);
		if (c.bad || stamp > r->log.stop_stamp)
			break;
		t = preload_log_time(&r->log, stamp, &near);
		if (t < calls->last_ns)
			t = calls->last_ns;
		calls->last_ns = t;
		read_record(r, calls, part, word, t);
	}
	if (calls->last_ns > names->last_ns)
		names->last_ns = calls->last_ns;
}

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

/* The parts of one thread, and of a later thread that had the same number. Returns how many there
 * are. */
static size_t read_thread(struct reader *r, const struct part *parts, size_t count,
                          struct slice_thread *ret)
{
	struct calls calls = { 0 };
	size_t i = 0;

	do {
		if (parts[i].begins) {
			calls_tasks_close(&r->tasks, calls.last_ns);
			close_open(r, &calls, r->names.v[parts[i].process].last_ns);
			calls.depth = 0;
		}
		read_part(r, &calls, &parts[i]);
	} while (++i < count && is_same_thread(&parts[0], &parts[i]));
	calls_tasks_close(&r->tasks, calls.last_ns);
	*ret = (struct slice_thread){ .pid = parts->pid,
		                      .tid = parts->tid,
		                      .max_depth = calls.max_depth,
		                      .recorded = calls.recorded,
		                      .v = calls.v.v,
		                      .n = calls.v.n };
	r->open.n = 0;
	return i;
}

static void close_thread(const struct reader *r, struct slice_thread *t, uint64_t end_ns)
{
	uint64_t end = r->end_ns ? r->end_ns : end_ns;

	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].flags & SLICE_OPEN && !t->v[i].dur_ns)
			t->v[i].dur_ns = end > t->v[i].start_ns ? end - t->v[i].start_ns : 0;
}

/* A caller lasts at least as long as the calls it makes and ends later: a call that is kept has its
 * callers, and so its depth. */
static void keep(struct slice_thread *t, uint64_t shortest_ns, uint64_t first_end_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct slice *s = &t->v[i];

		if (s->flags & SLICE_OPEN ||
		    (s->dur_ns >= shortest_ns && s->start_ns + s->dur_ns >= first_end_ns))
			t->v[n++] = *s;
	}
	t->n = n;
}

/* The number at index k of the sorted numbers. */
static uint64_t select_number(uint64_t *v, size_t n, size_t k)
{
	size_t low = 0, high = n - 1;

	while (low < high) {
		uint64_t pivot = v[low + (high - low) / 2];
		size_t i = low, j = high;

		while (i <= j) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i > j)
				break;
			uint64_t swapped = v[i];
			v[i++] = v[j];
			v[j] = swapped;
			if (!j--)
				break;
		}
		if (j != SIZE_MAX && k <= j)
			high = j;
		else if (k >= i)
			low = i;
		else
			break;
	}
	return v[k];
}

/* The time from which on the last calls of a process end, of which this many are kept. */
static uint64_t first_end(const struct reader *r, const struct slice_thread *threads, size_t count)
{
	VEC(uint64_t) ends = { 0 };
	uint64_t first = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < threads[i].n; j++)
			*vec_push(&ends) = threads[i].v[j].start_ns + threads[i].v[j].dur_ns;
	if (ends.n > r->entries)
		first = select_number(ends.v, ends.n, ends.n - (size_t)r->entries);
	vec_done(&ends);
	return first;
}

/* The threads of each process follow one another. */
static void keep_last(struct reader *r, struct slice_thread *threads, const uint32_t *processes,
                      size_t count)
{
	for (size_t i = 0, n; i < count; i += n) {
		uint64_t total = 0, first = 0;

		for (n = 0; i + n < count && processes[i + n] == processes[i]; n++)
			total += threads[i + n].n;
		if (r->entries && total > r->entries)
			first = first_end(r, &threads[i], n);
		r->overflow |= first != 0;
		for (size_t j = i; (first || r->shortest_ns) && j < i + n; j++)
			keep(&threads[j], r->shortest_ns, first);
	}
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
			.end_ns = r->end_ns ? r->end_ns : r->names.v[i].last_ns,
		};
	r->ret->tasks = xcalloc(1, sizeof(*r->ret->tasks));
	aio_make(r->ret->tasks, r->tasks.events.v, r->tasks.events.n, processes);
	vec_done(&r->tasks.events);
}

/* Processes that execute a program, but the first one, which is the program itself. Only a fork has
 * the recorder of its parent. */
static uint64_t count_afresh(const struct reader *r)
{
	uint64_t n = 0;

	for (size_t i = 1; i < r->log.processes.n; i++)
		n += !r->log.processes.v[i].forked;
	return n;
}

static void read_threads(struct reader *r)
{
	struct slices *ret = r->ret;
	VEC(struct slice_thread) threads = { 0 };
	VEC(uint32_t) processes = { 0 };

	while (r->names.n < r->log.processes.n) {
		*vec_push(&r->names) = (struct process_names){ .last_ns = 0 };
		find_trio(&r->names.v[r->names.n - 1], &r->log.processes.v[r->names.n - 1]);
	}
	for (size_t i = 0; i < r->parts.n; i++)
		r->parts.v[i].stamp = first_stamp(&r->parts.v[i]);
	if (r->parts.n)
		qsort(r->parts.v, r->parts.n, sizeof(*r->parts.v), by_thread);
	for (size_t i = 0; i < r->parts.n;) {
		struct slice_thread *t = vec_push(&threads);

		calls_tasks_thread(&r->tasks, r->parts.v[i].process, (uint32_t)threads.n - 1);
		*vec_push(&processes) = r->parts.v[i].process;
		i += read_thread(r, &r->parts.v[i], r->parts.n - i, t);
		idmap_set(&ret->by_id, idmap_pair(t->pid, t->tid), (uint32_t)threads.n - 1);
	}
	for (size_t i = 0; i < threads.n; i++)
		close_thread(r, &threads.v[i], r->names.v[processes.v[i]].last_ns);
	make_tasks(r);
	keep_last(r, threads.v, processes.v, threads.n);
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
	if (add_records(r, map.data, map.size, err) < 0)
		return error_prefix(err, "%s", path);
	return 0;
}

static int add_log(void *data, const char *path, struct error *err)
{
	struct reader *r = data;
	return preload_log_read(&r->log, path, err);
}

static struct reader *reader_new(void)
{
	struct reader *r = xcalloc(1, sizeof(*r));

	r->log.stop_stamp = UINT64_MAX;
	r->ret = xcalloc(1, sizeof(*r->ret));
	r->ret->names = names_new();
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
	calls_tasks_done(&r->tasks);
	str_done(&r->text);
	preload_log_done(&r->log);
	slices_free(r->ret);
	free(r);
}

DEFINE_CLEANUP(struct reader *, reader_free);

/* Filters that the library applied are applied again here, because it knows times and modules less
 * exactly. */
static int read_control(struct reader *r, const char *dir, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/" PRELOAD_CONTROL, dir);
	CLEANUP(filemap_done) struct filemap map = { 0 };
	struct preload_control control;

	if (filemap_open(&map, path, err) < 0)
		return -1;
	if (map.size < sizeof(control))
		return 0;
	memcpy(&control, map.data, sizeof(control));
	r->entries = control.entries;
	r->shortest_ns = control.shortest_ns;
	return 0;
}

int from_calls_read(struct slices **ret, const char *dir, const struct from_calls_options *options,
                    struct error *err)
{
	CLEANUP(reader_free) struct reader *r = reader_new();

	r->end_ns = options->end_ns;
	if (read_control(r, dir, err) < 0)
		return -1;
	if (folder_each(dir, PRELOAD_LOG_SUFFIX, add_log, r, err) < 0)
		return -1;
	preload_log_finish(&r->log);
	if (r->log.unwritten_stamp)
		note_unwritten(r, r->log.unwritten_stamp);
	if (folder_each(dir, PRELOAD_CALLS_SUFFIX, add_file, r, err) < 0)
		return -1;
	read_threads(r);
	*ret = take(r->ret);
	return 0;
}

int from_calls_read_memory(struct slices **ret, const void *log, size_t log_size,
                           const void *records, size_t size, struct error *err)
{
	CLEANUP(reader_free) struct reader *r = reader_new();

	preload_log_parse(&r->log, log, log_size);
	preload_log_finish(&r->log);
	if (add_records(r, records, size, err) < 0)
		return -1;
	read_threads(r);
	*ret = take(r->ret);
	return 0;
}
