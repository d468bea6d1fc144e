/* SPDX-License-Identifier: MIT */
/* Reads and writes sources.json. */
#include "session/sources.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"

#define FILE_MAX (SOURCES_MAX * 8192)

static char *copy_member(const json_t *entry, const char *key)
{
	const char *text = json_string_value(json_object_get(entry, key));

	return text && strlen(text) <= SOURCES_TEXT_MAX ? xstrdup(text) : NULL;
}

static int add_line(struct sources *ret, const json_t *entry, struct error *err)
{
	const char *file = json_string_value(json_object_get(entry, "file"));
	const char *text = json_string_value(json_object_get(entry, "text"));
	json_int_t line = json_integer_value(json_object_get(entry, "line"));
	json_int_t made = json_integer_value(json_object_get(entry, "made"));

	if (!file || !text || line <= 0 || line > UINT32_MAX || strlen(text) > SOURCES_TEXT_MAX ||
	    ret->n >= SOURCES_MAX)
		return error_set(err, EINVAL, "not a list of source lines");
	*vec_push(ret) =
		(struct source_line){ .file = xstrdup(file),
		                      .text = xstrdup(text),
		                      .line = (uint32_t)line,
		                      .made = made > 0 && made <= UINT32_MAX ? (uint32_t)made : 0,
		                      .of = copy_member(entry, "of"),
		                      .lock = copy_member(entry, "lock"),
		                      .kind = copy_member(entry, "kind") };
	return 0;
}

int sources_read(struct sources *ret, const char *dir, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/" SOURCES_FILE, dir);
	CLEANUP(free) char *text = NULL;
	json_error_t at;
	size_t len;

	*ret = (struct sources){ 0 };
	if (file_read_member(&text, &len, path, FILE_MAX, err) < 0)
		return err->code == ENOENT ? 0 : -1;
	json_auto_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
	if (!json_is_array(root))
		return error_set(err, EINVAL, "%s: not a list of source lines", path);
	for (size_t i = 0; i < json_array_size(root); i++)
		if (add_line(ret, json_array_get(root, i), err) < 0) {
			sources_done(ret);
			return error_prefix(err, "%s", path);
		}
	return 0;
}

int sources_write(const struct sources *sources, const char *dir, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/" SOURCES_FILE, dir);
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	json_auto_t *root = json_array();

	for (size_t i = 0; i < sources->n; i++) {
		const struct source_line *s = &sources->v[i];
		/* NULL, and left out, if a text is not UTF-8. */
		json_t *entry = json_pack("{s:s, s:I, s:s, s:s*, s:s*, s:s*}", "file", s->file,
		                          "line", (json_int_t)s->line, "text", s->text, "of", s->of,
		                          "lock", s->lock, "kind", s->kind);

		if (entry && s->made)
			json_object_set_new(entry, "made", json_integer(s->made));
		if (entry)
			json_array_append_new(root, entry);
	}
	if (filewriter_open(&w, path, err) < 0)
		return -1;
	json_dumpf(root, w.out, JSON_COMPACT);
	return filewriter_commit(&w, err);
}

void sources_done(struct sources *sources)
{
	for (size_t i = 0; i < sources->n; i++) {
		free(sources->v[i].file);
		free(sources->v[i].text);
		free(sources->v[i].of);
		free(sources->v[i].lock);
		free(sources->v[i].kind);
	}
	vec_done(sources);
}

const struct source_line *sources_line(const struct sources *sources, const char *file,
                                       uint32_t line)
{
	for (size_t i = 0; i < sources->n; i++)
		if (sources->v[i].line == line && !strcmp(sources->v[i].file, file))
			return &sources->v[i];
	return NULL;
}

const char *sources_find(const struct sources *sources, const char *file, uint32_t line)
{
	const struct source_line *found = sources_line(sources, file, line);

	return found ? found->text : NULL;
}
