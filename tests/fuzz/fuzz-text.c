/* SPDX-License-Identifier: MIT */
/* Hostile text has no effect in JSON, in HTML and on a terminal. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/jsonw.h"
#include "base/utf8.h"
#include "report/html/html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The text is well-formed UTF-8 (it decodes and encodes to itself), without characters of
 * forbidden. */
static void check(const char *text, size_t len, const char *forbidden)
{
	CLEANUP(str_done) struct str again = { 0 };
	const char *p = text;
	uint32_t cp;

	while ((cp = utf8_next(&p))) {
		if (utf8_is_unsafe(cp) || (cp < 0x80 && strchr(forbidden, (int)cp)))
			abort();
		utf8_add(&again, cp);
	}
	if (again.len != len || memcmp(str_get(&again), text, len) != 0)
		abort();
}

/* The text is one quoted string, in which each quote is escaped. */
static void check_json(const char *text, size_t len)
{
	if (len < 2 || text[0] != '"' || text[len - 1] != '"')
		abort();
	for (size_t i = 1; i + 1 < len; i++) {
		if (text[i] == '"')
			abort();
		if (text[i] == '\\' && ++i + 1 >= len)
			abort();
	}
	check(text, len, "<>&");
}

static void check_terminal(const char *text)
{
	CLEANUP(str_done) struct str safe = { 0 };
	unsigned columns = utf8_add_safe(&safe, text, 20);
	unsigned sum = 0;
	const char *p;
	uint32_t cp;

	check(str_get(&safe), safe.len, "");
	for (p = str_get(&safe); (cp = utf8_next(&p));)
		sum += utf8_width(cp);
	if (sum != columns || columns > 20)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xcalloc(size + 1, 1), *html = NULL, *json = NULL;
	size_t html_len = 0, json_len = 0;
	struct jsonw w;
	FILE *out;

	if (size)
		memcpy(text, data, size);
	out = open_memstream(&html, &html_len);
	html_text(text, out);
	fclose(out);
	check(html, html_len, "<>\"'");
	out = open_memstream(&json, &json_len);
	jsonw_init(&w, out, 0);
	jsonw_string(&w, NULL, text);
	jsonw_flush(&w);
	fclose(out);
	check_json(json, json_len);
	check_terminal(text);
	free(text);
	free(html);
	free(json);
	return 0;
}
