/* SPDX-License-Identifier: MIT */
/*
 * Turns bytes into a session folder: any bytes are a recording that can be reported, so that a
 * fuzzer reaches every analysis and every page with few threads or with thousands. The first byte
 * chooses the options; then each ROW bytes are a record, a Python call, or a repetition of the
 * rows before by other threads.
 */
#ifndef GILTRACER_TESTS_FUZZ_SESSION_BYTES_H
#define GILTRACER_TESTS_FUZZ_SESSION_BYTES_H

#include <stdlib.h>

#include "base/str.h"
#include "budget.h"
#include "tests/unit/perfbuild.h"

#define ROW 8
/* In bytes. With sanitizers, writing enough bytes to reveal quadratic work takes too long. */
#define RECORDS_MAX (BUDGET_SLOWER > 1 ? 128U << 10 : 2U << 20)
#define PROGRAM     7

enum {
	ID_TAKE = 1,
	ID_TAKE_RET,
	ID_DROP,
	ID_DROP_RET,
	ID_SAVE,
	ID_SWITCH,
	ID_WAKING,
	IDS,
};

struct session_bytes {
	struct str records, calls;
	uint64_t now_ns;
};

static void put_events(struct str *b)
{
	static const char *const names[IDS] = {
		[ID_TAKE] = "take_gil",      [ID_TAKE_RET] = "take_gil_ret",
		[ID_DROP] = "drop_gil",      [ID_DROP_RET] = "drop_gil_ret",
		[ID_SAVE] = "save_thread",   [ID_SWITCH] = "sched_switch",
		[ID_WAKING] = "sched_waking"
	};
	static const char pid[] = "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
	static const char gil[] = "\tfield:u64 gil;\toffset:8;\tsize:8;\tsigned:0;\n";
	static const char sched[] = "\tfield:long prev_state;\toffset:8;\tsize:8;\tsigned:1;\n"
				    "\tfield:int next_pid;\toffset:16;\tsize:4;\tsigned:1;\n"
				    "\tfield:int pid;\toffset:16;\tsize:4;\tsigned:1;\n";

	for (uint32_t id = 1; id < IDS; id++) {
		bool is_sched = id >= ID_SWITCH;
		CLEANUP(free)
		char *text = xasprintf("name: %s\nID: %u\nformat:\n%s%s", names[id], id, pid,
		                       is_sched ? sched : gil);

		put_attr(b,
		         (struct perf_event_attr){ .type = PERF_TYPE_TRACEPOINT,
		                                   .config = id,
		                                   .sample_type = PERF_SAMPLE_IDENTIFIER |
		                                                  PERF_SAMPLE_TID |
		                                                  PERF_SAMPLE_TIME |
		                                                  PERF_SAMPLE_CPU | PERF_SAMPLE_RAW,
		                                   .sample_id_all = 1 },
		         id);
		put_format(b, is_sched ? "sched" : "giltracer_0", text);
	}
}

/* Raw data: common fields, then two fields that differ from event to event. */
static void put_sample(struct str *b, uint64_t id, uint32_t pid, uint32_t tid, uint64_t now_ns,
                       uint64_t first, uint32_t second)
{
	size_t at = put_begin(b, PERF_RECORD_SAMPLE, 0);

	put64(b, id);
	put32(b, pid);
	put32(b, tid);
	put64(b, now_ns);
	put32(b, tid % 2);
	put32(b, 0);
	put32(b, 24 + 4);
	put32(b, (uint32_t)id);
	put32(b, tid);
	put64(b, first);
	put32(b, second);
	put32(b, 0);
	put32(b, 0);
	put_end(b, at);
}

/* tid, time, cpu, identifier: the trailer of records other than samples. */
static void put_ids(struct str *b, uint32_t pid, uint32_t tid, uint64_t now_ns)
{
	put32(b, pid);
	put32(b, tid);
	put64(b, now_ns);
	put32(b, tid % 2);
	put32(b, 0);
	put64(b, ID_TAKE);
}

static void put_life(struct str *b, uint32_t type, uint32_t pid, uint32_t tid, uint64_t now_ns)
{
	size_t at = put_begin(b, type, 0);

	put32(b, pid);
	put32(b, PROGRAM);
	put32(b, tid);
	put32(b, PROGRAM);
	put64(b, now_ns);
	put_ids(b, pid, tid, now_ns);
	put_end(b, at);
}

static void put_other(struct str *b, uint8_t kind, uint32_t pid, uint32_t tid, uint64_t now_ns,
                      uint16_t arg)
{
	size_t at;

	switch (kind) {
	case 0:
		put_record(b, 68, NULL); /* FINISHED_ROUND */
		return;
	case 1:
		at = put_begin(b, PERF_RECORD_LOST, 0);
		put64(b, ID_TAKE);
		put64(b, arg);
		break;
	case 2:
		at = put_begin(b, PERF_RECORD_COMM, arg & 1 ? PERF_RECORD_MISC_COMM_EXEC : 0);
		put32(b, pid);
		put32(b, tid);
		put64(b, 'a' + arg % 26);
		break;
	default:
		at = put_begin(
			b, PERF_RECORD_SWITCH,
			(uint16_t)(arg & 3 ? PERF_RECORD_MISC_SWITCH_OUT : 0) |
				(uint16_t)(arg & 4 ? PERF_RECORD_MISC_SWITCH_OUT_PREEMPT : 0));
	}
	put_ids(b, pid, tid, now_ns);
	put_end(b, at);
}

static void put_call(struct str *b, uint32_t pid, uint32_t tid, uint64_t now_ns, uint16_t arg)
{
	str_addf(b,
	         "%s{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%llu.%03u,\"dur\":%u,\"name\":\"f%"
	         "u\"}",
	         b->len ? "," : "[", pid, tid, (unsigned long long)(now_ns / 1000),
	         (unsigned)(now_ns % 1000), arg, arg % 64);
}

/* kind, thread, argument, time since the row before: up to 65 ms */
static void put_row(struct session_bytes *s, const uint8_t *row, uint32_t more)
{
	uint32_t tid = PROGRAM + row[1] % 16 + more * 16;
	uint32_t pid = row[1] & 0x80 ? tid : row[1] & 0x40 ? PROGRAM + 1 : PROGRAM;
	uint16_t arg = (uint16_t)(row[2] | row[3] << 8);
	uint8_t kind = row[0] % 16;

	s->now_ns += (row[4] | (uint64_t)row[5] << 8) << (row[6] % 11);
	if (kind >= 1 && kind <= 5)
		put_sample(&s->records, kind, pid, tid, s->now_ns, 0x1000U * (arg & 3), 0);
	else if (kind == 6 || kind == 7)
		put_sample(&s->records, kind, pid, tid, s->now_ns, arg & 3, PROGRAM + (arg >> 2));
	else if (kind == 8)
		put_life(&s->records, PERF_RECORD_FORK, pid, tid, s->now_ns);
	else if (kind == 9)
		put_life(&s->records, PERF_RECORD_EXIT, pid, tid, s->now_ns);
	else if (kind == 10)
		put_call(&s->calls, pid, tid, s->now_ns, arg);
	else
		put_other(&s->records, row[0] >> 4 & 3, pid, tid, s->now_ns, arg);
}

/* Repeat the rows before, each time with other threads. */
static void repeat(struct session_bytes *s, const uint8_t *rows, size_t n, unsigned times)
{
	for (uint32_t more = 1; more <= times; more++)
		for (size_t i = 0; i < n; i++)
			if (s->records.len + s->calls.len < RECORDS_MAX)
				put_row(s, rows + i * ROW, more);
}

static void session_bytes_make(struct session_bytes *s, const uint8_t *data, size_t size)
{
	*s = (struct session_bytes){ .now_ns = 1000000 };
	put_pipe_header(&s->records);
	put_events(&s->records);
	for (size_t i = 0; i + ROW <= size && s->records.len < RECORDS_MAX; i += ROW) {
		size_t back = 1 + data[i + 1] % 8;

		if (data[i] % 16 == 15)
			repeat(s, data + i - (back * ROW < i ? back * ROW : i),
			       back * ROW < i ? back : i / ROW, data[i + 2] | data[i + 3] << 8);
		else
			put_row(s, data + i, 0);
	}
	if (s->calls.len)
		str_addc(&s->calls, ']');
}

static void session_bytes_done(struct session_bytes *s)
{
	str_done(&s->records);
	str_done(&s->calls);
}

#endif
