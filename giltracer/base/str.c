/* SPDX-License-Identifier: MIT */
/* Growing text. */
#include "str.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"

static void str_reserve(struct str *str, size_t more)
{
	size_t want = str->len + more + 1;

	if (want <= str->alloc)
		return;
	if (want < str->alloc * 2)
		want = str->alloc * 2;
	str->s = xreallocarray(str->s, want, 1);
	str->alloc = want;
}

void str_done(struct str *str)
{
	free(str->s);
	*str = (struct str){ 0 };
}

void str_addn(struct str *str, const void *data, size_t len)
{
	str_reserve(str, len);
	if (len)
		memcpy(str->s + str->len, data, len);
	str->len += len;
	str->s[str->len] = '\0';
}

void str_addc(struct str *str, char c)
{
	str_addn(str, &c, 1);
}

void str_adds(struct str *str, const char *s)
{
	str_addn(str, s, strlen(s));
}

void str_addf(struct str *str, const char *fmt, ...)
{
	CLEANUP(free) char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	str_adds(str, text);
}

const char *str_get(const struct str *str)
{
	return str->s ? str->s : "";
}

char *str_take(struct str *str)
{
	char *s = str->s ? str->s : xstrdup("");

	*str = (struct str){ 0 };
	return s;
}

void str_add_pattern(struct str *str, const char *name)
{
	while (*name) {
		if (!isdigit((unsigned char)*name)) {
			str_addc(str, *name++);
			continue;
		}
		str_addc(str, '*');
		while (isdigit((unsigned char)*name))
			name++;
	}
}

const char *str_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool str_has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_has_suffix(const char *s, const char *suffix)
{
	size_t len = strlen(s);
	size_t suffix_len = strlen(suffix);

	return len >= suffix_len && memcmp(s + len - suffix_len, suffix, suffix_len) == 0;
}

void str_set_once(char **where, const char *text)
{
	if (!*where)
		*where = xstrdup(text);
}
