/* SPDX-License-Identifier: MIT */
/* Writes a session to session.json. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "session/session.h"
#include "session/session_file.h"

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
	return json_pack("{sb sb sb sb so}", "state_detect", session->state_detect, "gil_detect",
	                 session->gil_detect, "one_run", session->one_run, "no_children",
	                 session->no_children, "python_trace", text_of(session->python_trace));
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
		"{so so so so so so so so so si si so so so so so so so so so so so so so so}",
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
		number(pass->pid), "tid", number(pass->tid), "gil",
		text_of(session_gil_name(pass->gil)), "threads", threads_json(pass), "slept",
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
