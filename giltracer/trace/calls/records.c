/* SPDX-License-Identifier: MIT */
/* Turns the records of a thread into calls, and into events of tasks. */
#include <string.h>

#include "python/layout.h"
#include "trace/calls/reader.h"
#include "trace/names.h"

/* How many of the innermost open calls are searched for the one that ends. */
#define SEARCH_MAX 256

/* How many callers are searched for one that is not a function of trio or of Python's own
 * library. */
#define CALLERS_MAX 16

static void begin_call(struct reader *r, struct calls *calls, const struct part *part,
                       uint32_t code, uint64_t t)
{
	uint32_t name = calls_function_name(r, part, code);
	uint16_t depth = (uint16_t)(calls->depth < UINT16_MAX ? calls->depth : UINT16_MAX);

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

/* ---- greenlets */

static struct greenlet *greenlet_of(struct reader *r, uint64_t object)
{
	uint32_t i;

	if (idmap_add(&r->greenlet_ids, object, (uint32_t)r->greenlets.n, &i))
		*vec_push(&r->greenlets) = (struct greenlet){ 0 };
	return &r->greenlets.v[i];
}

void calls_forget_greenlets(struct reader *r)
{
	for (size_t i = 0; i < r->greenlets.n; i++)
		vec_done(&r->greenlets.v[i].codes);
	vec_done(&r->greenlets);
	idmap_done(&r->greenlet_ids);
	r->greenlet_ids = (struct idmap){ 0 };
}

/* gevent's and eventlet's loops run in a greenlet of their own. */
static bool is_hub(const struct preload_code *code)
{
	static const char *const files[] = { "/gevent/hub.py", "/eventlet/hubs/hub.py" };

	for (size_t i = 0; code && i < sizeof(files) / sizeof(*files); i++) {
		size_t len = strlen(files[i]);

		if (code->file_len >= len &&
		    !memcmp(code->file + code->file_len - len, files[i], len))
			return true;
	}
	return false;
}

/* Names the greenlet that runs after its outermost call. */
static void name_greenlet(struct reader *r, const struct part *part, uint32_t number)
{
	uint32_t name = calls_function_name(r, part, number);

	calls_tasks_greenlet(&r->tasks, name == NO_NAME ? 0 : name,
	                     is_hub(calls_function(r, part, number)));
}

/* The open calls belong to a greenlet that does not run from now on. */
static void leave_greenlet(struct reader *r, struct calls *calls, uint64_t object, uint64_t t)
{
	struct greenlet *g = greenlet_of(r, object);

	calls_tasks_greenlet_ends(&r->tasks, !r->open.n);
	g->codes.n = 0;
	for (size_t i = 0; i < r->open.n; i++)
		*vec_push(&g->codes) = r->open.v[i].code;
	while (r->open.n)
		close_slice(calls, r->open.v[--r->open.n].slice, t);
}

/* The calls of the greenlet go on. */
static void enter_greenlet(struct reader *r, struct calls *calls, const struct part *part,
                           uint64_t object, uint64_t t)
{
	struct greenlet *g = greenlet_of(r, object);

	for (size_t i = 0; i < g->codes.n; i++)
		begin_call(r, calls, part, g->codes.v[i], t);
	if (g->codes.n)
		name_greenlet(r, part, g->codes.v[0]);
	g->codes.n = 0;
}

/* A RUNS or RAN of a greenlet. */
static void mark_greenlet(struct reader *r, struct calls *calls, const struct part *part,
                          uint64_t word, uint64_t t)
{
	uint64_t object = r->tasks.object;

	if (says(word, PRELOAD_SAY_RAN)) {
		leave_greenlet(r, calls, object, t);
		calls_tasks_mark(&r->tasks, PRELOAD_SAY_RAN, t, 0);
		r->tasks.object = 0;
	} else if (says(word, PRELOAD_SAY_RUNS)) {
		calls_tasks_mark(&r->tasks, PRELOAD_SAY_RUNS, t, 0);
		enter_greenlet(r, calls, part, object, t);
	}
}

/* ---- tasks */

/* Find the function that made the library put an object into the loop's queue. Calls outside of the
 * innermost run belong to the loop and are not searched, nor are those outside of trio's loop. */
static void put_ready(struct reader *r, const struct part *part, uint64_t t)
{
	struct calls_tasks *c = &r->tasks;
	size_t first = c->runs.n ? c->runs.v[c->runs.n - 1].calls : 0;
	size_t least = r->open.n > CALLERS_MAX ? r->open.n - CALLERS_MAX : 0;
	uint32_t function = 0;
	bool creates = false;

	for (size_t i = r->open.n; !function && i > (first > least ? first : least); i--) {
		uint32_t number = r->open.v[i - 1].code;
		const struct preload_code *code = calls_function(r, part, number);

		if (code && code->native)
			continue;
		if (calls_is_caller(r, part, code))
			function = calls_function_name(r, part, number);
		else if (calls_is_trio_loop(r, part, code))
			break;
		else
			creates |= calls_creates_task(code);
	}
	calls_tasks_ready(c, t, function == NO_NAME ? 0 : function, creates);
}

/* A record without a time, which describes the next record. */
static void say(struct reader *r, const struct part *part, uint64_t word)
{
	const struct preload_process *p = &r->log.processes.v[part->process];
	uint64_t value = value_of(word);
	const struct preload_name *name;

	if (number_of(word) == PRELOAD_SAY_NAME) {
		name = preload_log_task_name(p, value);
		value = name ? names_id(r->ret->names, name->text, name->len) : 0;
	}
	calls_tasks_say(&r->tasks, number_of(word), value);
}

static void begin_coroutine(struct reader *r, const struct part *part, uint64_t word)
{
	const struct preload_code *code = calls_function(r, part, number_of(word));

	if (code && code->coroutine)
		calls_tasks_begin(&r->tasks, calls_function_name(r, part, number_of(word)),
		                  type_of(word) == PRELOAD_CALL_START &&
		                          python_has_monitoring(code->minor));
}

static void end_coroutine(struct reader *r, const struct part *part, uint64_t word)
{
	const struct preload_code *code = calls_function(r, part, number_of(word));

	if (code && code->coroutine)
		calls_tasks_end(&r->tasks, type_of(word),
		                calls_function_name(r, part, number_of(word)),
		                calls_is_library(r, part, code));
}

/* ---- ends of calls */

/* Calls of functions in C whose end was not recorded end with their caller. If all open calls from
 * this index on are such calls, end them. */
static void end_native(struct reader *r, struct calls *calls, const struct part *part, size_t from,
                       uint64_t t)
{
	for (size_t i = from; i < r->open.n; i++) {
		const struct preload_code *code = calls_function(r, part, r->open.v[i].code);

		if (!code || !code->native)
			return;
	}
	while (r->open.n > from)
		close_slice(calls, r->open.v[--r->open.n].slice, t);
}

/* If the beginning of a call was not recorded, its end is ignored. If the call that ends is not
 * the innermost one, the program switched to another stack, as greenlets do: the calls within it
 * go on. */
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

void calls_close_open(struct reader *r, const struct calls *calls, uint64_t t)
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
		calls_close_open(r, calls, t);
		calls->depth = 0;
	} else if (type_of(word) == PRELOAD_CALL_SAY && r->tasks.object &&
	           r->tasks.loop == AIO_GREENLET) {
		mark_greenlet(r, calls, part, word, t);
	} else if (type_of(word) == PRELOAD_CALL_SAY) {
		calls_tasks_mark(&r->tasks, number_of(word), t, r->open.n);
	} else if (type_of(word) < PRELOAD_CALL_RETURN) {
		calls->recorded++;
		begin_call(r, calls, part, number_of(word), t);
		if (r->tasks.runs.n && r->open.n == 1)
			name_greenlet(r, part, number_of(word));
		if (r->tasks.runs.n)
			begin_coroutine(r, part, word);
	} else {
		if (r->tasks.runs.n)
			end_coroutine(r, part, word);
		end_call(r, calls, part, number_of(word), t);
	}
}

void calls_read_part(struct reader *r, struct calls *calls, const struct part *part)
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
