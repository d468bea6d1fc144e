/* SPDX-License-Identifier: MIT */
/*
 * The lines are those of the frames that the library recorded. The names of the files come from the
 * program, which may be another user's, so only files of Python's are read, and no links. Those of a container
 * are in the root folder of a process of it, and unknown when that has ended.
 */
#include "report/source_lines.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "analysis/functions.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"
#include "report/lock_source.h"
#include "session/session.h"
#include "trace/names.h"
#include "trace/preload/from_preload.h"
#include "trace/stacks.h"

#define AROUND   3 /* lines before and after */
#define FILE_MAX (4 << 20)

struct wanted {
	const char *file;
	uint32_t line;
};

struct wanted_lines {
	struct wanted *v;
	size_t n, alloc;
};

/* The program's own code first. */
static int by_file_and_line(const void *va, const void *vb)
{
	const struct wanted *a = va, *b = vb;
	int order = function_in_library(a->file) - function_in_library(b->file);

	if (!order)
		order = strcmp(a->file, b->file);
	return order ? order : (a->line > b->line) - (a->line < b->line);
}

static bool is_python(const struct session *session, const char *file)
{
	size_t len = strlen(file);

	for (char *const *arg = session->command; arg && *arg; arg++)
		if (!strcmp(*arg, file))
			return true;
	return len > 3 && !strcmp(file + len - 3, ".py");
}

/* Appends a line without the blanks around it, cut between characters. */
static void add_line(struct sources *to, const struct wanted *w, const struct file_lines *lines)
{
	const char *at = lines->v.v[w->line - 1];
	const char *end = w->line < lines->v.n ? lines->v.v[w->line] - 1 : lines->end;
	struct str text = { 0 };
	uint32_t indent = 0;
	size_t len;

	for (; at < end && (*at == ' ' || *at == '\t'); at++)
		indent = *at == ' ' ? indent + 1 : (indent | 7) + 1;
	while (end > at && strchr(" \t\r\n", end[-1]))
		end--;
	len = (size_t)(end - at);
	if (len > SOURCES_TEXT_MAX)
		for (len = SOURCES_TEXT_MAX; len && (at[len] & 0xc0) == 0x80;)
			len--;
	str_addn(&text, at, len);
	if (text.len) {
		struct source_line *s = vec_push(to);

		*s = (struct source_line){ .file = xstrdup(w->file),
			                   .text = xstrdup(str_get(&text)),
			                   .line = w->line,
			                   .indent = indent < SOURCES_TEXT_MAX ? indent : 0 };
		lock_source_find(s, lines, w->line);
	}
	str_done(&text);
}

/* The lines of one file, n of them. Without the file, they are not shown. */
static void read_lines(struct sources *to, const struct session *session, const struct wanted *w,
                       size_t n, time_t before)
{
	const char *dir = *w->file == '/' || !session->cwd ? "" : session->cwd;
	CLEANUP(free)
	char *path = xasprintf("%s%s%s%s", session->root ? session->root : "", dir, *dir ? "/" : "",
	                       w->file);
	CLEANUP(free) char *text = NULL;
	struct error ignored;
	struct stat st;
	struct file_lines lines;
	size_t len;

	if (!is_python(session, w->file) || lstat(path, &st) < 0 || st.st_mtime > before ||
	    file_read_member(&text, &len, path, FILE_MAX, &ignored) < 0)
		return;
	lines = file_lines_of(text, len);
	for (size_t i = 0; i < n && to->n < SOURCES_MAX && w[i].line <= lines.v.n; i++)
		add_line(to, &w[i], &lines);
	vec_done(&lines.v);
}

/* When the recording began; 0: unknown. */
static time_t began_at(const struct session *session)
{
	struct tm tm = { 0 };

	return session->created && strptime(session->created, "%Y-%m-%dT%H:%M:%SZ", &tm)
	               ? timegm(&tm)
	               : 0;
}

/* A line and, of the program's own code, those around it. */
static void add_wanted(struct wanted_lines *lines, const char *file, uint32_t line)
{
	uint32_t around = function_in_library(file) ? 0 : AROUND;

	for (uint32_t at = line > around ? line - around : 1; at <= line + around; at++)
		*vec_push(lines) = (struct wanted){ file, at };
}

/* The lines of all frames of a folder of the library. */
static int add_folder(struct sources *to, const struct session *session, const char *dir,
                      struct error *err)
{
	struct wanted_lines lines = { 0 };
	struct source *source;

	if (from_preload_open(&source, dir, NULL, NULL, err) < 0)
		return -1;
	for (uint32_t id = 1; id < stacks_count(source->frames); id++) {
		const struct stack_frame *frame = stacks_get(source->frames, id);

		if (frame->line)
			add_wanted(&lines, names_get(source->names, frame->module), frame->line);
	}
	vec_sort(&lines, by_file_and_line);
	for (size_t i = 0, end; i < lines.n; i = end) {
		size_t n = 1;

		for (end = i + 1; end < lines.n && !strcmp(lines.v[end].file, lines.v[i].file);
		     end++)
			if (lines.v[end].line != lines.v[i + n - 1].line)
				lines.v[i + n++] = lines.v[end];
		read_lines(to, session, &lines.v[i], n, began_at(session));
	}
	vec_done(&lines);
	source_close(source);
	return 0;
}

int source_lines_save(const char *dir, struct error *err)
{
	CLEANUP(session_free) struct session *session = NULL;
	CLEANUP(sources_done) struct sources sources = { 0 };

	if (session_read(&session, dir, err) < 0)
		return -1;
	for (size_t i = 0; i < session->pass_count; i++) {
		const struct session_pass *pass = &session->passes[i];
		const char *name = pass->preload ? pass->preload : pass->python_trace;
		CLEANUP(free) char *folder = name ? xasprintf("%s/%s", dir, name) : NULL;

		if (folder && add_folder(&sources, session, folder, err) < 0)
			return -1;
	}
	return sources.n ? sources_write(&sources, dir, err) : 0;
}
