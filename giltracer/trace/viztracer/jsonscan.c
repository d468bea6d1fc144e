/* SPDX-License-Identifier: MIT */
#include "trace/viztracer/jsonscan.h"

#include <string.h>

void jsonscan_init(struct jsonscan *j, const void *data, size_t size)
{
	j->bad = NULL;
	j->bad_at = 0;
	j->data = j->p = size ? data : (const uint8_t *)"";
	j->end = j->p + size;
}

bool jsonscan_fail(struct jsonscan *j, const char *what)
{
	if (!j->bad) {
		j->bad = what;
		j->bad_at = (size_t)(j->p - j->data);
	}
	j->p = j->end;
	return false;
}

/* Whether the quote at q is escaped: an odd number of backslashes before it. */
static bool is_escaped(const uint8_t *start, const uint8_t *q)
{
	const uint8_t *b = q;

	while (b > start && b[-1] == '\\')
		b--;
	return (q - b) & 1;
}

bool jsonscan_long_string(struct jsonscan *j, const uint8_t *start, struct jsontext *ret)
{
	const uint8_t *q = j->p;

	while ((q = memchr(q, '"', (size_t)(j->end - q))) && is_escaped(start, q))
		q++;
	if (!q) {
		j->p = j->end;
		return jsonscan_fail(j, "it ends within a string");
	}
	*ret = (struct jsontext){ start, (size_t)(q - start) };
	j->p = q + 1;
	return true;
}

/* Skips a number or a word, by the characters that these may contain. */
static bool skip_scalar(struct jsonscan *j)
{
	const uint8_t *start = j->p;

	while (j->p < j->end &&
	       ((*j->p >= '0' && *j->p <= '9') || (unsigned)(*j->p | 32) - 'a' < 26u ||
	        *j->p == '-' || *j->p == '+' || *j->p == '.'))
		j->p++;
	return j->p > start ||
	       jsonscan_fail(j, j->p == j->end ? "it ends too early" : "bad syntax");
}

bool jsonscan_skip(struct jsonscan *j)
{
	struct jsontext ignored;
	size_t depth = 0;

	/* Brackets and commas are not checked, because the value is only skipped. */
	do {
		uint8_t c = jsonscan_peek(j);

		if (c == '"') {
			jsonscan_string(j, &ignored);
		} else if (c == '{' || c == '[') {
			j->p++;
			depth++;
		} else if (depth && (c == '}' || c == ']')) {
			j->p++;
			depth--;
		} else if (depth && (c == ',' || c == ':')) {
			j->p++;
		} else {
			skip_scalar(j);
		}
	} while (depth && !j->bad);
	return !j->bad;
}

uint32_t jsonscan_u32(struct jsonscan *j)
{
	uint64_t v = 0;
	const uint8_t *start;

	jsonscan_peek(j);
	start = j->p;
	while (j->p < j->end && *j->p >= '0' && *j->p <= '9' && v <= UINT32_MAX)
		v = v * 10 + (*j->p++ - '0');
	if (j->p > start && v <= UINT32_MAX && j->p < j->end && *j->p != '.' &&
	    (*j->p | 32) != 'e' && (*j->p < '0' || *j->p > '9'))
		return (uint32_t)v;
	j->p = start;
	jsonscan_skip(j);
	return 0;
}

#define MAX_DIGITS 18 /* any 18 digits fit in an int64_t */

/* A number's significant digits: its value is digits times 10^exponent; further digits are
 * dropped. */
struct decimal {
	uint64_t digits;
	unsigned n;
	int exponent;
	bool negative, any;
};

static void add_digit(struct decimal *d, unsigned digit, bool fraction)
{
	d->any = true;
	if (d->n < MAX_DIGITS) {
		d->digits = d->digits * 10 + digit;
		d->n += d->digits != 0;
		d->exponent -= fraction;
	} else if (d->exponent < 1000) {
		d->exponent += !fraction;
	}
}

static void read_exponent(struct jsonscan *j, struct decimal *d)
{
	bool negative = false;
	int e = 0;

	if (j->p == j->end || (*j->p | 32) != 'e')
		return;
	if (++j->p < j->end && (*j->p == '-' || *j->p == '+'))
		negative = *j->p++ == '-';
	for (; j->p < j->end && *j->p >= '0' && *j->p <= '9'; j->p++)
		if (e < 1000)
			e = e * 10 + (*j->p - '0');
	d->exponent += negative ? -e : e;
}

static void read_decimal(struct jsonscan *j, struct decimal *d)
{
	if (jsonscan_peek(j) == '-') {
		d->negative = true;
		j->p++;
	}
	for (; j->p < j->end && *j->p >= '0' && *j->p <= '9'; j->p++)
		add_digit(d, *j->p - '0', false);
	if (j->p < j->end && *j->p == '.')
		for (j->p++; j->p < j->end && *j->p >= '0' && *j->p <= '9'; j->p++)
			add_digit(d, *j->p - '0', true);
	read_exponent(j, d);
}

/* The form of nearly all numbers: up to 15 digits, a point and three more. -1: another form;
 * nothing was consumed. */
static int64_t common_milli(struct jsonscan *j)
{
	const uint8_t *p = j->p, *limit;
	int64_t v = 0;

	if (j->end - p < 24)
		return -1;
	for (limit = p + 15; p < limit && (unsigned)*p - '0' < 10; p++)
		v = v * 10 + (*p - '0');
	if (p == j->p || p[0] != '.' || (unsigned)p[1] - '0' > 9 || (unsigned)p[2] - '0' > 9 ||
	    (unsigned)p[3] - '0' > 9 || (p[4] != ',' && p[4] != '}'))
		return -1;
	j->p = p + 4;
	return v * 1000 + (p[1] - '0') * 100 + (p[2] - '0') * 10 + (p[3] - '0');
}

int64_t jsonscan_milli(struct jsonscan *j, bool *ok)
{
	struct decimal d = { 0 };
	const uint8_t *start;
	unsigned last = 0;
	int64_t common;

	jsonscan_peek(j);
	common = common_milli(j);
	*ok = true;
	if (common >= 0)
		return common;
	start = j->p;
	read_decimal(j, &d);
	*ok = d.any;
	if (!d.any) {
		j->p = start;
		jsonscan_skip(j);
		return 0;
	}
	for (d.exponent += 3; d.exponent < 0 && d.digits; d.exponent++) {
		last = (unsigned)(d.digits % 10);
		d.digits /= 10;
	}
	if (d.exponent < 0)
		last = 0;
	d.digits += last >= 5;
	for (; d.exponent > 0 && d.digits && *ok; d.exponent--)
		*ok = !__builtin_mul_overflow(d.digits, UINT64_C(10), &d.digits);
	*ok = *ok && d.digits <= INT64_MAX;
	return *ok ? d.negative ? -(int64_t)d.digits : (int64_t)d.digits : 0;
}
