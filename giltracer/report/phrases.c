/* SPDX-License-Identifier: MIT */
/* Inserts values into phrases. */
#include "report/phrases.h"

#include <inttypes.h>
#include <stdio.h>

/* A formatted value. */
struct hole {
	char text[40];
};

#define TIME_TEXT(ns)                                    \
	(ns) >= 1000000000 ? "%.2f s"                    \
	: (ns) >= 1000000  ? "%.1f ms"                   \
			   : "%.1f µs",                   \
		(double)(ns) / ((ns) >= 1000000000 ? 1e9 \
	                        : (ns) >= 1000000  ? 1e6 \
	                                           : 1e3)

#define FILL(TYPE, ...)                                                      \
	static const char *fill_##TYPE(struct hole *hole, hole_##TYPE value) \
	{                                                                    \
		snprintf(hole->text, sizeof(hole->text), __VA_ARGS__);       \
		return hole->text;                                           \
	}
FILL(PERCENT, "%.1f %%", value)
FILL(PERCENT0, "%.0f %%", value)
FILL(NUMBER, "%.1f", value)
FILL(NUMBER2, "%.2f", value)
FILL(COUNT, "%" PRIu64, value)
FILL(TIME, TIME_TEXT(value))
FILL(MS, "%.1f ms", (double)value / 1e6)
FILL(SECONDS, "%.3f s", (double)value / 1e9)

static const char *fill_NAME(struct hole *hole, const char *value)
{
	(void)hole;
	return value;
}

#define PHRASE0(name, text)              \
	void say_##name(struct str *out) \
	{                                \
		str_adds(out, text);     \
	}
#define PHRASE1(name, A, text)                       \
	void say_##name(struct str *out, hole_##A a) \
	{                                            \
		struct hole h[1];                    \
		str_addf(out, text, fill_##A(h, a)); \
	}
#define PHRASE2(name, A, B, text)                                        \
	void say_##name(struct str *out, hole_##A a, hole_##B b)         \
	{                                                                \
		struct hole h[2];                                        \
		str_addf(out, text, fill_##A(h, a), fill_##B(h + 1, b)); \
	}
#define PHRASE3(name, A, B, C, text)                                                         \
	void say_##name(struct str *out, hole_##A a, hole_##B b, hole_##C c)                 \
	{                                                                                    \
		struct hole h[3];                                                            \
		str_addf(out, text, fill_##A(h, a), fill_##B(h + 1, b), fill_##C(h + 2, c)); \
	}
#define PHRASE4(name, A, B, C, D, text)                                                     \
	void say_##name(struct str *out, hole_##A a, hole_##B b, hole_##C c, hole_##D d)    \
	{                                                                                   \
		struct hole h[4];                                                           \
		str_addf(out, text, fill_##A(h, a), fill_##B(h + 1, b), fill_##C(h + 2, c), \
		         fill_##D(h + 3, d));                                               \
	}
#define PHRASE5(name, A, B, C, D, E, text)                                                  \
	void say_##name(struct str *out, hole_##A a, hole_##B b, hole_##C c, hole_##D d,    \
	                hole_##E e)                                                         \
	{                                                                                   \
		struct hole h[5];                                                           \
		str_addf(out, text, fill_##A(h, a), fill_##B(h + 1, b), fill_##C(h + 2, c), \
		         fill_##D(h + 3, d), fill_##E(h + 4, e));                           \
	}
#define PHRASE6(name, A, B, C, D, E, F, text)                                               \
	void say_##name(struct str *out, hole_##A a, hole_##B b, hole_##C c, hole_##D d,    \
	                hole_##E e, hole_##F f)                                             \
	{                                                                                   \
		struct hole h[6];                                                           \
		str_addf(out, text, fill_##A(h, a), fill_##B(h + 1, b), fill_##C(h + 2, c), \
		         fill_##D(h + 3, d), fill_##E(h + 4, e), fill_##F(h + 5, f));       \
	}
#include "report/phrases.def"

const char *phrase(enum phrase phrase)
{
	static const char *const texts[PHRASES] = {
		[PHRASE_NONE] = "",
#define PHRASE0(name, text) [PHRASE_##name] = text,
#define PHRASE_WITH_HOLES(...)
#include "report/phrases.def"
	};

	return texts[phrase];
}
