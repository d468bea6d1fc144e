/* SPDX-License-Identifier: MIT */
/* Reading numbers and strings from bytes, also past their end. */
#include "base/cursor.h"

#include "tap.h"

static const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 0x88, 9, 'a', 'b', 0, 'c' };

static void test_numbers(void)
{
	struct cursor c = cursor_make(bytes, sizeof(bytes));
	uint16_t u16;

	memcpy(&u16, bytes + 1, sizeof(u16));
	is_u64(cursor_u8(&c), 1, "cursor_u8 reads a byte");
	is_u64(cursor_u16(&c), u16, "cursor_u16 reads an unaligned number");
	ok(cursor_left(&c) == sizeof(bytes) - 3, "cursor_left returns the number of bytes left");
	cursor_skip(&c, 9);
	ok(!c.bad, "reads within the data do not set bad");
	is_u64(cursor_u64(&c), 0, "a read past the end returns zero");
	ok(c.bad && cursor_left(&c) == 1,
	   "a read past the end sets bad and does not move the cursor");
	is_u64(cursor_u8(&c), 'c', "later reads within the data still work");
	ok(c.bad, "bad remains set");
}

static void test_sizes_that_lie(void)
{
	struct cursor c = cursor_make(bytes, sizeof(bytes));
	struct cursor sub = cursor_sub(&c, UINT64_MAX);

	ok(c.bad && !cursor_left(&sub), "cursor_sub beyond the end is empty");
	ok(cursor_left(&c) == sizeof(bytes), "cursor_sub beyond the end does not move the cursor");
	c.bad = false;
	sub = cursor_sub(&c, 3);
	is_u64(cursor_u32(&sub), 0, "a read past the end of a sub-cursor returns zero");
	ok(sub.bad && !c.bad, "it sets bad in the sub-cursor only");
}

static void test_places(void)
{
	struct cursor c = cursor_make(bytes, 8);
	uint64_t v = 99;

	ok(cursor_number_at(&c, 7, 1, true, &v) && (int64_t)v == -120,
	   "a signed byte is sign-extended");
	ok(cursor_number_at(&c, 7, 1, false, &v) && v == 0x88,
	   "an unsigned byte is not sign-extended");
	ok(!cursor_number_at(&c, 7, 2, false, &v), "a number that is not complete is refused");
	ok(!cursor_number_at(&c, UINT64_MAX, 8, false, &v), "an offset far outside is refused");
	ok(!cursor_number_at(&c, 0, 3, false, &v) && v == 0x88, "a size of three bytes is refused");
	is_u64(cursor_u64_at(&c, 1), 0, "cursor_u64_at returns 0 if the bytes are not complete");
	ok(cursor_u64_at(&c, 0) == cursor_u64_back(&c, 8),
	   "cursor_u64_at and cursor_u64_back agree");
	is_u64(cursor_u64_back(&c, 16), 0, "cursor_u64_back returns 0 before the start");
	is_u64(cursor_u64_back(&c, 4), 0, "cursor_u64_back returns 0 beyond the end");
	is_u64(cursor_u32_at(&c, 5), 0, "cursor_u32_at returns 0 if the bytes are not complete");
}

static void test_text(void)
{
	struct cursor c = cursor_make(bytes + 9, 4), empty = { 0 };
	size_t len;

	is_str(cursor_text(&c, &len), "ab", "cursor_text returns a terminated text");
	ok(len == 2 && cursor_left(&c) == 1, "cursor_text moves past the text and its NUL");
	is_str(cursor_text(&c, &len), "", "a text without a NUL is empty");
	ok(c.bad && len == 0 && cursor_left(&c) == 1,
	   "a text without a NUL sets bad and does not move the cursor");
	c = cursor_make(bytes + 9, 4);
	ok(cursor_text_field(&c, 4, &len) && len == 2, "a text field ends at its first NUL");
	c = cursor_make(bytes + 9, 2);
	ok(cursor_text_field(&c, 2, &len) && len == 2,
	   "a text field without a NUL ends with the field");
	ok(!cursor_text_field(&c, 1, &len) && len == 0, "an incomplete text field is refused");
	is_str(cursor_text(&empty, NULL), "", "an empty cursor has no text");
}

/* memcpy is undefined for NULL, as UBSan reports; found by fuzzing: empty raw data of a known
 * format. */
static void test_nothing(void)
{
	struct cursor c = cursor_make(NULL, 0);
	uint64_t v;

	ok(!cursor_bytes(&c, 0) && !c.bad, "0 bytes can be read from an empty cursor");
	ok(!cursor_number_at(&c, 0, 4, false, &v), "a number cannot be read from an empty cursor");
	ok(!cursor_bytes(&c, 1) && c.bad, "a byte cannot be read from an empty cursor");
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
