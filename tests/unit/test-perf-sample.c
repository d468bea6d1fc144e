/* SPDX-License-Identifier: MIT */
/* Layout and decoding of samples. */
#include "perfdata/perf_sample.h"

#include "perfbuild.h"
#include "tap.h"

static struct sample_layout layout_of(uint64_t sample_type)
{
	struct perf_event_attr attr = {
		.sample_type = sample_type,
		.sample_id_all = 1,
		.sample_regs_user = 0x7,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED,
	};
	struct sample_layout l;

	sample_layout_init(&l, &attr);
	return l;
}

static struct cursor body_of(const struct str *b)
{
	return cursor_make(b->s, b->len);
}

static void test_layout(void)
{
	struct sample_layout l = layout_of(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
	                                   PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
	                                   PERF_SAMPLE_RAW);

	ok(l.tid_pos == 8 && l.time_pos == 16 && l.id_pos == 24 && l.cpu_pos == 32,
	   "a tracepoint's fields have their places");
	ok(l.plain && l.raw_pos == 48,
	   "a tracepoint's sample is plain, with raw data after the period");
	ok(l.trailer == 32 && l.trailer_time == 24 && l.trailer_id == 16,
	   "the trailer has its fields");
	l = layout_of(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_ID);
	ok(l.id_pos == 0 && l.trailer_id == 8, "IDENTIFIER is used instead of ID");
	ok(!l.plain && l.raw_pos == SAMPLE_NOWHERE, "a sample without raw data is not plain");
	l = layout_of(PERF_SAMPLE_RAW | PERF_SAMPLE_CALLCHAIN);
	ok(!l.plain, "a sample with a callchain, which may have any length, is not plain");
	ok(l.time_pos == SAMPLE_NOWHERE && l.trailer == 0,
	   "without identity fields there is no trailer");
}

/* All fields that may precede those that we do not use. */
static void put_rich_sample(struct str *b)
{
	put64(b, 77);     /* IDENTIFIER */
	put64(b, 0x1234); /* IP */
	put32(b, 10);
	put32(b, 11);
	put64(b, 1000); /* TIME */
	put64(b, 0xadd);
	put32(b, 3); /* CPU */
	put32(b, 0);
	put64(b, 5); /* PERIOD */
	put64(b, 2); /* READ: nr, time enabled, 2 × (value, id) */
	for (int i = 0; i < 5; i++)
		put64(b, 0);
	put64(b, 2); /* CALLCHAIN */
	put64(b, PERF_CONTEXT_USER);
	put64(b, 0x400000);
	put32(b, 4); /* RAW */
	str_addn(b, "rawd", 4);
	put64(b, PERF_SAMPLE_REGS_ABI_64);
	for (uint64_t i = 0; i < 3; i++)
		put64(b, 100 + i);
	put64(b, 16); /* STACK: 16 bytes, of which 8 were copied */
	put64(b, 0x5555);
	put64(b, 0);
	put64(b, 8);
}

#define RICH                                                                            \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ |   \
	 PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

static void test_rich(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct sample_layout l = layout_of(RICH);
	struct sample s;

	put_rich_sample(&b);
	ok(sample_decode(&s, &l, body_of(&b)), "a sample with all fields is decoded");
	ok(s.id == 77 && s.ip == 0x1234 && s.addr == 0xadd && s.period == 5, "numbers are decoded");
	ok(s.pid == 10 && s.tid == 11 && s.time_ns == 1000 && s.cpu == 3,
	   "identity fields are decoded");
	ok(cursor_left(&s.read) == 48, "counts of a group are decoded");
	ok(cursor_left(&s.callchain) == 16 && cursor_u64_at(&s.callchain, 8) == 0x400000,
	   "the callchain is decoded");
	ok(cursor_left(&s.raw) == 4 && !memcmp(s.raw.p, "rawd", 4), "raw data is decoded");
	ok(s.regs_abi == 2 && cursor_left(&s.regs) == 24 && cursor_u64_at(&s.regs, 16) == 102,
	   "registers are decoded");
	ok(cursor_left(&s.stack) == 8, "the stack has only the copied part");
	is_u64(s.leftover, 0, "no bytes are left over");
	put64(&b, 0);
	ok(sample_decode(&s, &l, body_of(&b)) && s.leftover == 8, "bytes left over are counted");
}

static void test_branches(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct sample_layout l = layout_of(PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_STACK_USER);
	struct sample s;

	l.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX | 1U << 19;
	put64(&b, 2);
	put64(&b, 0);                            /* hw_idx */
	for (unsigned i = 0; i < 2 * 3 + 2; i++) /* entries, counters */
		put64(&b, 1000);
	put64(&b, 8);
	put64(&b, 0x5555);
	put64(&b, 8);
	ok(sample_decode(&s, &l, body_of(&b)) && cursor_u64_at(&s.stack, 0) == 0x5555,
	   "a stack after branches with counters is decoded");
	b.len = 0;
	put64(&b, UINT64_MAX / 24 + 2);
	put64(&b, 0);
	put64(&b, 0);
	ok(!sample_decode(&s, &l, body_of(&b)), "branches whose size overflows are refused");
}

static void test_cuts(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct sample_layout l = layout_of(RICH);
	unsigned accepted = 0;
	struct sample s;

	put_rich_sample(&b);
	for (size_t size = 0; size < b.len; size++)
		accepted += sample_decode(&s, &l, cursor_make(b.s, size));
	is_u64(accepted, 0, "a sample truncated at any place is refused");
	ok(!sample_decode(&s, &l, cursor_make(b.s, 40)) && s.time_ns == 1000,
	   "the fields before the truncation are set");
}

static void test_lies(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct sample_layout l = layout_of(PERF_SAMPLE_CALLCHAIN);
	struct sample s;

	put64(&b, 0x2000000000000001); /* × 8 = 8 in 64 bits */
	put64(&b, 1);
	ok(!sample_decode(&s, &l, body_of(&b)), "a callchain whose size overflows is refused");
	l = layout_of(PERF_SAMPLE_STACK_USER);
	b.len = 0;
	put64(&b, 8);
	put64(&b, 0);
	put64(&b, 1000);
	ok(sample_decode(&s, &l, body_of(&b)) && cursor_left(&s.stack) == 8,
	   "a stack is not larger than its dump");
	b.len = 0;
	put64(&b, 0);
	ok(sample_decode(&s, &l, body_of(&b)) && !cursor_left(&s.stack),
	   "an empty stack dump has no stack");
}

static void test_trailer(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct sample_layout l = layout_of(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
	                                   PERF_SAMPLE_TIME | PERF_SAMPLE_CPU);
	struct cursor c;
	struct sample s;

	put64(&b, 0xdead);
	put32(&b, UINT32_MAX);
	put32(&b, 8);
	put64(&b, 99);
	put32(&b, 2);
	put32(&b, 0);
	put64(&b, 42);
	c = body_of(&b);
	ok(sample_decode_trailer(&s, &l, &c), "a trailer is read from the end");
	ok(s.pid == 0 && s.tid == 8 && s.time_ns == 99 && s.cpu == 2 && s.id == 42,
	   "an id of -1, for a thread that has ended, is 0");
	c.p += 16;
	ok(!sample_decode_trailer(&s, &l, &c), "a body that is too short has no trailer");
}

int main(void)
{
	test_layout();
	test_rich();
	test_branches();
	test_cuts();
	test_lies();
	test_trailer();
	return done_testing();
}
