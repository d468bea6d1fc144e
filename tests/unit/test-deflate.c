/* SPDX-License-Identifier: MIT */
/* What is deflated for the page is what libdeflate inflates, whatever deflates it. */
#include <libdeflate.h>
#include <string.h>

#include "base/alloc.h"
#include "report/html/blocks.h"

#include "tap.h"

#define MOST (3U << 20)

enum content { ZEROS, TEXT, NOISE };

static void fill(uint8_t *data, size_t len, enum content content)
{
	uint64_t x = 88172645463325252ULL;

	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		data[i] = content == ZEROS  ? 0
		          : content == TEXT ? (uint8_t)("abcdefgh"[x % 5])
		                            : (uint8_t)x;
	}
}

/* In exactly the room that is asked for, with one deflater for all. */
static bool goes_and_comes(struct deflater *d, size_t len, enum content content, size_t *ret_packed)
{
	struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
	size_t bound = deflater_bound(d, len), back_len = 0;
	uint8_t *data = xcalloc(len, 1), *packed = xcalloc(bound, 1), *back = xcalloc(len, 1);
	bool same;

	fill(data, len, content);
	*ret_packed = deflater_pack(d, packed, bound, data, len);
	same = *ret_packed > 0 && *ret_packed <= bound &&
	       libdeflate_deflate_decompress(inflater, packed, *ret_packed, back, len, &back_len) ==
	               LIBDEFLATE_SUCCESS &&
	       back_len == len && !memcmp(data, back, len);
	libdeflate_free_decompressor(inflater);
	free(data);
	free(packed);
	free(back);
	return same;
}

int main(void)
{
	static const size_t lens[] = { 1, 2, 100, 4096, 65534, 65535, 65536, 65537, 1 << 20, MOST };
	static const char *const names[] = { "zeros", "text", "noise" };
	struct deflater *d = deflater_new();
	size_t packed[3];

	ok(d != NULL, "a deflater");
	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++)
		for (unsigned c = ZEROS; c <= NOISE; c++)
			ok(goes_and_comes(d, lens[i], (enum content)c, &packed[c]),
			   "%zu bytes of %s are the same again", lens[i], names[c]);
	ok(packed[ZEROS] < MOST / 100, "of zeros, little is left");
	ok(packed[TEXT] < MOST / 2, "of text, less than half");
	ok(packed[NOISE] < MOST + MOST / 1000, "of noise, hardly more than there was");
	deflater_free(d);
	deflater_free(NULL);
	return done_testing();
}
