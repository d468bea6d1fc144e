/* SPDX-License-Identifier: MIT */
/* Decodes untrusted text, measures it and truncates it. */
#include "base/utf8.h"

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>

#include "base/alloc.h"

/* The number of continuation bytes after lead, and the range of the first of them. */
static unsigned lead_info(unsigned char lead, unsigned char *ret_lo, unsigned char *ret_hi)
{
	*ret_lo = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
	*ret_hi = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
	if (lead >= 0xc2 && lead <= 0xdf)
		return 1;
	if (lead >= 0xe0 && lead <= 0xef)
		return 2;
	if (lead >= 0xf0 && lead <= 0xf4)
		return 3;
	return 0;
}

uint32_t utf8_next(const char **s)
{
	const unsigned char *p = (const unsigned char *)*s;
	unsigned char lo, hi;
	unsigned more;
	uint32_t cp;

	if (*p == 0)
		return 0;
	if (*p < 0x80) {
		(*s)++;
		return *p;
	}
	more = lead_info(*p, &lo, &hi);
	cp = *p++ & (0x3fu >> more);
	*s = (const char *)p;
	if (!more)
		return UTF8_BAD;
	for (unsigned i = 0; i < more; i++, p++) {
		if (*p < lo || *p > hi)
			return UTF8_BAD;
		cp = cp << 6 | (*p & 0x3f);
		*s = (const char *)p + 1;
		lo = 0x80;
		hi = 0xbf;
	}
	return cp;
}

void utf8_add(struct str *str, uint32_t cp)
{
	if (cp < 0x80) {
		str_addc(str, (char)cp);
		return;
	}
	if (cp < 0x800) {
		str_addc(str, (char)(0xc0 | cp >> 6));
	} else {
		if (cp < 0x10000) {
			str_addc(str, (char)(0xe0 | cp >> 12));
		} else {
			str_addc(str, (char)(0xf0 | cp >> 18));
			str_addc(str, (char)(0x80 | (cp >> 12 & 0x3f)));
		}
		str_addc(str, (char)(0x80 | (cp >> 6 & 0x3f)));
	}
	str_addc(str, (char)(0x80 | (cp & 0x3f)));
}

struct range {
	uint32_t lo, hi;
};

static bool in_ranges(uint32_t cp, const struct range *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (cp >= r[i].lo && cp <= r[i].hi)
			return true;
	return false;
}

unsigned utf8_width(uint32_t cp)
{
	/* Blocks of EastAsianWidth.txt that are W or F, and blocks of combining marks. Blocks are
	 * accurate enough: a wrong width in a rare script only misaligns a table. */
	static const struct range wide[] = {
		{ 0x1100, 0x115f },   { 0x2e80, 0x303e },   { 0x3041, 0xa4cf },
		{ 0xa960, 0xa97f },   { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },
		{ 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },
		{ 0x16fe0, 0x18cff }, { 0x1aff0, 0x1b2ff }, { 0x1f300, 0x1f64f },
		{ 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff }, { 0x1fa70, 0x1faff },
		{ 0x20000, 0x3fffd },
	};
	static const struct range combining[] = {
		{ 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd },   { 0x0610, 0x061a },
		{ 0x064b, 0x065f }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },   { 0x20d0, 0x20ff },
		{ 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xe0100, 0xe01ef },
	};

	if (cp < 0x300)
		return 1;
	if (in_ranges(cp, combining, sizeof(combining) / sizeof(*combining)))
		return 0;
	return in_ranges(cp, wide, sizeof(wide) / sizeof(*wide)) ? 2 : 1;
}

bool utf8_is_unsafe(uint32_t cp)
{
	static const struct range format[] = {
		{ 0x00, 0x1f },     { 0x7f, 0x9f },     { 0xad, 0xad },       { 0x061c, 0x061c },
		{ 0x180e, 0x180e }, { 0x200b, 0x200f }, { 0x2028, 0x202e },   { 0x2060, 0x206f },
		{ 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
	};

	return in_ranges(cp, format, sizeof(format) / sizeof(*format));
}

unsigned utf8_columns(const char *text)
{
	unsigned width = 0;
	uint32_t cp;

	while ((cp = utf8_next(&text)) && width < INT_MAX)
		width += utf8_width(cp);
	return width;
}

unsigned utf8_add_safe(struct str *str, const char *text, unsigned max)
{
	bool cut = utf8_columns(text) > max;
	unsigned limit = cut ? max - 1 : max;
	unsigned width = 0;
	uint32_t cp;

	while ((cp = utf8_next(&text)) && width + utf8_width(cp) <= limit) {
		if (utf8_is_unsafe(cp))
			cp = '?';
		utf8_add(str, cp);
		width += utf8_width(cp);
	}
	if (cut) {
		utf8_add(str, 0x2026);
		width++;
	}
	return width;
}

char *utf8_safe_lines(const char *text)
{
	CLEANUP(str_done) struct str safe = { 0 };
	uint32_t cp;

	while ((cp = utf8_next(&text)))
		utf8_add(&safe, cp != '\n' && cp != '\t' && utf8_is_unsafe(cp) ? '?' : cp);
	return str_take(&safe);
}

void utf8_fprintf(FILE *out, const char *fmt, ...)
{
	CLEANUP(free) char *text = NULL;
	CLEANUP(free) char *safe = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	safe = utf8_safe_lines(text);
	fputs(safe, out);
}
