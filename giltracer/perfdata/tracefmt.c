/* SPDX-License-Identifier: MIT */
/* Parses the text of a tracepoint's format. */
#include "tracefmt.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

void tracefmt_free(struct tracefmt *fmt)
{
	if (!fmt)
		return;
	for (size_t i = 0; i < fmt->fields.n; i++)
		free(fmt->fields.v[i].name);
	vec_done(&fmt->fields);
	free(fmt->group);
	free(fmt->name);
	free(fmt);
}

/* The number after "key" in a line such as "offset:8;\tsize:4;\tsigned:1;". */
static bool number_behind(const char *line, const char *key, uint64_t *ret)
{
	const char *at = strstr(line, key);
	char *end;

	if (!at || !isdigit((unsigned char)at[strlen(key)]))
		return false;
	*ret = strtoull(at + strlen(key), &end, 10);
	return true;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Splits "char comm[16]" into name and array part; *ret_type_len is the length of the type before
 * the name. */
static char *declared_name(const char *decl, size_t len, size_t *ret_type_len, bool *ret_array)
{
	const char *bracket = memchr(decl, '[', len);
	size_t end = bracket ? (size_t)(bracket - decl) : len;
	size_t start;

	/* In "__data_loc char[] name" the brackets belong to the type. */
	if (bracket) {
		const char *close = memchr(bracket, ']', len - end);
		size_t behind = close ? (size_t)(close - decl) + 1 : len;

		while (behind < len && decl[behind] == ' ')
			behind++;
		if (behind < len)
			end = len;
	}
	while (end && decl[end - 1] == ' ')
		end--;
	start = end;
	while (start && is_word(decl[start - 1]))
		start--;
	*ret_type_len = start;
	*ret_array = bracket != NULL;
	return start < end ? xstrndup(decl + start, end - start) : NULL;
}

static enum tracefmt_kind kind_of(const char *type, size_t len, bool array, bool chars)
{
	if (memmem(type, len, "__data_loc", 10))
		return TRACEFMT_DYNAMIC;
	if (memmem(type, len, "__rel_loc", 9))
		return TRACEFMT_REL;
	if (!array)
		return TRACEFMT_NUMBER;
	return chars ? TRACEFMT_CHARS : TRACEFMT_BYTES;
}

/* "	field:char prev_comm[16];	offset:8;	size:16;	signed:0;" */
static bool parse_field(struct tracefmt *fmt, const char *line)
{
	const char *decl = strstr(line, "field:");
	const char *semicolon = decl ? strchr(decl, ';') : NULL;
	uint64_t offset, size, sign = 0;
	size_t type_len;
	bool array, chars;
	char *name;

	if (!semicolon || !number_behind(semicolon, "offset:", &offset) ||
	    !number_behind(semicolon, "size:", &size) || offset > UINT16_MAX || size > UINT16_MAX)
		return false;
	/* Kernels before 2.6.38 do not print "signed". */
	number_behind(semicolon, "signed:", &sign);
	decl += strlen("field:");
	name = declared_name(decl, (size_t)(semicolon - decl), &type_len, &array);
	if (!name)
		return false;
	chars = memmem(decl, type_len, "char", 4);
	*vec_push(&fmt->fields) = (struct tracefmt_field){
		.name = name,
		.offset = (uint32_t)offset,
		.size = (uint32_t)size,
		.kind = kind_of(decl, type_len, array, chars),
		.sign = sign,
		.text = chars,
	};
	return true;
}

/* Returns false if a line that must be understood is invalid. */
static bool parse_line(struct tracefmt *fmt, const char *line)
{
	while (*line == ' ' || *line == '\t')
		line++;
	if (str_has_prefix(line, "name: ") && !fmt->name) {
		fmt->name = xstrdup(line + strlen("name: "));
		return true;
	}
	if (str_has_prefix(line, "ID: "))
		return number_behind(line, "ID: ", &fmt->id);
	if (str_has_prefix(line, "field:"))
		return parse_field(fmt, line);
	return true;
}

int tracefmt_parse(struct tracefmt **ret, const char *group, const char *text, size_t len,
                   struct error *err)
{
	CLEANUP(tracefmt_free) struct tracefmt *fmt = xcalloc(1, sizeof(*fmt));
	const char *end = text + strnlen(text, len);
	unsigned number = 1;

	fmt->group = xstrdup(group);
	while (text < end) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		CLEANUP(free)
		char *line = xstrndup(text, (size_t)((eol ? eol : end) - text));

		/* C code follows, which is not needed. */
		if (str_has_prefix(line, "print fmt:"))
			break;
		if (!parse_line(fmt, line))
			return error_set(err, EINVAL,
			                 "event format of %s: line %u cannot be parsed",
			                 fmt->name ? fmt->name : group, number);
		text = eol ? eol + 1 : end;
		number++;
	}
	if (!fmt->name)
		return error_set(err, EINVAL, "event format in %s: no name", group);
	*ret = take(fmt);
	return 0;
}

const struct tracefmt_field *tracefmt_find(const struct tracefmt *fmt, const char *name)
{
	for (size_t i = 0; fmt && i < fmt->fields.n; i++)
		if (!strcmp(fmt->fields.v[i].name, name))
			return &fmt->fields.v[i];
	return NULL;
}

uint64_t tracefmt_number(const struct tracefmt_field *field, const struct cursor *raw)
{
	uint64_t v = 0;

	if (field->kind != TRACEFMT_NUMBER)
		return 0;
	cursor_number_at(raw, field->offset, field->size, field->sign, &v);
	return v;
}

const char *tracefmt_text(const struct tracefmt_field *field, const struct cursor *raw,
                          size_t *ret_len)
{
	uint64_t at = field->offset, size = field->size, loc;
	struct cursor c = *raw;

	*ret_len = 0;
	if (field->kind == TRACEFMT_NUMBER || field->kind == TRACEFMT_BYTES)
		return NULL;
	if (field->kind != TRACEFMT_CHARS) {
		if (!cursor_number_at(raw, field->offset, 4, false, &loc))
			return NULL;
		at = loc & 0xffff;
		if (field->kind == TRACEFMT_REL)
			at += field->offset + field->size;
		size = loc >> 16;
	}
	cursor_skip(&c, at);
	return c.bad ? NULL : cursor_text_field(&c, size, ret_len);
}
