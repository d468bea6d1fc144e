/* SPDX-License-Identifier: MIT */
/* Samples of a free-threaded interpreter's probes: what a thread parks for, and which import turns
 * the GIL on. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "trace/perf/from_perf.h"

#include "perfbuild.h"
#include "python/python.h"
#include "record/library.h"
#include "tap.h"
#include "trace/names.h"

#define TYPE \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW)

#define COMMON                                                                          \
	"format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
#define U64(name) "\tfield:u64 " name ";\toffset:8;\tsize:8;\tsigned:0;\n"
#define U32(name) "\tfield:u32 " name ";\toffset:16;\tsize:4;\tsigned:0;\n"

enum { PARK = 1, UNPARK, TAKE, TAKE_RET, MODULE, ENABLE, PROBES };

static const char *const formats[PROBES] = {
	[PARK] = "name: park\nID: 101\n" COMMON U64("lock")
		U32("size") "\tfield:u8 expected;\toffset:20;\tsize:1;\tsigned:0;\n"
			    "\tfield:__data_loc char[] of;\toffset:24;\tsize:4;\tsigned:1;\n"
			    "\tfield:__data_loc char[] in;\toffset:28;\tsize:4;\tsigned:1;\n",
	[UNPARK] = "name: unpark_1\nID: 102\n" COMMON U64("lock"),
	[TAKE] = "name: take_gil\nID: 103\n" COMMON U64("gil") U32("on"),
	[TAKE_RET] = "name: take_gil_ret\nID: 104\n" COMMON,
	[MODULE] = "name: gil_module\nID: 105\n" COMMON
		   "\tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:1;\n",
	[ENABLE] = "name: enable_gil\nID: 106\n" COMMON U32("on"),
};

static struct str b;
static struct source *source;
static struct event ev;
static uint64_t now;

static void begin(void)
{
	now = 100;
	str_done(&b);
	put_pipe_header(&b);
	for (uint64_t i = 1; i < PROBES; i++)
		put_attr(&b,
		         (struct perf_event_attr){ .type = PERF_TYPE_TRACEPOINT,
		                                   .config = 100 + i,
		                                   .sample_type = TYPE,
		                                   .sample_period = 1,
		                                   .sample_id_all = 1 },
		         i);
	for (unsigned i = 1; i < PROBES; i++)
		put_format(&b, "giltracer_x", formats[i]);
}

/* of and in: texts of up to 15 bytes. */
static void put(uint64_t id, uint64_t first, uint32_t second, uint8_t third, const char *of,
                const char *in)
{
	size_t at = put_begin(&b, PERF_RECORD_SAMPLE, 0);

	put32(&b, 10);
	put32(&b, 11);
	put64(&b, now++);
	put64(&b, id);
	put32(&b, 1);
	put32(&b, 0);
	put32(&b, 68);
	put64(&b, 0);
	put64(&b, first);
	put32(&b, second);
	put32(&b, third);
	put32(&b, 32 | (uint32_t)(strlen(of) + 1) << 16);
	put32(&b, 48 | (uint32_t)(strlen(in) + 1) << 16);
	put_text(&b, of, 16);
	put_text(&b, in, 16);
	put32(&b, 0);
	put_end(&b, at);
}

static void finish(void)
{
	struct error err;

	source_close(source);
	source = NULL;
	ok(from_perf_open_memory(&source, b.s, b.len, NULL, &err) == 0, "a recording");
}

static bool next(enum event_type type)
{
	struct error err;

	return source_next(source, &ev, &err) == 1 && ev.type == type;
}

static const char *of(void)
{
	return names_get(source->names, ev.park.of);
}

static void test_parks(void)
{
	begin();
	put(PARK, 0x7f00a, 1, 3, "list", "");
	put(PARK, 0x7f020, 1, 3, "garbage", "_thread.lock");
	put(PARK, 0x7f020, 1, 3, "", "nonsense");
	put(PARK, 0x7f00a, 1, 3, "no\ttype", "");
	put(PARK, 0x7f005, 1, 3, "list", "_thread.lock");
	put(PARK, 0x7f00a, 1, 1, "list", "");
	put(PARK, 0x9028, 4, 0, "", "");
	put(PARK, 0x9030, 8, 0, "", "");
	put(UNPARK, 0x7f00a, 0, 0, "", "");
	finish();
	ok(next(EV_PARK) && ev.park.kind == PARK_LOCK && ev.park.address == 0x7f00a,
	   "a byte that is locked and waited for is a lock");
	is_str(of(), "list", "at an object's ob_mutex it is that object's");
	ok(next(EV_PARK) && !strcmp(of(), "_thread.lock"), "behind the head of a lock it is that");
	ok(next(EV_PARK) && !*of(), "and of nothing else: that may be anything");
	ok(next(EV_PARK) && !*of(), "what is no name of a type is none");
	ok(next(EV_PARK) && !*of(), "elsewhere it is no object's");
	ok(next(EV_PARK) && ev.park.kind == PARK_EVENT, "another byte is an event");
	ok(next(EV_PARK) && ev.park.kind == PARK_WORLD, "four bytes are a thread's state");
	ok(next(EV_PARK) && ev.park.kind == PARK_LOCK, "eight a lock of readers and writers");
	ok(next(EV_UNPARK) && ev.park.address == 0x7f00a, "who wakes others");
}

static void test_gil(void)
{
	begin();
	put(TAKE, 0x5000, 0, 0, "", "");
	put(TAKE_RET, 0, 0, 0, "", "");
	put(TAKE, 0x5000, 1, 0, "", "");
	put(MODULE, 0, 0, 0, "new", "");
	put(MODULE, 0, 0, 0, "old", "");
	put(ENABLE, 0, 0, 0, "", "");
	put(ENABLE, 0, 1, 0, "", "");
	put(MODULE, 0, 0, 0, "older", "");
	put(ENABLE, 0, INT_MAX, 0, "", "");
	finish();
	ok(next(EV_REQUEST) && ev.flags == EVF_GIL_OFF, "a request of a GIL that is off");
	ok(next(EV_ACQUIRE), "and its end");
	ok(next(EV_REQUEST) && !ev.flags && ev.gil.address == 0x5000, "and of one that is on");
	ok(next(EV_NEEDS_GIL), "a GIL that is on for a module, and stays on");
	is_str(names_get(source->names, ev.import.name), "old", "the last one that was looked at");
	ok(!next(EV_NEEDS_GIL), "not one that an option keeps off, or that stays on already");
}

/* The library has a layout for one version. */
static void test_library(void)
{
	struct python python = {
		.command = (char[]){ "python3.14t" }, .major = 3, .minor = 14, .free_threaded = true
	};
	struct preloading preloading = { 0 };
	struct error err = { 0 };

	ok(preloading_check(&preloading, &python, &err) < 0 && err.code == ENOTSUP &&
	           strstr(err.text, "knows that of 3.13 only"),
	   "a version whose layout the library does not know is refused: %s", err.text);
}

int main(void)
{
	test_library();
	test_parks();
	test_gil();
	source_close(source);
	str_done(&b);
	return done_testing();
}
