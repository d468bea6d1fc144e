/* SPDX-License-Identifier: MIT */
/*
 * Growing arrays of any type: VEC(struct span) spans = { 0 }; *vec_push(&spans) = span;
 * spans.v[i], spans.n. Elements move when the array grows: keep indices, not pointers.
 */
#ifndef GILTRACER_BASE_VEC_H
#define GILTRACER_BASE_VEC_H

#include <stddef.h>
#include <stdlib.h>

#include "alloc.h"

#define VEC(type)             \
	struct {              \
		type *v;      \
		size_t n;     \
		size_t alloc; \
	}

/* Make room for at least want elements in all. */
#define vec_reserve(vec, want)                                                                  \
	do {                                                                                    \
		size_t vec_want = (want);                                                       \
		if (vec_want > (vec)->alloc)                                                    \
			(vec)->v = xgrow((vec)->v, vec_want, sizeof(*(vec)->v), &(vec)->alloc); \
	} while (0)

/* A pointer to a new, uninitialised element at the end. Valid until the next push. */
#define vec_push(vec)                             \
	({                                        \
		vec_reserve((vec), (vec)->n + 1); \
		&(vec)->v[(vec)->n++];            \
	})

/* Sort the elements; none are no error, although qsort does not permit an array that is NULL. */
#define vec_sort(vec, compare)                                                   \
	do {                                                                     \
		if ((vec)->n)                                                    \
			qsort((vec)->v, (vec)->n, sizeof(*(vec)->v), (compare)); \
	} while (0)

/* Free the array, but not what its elements point to, and make it empty. */
#define vec_done(vec)                        \
	do {                                 \
		free((vec)->v);              \
		(vec)->v = NULL;             \
		(vec)->n = (vec)->alloc = 0; \
	} while (0)

/* ---- binary search in any sorted sequence */

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

/* The same, faster if the result is near n. */
#define SEARCH_BACK(n, index, is_before)                                          \
	({                                                                        \
		size_t back_from = 0, back_up = (n), back_step = 1;               \
		while (back_step <= back_up) {                                    \
			size_t index = back_up - back_step;                       \
			if (is_before) {                                          \
				back_from = index + 1;                            \
				break;                                            \
			}                                                         \
			back_up = index;                                          \
			back_step *= 2;                                           \
		}                                                                 \
		back_from + SEARCH(back_up - back_from, back_index, ({            \
					   size_t index = back_from + back_index; \
					   is_before;                             \
				   }));                                           \
	})

#endif
