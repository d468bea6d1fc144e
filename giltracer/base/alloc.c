/* SPDX-License-Identifier: MIT */
/* Allocation that ends the process when memory is out. */
#include "alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE (1U << 20) /* bytes */

__attribute__((noreturn)) static void out_of_memory(void)
{
	static const char text[] = "giltracer: error: out of memory\n";

	/* Nothing can be done if even this write fails. */
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(125);
	exit(125);
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *xreallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		out_of_memory();
	p = realloc(p, bytes ? bytes : 1);
	if (!p)
		out_of_memory();
	return p;
}

void *xgrow(void *p, size_t want, size_t size, size_t *alloc)
{
	size_t more = *alloc / (*alloc * size < LARGE ? 2 : 1);

	*alloc += more + 8;
	if (*alloc < want)
		*alloc = want;
	return xreallocarray(p, *alloc, size);
}

char *xstrdup(const char *s)
{
	return xstrndup(s, strlen(s));
}

char *xstrndup(const char *s, size_t n)
{
	char *p = strndup(s, n);

	if (!p)
		out_of_memory();
	return p;
}

char *xvasprintf(const char *fmt, va_list ap)
{
	char *p;

	if (vasprintf(&p, fmt, ap) < 0)
		out_of_memory();
	return p;
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	p = xvasprintf(fmt, ap);
	va_end(ap);
	return p;
}

FILE *xmemstream(char **text, size_t *size)
{
	FILE *out = open_memstream(text, size);

	if (!out)
		out_of_memory();
	return out;
}
