/* SPDX-License-Identifier: MIT */
/* JSON strings as UTF-8: decodes escapes, and replaces invalid characters by U+FFFD. */
#include "trace/viztracer/jsonscan.h"

#define REPLACEMENT 0xfffd

static void add_utf8(struct str *ret, uint32_t c)
{
	if (c < 0x80) {
		str_addc(ret, (char)c);
	} else if (c < 0x800) {
		str_addc(ret, (char)(0xc0 | c >> 6));
		str_addc(ret, (char)(0x80 | (c & 63)));
	} else if (c < 0x10000) {
		str_addc(ret, (char)(0xe0 | c >> 12));
		str_addc(ret, (char)(0x80 | (c >> 6 & 63)));
		str_addc(ret, (char)(0x80 | (c & 63)));
	} else {
		str_addc(ret, (char)(0xf0 | c >> 18));
		str_addc(ret, (char)(0x80 | (c >> 12 & 63)));
		str_addc(ret, (char)(0x80 | (c >> 6 & 63)));
		str_addc(ret, (char)(0x80 | (c & 63)));
	}
}

/* Four hexadecimal digits at s, or -1. */
static int32_t hex4(const uint8_t *s, const uint8_t *end)
{
	int32_t v = 0;

	if (end - s < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		unsigned c = s[i], digit = c - '0';

		if (digit > 9)
			digit = (c | 32) - 'a' < 6u ? (c | 32) - 'a' + 10 : 16;
		if (digit > 15)
			return -1;
		v = v << 4 | (int32_t)digit;
	}
	return v;
}

/* \uXXXX, with s after the u, and a second one that forms a pair with it. Returns the rest. */
static const uint8_t *add_u(const uint8_t *s, const uint8_t *end, struct str *ret)
{
	int32_t c = hex4(s, end), low;

	if (c < 0) {
		add_utf8(ret, REPLACEMENT);
		return s;
	}
	s += 4;
	if (c >= 0xd800 && c < 0xdc00 && end - s >= 6 && s[0] == '\\' && s[1] == 'u') {
		low = hex4(s + 2, end);
		if (low >= 0xdc00 && low < 0xe000) {
			add_utf8(ret, 0x10000 + (((uint32_t)c - 0xd800) << 10) +
			                      ((uint32_t)low - 0xdc00));
			return s + 6;
		}
	}
	add_utf8(ret, c == 0 || (c >= 0xd800 && c < 0xe000) ? REPLACEMENT : (uint32_t)c);
	return s;
}

/* The character after a backslash. Returns the rest. */
static const uint8_t *add_escape(const uint8_t *s, const uint8_t *end, struct str *ret)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";

	if (s == end)
		return s;
	if (*s == 'u')
		return add_u(s + 1, end, ret);
	for (int i = 0; from[i]; i++) {
		if (*s == (uint8_t)from[i]) {
			str_addc(ret, to[i]);
			return s + 1;
		}
	}
	if (*s == '"' || *s == '\\' || *s == '/') {
		str_addc(ret, (char)*s);
		return s + 1;
	}
	return s; /* not an escape: the backslash is dropped */
}

/* The number of bytes of the character at s, 0 if it is invalid (Unicode 15, table 3-7). */
static size_t utf8_length(const uint8_t *s, size_t left)
{
	static const struct {
		uint8_t first, last, second_low, second_high, len;
	} rows[] = {
		{ 0x01, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len = rows[i].len;

		if (s[0] < rows[i].first || s[0] > rows[i].last)
			continue;
		if (len > left ||
		    (len > 1 && (s[1] < rows[i].second_low || s[1] > rows[i].second_high)))
			return 0;
		for (size_t k = 2; k < len; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return len;
	}
	return 0;
}

void jsontext_decode(const struct jsontext *t, struct str *ret)
{
	const uint8_t *s = t->s, *end = s + t->len;

	while (s < end) {
		size_t len;

		if (*s == '\\') {
			s = add_escape(s + 1, end, ret);
			continue;
		}
		len = utf8_length(s, (size_t)(end - s));
		if (len)
			str_addn(ret, s, len);
		else
			add_utf8(ret, REPLACEMENT);
		s += len ? len : 1;
	}
}
