/* SPDX-License-Identifier: MIT */
/* A session in memory. */
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

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
