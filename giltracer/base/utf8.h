/* SPDX-License-Identifier: MIT */
/*
 * Text of unknown origin (thread names, argv, paths) as code points. Decoding follows Unicode 15,
 * section 3.9, table 3-7 (well-formed UTF-8); each maximal ill-formed part becomes one U+FFFD.
 */
#ifndef GILTRACER_BASE_UTF8_H
#define GILTRACER_BASE_UTF8_H

#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

#define UTF8_BAD  0xfffd
#define UTF8_NBSP 0xa0

/* The code point at *s, which is moved past it; UTF8_BAD for bytes that are not UTF-8. At the
 * terminating NUL it is 0 and *s is not moved. */
uint32_t utf8_next(const char **s);

/* Append one code point, encoded. */
void utf8_add(struct str *str, uint32_t cp);

/* Terminal columns of a code point: 0 (combining), 1 or 2 (East Asian wide, emoji). */
unsigned utf8_width(uint32_t cp);

/* Terminal columns of a text after it was made safe. */
unsigned utf8_columns(const char *text);

/* Whether a code point can drive a terminal or reorder the text around it: C0, DEL, C1, bidi
 * controls, zero-width and other format characters, line and paragraph separators. */
bool utf8_is_unsafe(uint32_t cp);

/*
 * Appends text made safe for a terminal: unsafe code points become '?', and text beyond max columns
 * is replaced by an ellipsis. Returns the number of columns used.
 */
unsigned utf8_add_safe(struct str *str, const char *text, unsigned max);

/* Makes all of text safe, but keeps line breaks and tabs. Caller frees. */
char *utf8_safe_lines(const char *text);

/* fprintf, made safe as by utf8_safe_lines: for all text that a person may read on a terminal. */
void utf8_fprintf(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
