/* SPDX-License-Identifier: MIT */
/* The table of offsets that CPython publishes: what is taken from it, and that a hostile one is refused. */
#include "python/layout.h"

#include <string.h>

#include "tap.h"

#define WORDS (PYTHON_TABLE_SIZE / 8)

enum {
	FRAME_SIZE = 39,
	THREAD_SIZE = 22,
	HEAD = 3,
	GIL = 16,
	TEXT = 92,
	WIDE_TEXT = 93,
	LOCKED = 18,
	HOLDER = 19
};

/* One whose structs all have 4096 bytes, with every offset at 16, and the text of a str at 40. */
static void make(uint64_t *table, unsigned minor)
{
	static const unsigned sizes[] = { 3, 6, 22, 39, 47, 58, 60, 66, 86, 89 };

	for (unsigned i = HEAD; i < WORDS; i++)
		table[i] = 16;
	table[TEXT] = table[WIDE_TEXT] = 40;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		table[sizes[i]] = 4096;
	memcpy(table, "xdebugpy", 8);
	table[1] = (uint64_t)3 << 24 | (uint64_t)minor << 16 | 0x2f0;
	table[2] = 0;
	table[LOCKED] = table[GIL] + PYTHON_GIL_LOCKED;
	table[HOLDER] = table[GIL] + PYTHON_GIL_HOLDER;
}

static bool read_as(const uint64_t *table, size_t size, unsigned minor, struct python_layout *ret)
{
	python_layout_init(ret, 3, minor, false);
	return python_layout_from_table(ret, table, size);
}

static bool has_the_same(const struct python_layout *a, const struct python_layout *b)
{
	return !memcmp(a->frame, b->frame, sizeof(a->frame)) &&
	       !memcmp(a->memory, b->memory, sizeof(a->memory));
}

static void test_taken(void)
{
	struct python_layout layout, last;
	uint64_t table[WORDS];

	make(table, 15);
	read_as(table, sizeof(table), 15, &last);
	table[40] = 24;
	table[35] = 112;
	ok(read_as(table, sizeof(table), 15, &layout), "the table of 3.15 is read");
	is_u64(layout.frame[FRAME_PREVIOUS], 24, "  a frame's caller");
	is_u64(layout.memory[MEMORY_REQUESTS_GIL], 112, "  whether a thread requests the GIL");
	is_u64(layout.memory[MEMORY_LOCKED], PYTHON_GIL_LOCKED, "  the GIL");
	make(table, 16);
	ok(read_as(table, sizeof(table), 16, &layout),
	   "a 3.16 that keeps the table is read as 3.15");
	ok(has_the_same(&layout, &last), "  with the same members in the same places");
	make(table, 17);
	ok(read_as(table, sizeof(table), 17, &layout) && has_the_same(&layout, &last),
	   "and a 3.17");
}

static void test_free_threaded(void)
{
	struct python_layout layout;
	uint64_t table[WORDS];

	make(table, 15);
	table[2] = 1;
	table[GIL + 1] = 0;
	table[LOCKED] += PYTHON_GIL_AFTER_ON;
	table[HOLDER] += PYTHON_GIL_AFTER_ON;
	python_layout_init(&layout, 3, 15, true);
	ok(python_layout_from_table(&layout, table, sizeof(table)),
	   "the table of a free-threaded build is read");
	is_u64(layout.memory[MEMORY_GIL_ON], 0, "  where its GIL says whether it is on");
	is_u64(layout.memory[MEMORY_LOCKED], PYTHON_GIL_LOCKED + 8, "  which precedes the rest");
	is_u64(layout.object_type, 24, "  and objects have larger headers");
	table[GIL + 1] = 4;
	ok(!python_layout_from_table(&layout, table, sizeof(table)), "  unless it is elsewhere");
}

static void test_refused(void)
{
	struct python_layout layout, before;
	uint64_t table[WORDS];
	unsigned wrong = 0, accepted = 0;

	make(table, 15);
	ok(!read_as(table, sizeof(table), 16, &layout), "the table of another version is refused");
	ok(!read_as(table, 105 * 4, 15, &layout), "one that is cut, too");
	table[2] = 1;
	ok(!read_as(table, sizeof(table), 15, &layout), "and that of a build without a GIL");
	make(table, 15);
	table[0]++;
	ok(!read_as(table, sizeof(table), 15, &layout), "and what is no table");
	make(table, 15);
	table[LOCKED] += 8;
	ok(!read_as(table, sizeof(table), 15, &layout), "and one with another GIL");
	python_layout_init(&before, 3, 15, false);
	ok(!memcmp(layout.frame, before.frame, sizeof(layout.frame)) &&
	           !memcmp(layout.memory, before.memory, sizeof(layout.memory)),
	   "the layout is then unchanged");
	for (unsigned i = HEAD; i < WORDS; i++) {
		static const uint64_t bad[] = { 600, 4090, 4096, 0x10000, UINT32_MAX, UINT64_MAX };

		for (unsigned j = 0; j < sizeof(bad) / sizeof(*bad); j++) {
			make(table, 15);
			table[i] = bad[j];
			if (!read_as(table, sizeof(table), 15, &layout))
				continue;
			accepted++;
			for (unsigned k = 0; k < FRAME_KEYS; k++)
				wrong += layout.frame[k] > 512 &&
				         layout.frame[k] != PYTHON_NO_OFFSET;
			for (unsigned k = 0; k < MEMORY_KEYS; k++)
				wrong += layout.memory[k] > 4096 &&
				         layout.memory[k] != PYTHON_NO_OFFSET;
		}
	}
	is_u64(wrong, 0,
	       "no offset is outside of its struct (%u tables with a bad word that is not used)",
	       accepted);
	make(table, 15);
	table[FRAME_SIZE] = 17;
	ok(!read_as(table, sizeof(table), 15, &layout), "a struct that is too small is seen");
	make(table, 15);
	table[TEXT] = 20;
	ok(!read_as(table, sizeof(table), 15, &layout), "and a str whose text is in its head");
	make(table, 15);
	table[THREAD_SIZE] = (uint64_t)1 << 40;
	ok(!read_as(table, sizeof(table), 15, &layout), "and one that is too large");
	make(table, 15);
	table[26] = 17;
	ok(!read_as(table, sizeof(table), 15, &layout), "and a pointer that is not aligned");
}

int main(void)
{
	test_taken();
	test_free_threaded();
	test_refused();
	return done_testing();
}
