/* SPDX-License-Identifier: MIT */
/* Headers of perf.data files, valid and damaged. */
#include "perfdata/features.h"
#include "perfdata/header.h"

#include "perfbuild.h"
#include "tap.h"

#define ATTR_SIZE 64 /* PERF_ATTR_SIZE_VER0: the smallest size */

static void put_section(struct str *b, uint64_t offset, uint64_t size)
{
	put64(b, offset);
	put64(b, size);
}

/* A file with one event (a tracepoint, config 7), ids 5 and 6, and these features. */
static void put_file(struct str *b, uint64_t features, uint64_t data_size)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT,
		                        .size = ATTR_SIZE,
		                        .config = 7,
		                        .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_ID,
		                        .sample_id_all = 1 };

	str_addn(b, "PERFILE2", 8);
	put64(b, 104);
	put64(b, ATTR_SIZE + 16);
	put_section(b, 120, ATTR_SIZE + 16);
	put_section(b, 200, data_size);
	put_section(b, 0, 0);
	put64(b, features);
	put64(b, 0);
	put64(b, 0);
	put64(b, 0);
	put64(b, 5);
	put64(b, 6);
	str_addn(b, &attr, ATTR_SIZE);
	put_section(b, 104, 16);
	for (uint64_t i = 0; i < data_size; i += 8)
		put64(b, 0);
}

static int read_str(struct perf_header *h, const struct str *b, struct perf_header_note *note,
                    struct error *err)
{
	return header_read(h, (const uint8_t *)b->s, b->len, note, err);
}

static void test_file(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct perf_header_note note;
	struct perf_header h;
	struct error err;

	put_file(&b, 1 << 3, 16);
	put_section(&b, 216 + 16, 12);
	put32(&b, 8);
	put_text(&b, "box", 8);
	if (!ok(read_str(&h, &b, &note, &err) == 0, "a file header is read"))
		return;
	ok(!h.pipe && h.data_offset == 200 && h.data_size == 16,
	   "the place of the records is known");
	ok(h.events.n == 1 && h.events.v[0].attr.config == 7, "the event is known");
	is_str(h.events.v[0].name, "event-2:0x7", "an event without a name gets one");
	ok(h.ids.n == 2 && header_find_id(&h, 6) && !header_find_id(&h, 7), "ids are known");
	is_str(h.hostname, "box", "a feature is read");
	ok(!note.offset, "a valid file has no note");
	header_done(&h);
	b.len -= 4;
	ok(read_str(&h, &b, &note, &err) == 0 && !h.hostname, "a truncated feature is left out");
	ok(note.offset == 216, "the place of the truncated feature is noted");
	header_done(&h);
}

static void test_not_finished(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct perf_header_note note;
	struct perf_header h;
	struct error err;

	put_file(&b, UINT64_MAX & ~(1ULL << 27), 0);
	ok(read_str(&h, &b, &note, &err) == 0 && !note.offset && !h.data_size,
	   "without a size no features are read");
	header_done(&h);
}

static void refused(const char *magic, uint64_t size, const char *why)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct perf_header_note note;
	struct perf_header h;
	struct error err = { 0 };

	str_addn(&b, magic, 8);
	put64(&b, size);
	ok(read_str(&h, &b, &note, &err) < 0, "refused: %s", why);
	is_str(err.text, why, "the error is the reason");
	header_done(&h);
}

static void test_refused(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct perf_header_note note;
	struct perf_header h;
	struct error err;

	refused("ELIFREP2", 16, "not a perf.data file (bad magic)");
	refused("2ELIFREP", 104,
	        "recorded on a machine of the other byte order, which is not supported");
	refused("PERFFILE", 104, "in the format of perf before Linux 2.6.33");
	refused("PERFILE2", 17, "bad size of the file header, 17");
	refused("PERFILE2", 104, "truncated within the file header");
	ok(header_read(&h, NULL, 0, &note, &err) < 0, "refused: an empty file");
	is_str(err.text, "the file is empty", "the error says that the file is empty");
	header_done(&h);
	put_file(&b, 1 << 27, 16);
	ok(read_str(&h, &b, &note, &err) < 0 && strstr(err.text, "HEADER_COMPRESSED"),
	   "refused: a compressed file");
	header_done(&h);
	b.len = 150;
	ok(read_str(&h, &b, &note, &err) < 0, "refused: truncated within the attributes");
	header_done(&h);
}

/* A file of n events, each with all of the file but its first bytes as its ids. */
static void put_shared_ids(struct str *b, uint64_t n, uint64_t ids_at)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = ATTR_SIZE };
	uint64_t attrs_size = n * (ATTR_SIZE + 16);

	str_addn(b, "PERFILE2", 8);
	put64(b, 104);
	put64(b, ATTR_SIZE + 16);
	put_section(b, 104, attrs_size);
	put_section(b, 104 + attrs_size, 0);
	put_section(b, 0, 0);
	for (int i = 0; i < 4; i++)
		put64(b, 0);
	for (uint64_t i = 0; i < n; i++) {
		str_addn(b, &attr, ATTR_SIZE);
		put_section(b, ids_at, 104 + attrs_size - ids_at);
	}
}

static void test_shared_ids(void)
{
	CLEANUP(str_done) struct str one = { 0 }, many = { 0 };
	struct perf_header_note note;
	struct perf_header h;
	struct error err = { 0 };

	put_shared_ids(&one, 1, 0);
	ok(read_str(&h, &one, &note, &err) == 0, "the ids of an event may be all of the file");
	header_done(&h);
	put_shared_ids(&many, 1000, 104);
	ok(read_str(&h, &many, &note, &err) < 0 && h.events.n == 1,
	   "refused: events whose ids are the same bytes");
	is_str(err.text, "the ids of all events exceed the file", "the error is the reason");
	header_done(&h);
}

static int feed(struct perf_header *h, uint32_t type, const struct str *b, struct error *err)
{
	return header_feed(h, type, 0, cursor_make(b->s, b->len), (struct cursor){ 0 }, err);
}

static void test_records(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
		                        .config = PERF_COUNT_SW_PAGE_FAULTS,
		                        .size = sizeof(attr) };
	struct perf_header h = { 0 };
	struct error err;

	str_addn(&b, &attr, sizeof(attr));
	put64(&b, 11);
	ok(feed(&h, PERF_USER_HEADER_ATTR, &b, &err) == 0 && h.events.n == 1,
	   "HEADER_ATTR adds an event");
	is_str(h.events.v[0].name, "page-faults", "a well-known event has perf's name");
	b.len = 40;
	ok(feed(&h, PERF_USER_HEADER_ATTR, &b, &err) < 0 && h.events.n == 1,
	   "a truncated HEADER_ATTR is refused");
	b.len = 0;
	put64(&b, 2);
	put64(&b, 11);
	put_text(&b, "faults", 8);
	ok(feed(&h, PERF_USER_EVENT_UPDATE, &b, &err) == 0, "EVENT_UPDATE is read");
	is_str(h.events.v[0].name, "faults", "EVENT_UPDATE renames the event");
	b.len = 0;
	put64(&b, 1);
	put64(&b, 11);
	put64(&b, 0);
	put64(&b, 3);
	put64(&b, (uint64_t)-1);
	ok(feed(&h, PERF_USER_ID_INDEX, &b, &err) == 0, "ID_INDEX is read");
	ok(header_find_id(&h, 11)->cpu == 3 && header_find_id(&h, 11)->tid == -1,
	   "ID_INDEX sets the CPU and thread of an id");
	memset(b.s, 0xff, 8);
	ok(feed(&h, PERF_USER_ID_INDEX, &b, &err) < 0,
	   "an ID_INDEX with a wrong length is refused");
	header_done(&h);
}

static void test_many_ids(void)
{
	struct perf_header h = { 0 };
	unsigned missing = 0;

	for (uint64_t id = 1; id <= 5000; id++)
		header_add_id(&h, id * 64, (uint32_t)id);
	for (uint64_t id = 1; id <= 5000; id++)
		missing += !header_find_id(&h, id * 64) || header_find_id(&h, id * 64)->event != id;
	is_u64(missing, 0, "5000 ids are found");
	ok(!header_find_id(&h, 63) && !header_find_id(&h, 0), "other ids are not found");
	header_done(&h);
}

static void put_long_string(struct str *b, const char *text)
{
	put32(b, 64);
	put_text(b, text, 64);
}

static void test_features(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	struct perf_header h = { 0 };
	struct error err;

	put32(&b, 2);
	put_long_string(&b, "perf");
	put_long_string(&b, "record");
	ok(header_feature(&h, 11, cursor_make(b.s, b.len), &err) == 0, "CMDLINE is read");
	is_str(h.cmdline, "perf record", "CMDLINE is joined by blanks");
	memset(b.s, 0xff, 4);
	ok(header_feature(&h, 11, cursor_make(b.s, b.len), &err) < 0,
	   "a CMDLINE with too many words is refused");
	is_str(h.cmdline, "perf record", "the old command line is kept");
	ok(header_feature(&h, 250, cursor_make(b.s, b.len), &err) == 0,
	   "unknown features are ignored");
	ok(header_feature(&h, 12, cursor_make(b.s, b.len), &err) < 0,
	   "an invalid EVENT_DESC is refused");
	ok(header_feature(&h, 1, cursor_make(b.s, b.len), &err) < 0,
	   "an invalid TRACING_DATA is refused");
	ok(header_feature(&h, 2, cursor_make(b.s, 20), &err) < 0, "an invalid BUILD_ID is refused");
	header_done(&h);
}

int main(void)
{
	test_file();
	test_not_finished();
	test_refused();
	test_shared_ids();
	test_records();
	test_many_ids();
	test_features();
	return done_testing();
}
