/* SPDX-License-Identifier: MIT */
/* Decodes the records of a thread. */
#include "trace/preload/stream.h"

#include <errno.h>

#include "preload/format.h"

/* Whether the record is an event; other records describe those that follow. */
static bool is_event(struct preload_stream *s, unsigned type, uint64_t number)
{
	switch (type) {
	case PRELOAD_OF_GIL:
		s->gil = preload_log_gil(s->process, number);
		return false;
	case PRELOAD_OF_THREAD:
		s->tid = (uint32_t)number;
		s->creator = 0;
		return false;
	case PRELOAD_OF_CREATOR:
		s->creator = (uint32_t)number;
		return false;
	case PRELOAD_OF_HOLDER:
		s->holder = (uint32_t)number;
		return false;
	case PRELOAD_OF_FRAME:
		s->list = number;
		return false;
	case PRELOAD_OF_DELAY:
		s->delay_ns = number;
		return false;
	case PRELOAD_OF_LOCK:
		s->lock = number;
		return false;
	case PRELOAD_OF_TIME:
		s->before = number;
		return false;
	default:
		return true;
	}
}

/* The release of a turn; its acquire comes next. */
static void begin_turn(struct preload_stream *s, uint64_t word)
{
	const uint64_t low = word >> PRELOAD_TURN_SHIFT;
	const int64_t near = (int64_t)((low - s->before) << PRELOAD_TURN_SHIFT) >>
	                     PRELOAD_TURN_SHIFT;

	s->type = PRELOAD_RELEASE;
	s->stamp = (s->before + (uint64_t)near) & UINT64_MAX >> PRELOAD_TYPE_BITS;
	s->acquired_stamp = s->stamp + (word >> PRELOAD_TYPE_BITS) % PRELOAD_TURN_MAX;
}

/* Go to the next event. The records end at a zero, or with the file. */
static void advance(struct preload_stream *s)
{
	uint64_t word;

	if (s->acquired_stamp) {
		s->type = PRELOAD_ACQUIRE;
		s->before = s->stamp = s->acquired_stamp;
		s->acquired_stamp = 0;
		return;
	}
	do {
		word = cursor_u64(&s->at);
		s->type = word % (1u << PRELOAD_TYPE_BITS);
		s->stamp = word >> PRELOAD_TYPE_BITS;
		if (s->at.bad || !word) {
			s->at.p = s->at.end;
			s->stamp = UINT64_MAX;
			return;
		}
		s->records++;
	} while (!is_event(s, s->type, s->stamp));
	if (s->type == PRELOAD_TURN)
		begin_turn(s, word);
	s->before = s->stamp;
}

/* For a file without a header, into which nothing has been written yet. */
static int begin_empty(struct preload_stream *ret)
{
	ret->stamp = UINT64_MAX;
	return 0;
}

int preload_stream_begin(struct preload_stream *ret, const struct preload_log *log,
                         const void *data, size_t size, struct error *err)
{
	struct cursor c = cursor_make(data, size);
	uint64_t magic = cursor_u64(&c), process = cursor_u64(&c);
	uint32_t pid = cursor_u32(&c);
	uint64_t first;
	int index;

	cursor_skip(&c, sizeof(uint32_t));
	ret->unwritten = cursor_u64(&c);
	ret->unwritten_stamp = cursor_u64(&c);
	first = cursor_u64(&c);
	cursor_skip(&c, sizeof(uint64_t));
	ret->dropped_stamp = cursor_u64(&c);
	if (size < PRELOAD_RECORDS_AT || (!pid && (!magic || magic == PRELOAD_MAGIC)))
		return begin_empty(ret);
	if ((magic ^ PRELOAD_MAGIC) << (64 - PRELOAD_VERSION_SHIFT))
		return error_set(err, EINVAL, "not a recording of giltracer's library");
	if (magic != PRELOAD_MAGIC)
		return error_set(err, EINVAL,
		                 "GIL events in the format of another version of giltracer: "
		                 "report with the version that recorded them, or record again");
	index = preload_log_find(log, pid, process);
	if (index < 0) {
		ret->unlogged = process <= log->stop_stamp;
		return begin_empty(ret);
	}
	ret->log = log;
	ret->process = &log->processes.v[index];
	ret->tid = pid;
	ret->at = cursor_make(data, size);
	cursor_skip(&ret->at, first ? first : PRELOAD_RECORDS_AT);
	ret->cut = first;
	ret->gil = preload_log_gil(ret->process, 0);
	advance(ret);
	return 0;
}

/* The first thread of a process: a process that existed before, or a fork that may have executed
 * another program since. */
static unsigned process_began(struct preload_stream *s, struct event *ret)
{
	const struct preload_process *p = s->process;
	bool first = p == &s->log->processes.v[0];
	unsigned n = 0;

	if (!first) {
		ret[1] = ret[0];
		ret[n].type = EV_FORK;
		ret[n].fork.parent_pid = p->parent;
		ret[n++].fork.parent_tid = p->forked_by;
	}
	if (!p->forked_by) {
		ret[n].flags = first ? 0 : EVF_EXEC;
		ret[n++].type = EV_COMM;
	}
	return n;
}

static unsigned thread_began(struct preload_stream *s, struct event *ev)
{
	s->waiting = s->cut = false;
	s->alive = true;
	s->stack = 0;
	if (s->tid == s->process->pid)
		return process_began(s, ev);
	ev->type = EV_FORK;
	ev->fork.parent_pid = s->process->pid;
	ev->fork.parent_tid = s->creator;
	return 1;
}

/* A thread that did not report a wait before requested the GIL and got it at once. */
static unsigned acquired(struct preload_stream *s, struct event *ret)
{
	unsigned n = 0;

	if (!s->waiting) {
		ret[n] = ret[0];
		ret[n].type = EV_REQUEST;
		ret[n].gil.frame = s->stack;
		ret[n++].gil.address = s->gil;
		ret[n] = ret[0];
		ret[n].gil.address = 0;
	}
	ret[n++].type = EV_ACQUIRE;
	s->waiting = false;
	return n;
}

static const struct preload_list *list_of(const struct preload_stream *s)
{
	uint32_t i = preload_log_list(s->process, s->list);

	return i == IDMAP_NONE ? NULL : &s->process->lists.v[i];
}

static uint32_t stack_of_list(struct preload_stream *s)
{
	const struct preload_list *list;

	if (s->list != s->known_list) {
		list = list_of(s);
		s->known_list = s->list;
		s->known_stack = list ? list->stack : 0;
	}
	return s->known_stack;
}

/* For how long the thread had a CPU and did not release the GIL after a request. */
static uint32_t overdue_us(struct preload_stream *s, uint64_t released_ns)
{
	size_t near = s->near;
	uint64_t asked_ns, us;

	if (!s->asked_stamp)
		return 0;
	asked_ns = preload_log_time(s->log, s->asked_stamp, &near);
	if (asked_ns >= released_ns || released_ns - asked_ns <= s->delay_ns)
		return 0;
	us = (released_ns - asked_ns - s->delay_ns) / 1000;
	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static unsigned of_gil(struct preload_stream *s, struct event *ret, enum event_type type)
{
	ret->type = (uint16_t)type;
	ret->gil.address = s->gil;
	/* No Python runs between a release and the next request. */
	ret->gil.frame = s->stack;
	return 1;
}

static bool is_for_signal(unsigned event, enum python_wait wait)
{
	if (event == PRELOAD_LOCK_IDLES)
		return wait != PYTHON_WAIT_TURN;
	return wait == PYTHON_WAIT_SIGNAL ||
	       (event == PRELOAD_LOCK_PARKS && wait == PYTHON_WAIT_NOTICE);
}

/* The thread waits until all others have stopped, and looks now and then. */
static unsigned stops_world(struct preload_stream *s, struct event *ret, unsigned event)
{
	bool begins = event == PRELOAD_LOCK_STOPS || event == PRELOAD_LOCK_COLLECTS;

	s->stops = begins;
	ret->type = begins ? EV_STOP_WORLD : EV_STOPPED_WORLD;
	ret->flags = event == PRELOAD_LOCK_COLLECTS ? EVF_COLLECTS
	             : event == PRELOAD_LOCK_LEFT   ? EVF_LOOKS
	                                            : 0;
	return 1;
}

static void name_lock(const struct preload_stream *s, struct event *ev)
{
	const struct preload_object *object = preload_log_object(s->process, ev->park.address,
	                                                         s->stamp);

	ev->park.of = object ? object->of : 0;
	ev->park.name = object ? object->name : 0;
	ev->flags = object && object->runtime ? EVF_RUNTIME : 0;
}

static unsigned of_lock(struct preload_stream *s, struct event *ret)
{
	const struct preload_list *list = list_of(s);
	unsigned event = s->lock % (1u << PRELOAD_LOCK_BITS);
	uint32_t holder = s->holder;

	ret->park.address = s->lock >> PRELOAD_LOCK_BITS;
	ret->park.frame = list ? list->stack : 0;
	s->lock = 0;
	s->holder = 0;
	if (event == PRELOAD_LOCK_STOPS || event == PRELOAD_LOCK_COLLECTS || s->stops)
		return stops_world(s, ret, event);
	switch (event) {
	case PRELOAD_LOCK_STOPPED:
		ret->type = EV_PARK;
		ret->park.kind = PARK_WORLD;
		return 1;
	case PRELOAD_LOCK_LATE:
		ret->type = EV_LATE;
		return 1;
	case PRELOAD_LOCK_STARTS:
		ret->type = EV_START_WORLD;
		ret->gil.frame = stack_of_list(s);
		return 1;
	case PRELOAD_LOCK_WAITS:
	case PRELOAD_LOCK_IDLES:
	case PRELOAD_LOCK_PARKS:
	case PRELOAD_LOCK_DOUBTS:
		ret->type = EV_PARK;
		ret->park.kind = is_for_signal(event, list ? list->wait : PYTHON_WAIT_ANY)
		                         ? PARK_EVENT
		                         : PARK_LOCK;
		name_lock(s, ret);
		if (list && list->wait == PYTHON_WAIT_TURN)
			ret->flags |= EVF_TURN;
		else if (event == PRELOAD_LOCK_DOUBTS)
			ret->flags |= EVF_DOUBT;
		if (!holder || ret->park.kind != PARK_LOCK)
			return 1;
		ret[1] = ret[0];
		ret[1].type = EV_HOLDER;
		ret[1].holder.tid = holder;
		return 2;
	case PRELOAD_LOCK_SPINS:
		if (is_for_signal(PRELOAD_LOCK_PARKS, list ? list->wait : PYTHON_WAIT_ANY))
			return 0;
		ret->type = EV_SPIN;
		ret->park.kind = PARK_LOCK;
		name_lock(s, ret);
		return 1;
	case PRELOAD_LOCK_SPUN:
		ret->type = EV_SPUN;
		return 1;
	case PRELOAD_LOCK_GOT:
	case PRELOAD_LOCK_LEFT:
	case PRELOAD_LOCK_MISSED:
		ret->flags = event == PRELOAD_LOCK_MISSED ? EVF_MISSED
		             : event == PRELOAD_LOCK_LEFT ? EVF_LEFT
		                                          : 0;
		ret->type = EV_PARKED;
		return 1;
	case PRELOAD_LOCK_OUTER:
		ret->type = EV_OUTER;
		return 1;
	case PRELOAD_LOCK_INNER:
		ret->type = EV_INNER;
		return 1;
	case PRELOAD_LOCK_GONE:
		ret->type = EV_GONE;
		return 1;
	case PRELOAD_LOCK_SIGNALS:
	case PRELOAD_LOCK_POSTS:
		ret->type = EV_UNPARK;
		if (event == PRELOAD_LOCK_SIGNALS)
			ret->flags = EVF_SIGNAL;
		return 1;
	default:
		s->unknown++;
		return 0;
	}
}

static unsigned decode(struct preload_stream *s, struct event *ret)
{
	switch (s->type) {
	case PRELOAD_REQUEST:
		s->waiting = true;
		return of_gil(s, ret, EV_REQUEST);
	case PRELOAD_ACQUIRE:
		return acquired(s, ret);
	case PRELOAD_RELEASE:
		s->stack = stack_of_list(s);
		ret->gil.overdue_us = overdue_us(s, ret->time_ns);
		s->asked_stamp = s->delay_ns = 0;
		return of_gil(s, ret, EV_RELEASE);
	case PRELOAD_SWITCHED:
		return of_gil(s, ret, EV_RELEASED);
	case PRELOAD_HELD:
		s->asked_stamp = s->stamp;
		of_gil(s, ret, EV_ASKED);
		ret->gil.frame = stack_of_list(s);
		return 1;
	case PRELOAD_HOLDER_ASKED:
		if (!s->holder)
			return 0;
		of_gil(s, ret, EV_ASKED);
		ret->tid = s->holder;
		s->holder = 0;
		ret->gil.frame = stack_of_list(s);
		return 1;
	case PRELOAD_THREAD:
		s->list = s->asked_stamp = s->delay_ns = 0;
		s->stops = false;
		return thread_began(s, ret);
	case PRELOAD_EXIT:
		s->alive = false;
		ret->type = EV_EXIT;
		return 1;
	case PRELOAD_LOCK:
		return of_lock(s, ret);
	case PRELOAD_ASKED:
	case PRELOAD_LEFT:
		return 0;
	default:
		s->unknown++;
		return 0;
	}
}

unsigned preload_stream_next(struct preload_stream *s, struct event ret[PRELOAD_STREAM_EVENTS])
{
	bool was_release = s->type == PRELOAD_RELEASE, was_switched = s->type == PRELOAD_SWITCHED;
	unsigned n;

	ret[0] = (struct event){
		.time_ns = preload_log_time(s->log, s->stamp, &s->near),
		.pid = s->process->pid,
		.tid = s->tid,
		.cpu = -1,
	};
	/* The beginning of the thread was dropped, perhaps with the first half of an event of a lock. */
	if (s->cut && s->type == PRELOAD_LOCK && !s->lock) {
		advance(s);
		return 0;
	}
	if (s->cut && s->type != PRELOAD_THREAD)
		return thread_began(s, ret);
	n = decode(s, ret);
	advance(s);
	if (s->type == PRELOAD_SWITCHED)
		return was_switched ? 0 : n;
	/* If no thread waits, drop_gil ends with the release. */
	if (was_release) {
		ret[n] = ret[n - 1];
		ret[n++].type = EV_RELEASED;
	}
	return n;
}

void preload_stream_end(struct preload_stream *s, uint64_t stamp)
{
	if (!s->alive)
		return;
	s->type = PRELOAD_EXIT;
	s->stamp = stamp;
}
