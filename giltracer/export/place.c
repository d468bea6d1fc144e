/* SPDX-License-Identifier: MIT */
/* Parses the names of calls. */
#include "export/place.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/utf8.h"

char *place_text(const char *text)
{
	struct str clean = { 0 };
	uint32_t cp;

	while ((cp = utf8_next(&text)))
		utf8_add(&clean, cp);
	return str_take(&clean);
}

void place_of(struct place *ret, const char *name, const char *file, uint32_t line)
{
	*ret = (struct place){ place_text(name ? name : ""), place_text(file ? file : ""), line };
}

/* The last ":LINE)" of text, NULL if text does not end like that. */
static const char *find_line(const char *text, uint32_t *line)
{
	const char *colon = strrchr(text, ':');
	char *end;
	unsigned long n;

	if (!colon || colon[1] < '0' || colon[1] > '9')
		return NULL;
	n = strtoul(colon + 1, &end, 10);
	if (strcmp(end, ")") != 0 || n > UINT32_MAX)
		return NULL;
	*line = (uint32_t)n;
	return colon;
}

void place_of_call(struct place *ret, const char *text)
{
	uint32_t line = 0;
	const char *colon = find_line(text, &line), *open = strstr(text, " (");

	if (!colon || !open || open > colon) {
		place_of(ret, text, NULL, 0);
		return;
	}
	{
		CLEANUP(free) char *name = xstrndup(text, (size_t)(open - text));
		CLEANUP(free) char *file = xstrndup(open + 2, (size_t)(colon - open - 2));

		place_of(ret, name, file, line);
	}
}

void place_done(struct place *place)
{
	free(place->name);
	free(place->file);
	*place = (struct place){ 0 };
}
