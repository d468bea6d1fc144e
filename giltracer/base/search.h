/* SPDX-License-Identifier: MIT */
/* Binary search in whatever is sorted. */
#ifndef GILTRACER_BASE_SEARCH_H
#define GILTRACER_BASE_SEARCH_H

#include <stddef.h>

/* The first of the indices 0 to n - 1 for which the expression is_before, in which it is called
 * index, is false; n if there is none. Once it is false, it is false for all later ones. */
#define SEARCH(n, index, is_before)                                                 \
	({                                                                          \
		size_t search_low = 0, search_high = (n);                           \
		while (search_low < search_high) {                                  \
			size_t index = search_low + (search_high - search_low) / 2; \
			if (is_before)                                              \
				search_low = index + 1;                             \
			else                                                        \
				search_high = index;                                \
		}                                                                   \
		search_low;                                                         \
	})

#endif
