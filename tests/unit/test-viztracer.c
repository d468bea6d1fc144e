/* SPDX-License-Identifier: MIT */
/* VizTracer's JSON: what it writes, what Chrome's format allows, and what is broken. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "trace/viztracer/jsonscan.h"
#include "trace/names.h"
#include "trace/slices.h"

#include "tap.h"

static struct slices *slices;
static struct error err;

/* Read text (len bytes) as a file. */
static bool read_bytes(const char *text, size_t len, int64_t base_ns)
{
	char path[] = "/tmp/giltracer-test-XXXXXX";
	int fd = mkstemp(path);
	bool good;

	slices_free(slices);
	slices = NULL;
	err.text[0] = 0;
	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		abort();
	good = from_viztracer_read(&slices, path, base_ns, NULL, &err) == 0;
	unlink(path);
	close(fd);
	return good;
}

static bool read_text(const char *text)
{
	return read_bytes(text, strlen(text), 0);
}

/* The events of one document. */
static bool read_events(const char *events)
{
	CLEANUP(str_done) struct str doc = { 0 };

	str_addf(&doc, "{\"traceEvents\":[%s], \"viztracer_metadata\": {\"overflow\":false}}",
	         events);
	return read_text(str_get(&doc));
}

/* A thread's calls: "depth name start+dur" each. */
static const char *calls(size_t thread)
{
	static struct str text;

	str_done(&text);
	if (!slices || thread >= slices->thread_count)
		return "no such thread";
	for (size_t i = 0; i < slices->threads[thread].n; i++) {
		const struct slice *s = &slices->threads[thread].v[i];

		str_addf(&text, "%s%u %s %" PRIu64 "+%" PRIu64 "%s", i ? ", " : "", s->depth,
		         names_get(slices->names, s->name), s->start_ns, s->dur_ns,
		         s->flags & SLICE_OPEN ? " open" : "");
	}
	return str_get(&text);
}

#define X(name, ts, dur)                                                               \
	"{\"pid\":1,\"tid\":2,\"ts\":" ts ",\"ph\":\"X\",\"cat\":\"fee\",\"dur\":" dur \
	",\"name\":\"" name "\"}"

static void test_as_written(void)
{
	ok(read_text(
		   "{\"traceEvents\":[{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"process_name\","
		   "\"args\":{\"name\":\"MainProcess\"}},{\"ph\":\"M\",\"pid\":1,\"tid\":2,"
		   "\"name\":\"thread_name\",\"args\":{\"name\":\"w\xc3\xb6rk-1\"}}," X(
			   "inner (/a b.py:3)", "2470536638.034",
			   "0.230") "," X("outer (/a b.py:1)", "2470536637.453",
	                                  "1.111") "], \"viztracer_metadata\": "
						   "{\"overflow\":false}}"),
	   "as VizTracer writes it");
	is_u64(slices->thread_count, 1, "a thread with calls");
	is_str(names_get(slices->names, slices->threads[0].name), "w\xc3\xb6rk-1", "has its name");
	is_u64(slices->threads[0].pid, 1, "and process");
	is_u64(slices->threads[0].tid, 2, "and id");
	is_str(calls(0),
	       "0 outer (/a b.py:1) 2470536637453+1111, 1 inner (/a b.py:3) 2470536638034+230",
	       "outer calls come first, to the nanosecond");
	is_u64(slices->threads[0].max_depth, 1, "so deep");
	is_u64(slices->total, 2, "so many");
	ok(slices->flaw == SLICES_WHOLE, "and nothing is missing");

	ok(read_text(
		   "{\"viztracer_metadata\": {\"version\":\"1\",\"overflow\":true}, \"file_info\":"
		   "{\"files\":{\"a\":[\"x = \\\"}]\\\\\",1]}},\n \"traceEvents\" : [ ] }"),
	   "in another order, with source files");
	ok(slices->flaw == SLICES_OVERFLOW, "an overflow is known");

	ok(read_text("[" X("f", "1.0", "2") ",\n]\n"), "a bare array, a comma at its end");
	is_str(calls(0), "0 f 1000+2000", "is the same");

	ok(read_bytes("[" X("f", "1.0", "2") "]", strlen("[" X("f", "1.0", "2") "]"), -500),
	   "another clock");
	is_str(calls(0), "0 f 500+2000", "is put on ours");
}

static void test_numbers(void)
{
	static const struct {
		const char *text;
		int64_t want;
		bool ok;
	} numbers[] = {
		{ "0", 0, true },
		{ "1", 1000, true },
		{ "0.001", 1, true },
		{ "2346128785.95", 2346128785950, true },
		{ "2346128785.9500", 2346128785950, true },
		{ "17.084999999", 17085, true },
		{ "0.0004", 0, true },
		{ "0.0005", 1, true },
		{ "0.00049999999999999999999999999", 0, true },
		{ "1e3", 1000000, true },
		{ "1.5E+3", 1500000, true },
		{ "1e-3", 1, true },
		{ "1e-05", 0, true },
		{ "5e-4", 1, true },
		{ "-1.5", -1500, true },
		{ "999999999999999.999", 999999999999999999, true },
		{ "9223372036854775.807", 9223372036854775800, true },
		{ "1e30", 0, false },
		{ "1e-999999999999", 0, true },
		{ "0e999999999999", 0, true },
		{ "null", 0, false },
		{ "\"1\"", 0, false },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		CLEANUP(str_done) struct str text = { 0 };
		struct jsonscan j;
		int64_t got;
		bool good;

		/* With and without room for the short way. */
		for (int padded = 0; padded < 2; padded++) {
			text.len = 0;
			str_addf(&text, "%s,%s", numbers[i].text,
			         padded ? "                                " : "");
			jsonscan_init(&j, str_get(&text), text.len);
			got = jsonscan_milli(&j, &good);
			ok(good == numbers[i].ok && got == numbers[i].want && *j.p == ',',
			   "%s us is %" PRId64 " ns%s", numbers[i].text, got,
			   good ? "" : ", no number");
		}
	}
}

static void is_decoded(const char *json, const char *want, const char *what)
{
	CLEANUP(str_done) struct str text = { 0 };
	struct jsontext t = { (const uint8_t *)json, strlen(json) };

	jsontext_decode(&t, &text);
	is_str(str_get(&text), want, "%s", what);
}

#define FFFD "\xef\xbf\xbd"

static void test_strings(void)
{
	is_decoded("a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t", "a\"b\\c/d\b\f\n\r\t", "escapes");
	is_decoded("\\u0041\\u00e9\\u20ac", "A\xc3\xa9\xe2\x82\xac",
	           "\\u of one, two, three bytes");
	is_decoded("\\ud83d\\ude00!", "\xf0\x9f\x98\x80!", "a pair of surrogates");
	is_decoded("\\ud83d!", FFFD "!", "half a pair");
	is_decoded("\\ude00\\ud83d", FFFD FFFD, "a pair the wrong way round");
	is_decoded("\\ud83d\\u0041", FFFD "A", "half a pair and a letter");
	is_decoded("\\u0000", FFFD, "NUL");
	is_decoded("\\u12", FFFD "12", "digits missing");
	is_decoded("\\x", "x", "no escape");
	is_decoded("a\x01\x7f", "a\x01\x7f", "control characters, as VizTracer writes them");
	is_decoded("\xff\xc3\xa9\xc3(", FFFD "\xc3\xa9" FFFD "(", "invalid UTF-8");
	is_decoded("\xc0\xaf\xed\xa0\x80", FFFD FFFD FFFD FFFD FFFD, "overlong, surrogates");
	is_decoded("\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD, "beyond Unicode");
	is_decoded("\xe2\x82", FFFD FFFD, "cut");

	ok(read_events(X("a \\\"\\u00e9\\\\", "1.0", "1") "," X("a \\\"\\u00e9\\\\", "3.0", "1")),
	   "names with escapes %s", err.text);
	is_str(calls(0), "0 a \"\xc3\xa9\\ 1000+1000, 0 a \"\xc3\xa9\\ 3000+1000", "are one name");
	ok(read_events(X("\x01\xff", "1.0", "1")), "control characters in a name");
	is_str(calls(0), "0 \x01" FFFD " 1000+1000", "are kept, bad bytes are not");
}

static void test_nesting(void)
{
	ok(read_events(X("c", "2", "1") "," X("d", "3", "1") "," X("b", "2", "3") "," X(
		   "e", "6", "1") "," X("a", "1", "9") "," X("z", "20", "0")),
	   "calls in the order in which they return");
	is_str(calls(0),
	       "0 a 1000+9000, 1 b 2000+3000, 2 c 2000+1000, 2 d 3000+1000, 1 e 6000+1000, "
	       "0 z 20000+0",
	       "become a tree");
	ok(read_events(X("a", "1", "9") "," X("e", "6", "1") "," X("b", "2", "3")),
	   "calls in any order");
	is_str(calls(0), "0 a 1000+9000, 1 b 2000+3000, 1 e 6000+1000", "too");
	ok(read_events(
		   X("a", "1", "4") "," X("b", "3", "4") "," X("c", "6", "1") "," X("d", "8", "1")),
	   "calls that overlap");
	is_str(calls(0), "0 a 1000+4000, 1 b 3000+4000, 2 c 6000+1000, 0 d 8000+1000",
	       "all stay, in rows free of others");
	ok(slices->flaw == SLICES_OVERLAPPING && slices->flawed == 1, "and are counted");
	ok(read_events("{\"pid\":1,\"tid\":2,\"ts\":1,\"ph\":\"B\",\"name\":\"a\"},"
	               "{\"pid\":1,\"tid\":2,\"ts\":2,\"ph\":\"B\",\"name\":\"b\"},"
	               "{\"pid\":1,\"tid\":2,\"ts\":3,\"ph\":\"E\"},"
	               "{\"pid\":1,\"tid\":2,\"ts\":4,\"ph\":\"B\",\"name\":\"c\"},"
	               "{\"pid\":1,\"tid\":2,\"ts\":6,\"ph\":\"X\",\"dur\":1,\"name\":\"d\"}"),
	   "beginnings and ends");
	is_str(calls(0), "0 a 1000+6000 open, 1 b 2000+1000, 1 c 4000+3000 open, 2 d 6000+1000",
	       "what never ends is open");
	ok(read_events("{\"pid\":1,\"tid\":2,\"ts\":3,\"ph\":\"E\"}," X(
		   "a", "-5", "1") ","
	                           "{\"pid\":1,\"tid\":2,\"ph\":\"X\",\"dur\":1,\"name\":\"d\"}," X(
					   "b", "1", "-1") "," X("c", "5", "1")),
	   "calls without a usable time");
	is_str(calls(0), "0 c 5000+1000", "are left out");
	is_u64(slices->dropped, 4, "and counted");
	ok(slices->flaw == SLICES_DROPPED && slices->flawed == 4, "as what is missing");
}

static void test_other_events(void)
{
	ok(read_events(
		   "{\"ph\":\"C\",\"name\":\"gc\",\"ts\":1,\"pid\":1,\"tid\":2,\"args\":"
		   "{\"a\": [1, {\"b\": \"]}\"}], \"name\": \"no\"}},"
		   "{\"ph\":\"i\",\"name\":\"hi\",\"s\":\"g\",\"ts\":1,\"pid\":1,\"tid\":2},"
		   "{},{\"ph\":7,\"name\":null,\"pid\":\"x\",\"tid\":1e99},"
		   "{\"args\":{\"name\":\"t\"},\"name\":\"thread_name\",\"ph\":\"M\",\"tid\":9},"
		   "{\"args\":\"t\",\"name\":\"thread_name\",\"ph\":\"M\",\"tid\":8}," X("f", "1",
	                                                                                 "1")),
	   "counters, instants, and odd ones");
	is_u64(slices->total, 1, "are not calls");
	is_str(names_get(slices->names, slices->threads[0].name), "t", "args may come first");
	is_str(names_get(slices->names, slices->threads[1].name), "", "or be something else");

	ok(read_events("{\"pid\":1,\"tid\":2,\"ts\":1,\"ph\":\"X\",\"dur\":1,\"name\":\"a\"},"
	               "{\"pid\":3,\"tid\":2,\"ts\":1,\"ph\":\"X\",\"dur\":1,\"name\":\"b\"},"
	               "{\"pid\":1,\"tid\":2,\"ts\":3,\"ph\":\"X\",\"dur\":1,\"name\":\"c\"}"),
	   "two processes with a thread of the same id");
	is_str(calls(0), "0 a 1000+1000, 0 c 3000+1000", "are two threads");
	is_str(calls(1), "0 b 1000+1000", "each with its calls");
}

static void test_nameless(void)
{
	ok(read_events("{\"pid\":1,\"tid\":2,\"ts\":1,\"ph\":\"X\",\"dur\":1}," X("", "3", "1")),
	   "calls without a name");
	is_str(calls(0), "0  1000+1000, 0  3000+1000", "are calls, of no name");
}

static void test_broken(void)
{
	static const struct {
		const char *text, *says;
	} broken[] = {
		{ "", "byte 0: it ends too early" },
		{ "  ", "byte 2: it ends too early" },
		{ "{}", "no traceEvents" },
		{ "{\"traceEvents\":[", "byte 16: it ends too early" },
		{ "{\"traceEvents\":[]", "byte 17: it ends too early" },
		{ "{\"traceEvents\":[]}x", "byte 18: data after the end" },
		{ "{\"traceEvents\":[{\"ph\":\"X", "byte 24: it ends within a string" },
		{ "{\"traceEvents\":[{\"ph\" \"X\"}]}", "byte 22: bad syntax" },
		{ "{\"traceEvents\":[{\"ts\":}]}", "byte 22: bad syntax" },
		{ "{\"traceEvents\":[7]}", "byte 16: bad syntax" },
		{ "{\"traceEvents\":[{\"a\":[[[[[[[[[[[[", "byte 33: it ends too early" },
		{ "[{\"a\":1 \"b\":2}]", "byte 8: bad syntax" },
	};

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		ok(!read_text(broken[i].text) && strstr(err.text, broken[i].says), "'%s': %s",
		   broken[i].text, err.text);
	ok(from_viztracer_read(&slices, "/nonexistent/x.json", 0, NULL, &err) < 0 &&
	           strstr(err.text, "/nonexistent/x.json"),
	   "a file that is not there: %s", err.text);
}

/* Larger than what is kept mapped, and in an order that returns give: a recursion, over and over.
 */
static void test_large(void)
{
	CLEANUP(str_done) struct str doc = { 0 };
	uint64_t wrong = 0, n = 0;

	str_adds(&doc, "{\"traceEvents\":[");
	for (uint64_t round = 0; round < 3000; round++)
		for (uint64_t depth = 50; depth--; n++)
			str_addf(&doc,
			         "%s"
			         "{\"pid\":1,\"tid\":%" PRIu64 ",\"ts\":%" PRIu64 ".%03" PRIu64
			         ",\"ph\":\"X\",\"dur\":%" PRIu64 ",\"name\":\"level %" PRIu64
			         " (/some/where/in/the/tree.py:%" PRIu64 ")\"}",
			         n ? "," : "", 2 + round % 3, round * 1000 + depth, depth,
			         200 - 2 * depth, depth, depth);
	str_adds(&doc, "]}");
	ok(doc.len > 15000000, "%zu bytes", doc.len);
	if (!ok(read_bytes(str_get(&doc), doc.len, 0), "are read"))
		return;
	for (size_t t = 0; t < slices->thread_count; t++) {
		for (size_t i = 0; i < slices->threads[t].n; i++) {
			const struct slice *s = &slices->threads[t].v[i];
			uint64_t depth = i % 50, round = i / 50 * 3 + t;

			wrong += s->depth != depth ||
			         s->start_ns != (round * 1000 + depth) * 1000 + depth ||
			         s->dur_ns != (200 - 2 * depth) * 1000;
		}
	}
	is_u64(slices->total, n, "all of them");
	is_u64(wrong, 0, "and each is where it belongs");
	is_u64(names_count(slices->names), 51, "few names");
}

int main(void)
{
	test_as_written();
	test_numbers();
	test_strings();
	test_nesting();
	test_other_events();
	test_nameless();
	test_broken();
	test_large();
	slices_free(slices);
	return done_testing();
}
