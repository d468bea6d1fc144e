/* SPDX-License-Identifier: MIT */
#include "perfdata/cursor.h"

#include "tap.h"

static const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 0x88, 9, 'a', 'b', 0, 'c' };

static void test_numbers(void)
{
	struct cursor c = cursor_make(bytes, sizeof(bytes));
	uint16_t u16;

	memcpy(&u16, bytes + 1, sizeof(u16));
	is_u64(cursor_u8(&c), 1, "a byte");
	is_u64(cursor_u16(&c), u16, "an unaligned number");
	ok(cursor_left(&c) == sizeof(bytes) - 3, "what is left");
	cursor_skip(&c, 9);
	ok(!c.bad, "all was there");
	is_u64(cursor_u64(&c), 0, "past the end is zero");
	ok(c.bad && cursor_left(&c) == 1, "sets bad and moves nothing");
	is_u64(cursor_u8(&c), 'c', "what is there can still be read");
	ok(c.bad, "bad stays");
}

static void test_sizes_that_lie(void)
{
	struct cursor c = cursor_make(bytes, sizeof(bytes));
	struct cursor sub = cursor_sub(&c, UINT64_MAX);

	ok(c.bad && !cursor_left(&sub), "a part larger than the whole is empty");
	ok(cursor_left(&c) == sizeof(bytes), "and nothing was passed");
	c.bad = false;
	sub = cursor_sub(&c, 3);
	is_u64(cursor_u32(&sub), 0, "a part has an end of its own");
	ok(sub.bad && !c.bad, "that is the part's trouble");
}

static void test_places(void)
{
	struct cursor c = cursor_make(bytes, 8);
	uint64_t v = 99;

	ok(cursor_number_at(&c, 7, 1, true, &v) && (int64_t)v == -120, "a signed byte is extended");
	ok(cursor_number_at(&c, 7, 1, false, &v) && v == 0x88, "an unsigned one is not");
	ok(!cursor_number_at(&c, 7, 2, false, &v), "half a number is none");
	ok(!cursor_number_at(&c, UINT64_MAX, 8, false, &v), "far outside is none");
	ok(!cursor_number_at(&c, 0, 3, false, &v) && v == 0x88, "of three bytes neither");
	is_u64(cursor_u64_at(&c, 1), 0, "u64_at: not all there");
	ok(cursor_u64_at(&c, 0) == cursor_u64_back(&c, 8), "from the start and from the end");
	is_u64(cursor_u64_back(&c, 16), 0, "u64_back: before the start");
	is_u64(cursor_u64_back(&c, 4), 0, "u64_back: over the end");
	is_u64(cursor_u32_at(&c, 5), 0, "u32_at: not all there");
}

static void test_text(void)
{
	struct cursor c = cursor_make(bytes + 9, 4), empty = { 0 };
	size_t len;

	is_str(cursor_text(&c, &len), "ab", "a terminated text");
	ok(len == 2 && cursor_left(&c) == 1, "and its NUL are passed");
	is_str(cursor_text(&c, &len), "", "one without NUL is none");
	ok(c.bad && len == 0 && cursor_left(&c) == 1, "and not passed");
	c = cursor_make(bytes + 9, 4);
	ok(cursor_text_field(&c, 4, &len) && len == 2, "a field ends at its first NUL");
	c = cursor_make(bytes + 9, 2);
	ok(cursor_text_field(&c, 2, &len) && len == 2, "or with the field");
	ok(!cursor_text_field(&c, 1, &len) && len == 0, "one that is cut is none");
	is_str(cursor_text(&empty, NULL), "", "nothing has no text");
}

/* Undefined for NULL, as UBSan says; found by fuzzing: raw data, none of it, of a known format. */
static void test_nothing(void)
{
	struct cursor c = cursor_make(NULL, 0);
	uint64_t v;

	ok(!cursor_bytes(&c, 0) && !c.bad, "nothing can be read from nothing");
	ok(!cursor_number_at(&c, 0, 4, false, &v), "but no number");
	ok(!cursor_bytes(&c, 1) && c.bad, "nor a byte");
}

int main(void)
{
	test_numbers();
	test_sizes_that_lie();
	test_places();
	test_text();
	test_nothing();
	return done_testing();
}
