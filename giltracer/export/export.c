/* SPDX-License-Identifier: MIT */
/* The formats by name. */
#include "export/export.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

#define EXPORT_ROW(writer, name, summary) { name, summary, export_##writer },
const struct export_format export_formats[EXPORT_FORMAT_COUNT + 1] = {
	EXPORT_FORMATS(EXPORT_ROW){ NULL, NULL, NULL },
};

static const struct export_format *find(const char *name, size_t len)
{
	for (const struct export_format *f = export_formats; f->name; f++)
		if (strlen(f->name) == len && !memcmp(f->name, name, len))
			return f;
	return NULL;
}

static void set_unknown(struct error *err, const char *name, size_t len)
{
	CLEANUP(str_done) struct str all = { 0 };

	for (const struct export_format *f = export_formats; f->name; f++)
		str_addf(&all, "%s%s", f == export_formats ? "" : ", ", f->name);
	error_set(err, EINVAL, "'%.*s' is not one of the formats %s", (int)(len < 40 ? len : 40),
	          name, str_get(&all));
}

static int parse_one(struct report_document *ret, const char *word, struct error *err)
{
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	const struct export_format *format = find(word, len);

	if (!format) {
		set_unknown(err, word, len);
		return -1;
	}
	if (!equals || !equals[1])
		return error_set(err, EINVAL, "%s needs a file: write %s=FILE", format->name,
		                 format->name);
	*ret = (struct report_document){ format->write, equals + 1 };
	return 0;
}

int export_parse(struct report_document **ret, const struct opt_list *list, struct error *err)
{
	CLEANUP(free) struct report_document *documents = xcalloc(list->n + 1, sizeof(*documents));

	for (unsigned i = 0; i < list->n; i++)
		if (parse_one(&documents[i], list->v[i], err) < 0)
			return error_prefix(err, "option --export");
	*ret = take(documents);
	return 0;
}
