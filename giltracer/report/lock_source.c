/* SPDX-License-Identifier: MIT */
#include "report/lock_source.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

#define NAME_MAX_BYTES 80

/* A part of a line. */
struct part {
	const char *p;
	size_t n;
};

struct file_lines file_lines_of(const char *text, size_t len)
{
	struct file_lines lines = { .end = text + len };

	for (const char *at = text; at && at < lines.end;) {
		*vec_push(&lines.v) = at;
		at = memchr(at, '\n', (size_t)(lines.end - at));
		at = at ? at + 1 : NULL;
	}
	return lines;
}

/* By number from 1 on, without blanks at its end; empty if there is no such line. */
static struct part line_at(const struct file_lines *lines, uint32_t line)
{
	const char *from, *end;

	if (!line || line > lines->v.n)
		return (struct part){ "", 0 };
	from = lines->v.v[line - 1];
	end = line < lines->v.n ? lines->v.v[line] : lines->end;
	while (end > from && isspace((unsigned char)end[-1]))
		end--;
	return (struct part){ from, (size_t)(end - from) };
}

static size_t indent(struct part line)
{
	size_t n = 0;

	while (n < line.n && (line.p[n] == ' ' || line.p[n] == '\t'))
		n++;
	return n;
}

static bool is_code(struct part line)
{
	size_t at = indent(line);

	return at < line.n && line.p[at] != '#';
}

static bool starts(const char *p, const char *end, const char *with)
{
	size_t n = strlen(with);

	return (size_t)(end - p) >= n && !memcmp(p, with, n);
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* A name with attributes and simple indices at the start of the text: self.locks[i]. */
static struct part reference(const char *p, const char *end)
{
	const char *at = p;

	if (at == end || !(is_name(*at) && !isdigit((unsigned char)*at)))
		return (struct part){ p, 0 };
	while (at < end && (is_name(*at) || (*at == '.' && at + 1 < end && is_name(at[1])))) {
		at++;
		if (at < end && *at == '[') {
			const char *close = at + 1;

			while (close < end && (is_name(*close) || strchr(".'\"- ", *close)))
				close++;
			if (close < end && *close == ']')
				at = close + 1;
		}
	}
	return (struct part){ p, (size_t)(at - p) };
}

/* The same at its end, before this. */
static struct part reference_before(const char *from, const char *end)
{
	for (const char *p = from; p < end; p++) {
		struct part r;

		if (p > from && (is_name(p[-1]) || strchr(".])'\"", p[-1])))
			continue;
		r = reference(p, end);
		if (r.n && p + r.n == end)
			return r;
	}
	return (struct part){ end, 0 };
}

/* The locks that a line names. */
struct found {
	struct part first;
	unsigned count;
};

static void add(struct found *f, struct part part)
{
	if (part.n && part.n <= NAME_MAX_BYTES && !f->count++)
		f->first = part;
}

/* with a, self.b as c: */
static void find_with(struct found *f, struct part line)
{
	const char *end = line.p + line.n, *p = line.p + indent(line);

	if (starts(p, end, "async "))
		p += strlen("async ");
	if (!starts(p, end, "with "))
		return;
	p += strlen("with");
	do {
		struct part item;
		const char *after;

		for (p++; p < end && *p == ' ';)
			p++;
		item = reference(p, end);
		after = item.p + item.n;
		while (after < end && *after == ' ')
			after++;
		if (item.n &&
		    (after == end || *after == ':' || *after == ',' || starts(after, end, "as ")))
			add(f, item);
		p = item.n ? memchr(after, ',', (size_t)(end - after)) : NULL;
	} while (p);
}

/* a.acquire(), item = self.b.get() */
static void find_calls(struct found *f, struct part line)
{
	static const char *const methods[] = { ".acquire(",  ".get(",  ".put(",    ".wait(",
		                               ".wait_for(", ".join(", ".result(", ".release(" };
	const char *from = line.p + indent(line), *end = line.p + line.n;

	for (const char *p = from; p < end; p++)
		for (size_t i = 0; *p == '.' && i < sizeof(methods) / sizeof(*methods); i++)
			if (starts(p, end, methods[i]))
				add(f, reference_before(from, p));
}

/* The number of the line that begins the class around a line; 0: none. */
static uint32_t class_around(const struct file_lines *lines, uint32_t line)
{
	size_t least = indent(line_at(lines, line));

	for (uint32_t i = line; i-- > 1 && least;) {
		struct part at = line_at(lines, i);
		size_t in = indent(at);

		if (!is_code(at) || in >= least)
			continue;
		least = in;
		if (starts(at.p + in, at.p + at.n, "class "))
			return i;
	}
	return 0;
}

/* The last line of the block that a line begins. */
static uint32_t block_end(const struct file_lines *lines, uint32_t line)
{
	size_t in = indent(line_at(lines, line));
	uint32_t end = line;

	for (uint32_t i = line + 1; i <= lines->v.n; i++) {
		struct part at = line_at(lines, i);

		if (is_code(at) && indent(at) <= in)
			break;
		end = i;
	}
	return end;
}

/* Whether the line assigns to the name: lock = ..., a, lock = ..., self.lock: Lock = ... */
static bool assigns(struct part line, struct part name)
{
	const char *end = line.p + line.n, *p = line.p + indent(line);

	while (p < end) {
		struct part target = reference(p, end);
		const char *after = target.p + target.n;
		bool same = target.n == name.n && !memcmp(target.p, name.p, name.n);

		if (!target.n)
			return false;
		while (after < end && *after == ' ')
			after++;
		if (same && starts(after, end, ": "))
			return memchr(after, '=', (size_t)(end - after)) != NULL;
		if (same && starts(after, end, "= "))
			return true;
		if (starts(after, end, "= "))
			p = after + 2; /* a = lock = ... */
		else if (starts(after, end, ", "))
			p = after + 2;
		else
			return false;
		if (same && memmem(p, (size_t)(end - p), " = ", 3) && after[0] == ',')
			return true;
	}
	return false;
}

/* What is assigned is made by one of these; NULL: something else, or several. */
static const char *kind_of(struct part line)
{
	static const char *const kinds[] = {
		"Lock",    "RLock", "Condition", "Semaphore",     "BoundedSemaphore", "Event",
		"Barrier", "Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"
	};
	const char *end = line.p + line.n, *kind = NULL;
	unsigned n = 0;

	for (const char *p = line.p; p < end; p++) {
		struct part name = { p, 0 };

		if (p > line.p && is_name(p[-1]))
			continue;
		while (p + name.n < end && is_name(p[name.n]))
			name.n++;
		for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
			if (p + name.n < end && p[name.n] == '(' && strlen(kinds[i]) == name.n &&
			    !memcmp(kinds[i], p, name.n))
				n++, kind = kinds[i];
	}
	return n == 1 ? kind : NULL;
}

/* Where the name is assigned: an attribute of self in its class, another name in the whole file. */
static void find_made(struct source_line *ret, const struct file_lines *lines, struct part name,
                      uint32_t class)
{
	bool own = starts(name.p, name.p + name.n, "self.") ||
	           starts(name.p, name.p + name.n, "cls.");
	uint32_t from = 1, to = (uint32_t)lines->v.n, made = 0;
	const char *kind;

	if (own && !class)
		return;
	if (!own && memchr(name.p, '.', name.n))
		return;
	if (own) {
		from = class;
		to = block_end(lines, class);
	}
	for (uint32_t i = from; i <= to; i++) {
		if (!assigns(line_at(lines, i), name))
			continue;
		if (made)
			return;
		made = i;
	}
	if (!made)
		return;
	ret->made = made;
	kind = kind_of(line_at(lines, made));
	ret->kind = kind ? xstrdup(kind) : NULL;
}

static char *copy(struct part part)
{
	struct str text = { 0 };
	char *ret;

	str_addn(&text, part.p, part.n);
	ret = xstrdup(str_get(&text));
	str_done(&text);
	return ret;
}

void lock_source_find(struct source_line *ret, const struct file_lines *lines, uint32_t line)
{
	struct part text = line_at(lines, line);
	uint32_t class = class_around(lines, line);
	struct found found = { .count = 0 };

	if (class) {
		struct part at = line_at(lines, class);
		const char *name = at.p + indent(at) + strlen("class ");

		ret->of = copy(reference(name, at.p + at.n));
	}
	find_with(&found, text);
	find_calls(&found, text);
	if (found.count != 1)
		return;
	ret->lock = copy(found.first);
	find_made(ret, lines, found.first, class);
}
