/* SPDX-License-Identifier: MIT */
/* JSON writer and the handling of hostile text. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/jsonw.h"
#include "base/utf8.h"

#include "tap.h"

/* What the writer makes of one string; caller frees. */
static char *quoted(const char *text)
{
	char *ret = NULL;
	size_t len;
	FILE *out = open_memstream(&ret, &len);
	struct jsonw w;

	jsonw_init(&w, out, 0);
	jsonw_string(&w, NULL, text);
	jsonw_flush(&w);
	fclose(out);
	return ret;
}

static void is_quoted(const char *text, const char *want, const char *name)
{
	char *got = quoted(text), *alone = jsonw_quoted(text);

	is_str(got, want, "%s", name);
	is_str(alone, want, "%s, alone", name);
	free(got);
	free(alone);
}

static void test_strings(void)
{
	is_quoted("plain", "\"plain\"", "plain text");
	is_quoted("a\"b\\c", "\"a\\\"b\\\\c\"", "quotes and backslashes");
	is_quoted("</script>&", "\"\\u003c/script\\u003e\\u0026\"",
	          "what could end a script element");
	is_quoted("\n\t\r\x01\x1b\x7f", "\"\\n\\t\\u000d\\u0001\\u001b\\u007f\"", "controls");
	is_quoted("\xe2\x80\xa8\xe2\x80\xae", "\"\\u2028\\u202e\"", "separators and bidi controls");
	is_quoted("\xf3\xa0\x80\x81\xf3\xa0\x81\xbf", "\"\\udb40\\udc01\\udb40\\udc7f\"",
	          "tags, which are beyond 16 bits");
	is_quoted("\xf3\xa0\x82\x80", "\"\xf3\xa0\x82\x80\"", "and what is behind them is none");
	is_quoted("h\xc3\xa9 \xf0\x9f\x90\x8d", "\"h\xc3\xa9 \xf0\x9f\x90\x8d\"", "UTF-8 stays");
	is_quoted("a\xff"
	          "b",
	          "\"a\xef\xbf\xbd"
	          "b\"",
	          "a byte that is no UTF-8");
	is_quoted("\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\"", "an overlong NUL");
	is_quoted("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", "a surrogate");
	is_quoted("\xf4\x90\x80\x80x", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx\"",
	          "beyond U+10FFFF");
	is_quoted("\xe2\x82", "\"\xef\xbf\xbd\"", "cut in the middle");
	is_quoted("\xe2\x82<", "\"\xef\xbf\xbd\\u003c\"", "a cut one hides nothing behind it");
}

static void test_nesting(void)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct jsonw w;

	jsonw_init(&w, out, 0);
	jsonw_object(&w, NULL);
	jsonw_u64(&w, "max", UINT64_MAX);
	jsonw_i64(&w, "min", INT64_MIN);
	jsonw_array(&w, "a");
	jsonw_bool(&w, NULL, true);
	jsonw_null(&w, NULL);
	jsonw_object(&w, NULL);
	jsonw_end(&w);
	jsonw_end(&w);
	jsonw_hex(&w, "h", 0x7f0000001000);
	jsonw_string(&w, "s<", NULL);
	jsonw_end(&w);
	jsonw_finish(&w);
	fclose(out);
	is_str(text,
	       "{\"max\":18446744073709551615,\"min\":-9223372036854775808,\"a\":[true,null,{}],"
	       "\"h\":\"0x7f0000001000\",\"s\\u003c\":null}\n",
	       "commas, nesting, extremes");
	free(text);
}

/* More than the writer's buffer, in pieces that it cuts at each place, and one that is larger. */
static void test_large(void)
{
	char *text = NULL, *large = xcalloc(2 * OUTBUF_BYTES + 1, 1);
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct jsonw w;
	bool right = true;
	const char *at;

	memset(large, 'x', 2 * OUTBUF_BYTES);
	jsonw_init(&w, out, 0);
	jsonw_array(&w, NULL);
	for (unsigned i = 0; i < OUTBUF_BYTES; i++) {
		outbuf_add(jsonw_value(&w), "7", 1);
		jsonw_string(&w, NULL, "\xff\x01");
	}
	jsonw_string(&w, NULL, large);
	jsonw_end(&w);
	jsonw_finish(&w);
	fclose(out);
	at = text + 1;
	for (unsigned i = 0; i < OUTBUF_BYTES && right; i++, at += 14)
		right = !strncmp(at, "7,\"\xef\xbf\xbd\\u0001\",", 14);
	ok(right, "what is larger than the buffer");
	ok(!strncmp(at + 1, large, 2 * OUTBUF_BYTES) && !strcmp(at + 1 + 2 * OUTBUF_BYTES, "\"]\n"),
	   "one text that is");
	free(text);
	free(large);
}

static void is_decimal(uint64_t value, const char *want, const char *want_ms)
{
	char text[DECIMAL_MAX + 1] = { 0 }, ms[DECIMAL_MAX + 1] = { 0 };

	decimal_add(text, value);
	decimal_add_fixed(ms, value, 1000000, 6);
	is_str(text, want, "%s", want);
	is_str(ms, want_ms, "%s", want_ms);
}

static void test_decimal(void)
{
	is_decimal(0, "0", "0.000000");
	is_decimal(7, "7", "0.000007");
	is_decimal(10, "10", "0.000010");
	is_decimal(99, "99", "0.000099");
	is_decimal(100, "100", "0.000100");
	is_decimal(1000000, "1000000", "1.000000");
	is_decimal(1234567, "1234567", "1.234567");
	is_decimal(UINT64_MAX, "18446744073709551615", "18446744073709.551615");
}

static void test_lines(void)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct jsonw w;

	jsonw_init(&w, out, 2);
	jsonw_object(&w, NULL);
	jsonw_u64(&w, "a", 1);
	jsonw_array(&w, "b");
	jsonw_object(&w, NULL);
	jsonw_u64(&w, "c", 2);
	jsonw_u64(&w, "d", 3);
	jsonw_end(&w);
	jsonw_end(&w);
	jsonw_end(&w);
	jsonw_flush(&w);
	fclose(out);
	is_str(text, "{\n\t\"a\": 1,\n\t\"b\": [\n\t\t{\"c\": 2, \"d\": 3}\n\t]\n}", "lines");
	free(text);
}

static void is_safe(const char *text, unsigned max, const char *want, unsigned want_width,
                    const char *name)
{
	CLEANUP(str_done) struct str got = { 0 };
	unsigned width = utf8_add_safe(&got, text, max);

	is_str(str_get(&got), want, "%s", name);
	is_u64(width, want_width, "%s: columns", name);
}

static void test_terminal(void)
{
	is_safe("thread", 10, "thread", 6, "plain");
	is_safe("a\x1b[31m\n", 10, "a?[31m?", 7, "no escape sequences");
	is_safe("\xe2\x80\xae"
	        "evil",
	        10, "?evil", 5, "no reordering");
	is_safe("\xc2\x9b"
	        "1m",
	        10, "?1m", 3, "no C1 controls");
	is_safe("\xe6\xbc\xa2\xe5\xad\x97", 10, "\xe6\xbc\xa2\xe5\xad\x97", 4, "wide text");
	is_safe("e\xcc\x81", 10, "e\xcc\x81", 1, "combining text");
	is_safe("0123456789x", 10, "012345678\xe2\x80\xa6", 10, "cut");
	is_safe("\xe6\xbc\xa2\xe5\xad\x97", 3, "\xe6\xbc\xa2\xe2\x80\xa6", 3, "wide and cut");
	is_safe("\xe6\xbc\xa2\xe5\xad\x97", 2, "\xe2\x80\xa6", 1, "no half characters");
	is_safe("\xff", 10, "\xef\xbf\xbd", 1, "no UTF-8");
}

int main(void)
{
	test_strings();
	test_nesting();
	test_lines();
	test_large();
	test_decimal();
	test_terminal();
	return done_testing();
}
