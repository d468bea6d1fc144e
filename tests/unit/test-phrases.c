/* SPDX-License-Identifier: MIT */
/* Every phrase of a report with sample values, so that the English can be read as a text. */
#include <string.h>

#include "golden.h"
#include "report/phrases.h"

/* The value of a hole, which tells its place. */
static double sample_PERCENT(unsigned i)
{
	return 40.25 + i;
}

static double sample_PERCENT0(unsigned i)
{
	return 40 + i;
}

static double sample_NUMBER(unsigned i)
{
	return 2.5 + i;
}

static double sample_NUMBER2(unsigned i)
{
	return 2.25 + i;
}

static uint64_t sample_COUNT(unsigned i)
{
	return 10 + i;
}

static uint64_t sample_TIME(unsigned i)
{
	static const uint64_t times[] = { 3400000, 1230000000, 4500, 6700000, 8900000, 1100 };

	return times[i - 1];
}

static uint64_t sample_MS(unsigned i)
{
	return 5600000 + i * 1000000;
}

static uint64_t sample_SECONDS(unsigned i)
{
	return 1234000000 * (uint64_t)i;
}

static const char *sample_NAME(unsigned i)
{
	static const char *const names[] = { "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX" };

	return names[i - 1];
}

static void add_all(struct str *out)
{
#define LINE(name, call)                   \
	do {                               \
		str_adds(out, #name ": "); \
		call;                      \
		str_addc(out, '\n');       \
	} while (0);
#define PHRASE0(name, text)       LINE(name, say_##name(out))
#define PHRASE1(name, A, text)    LINE(name, say_##name(out, sample_##A(1)))
#define PHRASE2(name, A, B, text) LINE(name, say_##name(out, sample_##A(1), sample_##B(2)))
#define PHRASE3(name, A, B, C, text) \
	LINE(name, say_##name(out, sample_##A(1), sample_##B(2), sample_##C(3)))
#define PHRASE4(name, A, B, C, D, text) \
	LINE(name, say_##name(out, sample_##A(1), sample_##B(2), sample_##C(3), sample_##D(4)))
#define PHRASE5(name, A, B, C, D, E, text)                                                     \
	LINE(name, say_##name(out, sample_##A(1), sample_##B(2), sample_##C(3), sample_##D(4), \
	                      sample_##E(5)))
#define PHRASE6(name, A, B, C, D, E, F, text)                                                  \
	LINE(name, say_##name(out, sample_##A(1), sample_##B(2), sample_##C(3), sample_##D(4), \
	                      sample_##E(5), sample_##F(6)))
#include "report/phrases.def"
}

int main(void)
{
	CLEANUP(str_done) struct str all = { 0 };
	unsigned missing = 0;

	add_all(&all);
	golden_is("phrases.txt", str_get(&all));
	for (unsigned i = 0; i < PHRASES; i++)
		missing += phrase(i) && i != PHRASE_NONE && !*phrase(i);
	is_u64(missing, 0, "no phrase is empty");
	ok(!*phrase(PHRASE_NONE), "but that of nothing");
	return done_testing();
}
