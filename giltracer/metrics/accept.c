/* SPDX-License-Identifier: MIT */
/* Content negotiation: RFC 9110, 12.5. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "metrics/exposition.h"

static const char *skip_space(const char *s)
{
	return s + strspn(s, " \t");
}

/* The quality of one list element, from its parameters: q in thousandths, 1000 by default. */
static unsigned quality(const char *parameters, const char *end)
{
	while (parameters < end) {
		const char *p = skip_space(parameters + 1);
		const char *next = memchr(p, ';', (size_t)(end - p));

		if (p + 2 <= end && (*p == 'q' || *p == 'Q') && p[1] == '=') {
			double q = strtod(p + 2, NULL);

			return q >= 1 ? 1000 : q > 0 ? (unsigned)(q * 1000) : 0;
		}
		if (!next)
			break;
		parameters = next;
	}
	return 1000;
}

/* The quality that a list gives to name; -1: the list does not contain name. */
static int quality_of(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (*list) {
		const char *item = skip_space(list);
		const char *end = item + strcspn(item, ",");
		size_t word = strcspn(item, ",; \t");

		if (word == len && !strncasecmp(item, name, len))
			return (int)quality(item + strcspn(item, ",;"), end);
		list = *end ? end + 1 : end;
	}
	return -1;
}

/* A client that accepts anything may not understand OpenMetrics, so it gets Prometheus' format. */
enum exposition exposition_accepted(const char *accept)
{
	int open, plain;

	if (!accept)
		return EXPOSITION_PROMETHEUS;
	open = quality_of(accept, "application/openmetrics-text");
	plain = quality_of(accept, "text/plain");
	if (plain < 0)
		plain = quality_of(accept, "text/*");
	return open > 0 && open >= plain ? EXPOSITION_OPENMETRICS : EXPOSITION_PROMETHEUS;
}

bool exposition_may_gzip(const char *accept_encoding)
{
	int gzip;

	if (!accept_encoding)
		return false;
	gzip = quality_of(accept_encoding, "gzip");
	return gzip < 0 ? quality_of(accept_encoding, "*") > 0 : gzip > 0;
}
