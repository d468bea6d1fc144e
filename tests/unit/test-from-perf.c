/* SPDX-License-Identifier: MIT */
#include "trace/perf/from_perf.h"

#include "perfbuild.h"
#include "perfdata/header.h"
#include "tap.h"
#include "trace/names.h"
#include "trace/print.h"

#define TYPE                                                                                      \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_CPU | \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW)

#define COMMON                                                                          \
	"format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"

enum { ID_TAKE = 1, ID_SWITCH, ID_FAULTS, ID_CLOCK, ID_ODD };

static void put_event(struct str *b, uint32_t type, uint64_t config, uint64_t id)
{
	struct perf_event_attr attr = { .type = type,
		                        .config = config,
		                        .sample_type = TYPE,
		                        .sample_period = 2,
		                        .sample_id_all = 1 };

	put_attr(b, attr, id);
}

static void put_start(struct str *b)
{
	put_pipe_header(b);
	put_event(b, PERF_TYPE_TRACEPOINT, 101, ID_TAKE);
	put_event(b, PERF_TYPE_TRACEPOINT, 102, ID_SWITCH);
	put_event(b, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, ID_FAULTS);
	put_event(b, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, ID_CLOCK);
	put_event(b, PERF_TYPE_TRACEPOINT, 999, ID_ODD);
	put_format(b, "giltracer_x",
	           "name: take_gil_1\nID: 101\n" COMMON
	           "\tfield:unsigned long gil;\toffset:16;\tsize:8;\tsigned:0;\n");
	put_format(b, "sched",
	           "name: sched_switch\nID: 102\n" COMMON
	           "\tfield:long prev_state;\toffset:8;\tsize:8;\tsigned:1;\n"
	           "\tfield:pid_t next_pid;\toffset:16;\tsize:4;\tsigned:1;\n"
	           "\tfield:char next_comm[4];\toffset:20;\tsize:4;\tsigned:0;\n");
}

/* raw: 24 bytes, of which the last two numbers are a and b. */
static void put_sample(struct str *b, uint64_t id, uint64_t time, uint64_t x, uint64_t y)
{
	size_t at = put_begin(b, PERF_RECORD_SAMPLE, 0);

	put64(b, 0);
	put32(b, 10);
	put32(b, 11);
	put64(b, time);
	put64(b, id);
	put32(b, 1);
	put32(b, 0);
	put64(b, 5);
	put32(b, 28);
	put64(b, 0);
	put64(b, x);
	put64(b, y);
	put32(b, 0);
	put_end(b, at);
}

static void put_trailer(struct str *b, uint32_t tid, uint64_t time, uint64_t id, uint32_t cpu)
{
	put32(b, tid ? 10 : 0);
	put32(b, tid);
	put64(b, time);
	put64(b, id);
	put32(b, cpu);
	put32(b, 0);
}

static struct source *open_str(const struct str *b)
{
	struct source *source = NULL;
	struct error err;

	return from_perf_open_memory(&source, b->s, b->len, NULL, &err) < 0 ? NULL : source;
}

static void test_samples(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct source *source;
	struct event ev;
	struct error err;

	put_start(&b);
	put_sample(&b, ID_TAKE, 100, 7, 0xabc);
	put_sample(&b, ID_SWITCH, 110, 0x100, 77);
	put_sample(&b, ID_SWITCH, 111, 0x1, 0);
	put_sample(&b, ID_FAULTS, 120, 0, 0);
	put_sample(&b, ID_CLOCK, 121, 0, 0);
	put_sample(&b, ID_ODD, 130, 0, 0);
	put_sample(&b, 12345, 131, 0, 0);
	source = open_str(&b);
	if (!ok(source != NULL, "a recording"))
		return;
	ok(source_next(source, &ev, &err) == 1 && ev.type == EV_REQUEST && ev.gil.address == 0xabc,
	   "take_gil_1 of our group is a request for a GIL");
	ok(ev.time_ns == 100 && ev.pid == 10 && ev.tid == 11 && ev.cpu == 1 && !ev.flags,
	   "by whom, when and where");
	ok(source_next(source, &ev, &err) == 1 && ev.type == EV_SCHED_OUT &&
	           ev.sched.prev_state == EV_STATE_RUNNING && ev.flags == EVF_PREEMPT &&
	           ev.sched.next_tid == 77,
	   "sched_switch, preempted");
	ok(source_next(source, &ev, &err) == 1 && ev.sched.prev_state == EV_STATE_INTERRUPTIBLE &&
	           !ev.flags,
	   "sched_switch, asleep");
	ok(source_next(source, &ev, &err) == 1 && ev.type == EV_COUNT && ev.count.value == 5,
	   "a counter counts by its period");
	is_str(source->counters[ev.count.counter], "page-faults", "its name");
	ok(source_next(source, &ev, &err) == 1 && ev.count.counter == 1, "another counter");
	ok(source_next(source, &ev, &err) == 0, "the end");
	is_u64(source->stats.samples, 7, "all samples are counted");
	is_u64(source->stats.unknown_records, 1, "and the one of no event");
	is_u64(source->counter_count, 2, "two counters");
	source_close(source);
}

/* The whole of prev_state, old kernels and new. */
static void test_states(void)
{
	static const struct {
		uint64_t prev;
		uint32_t state;
	} cases[] = {
		{ 0, 0 }, { 0x100, 0 },   { 0x400, 0 }, { 0x1000, 0 },  { 1, 1 },
		{ 2, 2 }, { 0x82, 2 },    { 0x402, 2 }, { 0x80, 2 },    { 0x81, 1 },
		{ 4, 4 }, { 0x20, 0x20 }, { 0x101, 1 }, { 0x40, 0x40 },
	};
	CLEANUP(str_done) struct str b = { 0 };
	struct source *source;
	struct event ev;
	struct error err;

	put_start(&b);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		put_sample(&b, ID_SWITCH, 100 + i, cases[i].prev, 0);
	source = open_str(&b);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ok(source_next(source, &ev, &err) == 1 && ev.sched.prev_state == cases[i].state &&
		           !(ev.flags & EVF_PREEMPT) == (cases[i].state != 0),
		   "prev_state %#" PRIx64 " is %#" PRIx32, cases[i].prev, cases[i].state);
	source_close(source);
}

static void put_lost(struct str *b, uint64_t count, uint64_t time, uint32_t cpu)
{
	size_t at = put_begin(b, PERF_RECORD_LOST, 0);

	put64(b, ID_TAKE);
	put64(b, count);
	put_trailer(b, 11, time, ID_TAKE, cpu);
	put_end(b, at);
}

static void put_lost_samples(struct str *b, uint64_t count, uint64_t time)
{
	size_t at = put_begin(b, PERF_RECORD_LOST_SAMPLES, 0);

	put64(b, count);
	put_trailer(b, 0, time, ID_TAKE, 0);
	put_end(b, at);
}

static void test_lost(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct source *source;
	struct event ev;
	struct error err;

	put_start(&b);
	put_sample(&b, ID_TAKE, 100, 0, 0);
	put_lost(&b, 6, 150, 1);
	put_lost(&b, 4, 160, 3);
	put_round(&b);
	put_lost_samples(&b, 9, 0);
	put_lost_samples(&b, 5, 0);
	source = open_str(&b);
	ok(source_next(source, &ev, &err) == 1, "something");
	ok(source_next(source, &ev, &err) == 1 && ev.type == EV_LOST && ev.lost.count == 6 &&
	           ev.cpu == 1 && ev.lost.since_ns == 100 && ev.time_ns == 150,
	   "lost since the last record of that CPU");
	ok(source_next(source, &ev, &err) == 1 && ev.cpu == 3 && ev.lost.since_ns == 100,
	   "or since the recording began");
	ok(source_next(source, &ev, &err) == 1 && ev.type == EV_LOST && ev.lost.count == 4 &&
	           ev.cpu == -1 && ev.lost.since_ns == 100,
	   "of the kernel's totals only what no record has said");
	ok(source_next(source, &ev, &err) == 0, "the end");
	is_u64(source->stats.lost, 14, "in all");
	source_close(source);
}

/* The event of an id, and the CPU it was opened for. */
static void put_id_index(struct str *b, uint64_t id, uint64_t cpu)
{
	size_t at = put_begin(b, PERF_USER_ID_INDEX, 0);

	put64(b, 1);
	put64(b, id);
	put64(b, 0);
	put64(b, cpu);
	put64(b, 11);
	put_end(b, at);
}

static void test_lost_at_end(void)
{
	const struct from_perf_options machine = { .machine = true };
	CLEANUP(str_done) struct str b = { 0 };
	struct source *source;
	struct event ev;
	struct error err;

	put_start(&b);
	put_id_index(&b, ID_TAKE, 1);
	put_sample(&b, ID_TAKE, 100, 0, 0);
	put_sample(&b, ID_TAKE, 170, 0, 0);
	put_lost(&b, 5, 180, 3);
	put_round(&b);
	put_lost_samples(&b, 5, 0);
	source = open_str(&b);
	for (int i = 0; i < 3; i++)
		ok(source_next(source, &ev, &err) == 1, "something");
	ok(source_next(source, &ev, &err) == 1 && ev.type == EV_LOST && ev.cpu == 1 &&
	           ev.lost.since_ns == 170,
	   "what no record tells of was lost after the last one of its CPU");
	is_u64(ev.flags, 0, "of our threads");
	source_close(source);

	ok(from_perf_open_memory(&source, b.s, b.len, &machine, &err) == 0, "the same bytes");
	while (source_next(source, &ev, &err) == 1 && ev.type != EV_LOST)
		;
	is_u64(ev.flags, EVF_WAKEUPS, "of the machine: wake-ups");
	source_close(source);
}

static void test_lives(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct source *source;
	struct event ev;
	struct error err;
	size_t at;

	put_start(&b);
	at = put_begin(&b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	put32(&b, 10);
	put32(&b, 11);
	put_text(&b, "py\x1bthon", 16);
	put_trailer(&b, 11, 100, ID_TAKE, 0);
	put_end(&b, at);
	at = put_begin(&b, PERF_RECORD_FORK, 0);
	put32(&b, 10);
	put32(&b, 10);
	put32(&b, 12);
	put32(&b, 11);
	put64(&b, 101);
	put_trailer(&b, 11, 101, ID_TAKE, 0);
	put_end(&b, at);
	at = put_begin(&b, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT);
	put_trailer(&b, 0, 102, ID_TAKE, 0);
	put_end(&b, at);
	at = put_begin(&b, PERF_RECORD_SWITCH_CPU_WIDE, 0);
	put64(&b, 0);
	put64(&b, 0xbad);
	put_trailer(&b, 12, 103, ID_TAKE, 0);
	put_end(&b, at);
	source = open_str(&b);
	ok(source_next(source, &ev, &err) == 1 && ev.type == EV_COMM && ev.flags == EVF_EXEC,
	   "comm");
	is_str(names_get(source->names, ev.comm.name), "py\x1bthon", "its name as it is");
	ok(source_next(source, &ev, &err) == 1 && ev.type == EV_FORK && ev.tid == 12 &&
	           ev.fork.parent_tid == 11 && ev.fork.parent_pid == 10,
	   "fork");
	ok(source_next(source, &ev, &err) == 1 && ev.type == EV_SWITCH_IN && ev.tid == 12,
	   "the idle thread is none of ours");
	is_u64(source->stats.leftover_bytes, 8, "more than a record should have is counted");
	ok(source_next(source, &ev, &err) == 0, "the end");
	source_close(source);
}

static void test_order_is_kept(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct source *source;
	struct event ev;
	struct error err;
	uint64_t last = 0;
	unsigned n = 0;

	put_start(&b);
	for (uint64_t i = 0; i < 4; i++) {
		put_sample(&b, ID_TAKE, 1000 - i * 100, 0, 0);
		put_round(&b);
	}
	source = open_str(&b);
	while (source_next(source, &ev, &err) > 0 && ev.time_ns >= last) {
		last = ev.time_ns;
		n++;
	}
	is_u64(n, 4, "events come in the order of time even where records do not");
	ok(source->stats.unordered > 0, "which is counted");
	source_close(source);
}

/* Raw data that is shorter than its format says. */
static void test_short_raw(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct source *source;
	struct event ev;
	struct error err;
	size_t at;

	put_start(&b);
	at = b.len;
	put_sample(&b, ID_TAKE, 100, 0, 0xabc);
	b.s[at + 8 + 48] = 20;
	put_sample(&b, ID_TAKE, 101, 0, 0xabc);
	source = open_str(&b);
	ok(source_next(source, &ev, &err) == 1 && ev.type == EV_REQUEST && ev.gil.address == 0,
	   "a field that is not there is 0");
	ok(source_next(source, &ev, &err) == 1 && ev.gil.address == 0xabc, "the next has it");
	source_close(source);
}

/* Samples say 11, where the tracepoint says 1011. */
static void test_pid_namespace(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct source *source;
	struct event ev;
	struct error err;
	size_t at;
	const uint32_t host = 1011;

	put_start(&b);
	put_sample(&b, ID_SWITCH, 100, 1, 1011);
	at = b.len;
	put_sample(&b, ID_TAKE, 101, 0, 0);
	memcpy(b.s + at + 60 + 4, &host, sizeof(host));
	put_sample(&b, ID_SWITCH, 102, 1, 1011);
	put_sample(&b, ID_SWITCH, 103, 1, 1012);
	source = open_str(&b);
	ok(source_next(source, &ev, &err) == 1 && ev.sched.next_tid == 1011,
	   "as long as nothing else is known, a tracepoint names threads as perf does");
	source_next(source, &ev, &err);
	ok(source_next(source, &ev, &err) == 1 && ev.sched.next_tid == 11,
	   "in a pid namespace it does not, and is translated");
	ok(source_next(source, &ev, &err) == 1 && ev.sched.next_tid == 0,
	   "a thread that never ran is nobody");
	source_close(source);
}

/* raw: a switch to a thread of that host id and name, by thread 11, whose host id is 1011. */
static void put_named_switch(struct str *b, uint64_t time, uint32_t next, const char *name)
{
	const uint32_t host = 1011;
	size_t at = b->len;

	put_sample(b, ID_SWITCH, time, 1, next);
	memcpy(b->s + at + 60 + 4, &host, sizeof(host));
	memcpy(b->s + at + 60 + 20, name, 4);
}

/* Recordings of the machine also contain switches to threads outside of the namespace. */
static void test_pid_namespace_machine(void)
{
	const struct from_perf_options machine = { .machine = true };
	CLEANUP(str_done) struct str b = { 0 };
	struct source *source;
	struct event ev;
	struct error err;

	put_start(&b);
	put_named_switch(&b, 100, 1012, "ssh");
	put_named_switch(&b, 101, 0, "swp");
	ok(from_perf_open_memory(&source, b.s, b.len, &machine, &err) == 0, "a namespace");
	ok(source_next(source, &ev, &err) == 1 && ev.type == EV_PICK && ev.sched.next_tid == 0,
	   "a thread outside of it has no id");
	is_str(names_get(source->names, ev.sched.next_name), "ssh", "but a name");
	ok(source_next(source, &ev, &err) == 1 && !ev.sched.next_tid && !ev.sched.next_name,
	   "an idle CPU has neither");
	source_close(source);
}

static void test_names(void)
{
	ok(!strcmp(event_type_name(EV_STACK), "stack") && !strcmp(event_type_name(99), "?"),
	   "events have names");
}

int main(void)
{
	test_samples();
	test_states();
	test_lost();
	test_lost_at_end();
	test_lives();
	test_order_is_kept();
	test_short_raw();
	test_pid_namespace();
	test_pid_namespace_machine();
	test_names();
	return done_testing();
}
