/* SPDX-License-Identifier: MIT */
/* Binary search in any sorted sequence. */
#ifndef GILTRACER_BASE_SEARCH_H
#define GILTRACER_BASE_SEARCH_H

#include <stddef.h>

/* The first index from 0 to n - 1 for which the expression is_before is false, or n. The expression
 * names the index by the argument index; once it is false, it must be false for all later
 * indices. */
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
