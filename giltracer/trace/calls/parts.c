/* SPDX-License-Identifier: MIT */
/* Splits the files of calls into parts of one thread each. */
#include <errno.h>

#include "trace/calls/reader.h"

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

/* Split consecutive records into parts, up to a zero. */
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

/* Find the records in the window. Returns false if they have been appended to the data already: the
 * process was killed before it cleared the window. */
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

uint64_t calls_first_stamp(const struct part *part)
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

void calls_note_unwritten(struct reader *r, uint64_t stamp)
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

int calls_add_records(struct reader *r, const void *data, size_t size, struct error *err)
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
		calls_note_unwritten(r, unwritten_stamp);
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
