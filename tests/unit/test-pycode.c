/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "python/pycode.h"

#include "tap.h"

/* Tables as CPython writes them; the lines are what dis.findlinestarts says of them. */
static void test_tables(void)
{
	/* def f(): / a = 1 / b = 2, on lines 10 to 12 */
	static const uint8_t lnotab[] = { 0, 1, 4, 1 };
	static const uint8_t backwards[] = { 4, 3, 4, 0xfe };
	/* 3.10: 4 bytes on +1, 4 bytes without a line, 4 bytes on +1 */
	static const uint8_t linetable[] = { 4, 1, 4, 0x80, 4, 1 };
	/* 3.11: 1 unit one-line +1, 2 units short, 1 unit long +100 (svarint 200: 0x48 0x03), 1
	 * none, 1 no columns -100 */
	static const uint8_t locations[] = { 0xd8, 0, 0, 0x81, 0,    0xf0, 0x48, 0x03,
		                             0x00, 1, 2, 0xf8, 0xe8, 0x49, 0x03 };

	is_u64(pycode_table_line(8, 10, lnotab, sizeof(lnotab), 0), 11, "lnotab: first range");
	is_u64(pycode_table_line(8, 10, lnotab, sizeof(lnotab), 3), 11, "up to its end");
	is_u64(pycode_table_line(8, 10, lnotab, sizeof(lnotab), 4), 12, "and the next");
	is_u64(pycode_table_line(8, 10, lnotab, sizeof(lnotab), -1), 10, "before the first: def");
	is_u64(pycode_table_line(6, 10, backwards, 4, 9), 11, "lnotab: lines go back");
	is_u64(pycode_table_line(10, 10, linetable, 6, 2), 11, "3.10: first range");
	is_u64(pycode_table_line(10, 10, linetable, 6, 4), 0, "3.10: a range without a line");
	is_u64(pycode_table_line(10, 10, linetable, 6, 8), 12, "3.10: lines go on behind it");
	is_u64(pycode_table_line(10, 10, linetable, 6, 12), 0, "3.10: behind the code");
	is_u64(pycode_table_line(11, 10, locations, sizeof(locations), 0), 11, "3.11: one line");
	is_u64(pycode_table_line(11, 10, locations, sizeof(locations), 4), 11, "3.11: short");
	is_u64(pycode_table_line(12, 10, locations, sizeof(locations), 6), 111, "3.11: long");
	is_u64(pycode_table_line(13, 10, locations, sizeof(locations), 8), 0, "3.11: none");
	is_u64(pycode_table_line(13, 10, locations, sizeof(locations), 10), 11, "3.11: back");
	is_u64(pycode_table_line(11, 10, locations, sizeof(locations), 12), 0, "3.11: behind");
	is_u64(pycode_table_line(11, 10, locations, 6, 6), 0, "3.11: a cut table has no line");
}

#define FILE_NAME "/a/path/that/is/longer/than/an/entry/without/texts.py"

/* Both found by libFuzzer. */
static void test_far(void)
{
	/* 3.11: 1 unit, no columns, svarint of all bits; then another of -1 */
	static const uint8_t far_line[] = { 0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f,
		                            0x7f, 0x7f, 0x7f, 0x7f, 0x3f, 0xe8, 3 };

	is_u64(pycode_table_line(12, UINT32_MAX, far_line, sizeof(far_line), 2), 0,
	       "a line too far away is none");
	is_u64(pycode_table_line(12, 1, far_line, 0, INT64_MAX), 0, "nor has nothing any");
}

/* Little-endian, as the file is. */
static void put(FILE *f, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		fputc((int)(value >> (8 * i) & 0xff), f);
}

static void put_code(FILE *f, uint64_t address, uint32_t line, const char *name)
{
	put(f, address, 8);
	put(f, line, 4);
	put(f, strlen(name), 4);
	fputs(name, f);
	put(f, strlen(FILE_NAME), 4);
	fputs(FILE_NAME, f);
	put(f, 3, 4);
	fwrite("\xd8\0", 1, 3, f); /* one unit, next line */
}

static void write_codes(const char *path, uint64_t count)
{
	FILE *f = fopen(path, "wb");

	if (!f)
		return;
	fputs("GTCODES1", f);
	put(f, 3, 1);
	put(f, 12, 1);
	put(f, 0, 2);
	put(f, 192, 4);
	put(f, count, 8);
	put_code(f, 0x7000, 7, "late");
	put_code(f, 0x5000, 5, "früh");
	fclose(f);
}

static void test_file(void)
{
	char path[] = "/tmp/giltracer-pycode-XXXXXX";
	CLEANUP(pycode_close) struct pycode *codes = NULL;
	CLEANUP(close) int fd = mkstemp(path);
	const struct pycode_entry *e;
	struct error err;

	write_codes(path, 2);
	if (!ok(pycode_open(&codes, path, &err) == 0, "a list of two opens"))
		return;
	is_u64(pycode_count(codes), 2, "both are there");
	e = pycode_find(codes, 0x5000, 5);
	ok(e && e->name_len == 5 && !memcmp(e->name, "früh", 5),
	   "one is found, whatever the order");
	ok(e && pycode_line(codes, e, 0x5000 + 192) == 6, "and its line");
	ok(e && pycode_line(codes, e, 0x5000 + 194) == 0, "not behind its code");
	ok(!pycode_find(codes, 0x5000, 6), "an address that was reused is not it");
	ok(!pycode_find(codes, 0x5001, 5), "nor is an address in its middle");
	pycode_close(take(codes));
	write_codes(path, 3);
	ok(pycode_open(&codes, path, &err) < 0 && strstr(err.text, "cut"), "a cut list is refused");
	write_codes(path, UINT64_MAX);
	ok(pycode_open(&codes, path, &err) < 0 && strstr(err.text, "do not fit"), "so is a lie");
	ok(truncate(path, 5) == 0 && pycode_open(&codes, path, &err) < 0, "and another file");
	unlink(path);
}

int main(void)
{
	test_tables();
	test_far();
	test_file();
	return done_testing();
}
