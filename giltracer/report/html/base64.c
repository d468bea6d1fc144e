/* SPDX-License-Identifier: MIT */
/* Base64, fast enough for a page of 80 MB. */
#include "report/html/base64.h"

const char base64_alphabet[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static inline char *put_group(char *out, uint32_t bits)
{
	*out++ = base64_alphabet[bits >> 18];
	*out++ = base64_alphabet[bits >> 12 & 63];
	*out++ = base64_alphabet[bits >> 6 & 63];
	*out++ = base64_alphabet[bits & 63];
	return out;
}

size_t base64_encode(char *out, const uint8_t *data, size_t len)
{
	char *p = out;
	size_t i;

	for (i = 0; i + 3 <= len; i += 3)
		p = put_group(p,
		              (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2]);
	if (i < len) {
		uint32_t second = i + 1 < len ? data[i + 1] : 0;

		p = put_group(p, (uint32_t)data[i] << 16 | second << 8);
		p[-1] = '=';
		if (i + 1 == len)
			p[-2] = '=';
	}
	return (size_t)(p - out);
}
