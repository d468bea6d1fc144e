/* SPDX-License-Identifier: MIT */
/* Streaming JSON. */
#include "base/jsonw.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/utf8.h"

#define ESCAPED_MAX 12 /* bytes of an escaped code point */

/* JSON escapes in UTF-16 (RFC 8259, 7). */
static char *add_escape(char *at, uint32_t cp)
{
	if (cp >= 0x10000) {
		at += snprintf(at, ESCAPED_MAX / 2 + 1, "\\u%04" PRIx32, 0xd7c0 + (cp >> 10));
		cp = 0xdc00 + (cp & 0x3ff);
	}
	return at + snprintf(at, ESCAPED_MAX / 2 + 1, "\\u%04" PRIx32, cp);
}

static char *add_utf8(char *at, uint32_t cp)
{
	CLEANUP(str_done) struct str text = { 0 };

	utf8_add(&text, cp);
	memcpy(at, text.s, text.len);
	return at + text.len;
}

/* Writes cp to at, which has room for ESCAPED_MAX bytes and a NUL; returns its end. */
static char *add_codepoint(char *at, uint32_t cp)
{
	switch (cp) {
	case '"':
	case '\\':
		*at++ = '\\';
		*at++ = (char)cp;
		return at;
	case '\n':
	case '\t':
		*at++ = '\\';
		*at++ = cp == '\n' ? 'n' : 't';
		return at;
	case '<':
	case '>':
	case '&':
		return add_escape(at, cp);
	}
	return utf8_is_unsafe(cp) ? add_escape(at, cp) : add_utf8(at, cp);
}

/* ASCII characters that need no escape. */
static const bool is_plain[256] = {
	[' ' ... '!'] = true, ['#' ... '%'] = true, ['\'' ... ';'] = true,
	['=' ... '='] = true, ['?' ... '['] = true, [']' ... '~'] = true,
};

/* Nearly all text is plain ASCII, which is written in one piece. */
static void put_text(struct outbuf *out, const char *text)
{
	uint32_t cp;

	outbuf_addc(out, '"');
	for (;;) {
		const char *from = text;
		char *at;

		while (is_plain[(unsigned char)*text])
			text++;
		outbuf_add(out, from, (size_t)(text - from));
		cp = *text ? utf8_next(&text) : 0;
		if (!cp)
			break;
		at = outbuf_room(out, ESCAPED_MAX + 1);
		out->used += (size_t)(add_codepoint(at, cp) - at);
	}
	outbuf_addc(out, '"');
}

static void new_line(struct jsonw *w, unsigned depth)
{
	outbuf_addc(&w->out, '\n');
	for (unsigned i = 0; i < depth; i++)
		outbuf_addc(&w->out, '\t');
}

/* Writes what precedes a value: comma, newline, key. */
static void before(struct jsonw *w, const char *key)
{
	if (w->depth) {
		unsigned at = w->depth - 1;

		if (w->any[at])
			outbuf_addc(&w->out, ',');
		if (w->depth <= w->lines)
			new_line(w, w->depth);
		else if (w->any[at] && w->lines)
			outbuf_addc(&w->out, ' ');
		w->any[at] = true;
	}
	assert(!key == !(w->depth && w->object[w->depth - 1]));
	if (key) {
		put_text(&w->out, key);
		outbuf_addc(&w->out, ':');
		if (w->lines)
			outbuf_addc(&w->out, ' ');
	}
}

static void begin(struct jsonw *w, const char *key, bool object)
{
	before(w, key);
	assert(w->depth < JSONW_DEPTH);
	outbuf_addc(&w->out, object ? '{' : '[');
	w->any[w->depth] = false;
	w->object[w->depth++] = object;
}

void jsonw_object(struct jsonw *w, const char *key)
{
	begin(w, key, true);
}

void jsonw_array(struct jsonw *w, const char *key)
{
	begin(w, key, false);
}

void jsonw_end(struct jsonw *w)
{
	assert(w->depth > 0);
	w->depth--;
	if (w->any[w->depth] && w->depth < w->lines)
		new_line(w, w->depth);
	outbuf_addc(&w->out, w->object[w->depth] ? '}' : ']');
}

void jsonw_string(struct jsonw *w, const char *key, const char *text)
{
	if (!text) {
		jsonw_null(w, key);
		return;
	}
	before(w, key);
	put_text(&w->out, text);
}

void jsonw_u64(struct jsonw *w, const char *key, uint64_t value)
{
	before(w, key);
	outbuf_add_u64(&w->out, value);
}

void jsonw_us(struct jsonw *w, const char *key, uint64_t ns)
{
	before(w, key);
	outbuf_add_us(&w->out, ns);
}

void jsonw_ms(struct jsonw *w, const char *key, uint64_t ns)
{
	before(w, key);
	outbuf_add_ms(&w->out, ns);
}

void jsonw_i64(struct jsonw *w, const char *key, int64_t value)
{
	before(w, key);
	if (value < 0)
		outbuf_addc(&w->out, '-');
	outbuf_add_u64(&w->out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void jsonw_real(struct jsonw *w, const char *key, double value, int decimals)
{
	CLEANUP(free) char *text = xasprintf("%.*f", decimals, value);

	assert(isfinite(value));
	before(w, key);
	outbuf_adds(&w->out, text);
}

void jsonw_hex(struct jsonw *w, const char *key, uint64_t value)
{
	char text[24];

	before(w, key);
	snprintf(text, sizeof(text), "\"%#" PRIx64 "\"", value);
	outbuf_adds(&w->out, text);
}

void jsonw_bool(struct jsonw *w, const char *key, bool value)
{
	before(w, key);
	outbuf_adds(&w->out, value ? "true" : "false");
}

void jsonw_null(struct jsonw *w, const char *key)
{
	before(w, key);
	outbuf_adds(&w->out, "null");
}

struct outbuf *jsonw_value(struct jsonw *w)
{
	before(w, NULL);
	return &w->out;
}

char *jsonw_quoted(const char *text)
{
	/* A byte becomes at most six: a control character. */
	char *ret = xcalloc(strlen(text) + 1, ESCAPED_MAX / 2), *at = ret;
	uint32_t cp;

	*at++ = '"';
	while ((cp = utf8_next(&text)))
		at = add_codepoint(at, cp);
	*at++ = '"';
	*at = '\0';
	return ret;
}

void jsonw_flush(struct jsonw *w)
{
	outbuf_flush(&w->out);
}

void jsonw_finish(struct jsonw *w)
{
	assert(w->depth == 0);
	outbuf_addc(&w->out, '\n');
	jsonw_flush(w);
}
