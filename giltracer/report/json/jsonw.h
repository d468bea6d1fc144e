/* SPDX-License-Identifier: MIT */
/*
 * Streaming JSON (RFC 8259), safe inside <script type="application/json">: '<', '>', '&', controls
 * and U+2028/2029 are escaped, invalid UTF-8 becomes U+FFFD. The writer maintains commas and
 * nesting; a mistake of the caller (a value without a key, an unclosed object) fails an assertion.
 *
 *	jsonw_object(&w, NULL);
 *	jsonw_u64(&w, "pid", 7);
 *	jsonw_array(&w, "names");
 *	jsonw_string(&w, NULL, "x");
 *	jsonw_end(&w);
 *	jsonw_end(&w);
 *
 * key is the member's name in an object and NULL in an array and at the top level.
 */
#ifndef GILTRACER_REPORT_JSON_JSONW_H
#define GILTRACER_REPORT_JSON_JSONW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/outbuf.h"

#define JSONW_DEPTH 32

/**
 * @out: for a file that is borrowed, and whose errors its owner checks
 * @lines: objects and arrays down to this depth have each value on a line of its own, indented; 0:
 * all on one line
 */
struct jsonw {
	struct outbuf out;
	unsigned lines;
	unsigned depth;
	bool any[JSONW_DEPTH];
	bool object[JSONW_DEPTH];
};

static inline void jsonw_init(struct jsonw *w, FILE *out, unsigned lines)
{
	outbuf_init(&w->out, out);
	w->lines = lines;
	w->depth = 0;
}

void jsonw_object(struct jsonw *w, const char *key);
void jsonw_array(struct jsonw *w, const char *key);
void jsonw_end(struct jsonw *w); /* of the innermost object or array */

/* A text of NULL becomes null. */
void jsonw_string(struct jsonw *w, const char *key, const char *text);
void jsonw_u64(struct jsonw *w, const char *key, uint64_t value);
void jsonw_i64(struct jsonw *w, const char *key, int64_t value);
void jsonw_real(struct jsonw *w, const char *key, double value, int decimals); /* finite */
/* In µs or ms, exact to the ns. */
void jsonw_us(struct jsonw *w, const char *key, uint64_t ns);
void jsonw_ms(struct jsonw *w, const char *key, uint64_t ns);
void jsonw_hex(struct jsonw *w, const char *key, uint64_t value); /* a string, "0x1f" */
void jsonw_bool(struct jsonw *w, const char *key, bool value);
void jsonw_null(struct jsonw *w, const char *key);

/* In an array: the caller writes one value, as JSON, to the returned buffer. */
struct outbuf *jsonw_value(struct jsonw *w);
/* The text that jsonw_string() would write. The caller frees it. */
char *jsonw_quoted(const char *text);

/* Write all buffered text to the file. */
void jsonw_flush(struct jsonw *w);
/* Finish: everything must be closed; writes a newline and flushes. */
void jsonw_finish(struct jsonw *w);

#endif
