/* SPDX-License-Identifier: MIT */
/* The session folder and its session.json. */
#include "session.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"

#define SESSION_FILE    "session.json"
#define SESSION_VERSION 1

/* A document of ours is a few KiB; a command line may be 2 MiB (ARG_MAX). */
#define SESSION_MAX (8 << 20)

/* ---- the structure */

struct session *session_new(void)
{
	return xcalloc(1, sizeof(struct session));
}

static char *dup_or_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static struct session_thread *copy_threads(const struct session_pass *pass)
{
	struct session_thread *copy = xcalloc(pass->thread_count, sizeof(*copy));

	for (size_t i = 0; i < pass->thread_count; i++)
		copy[i] = (struct session_thread){ pass->threads[i].tid,
			                           dup_or_null(pass->threads[i].name) };
	return copy;
}

void session_threads_free(struct session_thread *threads, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(threads[i].name);
	free(threads);
}

void session_add_pass(struct session *session, const struct session_pass *pass)
{
	struct session_pass *copy;

	session->passes = xreallocarray(session->passes, session->pass_count + 1, sizeof(*copy));
	copy = &session->passes[session->pass_count++];
	*copy = *pass;
	copy->name = dup_or_null(pass->name);
	copy->perf_data = dup_or_null(pass->perf_data);
	copy->python_trace = dup_or_null(pass->python_trace);
	copy->python_trace_note = dup_or_null(pass->python_trace_note);
	copy->code_objects = dup_or_null(pass->code_objects);
	copy->wakeups = dup_or_null(pass->wakeups);
	copy->threads = copy_threads(pass);
}

void session_add_note(struct session *session, const char *code, uint64_t count, const char *text)
{
	struct session_note *note;

	session->notes = xreallocarray(session->notes, session->note_count + 1, sizeof(*note));
	note = &session->notes[session->note_count++];
	*note = (struct session_note){
		.code = dup_or_null(code),
		.text = dup_or_null(text),
		.count = count,
	};
}

static void free_parts(struct session *session)
{
	for (char **arg = session->command; arg && *arg; arg++)
		free(*arg);
	for (size_t i = 0; i < session->function_count; i++) {
		free(session->functions[i].name);
		free(session->functions[i].kind);
	}
	for (size_t i = 0; i < session->pass_count; i++) {
		free(session->passes[i].name);
		free(session->passes[i].perf_data);
		free(session->passes[i].python_trace);
		free(session->passes[i].python_trace_note);
		free(session->passes[i].code_objects);
		free(session->passes[i].wakeups);
		session_threads_free(session->passes[i].threads, session->passes[i].thread_count);
	}
	for (size_t i = 0; i < session->note_count; i++) {
		free(session->notes[i].code);
		free(session->notes[i].text);
	}
}

void session_free(struct session *session)
{
	if (!session)
		return;
	free_parts(session);
	free(session->created);
	free(session->cwd);
	free(session->command);
	free(session->kernel);
	free(session->arch);
	free(session->perf_version);
	free(session->python_trace);
	free(session->executable);
	free(session->python_version);
	free(session->implementation);
	free(session->build_id);
	free(session->functions);
	free(session->passes);
	free(session->notes);
	free(session);
}

/* ---- reading */

/* One object of the document. A key of a wrong type is remembered, first one wins. */
struct reader {
	json_t *object;
	const char *where; /* "passes[0]." */
	struct error *err;
	bool *bad;
};

static void wrong(const struct reader *r, const char *key, const char *expected)
{
	if (!*r->bad)
		error_set(r->err, EINVAL, "%s%s: not %s", r->where, key, expected);
	*r->bad = true;
}

/* NULL if it is absent or null, which is the same. */
static json_t *get(const struct reader *r, const char *key)
{
	json_t *value = json_object_get(r->object, key);

	return json_is_null(value) ? NULL : value;
}

static char *get_text(const struct reader *r, const char *key)
{
	json_t *value = get(r, key);

	if (!value)
		return NULL;
	if (!json_is_string(value)) {
		wrong(r, key, "a string");
		return NULL;
	}
	return xstrdup(json_string_value(value));
}

static uint64_t get_number(const struct reader *r, const char *key, uint64_t max)
{
	json_t *value = get(r, key);

	if (!value)
		return 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    (uint64_t)json_integer_value(value) > max) {
		wrong(r, key, "a number in range");
		return 0;
	}
	return (uint64_t)json_integer_value(value);
}

static bool get_bool(const struct reader *r, const char *key)
{
	json_t *value = get(r, key);

	if (value && !json_is_boolean(value))
		wrong(r, key, "true or false");
	return json_is_true(value);
}

static json_t *get_array(const struct reader *r, const char *key)
{
	json_t *value = get(r, key);

	if (value && !json_is_array(value)) {
		wrong(r, key, "an array");
		return NULL;
	}
	return value;
}

/* An absent object reads as one without keys. */
static struct reader get_object(const struct reader *r, const char *key, const char *where)
{
	json_t *value = get(r, key);

	if (value && !json_is_object(value))
		wrong(r, key, "an object");
	return (struct reader){ value, where, r->err, r->bad };
}

static struct reader element(const struct reader *r, json_t *array, size_t i, char where[64],
                             const char *name)
{
	json_t *value = json_array_get(array, i);

	snprintf(where, 64, "%s[%zu].", name, i);
	if (!json_is_object(value))
		wrong(r, name, "an array of objects");
	return (struct reader){ value, where, r->err, r->bad };
}

static void read_command(struct session *session, const struct reader *r)
{
	json_t *array = get_array(r, "command");
	size_t n = json_array_size(array);

	if (!array)
		return;
	session->command = xcalloc(n + 1, sizeof(*session->command));
	for (size_t i = 0; i < n; i++) {
		const char *arg = json_string_value(json_array_get(array, i));

		if (!arg)
			wrong(r, "command", "an array of strings");
		session->command[i] = xstrdup(arg ? arg : "");
	}
}

static void read_functions(struct session *session, const struct reader *python)
{
	json_t *array = get_array(python, "gil_functions");
	size_t n = json_array_size(array);
	char where[64];

	session->functions = xcalloc(n, sizeof(*session->functions));
	session->function_count = n;
	for (size_t i = 0; i < n; i++) {
		struct reader r = element(python, array, i, where, "gil_functions");

		session->functions[i] = (struct session_function){
			.name = get_text(&r, "name"),
			.kind = get_text(&r, "kind"),
			.offset = get_number(&r, "offset", INT64_MAX),
		};
	}
}

/* It is opened below the folder: it must not lead out of it. */
static char *get_file(const struct reader *r, const char *key)
{
	char *file = get_text(r, key);

	if (file && (strchr(file, '/') || !*file || !strcmp(file, ".."))) {
		wrong(r, key, "the name of a file in the folder");
		free(file);
		return NULL;
	}
	return file;
}

static void read_threads(struct session_pass *pass, const struct reader *r)
{
	json_t *array = get_array(r, "threads");
	size_t n = json_array_size(array);
	char where[64];

	pass->threads = xcalloc(n, sizeof(*pass->threads));
	pass->thread_count = n;
	for (size_t i = 0; i < n; i++) {
		struct reader thread = element(r, array, i, where, "threads");

		pass->threads[i] = (struct session_thread){
			.tid = (uint32_t)get_number(&thread, "tid", UINT32_MAX),
			.name = get_text(&thread, "name"),
		};
		if (!pass->threads[i].name)
			wrong(&thread, "name", "there");
	}
}

static void read_pass(struct session_pass *pass, const struct reader *r)
{
	*pass = (struct session_pass){
		.name = get_text(r, "name"),
		.perf_data = get_file(r, "perf_data"),
		.python_trace = get_file(r, "python_trace"),
		.python_trace_note = get_text(r, "python_trace_note"),
		.code_objects = get_file(r, "code_objects"),
		.wakeups = get_file(r, "wakeups"),
		.exit_status = (int)get_number(r, "exit_status", 255),
		.signal = (int)get_number(r, "signal", 127),
		.wall_ns = get_number(r, "wall_ns", INT64_MAX),
		.start_ns = get_number(r, "start_ns", INT64_MAX),
		.stop_ns = get_number(r, "stop_ns", INT64_MAX),
		.pid = (uint32_t)get_number(r, "pid", UINT32_MAX),
		.tid = (uint32_t)get_number(r, "tid", UINT32_MAX),
	};
	read_threads(pass, r);
	if (!pass->name || (strcmp(pass->name, "gil") && strcmp(pass->name, "stacks")))
		wrong(r, "name", "gil or stacks");
	if (!pass->perf_data)
		wrong(r, "perf_data", "there");
}

static void read_passes(struct session *session, const struct reader *top)
{
	json_t *array = get_array(top, "passes");
	size_t n = json_array_size(array);
	char where[64];

	session->passes = xcalloc(n, sizeof(*session->passes));
	session->pass_count = n;
	for (size_t i = 0; i < n; i++) {
		struct reader r = element(top, array, i, where, "passes");

		read_pass(&session->passes[i], &r);
	}
}

static void read_notes(struct session *session, const struct reader *top)
{
	json_t *array = get_array(top, "notes");
	size_t n = json_array_size(array);
	char where[64];

	session->notes = xcalloc(n, sizeof(*session->notes));
	session->note_count = n;
	for (size_t i = 0; i < n; i++) {
		struct reader r = element(top, array, i, where, "notes");

		session->notes[i] = (struct session_note){
			.code = get_text(&r, "code"),
			.text = get_text(&r, "text"),
			.count = get_number(&r, "count", INT64_MAX),
		};
		if (!session->notes[i].code || !session->notes[i].text)
			wrong(&r, "code", "there, or its text");
	}
}

static void read_python(struct session *session, const struct reader *top)
{
	struct reader r = get_object(top, "python", "python.");

	session->executable = get_text(&r, "executable");
	session->python_version = get_text(&r, "version");
	session->implementation = get_text(&r, "implementation");
	session->build_id = get_text(&r, "build_id");
	session->free_threaded = get_bool(&r, "free_threaded");
	read_functions(session, &r);
}

static void read_top(struct session *session, const struct reader *top)
{
	struct reader host = get_object(top, "host", "host.");
	struct reader options = get_object(top, "options", "options.");

	session->created = get_text(top, "created");
	session->cwd = get_text(top, "cwd");
	session->kernel = get_text(&host, "kernel");
	session->arch = get_text(&host, "arch");
	session->perf_version = get_text(&host, "perf");
	session->cpus = (unsigned)get_number(&host, "cpus", 1 << 20);
	session->state_detect = get_bool(&options, "state_detect");
	session->gil_detect = get_bool(&options, "gil_detect");
	session->one_run = get_bool(&options, "one_run");
	session->python_trace = get_text(&options, "python_trace");
	read_command(session, top);
	read_python(session, top);
	read_passes(session, top);
	read_notes(session, top);
}

int session_parse(struct session **ret, const char *text, size_t len, struct error *err)
{
	struct session *session;
	json_error_t why;
	json_t *document = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	bool bad = false;
	struct reader top = { document, "", err, &bad };
	uint64_t version;

	if (!document)
		return error_set(err, EINVAL, "line %d: %s", why.line, why.text);
	version = get_number(&top, "session", INT64_MAX);
	if (!json_is_object(document) || (!bad && version == 0)) {
		json_decref(document);
		return error_set(err, EINVAL, "not a session of giltracer");
	}
	if (!bad && version != SESSION_VERSION) {
		json_decref(document);
		return error_set(err, ENOTSUP,
		                 "session version %" PRIu64 ", this giltracer reads version %d",
		                 version, SESSION_VERSION);
	}
	session = session_new();
	read_top(session, &top);
	json_decref(document);
	if (bad) {
		session_free(session);
		return -1;
	}
	*ret = session;
	return 0;
}

int session_read(struct session **ret, const char *dir, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/" SESSION_FILE, dir);
	CLEANUP(free) char *text = NULL;
	size_t len;

	if (file_read(&text, &len, path, SESSION_MAX, err) < 0)
		return err->code == ENOENT
		               ? error_set(err, ENOENT,
		                           "%s: no session there (no " SESSION_FILE ")", dir)
		               : -1;
	if (session_parse(ret, text, len, err) < 0)
		return error_prefix(err, "%s", path);
	return 0;
}

/* ---- writing */

/* Paths and arguments may be any bytes; what is no UTF-8 becomes U+FFFD. */
static json_t *text_of(const char *s)
{
	json_t *value;
	char *safe;

	if (!s)
		return json_null();
	value = json_string(s);
	if (value)
		return value;
	safe = xcalloc(strlen(s) + 1, 3);
	for (char *out = safe; *s; s++) {
		if ((unsigned char)*s < 0x80) {
			*out++ = *s;
		} else {
			memcpy(out, "\xef\xbf\xbd", 3);
			out += 3;
		}
	}
	value = json_string(safe);
	free(safe);
	return value;
}

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *command_json(const struct session *session)
{
	json_t *array = json_array();

	for (char *const *arg = session->command; arg && *arg; arg++)
		json_array_append_new(array, text_of(*arg));
	return array;
}

static json_t *host_json(const struct session *session)
{
	return json_pack("{so so si so}", "kernel", text_of(session->kernel), "arch",
	                 text_of(session->arch), "cpus", (int)session->cpus, "perf",
	                 text_of(session->perf_version));
}

static json_t *options_json(const struct session *session)
{
	return json_pack("{sb sb sb so}", "state_detect", session->state_detect, "gil_detect",
	                 session->gil_detect, "one_run", session->one_run, "python_trace",
	                 text_of(session->python_trace));
}

static json_t *python_json(const struct session *session)
{
	json_t *functions = json_array();

	for (size_t i = 0; i < session->function_count; i++) {
		const struct session_function *f = &session->functions[i];

		json_array_append_new(functions,
		                      json_pack("{so so so}", "name", text_of(f->name), "offset",
		                                number(f->offset), "kind", text_of(f->kind)));
	}
	return json_pack("{so so so so sb so}", "executable", text_of(session->executable),
	                 "version", text_of(session->python_version), "implementation",
	                 text_of(session->implementation), "build_id", text_of(session->build_id),
	                 "free_threaded", session->free_threaded, "gil_functions", functions);
}

static json_t *threads_json(const struct session_pass *pass)
{
	json_t *array = json_array();

	for (size_t i = 0; i < pass->thread_count; i++)
		json_array_append_new(array,
		                      json_pack("{so so}", "tid", number(pass->threads[i].tid),
		                                "name", text_of(pass->threads[i].name)));
	return array;
}

static json_t *pass_json(const struct session_pass *pass)
{
	return json_pack(
		"{so so so so so so si si so so so so so so}", "name", text_of(pass->name),
		"perf_data", text_of(pass->perf_data), "python_trace", text_of(pass->python_trace),
		"python_trace_note", text_of(pass->python_trace_note), "code_objects",
		text_of(pass->code_objects), "wakeups", text_of(pass->wakeups), "exit_status",
		pass->exit_status, "signal", pass->signal, "wall_ns", number(pass->wall_ns),
		"start_ns", number(pass->start_ns), "stop_ns", number(pass->stop_ns), "pid",
		number(pass->pid), "tid", number(pass->tid), "threads", threads_json(pass));
}

static json_t *passes_json(const struct session *session)
{
	json_t *array = json_array();

	for (size_t i = 0; i < session->pass_count; i++)
		json_array_append_new(array, pass_json(&session->passes[i]));
	return array;
}

static json_t *notes_json(const struct session *session)
{
	json_t *array = json_array();

	for (size_t i = 0; i < session->note_count; i++) {
		const struct session_note *note = &session->notes[i];

		json_array_append_new(array,
		                      json_pack("{so so so}", "code", text_of(note->code), "count",
		                                number(note->count), "text", text_of(note->text)));
	}
	return array;
}

static json_t *session_json(const struct session *session)
{
	return json_pack("{si ss so so so so so so so so}", "session", SESSION_VERSION, "giltracer",
	                 PACKAGE_VERSION, "created", text_of(session->created), "command",
	                 command_json(session), "cwd", text_of(session->cwd), "host",
	                 host_json(session), "options", options_json(session), "python",
	                 python_json(session), "passes", passes_json(session), "notes",
	                 notes_json(session));
}

int session_write(const struct session *session, const char *dir, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/" SESSION_FILE, dir);
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	json_t *document;

	if (filewriter_open(&w, path, err) < 0)
		return -1;
	document = session_json(session);
	json_dumpf(document, w.out, JSON_INDENT(1));
	json_decref(document);
	fputc('\n', w.out);
	return filewriter_commit(&w, err);
}
