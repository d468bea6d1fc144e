/* SPDX-License-Identifier: MIT */
/* The English of a report, from phrases.def. say_NAME(out, …) appends the phrase NAME with its
 * holes filled in; phrase(PHRASE_NAME) is one without holes, for headings and captions. */
#ifndef GILTRACER_REPORT_PHRASES_H
#define GILTRACER_REPORT_PHRASES_H

#include <stdint.h>

#include "base/str.h"

typedef double hole_PERCENT, hole_PERCENT0, hole_NUMBER, hole_NUMBER2;
typedef uint64_t hole_COUNT, hole_TIME, hole_MS, hole_SECONDS;
typedef const char *hole_NAME;

#define PHRASE0(name, text)       void say_##name(struct str *out);
#define PHRASE1(name, A, text)    void say_##name(struct str *out, hole_##A a);
#define PHRASE2(name, A, B, text) void say_##name(struct str *out, hole_##A a, hole_##B b);
#define PHRASE3(name, A, B, C, text) \
	void say_##name(struct str *out, hole_##A a, hole_##B b, hole_##C c);
#define PHRASE4(name, A, B, C, D, text) \
	void say_##name(struct str *out, hole_##A a, hole_##B b, hole_##C c, hole_##D d);
#define PHRASE5(name, A, B, C, D, E, text)                                               \
	void say_##name(struct str *out, hole_##A a, hole_##B b, hole_##C c, hole_##D d, \
	                hole_##E e);
#define PHRASE6(name, A, B, C, D, E, F, text)                                            \
	void say_##name(struct str *out, hole_##A a, hole_##B b, hole_##C c, hole_##D d, \
	                hole_##E e, hole_##F f);
#include "report/phrases.def"

enum phrase {
	PHRASE_NONE,
#define PHRASE0(name, text)          PHRASE_##name,
#define PHRASE_WITH_HOLES(name, ...) PHRASE_##name,
#include "report/phrases.def"
	PHRASES,
};

/* The text of a phrase without holes; PHRASE_NONE: "". */
const char *phrase(enum phrase phrase);

#endif
