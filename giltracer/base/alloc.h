/* SPDX-License-Identifier: MIT */
/*
 * Allocation that cannot fail: out of memory ends the process with status 125. Sizes that come
 * from a file must be bounded by that file before they get here.
 */
#ifndef GILTRACER_BASE_ALLOC_H
#define GILTRACER_BASE_ALLOC_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Zeroed memory for n * size bytes; caller frees. The process ends if the product overflows. */
void *xcalloc(size_t n, size_t size)
	__attribute__((malloc, alloc_size(1, 2), returns_nonnull, warn_unused_result));

/* Resizes to n * size bytes, as realloc does; bytes that are added are not zeroed. */
void *xreallocarray(void *p, size_t n, size_t size)
	__attribute__((alloc_size(2, 3), returns_nonnull, warn_unused_result));

/*
 * Enlarges an array of elements of size bytes that has room for *alloc of them. The result has room
 * for at least want elements and for more than before; *alloc is updated; caller frees. Large
 * arrays double, because pages that were never written to use no memory.
 */
void *xgrow(void *p, size_t want, size_t size, size_t *alloc)
	__attribute__((returns_nonnull, warn_unused_result));

char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull, nonnull, warn_unused_result));
char *xstrndup(const char *s, size_t n)
	__attribute__((malloc, returns_nonnull, nonnull, warn_unused_result));

/* The formatted string; caller frees. */
char *xasprintf(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), malloc, returns_nonnull, warn_unused_result));
char *xvasprintf(const char *fmt, va_list ap)
	__attribute__((format(printf, 1, 0), malloc, returns_nonnull, warn_unused_result));

/* A stream that writes to *text, as open_memstream(3) does. */
FILE *xmemstream(char **text, size_t *size) __attribute__((returns_nonnull));

#endif
