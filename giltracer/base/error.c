/* SPDX-License-Identifier: MIT */
/* The ways to fill in a struct error. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error.h"

int error_set(struct error *err, int code, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -1;
}

int error_errno(struct error *err, const char *fmt, ...)
{
	va_list ap;
	size_t len;

	err->code = errno;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	snprintf(err->text + len, sizeof(err->text) - len, ": %s", strerror(err->code));
	return -1;
}

int error_prefix(struct error *err, const char *fmt, ...)
{
	char prefix[sizeof(err->text)];
	char text[sizeof(err->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(prefix, sizeof(prefix), fmt, ap);
	va_end(ap);
	memcpy(text, err->text, sizeof(text));
	/* A text that no longer fits is truncated at its end, because the prefix names the
	 * place. */
	if (snprintf(err->text, sizeof(err->text), "%s: %s", prefix, text) < 0)
		err->text[0] = '\0';
	return -1;
}
