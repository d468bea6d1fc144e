/* SPDX-License-Identifier: MIT */
/* Bounded reads that are too long to be inline. */
#include "base/cursor.h"

struct cursor cursor_sub(struct cursor *c, uint64_t size)
{
	const uint8_t *p = cursor_bytes(c, size);

	return p ? cursor_make(p, size) : (struct cursor){ .p = c->p, .end = c->p };
}

static uint64_t extend(uint64_t v, uint32_t size, bool sign)
{
	unsigned unused = 64 - size * 8;

	return sign ? (uint64_t)((int64_t)(v << unused) >> unused) : v;
}

bool cursor_number_at(const struct cursor *c, uint64_t at, uint32_t size, bool sign, uint64_t *ret)
{
	struct cursor at_c = *c;
	uint64_t v;

	cursor_skip(&at_c, at);
	switch (size) {
	case 1:
		v = cursor_u8(&at_c);
		break;
	case 2:
		v = cursor_u16(&at_c);
		break;
	case 4:
		v = cursor_u32(&at_c);
		break;
	case 8:
		v = cursor_u64(&at_c);
		break;
	default:
		return false;
	}
	if (at_c.bad)
		return false;
	*ret = extend(v, size, sign);
	return true;
}

const char *cursor_text(struct cursor *c, size_t *ret_len)
{
	const uint8_t *start = c->p;
	const uint8_t *nul = cursor_left(c) ? memchr(start, 0, cursor_left(c)) : NULL;

	if (ret_len)
		*ret_len = 0;
	if (!nul) {
		c->bad = true;
		return "";
	}
	c->p = nul + 1;
	if (ret_len)
		*ret_len = (size_t)(nul - start);
	return (const char *)start;
}

const char *cursor_text_field(struct cursor *c, uint64_t size, size_t *ret_len)
{
	const char *text = (const char *)cursor_bytes(c, size);

	*ret_len = text ? strnlen(text, size) : 0;
	return text;
}
