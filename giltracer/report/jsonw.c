/* SPDX-License-Identifier: MIT */
/* Streaming JSON. */
#include "jsonw.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/utf8.h"

/* JSON (RFC 8259, 7) escapes in UTF-16. */
static void put_escape(FILE *out, uint32_t cp)
{
	if (cp >= 0x10000) {
		fprintf(out, "\\u%04" PRIx32, 0xd7c0 + (cp >> 10));
		cp = 0xdc00 + (cp & 0x3ff);
	}
	fprintf(out, "\\u%04" PRIx32, cp);
}

static void put_codepoint(FILE *out, uint32_t cp)
{
	switch (cp) {
	case '"':
	case '\\':
		fprintf(out, "\\%c", (char)cp);
		return;
	case '\n':
		fputs("\\n", out);
		return;
	case '\t':
		fputs("\\t", out);
		return;
	case '<':
	case '>':
	case '&':
		put_escape(out, cp);
		return;
	}
	if (utf8_is_unsafe(cp)) {
		put_escape(out, cp);
	} else if (cp < 0x80) {
		putc_unlocked((int)cp, out);
	} else {
		CLEANUP(str_done) struct str text = { 0 };

		utf8_add(&text, cp);
		fputs(str_get(&text), out);
	}
}

static bool is_plain(char c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
}

/* Nearly all of it is plain ASCII, written at once. */
static void put_text(FILE *out, const char *text)
{
	uint32_t cp;

	putc_unlocked('"', out);
	for (;;) {
		const char *from = text;

		while (is_plain(*text))
			text++;
		fwrite_unlocked(from, 1, (size_t)(text - from), out);
		cp = utf8_next(&text);
		if (!cp)
			break;
		put_codepoint(out, cp);
	}
	putc_unlocked('"', out);
}

static void new_line(struct jsonw *w, unsigned depth)
{
	putc_unlocked('\n', w->out);
	for (unsigned i = 0; i < depth; i++)
		putc_unlocked('\t', w->out);
}

/* What goes before a value: comma, line, key. */
static void before(struct jsonw *w, const char *key)
{
	if (w->depth) {
		unsigned at = w->depth - 1;

		if (w->any[at])
			putc_unlocked(',', w->out);
		if (w->depth <= w->lines)
			new_line(w, w->depth);
		else if (w->any[at] && w->lines)
			putc_unlocked(' ', w->out);
		w->any[at] = true;
	}
	assert(!key == !(w->depth && w->object[w->depth - 1]));
	if (key) {
		put_text(w->out, key);
		fputs_unlocked(w->lines ? ": " : ":", w->out);
	}
}

static void begin(struct jsonw *w, const char *key, bool object)
{
	before(w, key);
	assert(w->depth < JSONW_DEPTH);
	putc_unlocked(object ? '{' : '[', w->out);
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
	putc_unlocked(w->object[w->depth] ? '}' : ']', w->out);
}

void jsonw_string(struct jsonw *w, const char *key, const char *text)
{
	if (!text) {
		jsonw_null(w, key);
		return;
	}
	before(w, key);
	put_text(w->out, text);
}

/* Decimal digits of value, with a point before the last ones if there are decimals. */
static void put_digits(FILE *out, uint64_t value, unsigned decimals)
{
	char digits[24], *end = digits + sizeof(digits), *at = end;

	if (decimals) {
		for (unsigned i = 0; i < decimals; i++, value /= 10)
			*--at = (char)('0' + value % 10);
		*--at = '.';
	}
	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	fwrite_unlocked(at, 1, (size_t)(end - at), out);
}

void jsonw_u64(struct jsonw *w, const char *key, uint64_t value)
{
	before(w, key);
	put_digits(w->out, value, 0);
}

void jsonw_us(struct jsonw *w, const char *key, uint64_t ns)
{
	before(w, key);
	put_digits(w->out, ns, 3);
}

void jsonw_ms(struct jsonw *w, const char *key, uint64_t ns)
{
	before(w, key);
	put_digits(w->out, ns, 6);
}

void jsonw_i64(struct jsonw *w, const char *key, int64_t value)
{
	before(w, key);
	fprintf(w->out, "%" PRId64, value);
}

void jsonw_real(struct jsonw *w, const char *key, double value, int decimals)
{
	assert(isfinite(value));
	before(w, key);
	fprintf(w->out, "%.*f", decimals, value);
}

void jsonw_hex(struct jsonw *w, const char *key, uint64_t value)
{
	before(w, key);
	fprintf(w->out, "\"%#" PRIx64 "\"", value);
}

void jsonw_bool(struct jsonw *w, const char *key, bool value)
{
	before(w, key);
	fputs(value ? "true" : "false", w->out);
}

void jsonw_null(struct jsonw *w, const char *key)
{
	before(w, key);
	fputs("null", w->out);
}

void jsonw_finish(struct jsonw *w)
{
	assert(w->depth == 0);
	putc_unlocked('\n', w->out);
}
