/* SPDX-License-Identifier: MIT */
/* A growing text. It is always terminated; embedded NULs are kept and counted in len. */
#ifndef GILTRACER_BASE_STR_H
#define GILTRACER_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "cleanup.h"

/* { 0 } is an empty text, whose s is NULL. */
struct str {
	char *s;
	size_t len;
	size_t alloc;
};

void str_done(struct str *str);
void str_addc(struct str *str, char c);
void str_adds(struct str *str, const char *s);
void str_addn(struct str *str, const void *data, size_t len);
void str_addf(struct str *str, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The text, "" if empty; borrowed until the next change. */
const char *str_get(const struct str *str) __attribute__((returns_nonnull));

/* The text as malloced memory; str is empty afterwards. Never NULL; caller frees. */
char *str_take(struct str *str) __attribute__((returns_nonnull, warn_unused_result));

/* Appends name with "*" for each run of digits, so names that differ only in digits give the same
 * pattern. */
void str_add_pattern(struct str *str, const char *name);

/* What follows the last slash of the path, or all of it. */
const char *str_base(const char *path);

bool str_has_prefix(const char *s, const char *prefix);
bool str_has_suffix(const char *s, const char *suffix);

/* Copies the text to *where unless there is one: the first problem is the one to report. */
void str_set_once(char **where, const char *text);

DEFINE_CLEANUP_IN(struct str, str_done);

#endif
