/* SPDX-License-Identifier: MIT */
/* Reading records of perf.data files and streams, valid and damaged. */
#include "perfdata/reader.h"

#include "perfbuild.h"
#include "tap.h"

static struct perfdata *open_str(const struct str *b)
{
	struct perfdata *pd = NULL;
	struct error err;

	return perfdata_open_memory(&pd, b->s, b->len, &err) < 0 ? NULL : pd;
}

static unsigned count_all(struct perfdata *pd)
{
	struct perfdata_record rec;
	unsigned n = 0;

	while (perfdata_next(pd, &rec))
		n++;
	return n;
}

static void test_records(void)
{
	CLEANUP(str_done) struct str b = { 0 }, body = { 0 };
	CLEANUP(perfdata_close) struct perfdata *pd = NULL;
	struct perfdata_record rec;

	put64(&body, 0x55);
	put_pipe_header(&b);
	put_record(&b, PERF_RECORD_SWITCH, NULL);
	put_record(&b, PERF_RECORD_LOST_SAMPLES, &body);
	put_record(&b, 12345, &body);
	pd = open_str(&b);
	if (!ok(pd != NULL, "a recording in the pipe layout is opened"))
		return;
	ok(perfdata_next(pd, &rec) && rec.type == PERF_RECORD_SWITCH && rec.offset == 16 &&
	           rec.size == 8 && !cursor_left(&rec.body),
	   "a record without a body is returned");
	ok(perfdata_next(pd, &rec) && cursor_u64_at(&rec.body, 0) == 0x55,
	   "a record with a body is returned");
	ok(perfdata_next(pd, &rec) && rec.type == 12345, "a record of unknown type is returned");
	ok(!perfdata_next(pd, &rec) && !perfdata_next(pd, &rec),
	   "the end is returned, also repeatedly");
	ok(!perfdata_cut(pd), "a complete recording is not truncated");
	perfdata_at(perfdata_data(pd), 24, 40, &rec);
	ok(rec.type == PERF_RECORD_LOST_SAMPLES && rec.size == 16,
	   "a record is returned again by its offset");
	perfdata_at(perfdata_data(pd), 24, 36, &rec);
	ok(rec.size == 12 && cursor_left(&rec.body) == 4, "  but only up to where it ended before");
}

static void cut_is(const struct str *b, unsigned records, uint64_t at, const char *text)
{
	CLEANUP(perfdata_close) struct perfdata *pd = open_str(b);
	const struct perf_header_note *cut;

	if (!ok(pd != NULL, "opened: %s", text))
		return;
	is_u64(count_all(pd), records, "the records before the cut are read");
	cut = perfdata_cut(pd);
	if (ok(cut != NULL, "the cut is noticed")) {
		is_u64(cut->offset, at, "the cut has its offset");
		is_str(cut->text, text, "the cut has its reason");
	}
}

static void test_cuts(void)
{
	CLEANUP(str_done) struct str b = { 0 };

	put_pipe_header(&b);
	put_record(&b, PERF_RECORD_SWITCH, NULL);
	put32(&b, PERF_RECORD_SWITCH);
	cut_is(&b, 1, 24, "4 bytes are too few for a record");
	put16(&b, 0);
	put16(&b, 7);
	cut_is(&b, 1, 24, "record of type 14: bad size 7");
	b.s[30] = 0;
	cut_is(&b, 1, 24, "record of type 14: bad size 0");
	b.s[30] = 9;
	cut_is(&b, 1, 24, "record of type 14 and 9 bytes: only 8 are left");
	b.len = 24;
	put_record(&b, PERF_USER_COMPRESSED, NULL);
	cut_is(&b, 1, 24, "compressed record (perf record -z), which is not supported");
}

static void test_extra(void)
{
	CLEANUP(str_done) struct str b = { 0 }, body = { 0 };
	CLEANUP(perfdata_close) struct perfdata *pd = NULL;

	put_pipe_header(&b);
	put_format(&b, "g", "name: x\nID: 3\n");
	put64(&body, 24);
	put_record(&b, PERF_USER_AUXTRACE, &body);
	for (int i = 0; i < 3; i++)
		put64(&b, 0xffffffffffffffff);
	put_record(&b, PERF_RECORD_SWITCH, NULL);
	pd = open_str(&b);
	ok(pd && count_all(pd) == 3, "data after TRACING_DATA and AUXTRACE is skipped");
	ok(pd && !perfdata_cut(pd) && perfdata_header(pd)->formats.n == 1,
	   "the format in TRACING_DATA is read");
	perfdata_close(pd);
	pd = NULL;
	b.len -= 9;
	cut_is(&b, 1, b.len - 23 - 16,
	       "record of type AUXTRACE: the 24 bytes that follow it are truncated");
}

/* An invalid feature does not end the reading. */
static void test_bad_feature(void)
{
	CLEANUP(str_done) struct str b = { 0 }, body = { 0 };

	put_pipe_header(&b);
	put64(&body, 3);
	put32(&body, 1000);
	put_record(&b, PERF_USER_HEADER_FEATURE, &body);
	put_record(&b, PERF_RECORD_SWITCH, NULL);
	cut_is(&b, 2, 16, "feature HOSTNAME is truncated");
}

static void test_file_sizes(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	CLEANUP(perfdata_close) struct perfdata *pd = NULL;
	uint64_t size = 0;

	str_addn(&b, "PERFILE2", 8);
	put64(&b, 104);
	put64(&b, 144);
	put64(&b, 104);
	put64(&b, 0);
	put64(&b, 104);
	put64(&b, 8);
	for (int i = 0; i < 6; i++)
		put64(&b, 0);
	put_record(&b, PERF_RECORD_SWITCH, NULL);
	put_record(&b, PERF_RECORD_SWITCH, NULL);
	pd = open_str(&b);
	ok(pd && count_all(pd) == 1 && !perfdata_cut(pd), "records end where the header says");
	memcpy(b.s + 48, &size, sizeof(size));
	cut_is(&b, 2, b.len,
	       "perf did not finish: the header has no size and no event formats; reading to the "
	       "end of the file");
	size = 1000;
	memcpy(b.s + 48, &size, sizeof(size));
	cut_is(&b, 2, b.len, "the file is truncated: its records should extend to 0x450");
}

int main(void)
{
	struct perfdata *pd;
	struct error err;

	test_records();
	test_cuts();
	test_extra();
	test_bad_feature();
	test_file_sizes();
	ok(perfdata_open(&pd, "/nonexistent", &err) < 0, "a missing file is an error");
	is_str(err.text, "/nonexistent: No such file or directory",
	       "the error names the missing file");
	ok(perfdata_open(&pd, "/etc/passwd", &err) < 0, "a file of another kind is an error");
	is_str(err.text, "/etc/passwd: not a perf.data file (bad magic)",
	       "the error names the file and the reason");
	return done_testing();
}
