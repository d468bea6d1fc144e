/* SPDX-License-Identifier: MIT */
/* A template is filled or refused; the text between the placeholders is copied unchanged. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "report/html/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fill(enum template_part part, const void *data, FILE *out, struct error *err)
{
	(void)part;
	(void)data;
	(void)err;
	putc('*', out);
	return 0;
}

/* The template with each placeholder replaced by a star. */
static void check(const struct template *t, const uint8_t *data, const char *text, size_t len)
{
	size_t at = 0;

	for (unsigned part = 0; part <= TEMPLATE_PARTS; part++) {
		size_t n = t->between[part].end - t->between[part].start;

		if (at + n > len || memcmp(text + at, data + t->between[part].start, n) != 0)
			abort();
		at += n;
		if (part < TEMPLATE_PARTS && (at == len || text[at++] != '*'))
			abort();
	}
	if (at != len)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = xcalloc(size + 1, 1), *text = NULL;
	struct error err = { 0 };
	struct template t;
	size_t len = 0;
	FILE *out;

	if (size)
		memcpy(copy, data, size);
	if (template_parse(&t, copy, size, &err) < 0)
		return 0;
	out = open_memstream(&text, &len);
	if (template_write(&t, fill, NULL, out, &err) < 0)
		abort();
	fclose(out);
	check(&t, data, text, len);
	free(text);
	template_done(&t);
	return 0;
}
