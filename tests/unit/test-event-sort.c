/* SPDX-License-Identifier: MIT */
/* Sorting records by time, with and without rounds, and identical copies of records. */
#include "perfdata/event_sort.h"

#include "perfbuild.h"
#include "tap.h"

/* One event whose samples and trailers have a time and an id. */
static void put_start(struct str *b)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
		                        .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_ID,
		                        .sample_id_all = 1 };

	put_pipe_header(b);
	put_attr(b, attr, 1);
}

/* Writes a sample; its id identifies it in the result. */
static void put_sample(struct str *b, uint64_t time, uint64_t id)
{
	size_t at = put_begin(b, PERF_RECORD_SAMPLE, 0);

	put64(b, time);
	put64(b, id);
	put_end(b, at);
}

/* "10:1 20:2 …": time and id of each record, in the order in which they are returned. */
static const char *ordered(const struct str *b, uint64_t *ret_peak)
{
	static char text[1024];
	CLEANUP(perfdata_close) struct perfdata *pd = NULL;
	CLEANUP(event_sort_free) struct event_sort *order = NULL;
	struct perfdata_record rec;
	struct error err;
	size_t len = 0;
	uint64_t ns;

	text[0] = '\0';
	if (perfdata_open_memory(&pd, b->s, b->len, &err) < 0)
		return err.text[0] ? "cannot be opened" : NULL;
	order = event_sort_new(pd);
	while (event_sort_next(order, &rec, &ns) && len < sizeof(text) - 64)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%" PRIu64 ":%" PRIu64,
		                        len ? " " : "", ns, cursor_u64_at(&rec.body, 8));
	if (ret_peak)
		*ret_peak = event_sort_peak_runs(order);
	return text;
}

static void test_merge(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	uint64_t peak;

	put_start(&b);
	put_sample(&b, 10, 1);
	put_sample(&b, 30, 2);
	put_sample(&b, 50, 3);
	put_sample(&b, 20, 4);
	put_sample(&b, 40, 5);
	put_round(&b);
	put_sample(&b, 60, 6);
	put_sample(&b, 45, 7);
	put_round(&b);
	is_str(ordered(&b, &peak), "10:1 20:4 30:2 40:5 45:7 50:3 60:6",
	       "the records of several buffers are merged");
	ok(peak <= 4, "memory depends on runs, not on records");
}

static void test_stable(void)
{
	CLEANUP(str_done) struct str b = { 0 };

	put_start(&b);
	put_sample(&b, 10, 1);
	put_sample(&b, 10, 2);
	put_sample(&b, 11, 3);
	put_sample(&b, 10, 4);
	put_sample(&b, 10, 5);
	put_round(&b);
	put_sample(&b, 10, 6);
	is_str(ordered(&b, NULL), "10:1 10:2 10:4 10:5 10:6 11:3",
	       "records with the same time keep the order of the file");
}

/* perf has written the end of a buffer twice. */
static void test_copies(void)
{
	CLEANUP(str_done) struct str b = { 0 };

	put_start(&b);
	put_sample(&b, 10, 1);
	put_sample(&b, 20, 2);
	put_sample(&b, 30, 3);
	put_round(&b);
	put_sample(&b, 20, 2);
	put_sample(&b, 30, 3);
	put_sample(&b, 30, 4);
	put_sample(&b, 25, 5);
	put_round(&b);
	is_str(ordered(&b, NULL), "10:1 20:2 25:5 30:3 30:4",
	       "identical copies of a record are returned once");
}

/* A record may be older than the newest of the previous round, but not of two rounds before. */
static void test_rounds(void)
{
	CLEANUP(str_done) struct str b = { 0 };

	put_start(&b);
	put_sample(&b, 100, 1);
	put_round(&b);
	put_sample(&b, 200, 2);
	put_sample(&b, 90, 3);
	put_round(&b);
	put_sample(&b, 150, 4);
	put_round(&b);
	put_sample(&b, 80, 5);
	put_round(&b);
	is_str(ordered(&b, NULL), "90:3 100:1 150:4 200:2 80:5",
	       "a record that is too old for its round is returned late");
}

static void test_untimed(void)
{
	CLEANUP(str_done) struct str b = { 0 };

	put_start(&b);
	put_sample(&b, 0, 1);
	put_sample(&b, 0, 2);
	put_sample(&b, 30, 3);
	put_round(&b);
	put_sample(&b, 20, 4);
	put_sample(&b, 0, 5);
	put_sample(&b, UINT64_MAX, 6);
	put_sample(&b, 40, 7);
	put_round(&b);
	is_str(ordered(&b, NULL), "20:1 20:2 20:4 20:5 20:6 30:3 40:7",
	       "a record without a time gets that of the record before, or the earliest of all");
}

static void test_no_rounds(void)
{
	CLEANUP(str_done) struct str b = { 0 };

	put_start(&b);
	is_str(ordered(&b, NULL), "", "a recording without records is empty");
	put_sample(&b, 0, 1);
	is_str(ordered(&b, NULL), "0:1", "a recording without any time has time 0");
	put_sample(&b, 7, 2);
	put_sample(&b, 5, 3);
	is_str(ordered(&b, NULL), "5:1 5:3 7:2", "the end of the file ends the round");
}

/* Records of perf itself are between those of the kernel, and are not returned. */
static void test_user_records(void)
{
	CLEANUP(str_done) struct str b = { 0 };

	put_start(&b);
	put_sample(&b, 10, 1);
	put_format(&b, "g", "name: x\nID: 3\n");
	put_sample(&b, 11, 2);
	put_record(&b, 82, NULL);
	put_sample(&b, 12, 3);
	is_str(ordered(&b, NULL), "10:1 11:2 12:3", "records of perf itself are left out");
}

/* Compares with a plain stable sort. */
struct want {
	uint64_t time, id;
};

static int by_time(const void *a, const void *b)
{
	const struct want *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static void test_random(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	CLEANUP(perfdata_close) struct perfdata *pd = NULL;
	CLEANUP(event_sort_free) struct event_sort *order = NULL;
	static struct want want[20000];
	uint32_t seed = 12345;
	struct perfdata_record rec;
	struct error err;
	size_t n = 0, wrong = 0;
	uint64_t ns;

	put_start(&b);
	for (uint64_t round = 0; round < 100; round++) {
		for (int buffer = 0; buffer < 4; buffer++) {
			uint64_t t = 1000 + round * 500;

			for (int i = 0; i < 50; i++) {
				seed = seed * 1664525 + 1013904223;
				t += seed >> 28;
				want[n] = (struct want){ t, n + 1 };
				put_sample(&b, t, ++n);
			}
		}
		put_round(&b);
	}
	qsort(want, n, sizeof(want[0]), by_time);
	if (!ok(perfdata_open_memory(&pd, b.s, b.len, &err) == 0,
	        "a recording of 20000 records opens"))
		return;
	order = event_sort_new(pd);
	for (size_t i = 0; event_sort_next(order, &rec, &ns); i++)
		wrong += ns != want[i].time || cursor_u64_at(&rec.body, 8) != want[i].id;
	is_u64(wrong, 0, "records are returned as by a stable sort");
	is_u64(event_sort_records(order), n + 101, "all records are counted");
	ok(event_sort_peak_runs(order) <= 12, "few runs are in memory");
}

/* Sets the sizes of all samples from the offset on. */
static void resize(uint8_t *data, size_t len, uint64_t from, uint16_t size)
{
	for (uint64_t at = from; at + 24 <= len; at += 24)
		memcpy(data + at + 6, &size, sizeof(size));
}

/* The owner of a recording writes to it while it is read: the sizes were checked before. */
static void test_changes(uint16_t size)
{
	CLEANUP(str_done) struct str b = { 0 };
	CLEANUP(free) uint8_t *data = NULL; /* of its own size, for the address sanitizer */
	CLEANUP(perfdata_close) struct perfdata *pd = NULL;
	CLEANUP(event_sort_free) struct event_sort *order = NULL;
	struct perfdata_record rec;
	struct error err;
	size_t first, n = 0, outside = 0;
	uint64_t ns;

	put_start(&b);
	first = b.len;
	for (uint64_t i = 0; i < 100; i++)
		put_sample(&b, 10 + i % 10, i);
	data = xcalloc(b.len, 1);
	memcpy(data, b.s, b.len);
	if (!ok(perfdata_open_memory(&pd, data, b.len, &err) == 0, "a recording opens"))
		return;
	order = event_sort_new(pd);
	while (n <= b.len / PERFDATA_RECORD_HEADER && event_sort_next(order, &rec, &ns)) {
		outside += rec.offset + rec.size > b.len;
		if (!n++)
			resize(data, b.len, first, size);
	}
	ok(n <= b.len / PERFDATA_RECORD_HEADER, "sizes become %u meanwhile: reading ends", size);
	is_u64(outside, 0, "  within the file");
}

int main(void)
{
	static const uint16_t sizes[] = { 0, 1, 7, 8, 12, 23, 25, 31, 32, 1000, 65535 };

	test_merge();
	test_stable();
	test_copies();
	test_rounds();
	test_untimed();
	test_no_rounds();
	test_user_records();
	test_random();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		test_changes(sizes[i]);
	return done_testing();
}
