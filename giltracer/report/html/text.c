/* SPDX-License-Identifier: MIT */
#include "report/html/text.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "base/utf8.h"

void html_text(const char *text, FILE *out)
{
	CLEANUP(str_done) struct str clean = { 0 };
	uint32_t cp;

	while ((cp = utf8_next(&text))) {
		switch (cp) {
		case '&':
			str_adds(&clean, "&amp;");
			break;
		case '<':
			str_adds(&clean, "&lt;");
			break;
		case '>':
			str_adds(&clean, "&gt;");
			break;
		case '"':
			str_adds(&clean, "&quot;");
			break;
		case '\'':
			str_adds(&clean, "&#39;");
			break;
		default:
			utf8_add(&clean, utf8_is_unsafe(cp) ? UTF8_BAD : cp);
		}
	}
	fputs(str_get(&clean), out);
}
