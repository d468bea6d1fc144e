/* SPDX-License-Identifier: MIT */
/* Base64 as in RFC 4648 section 4: padded, no line breaks. */
#ifndef GILTRACER_REPORT_HTML_BASE64_H
#define GILTRACER_REPORT_HTML_BASE64_H

#include <stddef.h>
#include <stdint.h>

extern const char base64_alphabet[65];

/* The number of characters that encode len bytes. */
static inline size_t base64_size(size_t len)
{
	return (len + 2) / 3 * 4;
}

/* Write base64_size(len) characters to out, unterminated. Returns their number. */
size_t base64_encode(char *out, const uint8_t *data, size_t len);

#endif
