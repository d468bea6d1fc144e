/* SPDX-License-Identifier: MIT */
/* Binary search in arrays of structs that are sorted by a number in them. */
#ifndef GILTRACER_BASE_SEARCH_H
#define GILTRACER_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* See SEARCH_AFTER; elements of size bytes have their key, a uint64_t, at offset. */
static inline size_t search_after(const void *array, size_t n, size_t size, size_t offset,
                                  uint64_t value)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (*(const uint64_t *)(const void *)((const char *)array + mid * size + offset) <=
		    value)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Index of the first of the n elements whose field, a uint64_t, is greater than value; n if there
 * is none. They are sorted by it, ascending. array may be NULL if n is 0. */
#define SEARCH_AFTER(array, n, field, value) \
	search_after((array), (n), sizeof(*(array)), offsetof(__typeof__(*(array)), field), (value))

#endif
