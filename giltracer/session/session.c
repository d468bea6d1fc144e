/* SPDX-License-Identifier: MIT */
/* A session in memory. */
#include "session/session.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"

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
		copy[i] = (struct session_thread){ pass->threads[i].pid, pass->threads[i].tid,
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
	copy->perf_data = dup_or_null(pass->perf_data);
	copy->preload = dup_or_null(pass->preload);
	copy->python_trace = dup_or_null(pass->python_trace);
	copy->python_trace_note = dup_or_null(pass->python_trace_note);
	copy->code_objects = dup_or_null(pass->code_objects);
	copy->wakeups = dup_or_null(pass->wakeups);
	copy->samples = dup_or_null(pass->samples);
	copy->switches = dup_or_null(pass->switches);
	copy->threads = copy_threads(pass);
	copy->slept = xcalloc(pass->slept_count, sizeof(*copy->slept));
	for (size_t i = 0; i < pass->slept_count; i++)
		copy->slept[i] = pass->slept[i];
}

void session_drop_pass(struct session *session)
{
	struct session_pass *pass = &session->passes[--session->pass_count];

	free(pass->perf_data);
	free(pass->python_trace);
	free(pass->python_trace_note);
	free(pass->code_objects);
	free(pass->wakeups);
	free(pass->switches);
	free(pass->preload);
	free(pass->samples);
	session_threads_free(pass->threads, pass->thread_count);
	free(pass->slept);
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
	while (session->pass_count)
		session_drop_pass(session);
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
	free(session->root);
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

const char *session_gil_name(enum session_gil gil)
{
	static const char *const names[] = {
		[SESSION_GIL_OFF] = "off",
		[SESSION_GIL_ON] = "on",
		[SESSION_GIL_FORCED] = "forced",
	};

	return names[gil];
}

enum session_gil session_gil_of(const char *name)
{
	enum session_gil gil = SESSION_GIL_FORCED;

	while (gil && strcmp(session_gil_name(gil), name) != 0)
		gil--;
	return gil;
}

/* ---- session.json -> session: the document is untrusted, every type and every range is checked */

/* A document of ours has a few KiB, but a command line may have 2 MiB (ARG_MAX). */
#define SESSION_MAX (8 << 20)

/* In memory, an object of three bytes takes 200 bytes. Most objects are thread names. */
#define OBJECTS_MAX   300000
#define FUNCTIONS_MAX 1000
#define PASSES_MAX    2

/* One object of the document. If a key has the wrong type, bad is set and err describes the first
 * such key. */
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

static void missing(const struct reader *r, const char *key, const char *more)
{
	if (!*r->bad)
		error_set(r->err, EINVAL, "%s%s: missing%s", r->where, key, more);
	*r->bad = true;
}

/* NULL if the key is absent or null, which mean the same. */
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

/* An absent object is read as an object without keys. */
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

/* An array of objects, each read into an element of size bytes; caller frees. */
static void *read_array(const struct reader *r, const char *key, size_t size, size_t max, size_t *n,
                        void (*read)(void *element, const struct reader *))
{
	json_t *array = get_array(r, key);
	size_t there = json_array_size(array);
	char *elements = xcalloc(there, size), where[64];

	*n = there < max ? there : max;
	if (there > max) {
		snprintf(where, sizeof(where), "an array of at most %zu", max);
		wrong(r, key, where);
	}
	for (size_t i = 0; i < *n; i++) {
		struct reader object = element(r, array, i, where, key);

		read(elements + i * size, &object);
	}
	return elements;
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

static void read_function(void *ret, const struct reader *r)
{
	*(struct gil_function *)ret = (struct gil_function){
		.name = get_text(r, "name"),
		.kind = get_text(r, "kind"),
		.offset = get_number(r, "offset", INT64_MAX),
	};
	if (!((struct gil_function *)ret)->name)
		missing(r, "name", "");
}

/* The file is opened below the session folder, and its path must not lead out of it. */
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

static void read_thread(void *ret, const struct reader *r)
{
	struct session_thread *thread = ret;

	thread->pid = (uint32_t)get_number(r, "pid", UINT32_MAX);
	thread->tid = (uint32_t)get_number(r, "tid", UINT32_MAX);
	thread->name = get_text(r, "name");
	if (!thread->name)
		missing(r, "name", "");
}

static void read_slept(void *ret, const struct reader *r)
{
	CLEANUP(free) char *state = get_text(r, "state");

	if (!state || strlen(state) != 1 || !strchr("SDT", *state))
		wrong(r, "state", "S, D or T");
	*(struct session_slept *)ret = (struct session_slept){
		.pid = (uint32_t)get_number(r, "pid", UINT32_MAX),
		.tid = (uint32_t)get_number(r, "tid", UINT32_MAX),
		.state = state ? *state : 'S',
		.no_gil = get_bool(r, "no_gil"),
	};
}

static enum session_gil get_gil(const struct reader *r)
{
	CLEANUP(free) char *name = get_text(r, "gil");
	enum session_gil gil = name ? session_gil_of(name) : SESSION_GIL_UNKNOWN;

	if (name && gil == SESSION_GIL_UNKNOWN)
		wrong(r, "gil", "on, off or forced");
	return gil;
}

static enum pass_kind get_kind(const struct reader *r)
{
	CLEANUP(free) char *name = get_text(r, "name");

	if (name && !strcmp(name, pass_kind_name(PASS_STACKS)))
		return PASS_STACKS;
	if (!name || strcmp(name, pass_kind_name(PASS_GIL)) != 0)
		wrong(r, "name", "gil or stacks");
	return PASS_GIL;
}

static struct cpu_quota read_quota(const struct reader *pass)
{
	struct reader r = get_object(pass, "quota", "quota.");

	return (struct cpu_quota){
		.quota_us = get_number(&r, "quota_us", UINT32_MAX),
		.period_us = get_number(&r, "period_us", UINT32_MAX),
		.periods = get_number(&r, "periods", INT64_MAX),
		.throttled = get_number(&r, "throttled", INT64_MAX),
	};
}

static void read_suspension(void *ret, const struct reader *r)
{
	*(struct suspension *)ret = (struct suspension){
		.from_ns = get_number(r, "from_ns", INT64_MAX),
		.to_ns = get_number(r, "to_ns", INT64_MAX),
	};
}

static void read_pass(void *ret, const struct reader *r)
{
	struct session_pass *pass = ret;
	CLEANUP(free) struct suspension *suspended = NULL;

	*pass = (struct session_pass){
		.kind = get_kind(r),
		.perf_data = get_file(r, "perf_data"),
		.preload = get_file(r, "preload"),
		.python_trace = get_file(r, "python_trace"),
		.python_trace_note = get_text(r, "python_trace_note"),
		.code_objects = get_file(r, "code_objects"),
		.wakeups = get_file(r, "wakeups"),
		.samples = get_file(r, "samples"),
		.switches = get_file(r, "switches"),
		.exit_status = (int)get_number(r, "exit_status", 255),
		.signal = (int)get_number(r, "signal", 127),
		.wall_ns = get_number(r, "wall_ns", INT64_MAX),
		.start_ns = get_number(r, "start_ns", INT64_MAX),
		.stop_ns = get_number(r, "stop_ns", INT64_MAX),
		.handover_ns = get_number(r, "handover_ns", INT64_MAX),
		.uprobes_end_ns = get_number(r, "uprobes_end_ns", INT64_MAX),
		.turn_ns = get_number(r, "turn_ns", INT64_MAX),
		.stolen_ns = get_number(r, "stolen_ns", INT64_MAX),
		.quota = read_quota(r),
		.pid = (uint32_t)get_number(r, "pid", UINT32_MAX),
		.tid = (uint32_t)get_number(r, "tid", UINT32_MAX),
		.holder_tid = (uint32_t)get_number(r, "holder_tid", UINT32_MAX),
		.gil = get_gil(r),
	};
	suspended = read_array(r, "suspended", sizeof(*suspended), SUSPENSIONS_MAX,
	                       &pass->suspended.n, read_suspension);
	for (size_t i = 0; i < pass->suspended.n; i++)
		pass->suspended.v[i] = suspended[i];
	pass->threads = read_array(r, "threads", sizeof(*pass->threads), OBJECTS_MAX,
	                           &pass->thread_count, read_thread);
	pass->slept = read_array(r, "slept", sizeof(*pass->slept), OBJECTS_MAX, &pass->slept_count,
	                         read_slept);
	if (!pass->perf_data && !pass->preload && !pass->samples)
		missing(r, "perf_data", ", and so are preload and samples");
}

static void read_note(void *ret, const struct reader *r)
{
	struct session_note *note = ret;

	*note = (struct session_note){
		.code = get_text(r, "code"),
		.text = get_text(r, "text"),
		.count = get_number(r, "count", INT64_MAX),
	};
	if (!note->code || !note->text)
		missing(r, note->code ? "text" : "code", "");
}

static void read_python(struct session *session, const struct reader *top)
{
	struct reader r = get_object(top, "python", "python.");

	session->executable = get_text(&r, "executable");
	session->python_version = get_text(&r, "version");
	session->implementation = get_text(&r, "implementation");
	session->build_id = get_text(&r, "build_id");
	session->free_threaded = get_bool(&r, "free_threaded");
	session->releases_known = get_bool(&r, "releases_known");
	session->functions = read_array(&r, "gil_functions", sizeof(*session->functions),
	                                FUNCTIONS_MAX, &session->function_count, read_function);
}

static void read_top(struct session *session, const struct reader *top)
{
	struct reader host = get_object(top, "host", "host.");
	struct reader options = get_object(top, "options", "options.");

	session->created = get_text(top, "created");
	session->cwd = get_text(top, "cwd");
	session->root = get_text(top, "root");
	session->kernel = get_text(&host, "kernel");
	session->arch = get_text(&host, "arch");
	session->perf_version = get_text(&host, "perf");
	session->cpus = (unsigned)get_number(&host, "cpus", 1 << 20);
	session->state_detect = get_bool(&options, "state_detect");
	session->gil_detect = get_bool(&options, "gil_detect");
	session->one_run = get_bool(&options, "one_run");
	session->no_children = get_bool(&options, "no_children");
	session->python_trace = get_text(&options, "python_trace");
	session->flight_ns = get_number(&options, "flight_ns", INT64_MAX);
	read_command(session, top);
	read_python(session, top);
	session->passes = read_array(top, "passes", sizeof(*session->passes), PASSES_MAX,
	                             &session->pass_count, read_pass);
	if (session->pass_count == 2 && session->passes[0].kind == session->passes[1].kind)
		wrong(top, "passes", "of different names");
	session->notes = read_array(top, "notes", sizeof(*session->notes), OBJECTS_MAX,
	                            &session->note_count, read_note);
}

/* Brackets in strings are not counted: arguments of the program may contain any. */
static bool has_too_many(const char *text, size_t len)
{
	size_t n = 0;
	bool quoted = false;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			quoted = !quoted;
		else if (quoted && text[i] == '\\')
			i++;
		else
			n += !quoted && (text[i] == '{' || text[i] == '[');
	}
	return n > OBJECTS_MAX;
}

int session_parse(struct session **ret, const char *text, size_t len, struct error *err)
{
	struct session *session;
	json_error_t why;
	json_t *document;
	bool bad = false;
	struct reader top = { NULL, "", err, &bad };
	uint64_t version;

	if (has_too_many(text, len))
		return error_set(err, EFBIG, "more than %d objects", OBJECTS_MAX);
	top.object = document = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!document)
		return error_set(err, EINVAL, "line %d: %s", why.line, why.text);
	version = get_number(&top, "session", INT64_MAX);
	if (!json_is_object(document) || (!bad && version == 0)) {
		json_decref(document);
		return error_set(err, EINVAL, "not a giltracer session");
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

	if (file_read_member(&text, &len, path, SESSION_MAX, err) < 0)
		return err->code == ENOENT
		               ? error_set(err, ENOENT,
		                           "%s: not a session folder (no " SESSION_FILE ")", dir)
		               : -1;
	if (session_parse(ret, text, len, err) < 0)
		return error_prefix(err, "%s", path);
	return 0;
}

/* ---- session -> session.json */

/* Paths and arguments may contain any bytes. If a text is not UTF-8, each byte of it that is not
 * ASCII becomes U+FFFD. */
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

/* Sets *array to NULL if there is no memory for value, or was none for the array. */
static void append(json_t **array, json_t *value)
{
	if (json_array_append_new(*array, value) == 0)
		return;
	json_decref(*array);
	*array = NULL;
}

static json_t *command_json(const struct session *session)
{
	json_t *array = json_array();

	for (char *const *arg = session->command; arg && *arg; arg++)
		append(&array, text_of(*arg));
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
	return json_pack("{sb sb sb sb so so}", "state_detect", session->state_detect, "gil_detect",
	                 session->gil_detect, "one_run", session->one_run, "no_children",
	                 session->no_children, "python_trace", text_of(session->python_trace),
	                 "flight_ns", number(session->flight_ns));
}

static json_t *python_json(const struct session *session)
{
	json_t *functions = json_array();

	for (size_t i = 0; i < session->function_count; i++) {
		const struct gil_function *f = &session->functions[i];

		append(&functions, json_pack("{so so so}", "name", text_of(f->name), "offset",
		                             number(f->offset), "kind", text_of(f->kind)));
	}
	return json_pack("{so so so so sb sb so}", "executable", text_of(session->executable),
	                 "version", text_of(session->python_version), "implementation",
	                 text_of(session->implementation), "build_id", text_of(session->build_id),
	                 "free_threaded", session->free_threaded, "releases_known",
	                 session->releases_known, "gil_functions", functions);
}

static json_t *threads_json(const struct session_pass *pass)
{
	json_t *array = json_array();

	for (size_t i = 0; i < pass->thread_count; i++)
		append(&array, json_pack("{so so so}", "pid", number(pass->threads[i].pid), "tid",
		                         number(pass->threads[i].tid), "name",
		                         text_of(pass->threads[i].name)));
	return array;
}

static json_t *slept_json(const struct session_pass *pass)
{
	json_t *array = json_array();

	for (size_t i = 0; i < pass->slept_count; i++) {
		const struct session_slept *s = &pass->slept[i];

		append(&array,
		       json_pack("{so so ss# sb}", "pid", number(s->pid), "tid", number(s->tid),
		                 "state", &s->state, 1, "no_gil", s->no_gil));
	}
	return array;
}

static json_t *quota_json(const struct cpu_quota *quota)
{
	return json_pack("{so so so so}", "quota_us", number(quota->quota_us), "period_us",
	                 number(quota->period_us), "periods", number(quota->periods), "throttled",
	                 number(quota->throttled));
}

static json_t *suspended_json(const struct suspensions *suspended)
{
	json_t *array = json_array();

	for (size_t i = 0; i < suspended->n; i++)
		append(&array, json_pack("{so so}", "from_ns", number(suspended->v[i].from_ns),
		                         "to_ns", number(suspended->v[i].to_ns)));
	return array;
}

static json_t *pass_json(const struct session_pass *pass)
{
	return json_pack(
		"{so so so so so so so so so si si so so so so so so so so so so so so so so so}",
		"name", text_of(pass_kind_name(pass->kind)), "perf_data", text_of(pass->perf_data),
		"preload", text_of(pass->preload), "python_trace", text_of(pass->python_trace),
		"python_trace_note", text_of(pass->python_trace_note), "code_objects",
		text_of(pass->code_objects), "wakeups", text_of(pass->wakeups), "samples",
		text_of(pass->samples), "switches", text_of(pass->switches), "exit_status",
		pass->exit_status, "signal", pass->signal, "wall_ns", number(pass->wall_ns),
		"start_ns", number(pass->start_ns), "stop_ns", number(pass->stop_ns), "handover_ns",
		number(pass->handover_ns), "uprobes_end_ns", number(pass->uprobes_end_ns),
		"turn_ns", number(pass->turn_ns), "stolen_ns", number(pass->stolen_ns), "quota",
		quota_json(&pass->quota), "suspended", suspended_json(&pass->suspended), "pid",
		number(pass->pid), "tid", number(pass->tid), "holder_tid", number(pass->holder_tid),
		"gil", text_of(session_gil_name(pass->gil)), "threads", threads_json(pass), "slept",
		slept_json(pass));
}

static json_t *passes_json(const struct session *session)
{
	json_t *array = json_array();

	for (size_t i = 0; i < session->pass_count; i++)
		append(&array, pass_json(&session->passes[i]));
	return array;
}

static json_t *notes_json(const struct session *session)
{
	json_t *array = json_array();

	for (size_t i = 0; i < session->note_count; i++) {
		const struct session_note *note = &session->notes[i];

		append(&array, json_pack("{so so so}", "code", text_of(note->code), "count",
		                         number(note->count), "text", text_of(note->text)));
	}
	return array;
}

static json_t *session_json(const struct session *session)
{
	return json_pack("{si ss so so so so so so so so so}", "session", SESSION_VERSION,
	                 "giltracer", PACKAGE_VERSION, "created", text_of(session->created),
	                 "command", command_json(session), "cwd", text_of(session->cwd), "root",
	                 text_of(session->root), "host", host_json(session), "options",
	                 options_json(session), "python", python_json(session), "passes",
	                 passes_json(session), "notes", notes_json(session));
}

int session_write(const struct session *session, const char *dir, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/" SESSION_FILE, dir);
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	json_auto_t *document = session_json(session);

	if (!document)
		return error_set(err, ENOMEM, "%s: no memory", path);
	if (filewriter_open(&w, path, err) < 0)
		return -1;
	/* filewriter_commit reports errors of the stream. */
	if (json_dumpf(document, w.out, JSON_INDENT(1)) < 0 && !ferror(w.out))
		return error_set(err, ENOMEM, "%s: no memory", path);
	fputc('\n', w.out);
	return filewriter_commit(&w, err);
}

/* ---- copies of lines of the program's files */

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
	json_int_t indent = json_integer_value(json_object_get(entry, "indent"));

	if (!file || !text || line <= 0 || line > UINT32_MAX || strlen(text) > SOURCES_TEXT_MAX ||
	    ret->n >= SOURCES_MAX)
		return error_set(err, EINVAL, "not a list of source lines");
	*vec_push(ret) = (struct source_line){
		.file = xstrdup(file),
		.text = xstrdup(text),
		.line = (uint32_t)line,
		.indent = indent > 0 && indent <= SOURCES_TEXT_MAX ? (uint32_t)indent : 0,
		.made = made > 0 && made <= UINT32_MAX ? (uint32_t)made : 0,
		.of = copy_member(entry, "of"),
		.lock = copy_member(entry, "lock"),
		.kind = copy_member(entry, "kind")
	};
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
		if (entry && s->indent)
			json_object_set_new(entry, "indent", json_integer(s->indent));
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
