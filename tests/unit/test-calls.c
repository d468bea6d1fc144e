/* SPDX-License-Identifier: MIT */
/* Python calls of the preload library, from bytes. */
#include <stdlib.h>
#include <string.h>

#include "preload/format.h"
#include "tap.h"
#include "trace/calls/from_calls.h"
#include "trace/names.h"

#define STAMP 7
#define PID   100

static uint8_t log_bytes[4096];
static size_t log_size;
static uint64_t records[(PRELOAD_CALLS_DATA_AT + 4096) / sizeof(uint64_t)];
static size_t at;

static void put_entry(struct preload_entry entry, const void *text, size_t len)
{
	size_t padded = (len + 7) & ~(size_t)7;

	entry.size = (uint32_t)(sizeof(entry) + padded);
	memcpy(log_bytes + log_size, &entry, sizeof(entry));
	if (len)
		memcpy(log_bytes + log_size + sizeof(entry), text, len);
	log_size += entry.size;
}

static void put_function(unsigned number, const char *name)
{
	struct {
		struct preload_function head;
		char text[64];
	} d = { .head = {
			.first_line = number, .name_len = (uint32_t)strlen(name), .file_len = 4 } };

	memcpy(d.text, name, strlen(name));
	memcpy(d.text + strlen(name), "f.py", 4);
	put_entry((struct preload_entry){ .type = PRELOAD_CALLED, .number = number }, &d,
	          sizeof(d.head) + strlen(name) + 4);
}

/* A clock of nanoseconds. */
static void begin(void)
{
	log_size = 0;
	memset(log_bytes, 0, sizeof(log_bytes));
	memset(records, 0, sizeof(records));
	put_entry((struct preload_entry){ .type = PRELOAD_PROCESS, .stamp = STAMP, .number = PID },
	          "", 0);
	put_entry((struct preload_entry){ .type = PRELOAD_PAIR, .stamp = 0, .value = 1000 }, "", 0);
	put_entry((struct preload_entry){ .type = PRELOAD_PAIR, .stamp = 1000, .value = 2000 }, "",
	          0);
	put_function(1, "one");
	put_function(2, "two");
	*(struct preload_header *)(void *)records = (struct preload_header){
		.magic = PRELOAD_CALLS_MAGIC,
		.process = STAMP,
		.pid = PID,
	};
	at = PRELOAD_CALLS_WINDOW_AT / sizeof(uint64_t);
	records[at++] = PRELOAD_CALL_WORD(PRELOAD_CALL_SAY, PRELOAD_SAY_WINDOW, 0);
}

static void put(enum preload_call_type type, unsigned number, uint64_t stamp)
{
	records[at++] = PRELOAD_CALL_WORD(type, number, stamp);
}

static void thread(enum preload_say how, uint64_t tid)
{
	put(PRELOAD_CALL_SAY, how, tid);
	put(PRELOAD_CALL_SAY, PRELOAD_SAY_TIME, 0);
}

static struct slices *read_until(uint64_t end_ns)
{
	const struct from_calls_options options = { .end_ns = end_ns };
	struct slices *slices = NULL;
	struct error err = { 0 };

	if (from_calls_read_memory(&slices, log_bytes, log_size, records, sizeof(records), &options,
	                           &err) < 0)
		fprintf(stderr, "# %s\n", err.text);
	return slices;
}

static struct slices *read_all(void)
{
	return read_until(0);
}

/* "NAME START DURATION DEPTH[ open], …" of a thread. */
static void shows(const struct slices *slices, uint32_t tid, const char *wanted, const char *what)
{
	const struct slice_thread *t = slices_find(slices, PID, tid);
	char text[512] = "";

	for (size_t i = 0; t && i < t->n; i++) {
		const struct slice *s = &t->v[i];
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%s%.3s %d %d %d%s", i ? ", " : "",
		         names_get(slices->names, s->name), (int)s->start_ns, (int)s->dur_ns,
		         s->depth, s->flags & SLICE_OPEN ? " open" : "");
	}
	is_str(text, wanted, "%s", what);
}

static void test_nesting(void)
{
	CLEANUP(slices_free) struct slices *slices = NULL;

	begin();
	thread(PRELOAD_SAY_BEGIN, 5);
	put(PRELOAD_CALL_RETURN, 1, 5);
	put(PRELOAD_CALL_START, 1, 10);
	put(PRELOAD_CALL_START, 2, 20);
	put(PRELOAD_CALL_YIELD, 2, 30);
	put(PRELOAD_CALL_RESUME, 2, 40);
	put(PRELOAD_CALL_UNWIND, 2, 50);
	put(PRELOAD_CALL_RETURN, 1, 60);
	put(PRELOAD_CALL_START, 9, 70);
	thread(PRELOAD_SAY_BEGIN, 6);
	put(PRELOAD_CALL_START, 1, 100);
	slices = read_all();
	shows(slices, 5, "one 1010 50 0, two 1020 10 1, two 1040 10 1, unk 1070 30 0 open",
	      "calls in their nesting; one that was running before is not there");
	shows(slices, 6, "one 1100 0 0 open", "another thread in the same file");
	is_u64(slices->flaw, SLICES_WHOLE, "nothing is missing");
}

static void put_native(unsigned number, const char *name)
{
	struct {
		struct preload_function head;
		char text[64];
	} d = { .head = { .name_len = (uint32_t)strlen(name) } };

	memcpy(d.text, name, strlen(name));
	put_entry((struct preload_entry){ .type = PRELOAD_CALLED,
	                                  .number = number,
	                                  .value = PRELOAD_NATIVE },
	          &d, sizeof(d.head) + strlen(name));
}

static void test_native(void)
{
	CLEANUP(slices_free) struct slices *slices = NULL;

	begin();
	put_native(3, "builtins.len");
	put_native(4, "a.b");
	thread(PRELOAD_SAY_BEGIN, 5);
	put(PRELOAD_CALL_START, 1, 10);
	put(PRELOAD_CALL_START, 3, 20);
	put(PRELOAD_CALL_RETURN, 3, 30);
	put(PRELOAD_CALL_START, 4, 40);
	put(PRELOAD_CALL_START, 3, 50);
	put(PRELOAD_CALL_RETURN, 1, 60);
	put(PRELOAD_CALL_START, 2, 70);
	put(PRELOAD_CALL_RETURN, 2, 80);
	slices = read_all();
	shows(slices, 5,
	      "one 1010 50 0, bui 1020 10 1, a.b 1040 20 1, bui 1050 10 2, two 1070 10 0",
	      "functions in C, which end with their caller at the latest");
	is_str(names_get(slices->names, slices->threads[0].v[1].name), "builtins.len (C)",
	       "  have their names");
	is_u64(slices->flaw, SLICES_WHOLE, "  nothing is missing");
}

static void test_other_stack(void)
{
	CLEANUP(slices_free) struct slices *slices = NULL;

	begin();
	thread(PRELOAD_SAY_BEGIN, 5);
	put(PRELOAD_CALL_START, 1, 10);
	put(PRELOAD_CALL_START, 2, 20);
	put(PRELOAD_CALL_RETURN, 1, 30);
	put(PRELOAD_CALL_RETURN, 2, 40);
	slices = read_all();
	shows(slices, 5, "one 1010 20 0, two 1020 20 1", "a stack that was switched");
	is_u64(slices->flaw, SLICES_OVERLAPPING, "  is counted");
}

static void test_aside(void)
{
	CLEANUP(slices_free) struct slices *slices = NULL;

	begin();
	put_entry((struct preload_entry){ .type = PRELOAD_ASIDE, .number = 5 }, "", 0);
	thread(PRELOAD_SAY_BEGIN, 5);
	put(PRELOAD_CALL_START, 1, 10);
	put(PRELOAD_CALL_SAY, PRELOAD_SAY_ASIDE, 20);
	thread(PRELOAD_SAY_BEGIN, 6);
	put(PRELOAD_CALL_START, 1, 90);
	put(PRELOAD_CALL_RETURN, 1, 95);
	slices = read_all();
	shows(slices, 5, "one 1010 10 0 open", "a call is open where another profiles the thread");
	is_u64(slices->flaw, SLICES_ASIDE, "  which is a flaw");
}

/* Killed between the copy and the new window: what is in it was copied. */
static void test_stale_window(void)
{
	CLEANUP(slices_free) struct slices *slices = NULL;

	begin();
	thread(PRELOAD_SAY_BEGIN, 5);
	put(PRELOAD_CALL_START, 1, 10);
	put(PRELOAD_CALL_RETURN, 1, 20);
	memcpy((char *)records + PRELOAD_CALLS_DATA_AT, (char *)records + PRELOAD_CALLS_WINDOW_AT,
	       48);
	((struct preload_header *)(void *)records)->written = 48;
	slices = read_all();
	shows(slices, 5, "one 1010 10 0", "a window that was copied is not read twice");
}

static void test_other_format(void)
{
	struct preload_header *header = (struct preload_header *)(void *)records;
	const struct from_calls_options options = { 0 };
	struct slices *slices = NULL;
	struct error err = { 0 };

	begin();
	header->magic -= 1ull << PRELOAD_VERSION_SHIFT;
	from_calls_read_memory(&slices, log_bytes, log_size, records, sizeof(records), &options,
	                       &err);
	is_str(err.text,
	       "Python calls in the format of another version of giltracer: report with the "
	       "version that recorded them, or record again",
	       "an older format is said to be one");
	header->magic++;
	from_calls_read_memory(&slices, log_bytes, log_size, records, sizeof(records), &options,
	                       &err);
	is_str(err.text, "not a recording of giltracer's library", "  anything else is not");
	ok(!slices, "  neither is read");
}

static void test_afresh(void)
{
	CLEANUP(slices_free) struct slices *slices = NULL;

	begin();
	put_entry((struct preload_entry){ .type = PRELOAD_PROCESS, .stamp = 20, .number = 101 }, "",
	          0);
	put_entry((struct preload_entry){ .type = PRELOAD_FORKED }, "", 0);
	put_entry((struct preload_entry){ .type = PRELOAD_PROCESS, .stamp = 30, .number = 102 }, "",
	          0);
	put_entry((struct preload_entry){ .type = PRELOAD_PROCESS, .stamp = 40, .number = 103 }, "",
	          0);
	put_entry((struct preload_entry){ .type = PRELOAD_CALL_COST }, "", 0);
	thread(PRELOAD_SAY_BEGIN, 5);
	put(PRELOAD_CALL_START, 1, 10);
	slices = read_all();
	is_u64(slices->flaw, SLICES_AFRESH, "a child that was started afresh has no calls");
	is_u64(slices->flawed, 1, "  a forked one has, and one that says so");
}

/* A call that has not ended, in a process that ends as the last entry of its log tells. */
static void lasts(const struct preload_entry *last, const char *wanted, const char *what)
{
	CLEANUP(slices_free) struct slices *slices = NULL;

	begin();
	put_entry((struct preload_entry){ .type = PRELOAD_FORKED }, "", 0);
	if (last)
		put_entry(*last, "", 0);
	put_entry((struct preload_entry){ .type = PRELOAD_STOP, .stamp = 900 }, "", 0);
	thread(PRELOAD_SAY_BEGIN, 5);
	put(PRELOAD_CALL_START, 1, 10);
	put(PRELOAD_CALL_START, 2, 30);
	put(PRELOAD_CALL_RETURN, 2, 40);
	slices = read_until(1900);
	shows(slices, 5, wanted, what);
}

static void test_ends(void)
{
	CLEANUP(slices_free) struct slices *slices = NULL;

	lasts(&(struct preload_entry){ .type = PRELOAD_ENDED, .stamp = 600 },
	      "one 1010 590 0 open, two 1030 10 1", "a call lasts until its forked process ends");
	lasts(NULL, "one 1010 30 0 open, two 1030 10 1",
	      "  until its last record if that was killed");
	lasts(&(struct preload_entry){ .type = PRELOAD_ALIVE, .number = PID },
	      "one 1010 890 0 open, two 1030 10 1",
	      "  until the recording ends if the process outlives that");
	begin();
	thread(PRELOAD_SAY_BEGIN, 5);
	put(PRELOAD_CALL_START, 1, 10);
	put_entry((struct preload_entry){ .type = PRELOAD_STOP, .stamp = 900 }, "", 0);
	slices = read_until(1900);
	shows(slices, 5, "one 1010 890 0 open", "  the recording ends with the program itself");
}

static void test_cost(void)
{
	CLEANUP(slices_free) struct slices *slices = NULL;

	begin();
	put_entry((struct preload_entry){ .type = PRELOAD_CALL_COST, .value = 2500 }, "", 0);
	put_entry(
		(struct preload_entry){
			.type = PRELOAD_COLLECTED, .stamp = 400, .number = 8, .value = 300 },
		"", 0);
	thread(PRELOAD_SAY_BEGIN, 5);
	put(PRELOAD_CALL_START, 1, 10);
	put(PRELOAD_CALL_RETURN, 1, 20);
	put(PRELOAD_CALL_START, 2, 30);
	slices = read_all();
	is_u64(slices->call_cost_ps, 2500, "what recording a call takes");
	is_u64(slices->collection_count, 1, "a garbage collection");
	is_u64(slices->collections[0].tid, 8, "of its thread");
	ok(slices->collections[0].start_ns < slices->collections[0].end_ns, "from when to when");
	is_u64(slices_find(slices, PID, 5)->recorded, 2, "  and how many calls a thread has");
}

int main(void)
{
	test_other_format();
	test_cost();
	test_afresh();
	test_ends();
	test_nesting();
	test_native();
	test_other_stack();
	test_aside();
	test_stale_window();
	return done_testing();
}
