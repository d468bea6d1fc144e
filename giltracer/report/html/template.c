/* SPDX-License-Identifier: MIT */
/* Loads and fills the templates of share/report. */
#include "report/html/template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define TEMPLATE_MAX (16 << 20)
#define OPEN         "<!--gt:"
#define CLOSE        "-->"

static const char *const names[TEMPLATE_PARTS] = {
	[TEMPLATE_TITLE] = "title",   [TEMPLATE_VERDICT] = "verdict",
	[TEMPLATE_TABLES] = "tables", [TEMPLATE_REPORT] = "report",
	[TEMPLATE_META] = "meta",     [TEMPLATE_OVERVIEW] = "overview",
	[TEMPLATE_BLOCKS] = "blocks",
};

static unsigned line_of(const struct template *t, size_t at)
{
	unsigned line = 1;

	for (size_t i = 0; i < at; i++)
		line += t->text[i] == '\n';
	return line;
}

/* The offset of the next placeholder at or after at, or the end. */
static size_t find_open(const struct template *t, size_t at)
{
	const char *hit = memmem(t->text + at, t->len - at, OPEN, strlen(OPEN));

	return hit ? (size_t)(hit - t->text) : t->len;
}

/* The placeholder at offset at must be the one of part; returns the offset after it. */
static int take_part(const struct template *t, size_t at, unsigned part, size_t *ret_end,
                     struct error *err)
{
	const char *name = t->text + at + strlen(OPEN);
	const char *close = memmem(name, t->len - at - strlen(OPEN), CLOSE, strlen(CLOSE));
	size_t len;

	if (!close)
		return error_set(err, EINVAL, "line %u: a placeholder that does not end",
		                 line_of(t, at));
	len = (size_t)(close - name);
	if (part < TEMPLATE_PARTS && len == strlen(names[part]) &&
	    !memcmp(name, names[part], len)) {
		*ret_end = (size_t)(close - t->text) + strlen(CLOSE);
		return 0;
	}
	return error_set(err, EINVAL, "line %u: placeholder '%.*s' where %s is expected",
	                 line_of(t, at), len > 40 ? 40 : (int)len, name,
	                 part < TEMPLATE_PARTS ? names[part] : "none");
}

static int split(struct template *t, struct error *err)
{
	size_t start = 0;

	for (unsigned part = 0; part <= TEMPLATE_PARTS; part++) {
		size_t at = find_open(t, start);

		t->between[part].start = start;
		t->between[part].end = at;
		if (at == t->len)
			return part == TEMPLATE_PARTS
			               ? 0
			               : error_set(err, EINVAL, "no placeholder '%s'", names[part]);
		if (take_part(t, at, part, &start, err) < 0)
			return -1;
	}
	return 0;
}

int template_parse(struct template *ret, char *text, size_t len, struct error *err)
{
	struct template t = { .text = text, .len = len };

	if (split(&t, err) < 0) {
		free(text);
		return -1;
	}
	*ret = t;
	return 0;
}

int template_load(struct template *ret, const char *path, struct error *err)
{
	char *text;
	size_t len;

	if (file_read(&text, &len, path, TEMPLATE_MAX, err) < 0)
		return -1;
	if (template_parse(ret, text, len, err) < 0)
		return error_prefix(err, "%s", path);
	return 0;
}

void template_done(struct template *t)
{
	free(t->text);
	*t = (struct template){ 0 };
}

int template_write(const struct template *t,
                   int (*fill)(enum template_part part, const void *data, FILE *out,
                               struct error *err),
                   const void *data, FILE *out, struct error *err)
{
	for (unsigned part = 0; part <= TEMPLATE_PARTS; part++) {
		fwrite(t->text + t->between[part].start, 1,
		       t->between[part].end - t->between[part].start, out);
		if (part < TEMPLATE_PARTS && fill(part, data, out, err) < 0)
			return -1;
	}
	return 0;
}
