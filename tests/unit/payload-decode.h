/* SPDX-License-Identifier: MIT */
/*
 * Reads a page's blocks again, as share/report/FORMAT.md says and independently of the writer:
 * elements, base64, deflate, sections, columns.
 */
#ifndef GILTRACER_TESTS_PAYLOAD_DECODE_H
#define GILTRACER_TESTS_PAYLOAD_DECODE_H

#include <jansson.h>
#include <libdeflate.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define DECODE_RAW_MAX (64u << 20)

/* One section: its head, and where its bytes are read next. bad: it is malformed. */
struct decoded {
	json_t *head;
	uint32_t n;
	const uint8_t *p, *end;
	bool bad;
};

static inline uint64_t decode_varint(struct decoded *s)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (s->p == s->end)
			break;
		value |= (uint64_t)(*s->p & 0x7f) << shift;
		if (!(*s->p++ & 0x80))
			return value;
	}
	s->bad = true;
	return 0;
}

/* A full column of count values; caller frees. */
static inline uint64_t *decode_column(struct decoded *s, uint32_t count)
{
	uint64_t *values = xcalloc((size_t)count + 1, sizeof(*values));

	for (uint32_t i = 0; i < count; i++)
		values[i] = decode_varint(s);
	return values;
}

/* A sparse column as a full one of n values, absent where it has none; caller frees. */
static inline uint64_t *decode_sparse(struct decoded *s, uint64_t absent)
{
	uint64_t *values = xcalloc((size_t)s->n + 1, sizeof(*values));
	uint64_t count = decode_varint(s), at = 0;
	uint64_t *gaps;

	for (uint32_t i = 0; i < s->n; i++)
		values[i] = absent;
	if (count > s->n) {
		s->bad = true;
		return values;
	}
	gaps = decode_column(s, (uint32_t)count);
	for (uint64_t i = 0; i < count; i++) {
		at += gaps[i];
		if (at >= s->n || (i && !gaps[i]))
			s->bad = true;
		else
			values[at] = decode_varint(s);
	}
	free(gaps);
	return values;
}

static inline int decode_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *hit = c ? strchr(digits, c) : NULL;

	return hit ? (int)(hit - digits) : -1;
}

/* len characters of base64; returns the bytes, or 0 if it is none. */
static inline size_t decode_base64(uint8_t *out, const char *text, size_t len)
{
	size_t n = 0, pad = 0;

	while (len && pad < 2 && text[len - 1 - pad] == '=')
		pad++;
	for (size_t i = 0; i + 4 <= len; i += 4) {
		uint32_t bits = 0;

		for (size_t k = 0; k < 4; k++) {
			int digit = i + k >= len - pad ? 0 : decode_digit(text[i + k]);

			if (digit < 0)
				return 0;
			bits = bits << 6 | (uint32_t)digit;
		}
		out[n++] = (uint8_t)(bits >> 16);
		out[n++] = (uint8_t)(bits >> 8);
		out[n++] = (uint8_t)bits;
	}
	return len % 4 ? 0 : n - pad;
}

typedef void decode_fn(struct decoded *section, void *data);

/* The sections of one block. false if they do not fill it. */
static inline bool decode_sections(const uint8_t *raw, size_t len, json_t *list, decode_fn *fn,
                                   void *data)
{
	size_t i, at = 0;
	json_t *head;

	json_array_foreach(list, i, head)
	{
		size_t bytes = (size_t)json_integer_value(json_object_get(head, "bytes"));
		struct decoded s = {
			.head = head,
			.n = (uint32_t)json_integer_value(json_object_get(head, "n")),
			.p = raw + at,
			.end = raw + at + bytes,
		};

		if (at + bytes > len || s.n == 0 || s.n > 65536)
			return false;
		fn(&s, data);
		if (s.bad || s.p != s.end)
			return false;
		at += bytes;
	}
	return at == len;
}

/* One block: from its base64 to the end of its list. */
static inline bool decode_block(const char *text, size_t len, const char *list, size_t list_len,
                                uint8_t *raw, decode_fn *fn, void *data)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	uint8_t *packed = xcalloc(len + 4, 1);
	size_t packed_len = decode_base64(packed, text, len), raw_len = 0;
	json_t *root = json_loadb(list, list_len, 0, NULL);
	bool good = root && packed_len && len <= 8000000 &&
	            libdeflate_deflate_decompress(d, packed, packed_len, raw, DECODE_RAW_MAX,
	                                          &raw_len) == LIBDEFLATE_SUCCESS;

	good = good && decode_sections(raw, raw_len, root, fn, data);
	json_decref(root);
	free(packed);
	libdeflate_free_decompressor(d);
	return good;
}

/* Call fn for each section of all blocks in html, which must read it to its end. Returns the number
 * of blocks, -1 if anything is malformed. */
static inline int decode_blocks(const char *html, decode_fn *fn, void *data)
{
	static const char open[] = "<script type=\"text/plain\">", mid[] = "</script>";
	static const char push[] = "<script>gt.push(", end[] = ")</script>";
	uint8_t *raw = xcalloc(DECODE_RAW_MAX, 1);
	int blocks = 0;

	while (blocks >= 0 && (html = strstr(html, open))) {
		const char *text = html + strlen(open), *text_end = strstr(text, mid);
		const char *list = text_end ? strstr(text_end, push) : NULL;
		const char *list_end = list ? strstr(list, end) : NULL;
		bool good = list_end && strspn(text_end + strlen(mid), " \n") ==
		                                (size_t)(list - text_end) - strlen(mid);

		good = good &&
		       decode_block(text, (size_t)(text_end - text), list + strlen(push),
		                    (size_t)(list_end - list) - strlen(push), raw, fn, data);
		blocks = good ? blocks + 1 : -1;
		html = list_end;
	}
	free(raw);
	return blocks;
}

#endif
