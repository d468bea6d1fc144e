/* SPDX-License-Identifier: MIT */
/* Reads a session folder, feeds the models, and has the reports written. */
#include "report-session.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/session.h"
#include "model/model.h"
#include "report/report.h"
#include "trace/from_perf.h"

/* What a pass is made of. */
struct loaded {
	struct source *source;
	struct model *model;
	struct slices *slices;
	char note[640]; /* why there are no slices */
};

static void loaded_done(struct loaded *loaded)
{
	model_free(loaded->model);
	source_close(loaded->source);
}

static char *file_in(const char *dir, const char *name)
{
	return *name == '/' ? xstrdup(name) : xasprintf("%s/%s", dir, name);
}

/* A Python-side trace that cannot be read costs its part of the report only. */
static void load_slices(struct loaded *loaded, const struct session_pass *pass, const char *dir)
{
	CLEANUP(free) char *path = NULL;

	if (!pass->python_trace) {
		snprintf(loaded->note, sizeof(loaded->note), "%s",
		         pass->python_trace_note ? pass->python_trace_note : "");
		return;
	}
	path = file_in(dir, pass->python_trace);
	snprintf(loaded->note, sizeof(loaded->note), "the Python-side trace %s is not read", path);
}

static int feed(struct loaded *loaded, struct error *err)
{
	struct event ev;
	int more;

	while ((more = source_next(loaded->source, &ev, err)) > 0)
		model_feed(loaded->model, &ev);
	return more;
}

/* What only the source knows about the recording. */
static void add_source_caveats(struct model *model, const struct source_stats *stats)
{
	model->caveats[CAVEAT_UNKNOWN_RECORDS] += stats->unknown_records;
	model->caveats[CAVEAT_TRUNCATED] += stats->truncated_at != 0;
	if (!model->caveats[CAVEAT_UNORDERED])
		model->caveats[CAVEAT_UNORDERED] = stats->unordered;
}

static void finish(struct loaded *loaded, const char *name)
{
	struct error err;

	model_finish(loaded->model);
	add_source_caveats(loaded->model, &loaded->source->stats);
	if (loaded->source->stats.truncated_at)
		log_warn("%s pass: the recording is cut at %#" PRIx64 ": %s", name,
		         loaded->source->stats.truncated_at, loaded->source->stats.truncated_text);
	if (model_check(loaded->model, &err) < 0) {
		loaded->model->caveats[CAVEAT_BROKEN_IDENTITY]++;
		log_warn("%s pass: %s: numbers may be wrong, please report this", name, err.text);
	}
}

static int load(struct loaded *loaded, const struct session_pass *pass, const char *dir,
                struct error *err)
{
	const struct from_perf_options from = { .unwind = !strcmp(pass->name, "stacks") };
	CLEANUP(free) char *path = file_in(dir, pass->perf_data);
	struct model_options options = {
		.start_ns = pass->start_ns,
		.end_ns = pass->stop_ns,
		.start_pid = pass->pid,
		.start_tid = pass->tid,
	};

	log_progress("reading the %s pass", pass->name);
	if (from_perf_open(&loaded->source, path, &from, err) < 0)
		return -1;
	options.names = loaded->source->names;
	options.stacks = loaded->source->stacks;
	loaded->model = model_new(&options);
	if (feed(loaded, err) < 0)
		return error_prefix(err, "%s", path);
	finish(loaded, pass->name);
	load_slices(loaded, pass, dir);
	return 0;
}

static void fill_python(struct report_python *ret, const struct session *session,
                        struct report_gil_function *functions)
{
	for (size_t i = 0; i < session->function_count; i++)
		functions[i] = (struct report_gil_function){
			.name = session->functions[i].name,
			.offset = session->functions[i].offset,
			.kind = session->functions[i].kind,
		};
	*ret = (struct report_python){
		.executable = session->executable,
		.version = session->python_version,
		.implementation = session->implementation,
		.build_id = session->build_id,
		.free_threaded = session->free_threaded,
		.functions = functions,
		.function_count = session->function_count,
	};
}

static void fill_pass(struct report_pass *ret, const struct session_pass *pass,
                      const struct loaded *loaded)
{
	*ret = (struct report_pass){
		.name = pass->name,
		.exit_status = pass->exit_status,
		.wall_ns = pass->wall_ns,
		.model = loaded->model,
		.source = loaded->source,
		.slices = loaded->slices,
		.slices_note = loaded->slices ? NULL : loaded->note,
	};
}

static int write_on_gil(const struct report *report, FILE *out, struct error *err)
{
	return report_folded(report, FOLDED_ON_GIL, out, err);
}

static int write_off_gil(const struct report *report, FILE *out, struct error *err)
{
	return report_folded(report, FOLDED_OFF_GIL, out, err);
}

static int write_off_cpu(const struct report *report, FILE *out, struct error *err)
{
	return report_folded(report, FOLDED_OFF_CPU, out, err);
}

static int (*const folded_writers[])(const struct report *, FILE *, struct error *) = {
	[FOLDED_ON_GIL] = write_on_gil,
	[FOLDED_OFF_GIL] = write_off_gil,
	[FOLDED_OFF_CPU] = write_off_cpu,
};

/* "-" is stdout, whose errors main looks for. */
static int write_file(const struct report *report, const char *path,
                      int (*writer)(const struct report *, FILE *, struct error *),
                      struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };

	if (!strcmp(path, "-"))
		return writer(report, stdout, err);
	if (filewriter_open(&w, path, err) < 0)
		return -1;
	if (writer(report, w.out, err) < 0)
		return error_prefix(err, "%s", path);
	return filewriter_commit(&w, err);
}

static int write_all(const struct report *report, const struct report_outputs *outputs,
                     struct error *err)
{
	log_progress("writing the report");
	if (outputs->html && write_file(report, outputs->html, report_html, err) < 0)
		return -1;
	if (outputs->json && write_file(report, outputs->json, report_json, err) < 0)
		return -1;
	for (size_t i = 0; i < outputs->folded_count; i++)
		if (write_file(report, outputs->folded[i].path,
		               folded_writers[outputs->folded[i].kind], err) < 0)
			return -1;
	log_progress(NULL);
	return outputs->text ? report_text(report, outputs->text, err) : 0;
}

static int report_loaded(const struct session *session, const struct loaded *loaded,
                         const struct report_outputs *outputs, struct error *err)
{
	CLEANUP(free)
	struct report_gil_function *functions = xcalloc(session->function_count + 1,
	                                                sizeof(*functions));
	CLEANUP(free) struct report_pass *passes = xcalloc(session->pass_count, sizeof(*passes));
	CLEANUP(free) struct report_note *notes = xcalloc(session->note_count + 1, sizeof(*notes));
	CLEANUP(free)
	char *host = xasprintf(
		"Linux %s, %s, %u CPU%s, perf %s", session->kernel ? session->kernel : "?",
		session->arch ? session->arch : "?", session->cpus, session->cpus == 1 ? "" : "s",
		session->perf_version ? session->perf_version : "?");
	struct report report = {
		.version = PACKAGE_VERSION,
		.command = (const char *const *)session->command,
		.created = session->created,
		.host = host,
		.cpus = session->cpus,
		.state_detect = session->state_detect,
		.gil_detect = session->gil_detect,
		.one_run = session->one_run,
		.passes = passes,
		.pass_count = session->pass_count,
		.notes = notes,
		.note_count = session->note_count,
	};

	fill_python(&report.python, session, functions);
	for (size_t i = 0; i < session->pass_count; i++)
		fill_pass(&passes[i], &session->passes[i], &loaded[i]);
	for (size_t i = 0; i < session->note_count; i++)
		notes[i] = (struct report_note){ session->notes[i].code, session->notes[i].count,
			                         session->notes[i].text };
	return write_all(&report, outputs, err);
}

static int report_read(const struct session *session, const char *dir,
                       const struct report_outputs *outputs, struct error *err)
{
	CLEANUP(free) struct loaded *loaded = xcalloc(session->pass_count, sizeof(*loaded));
	int status = 0;

	for (size_t i = 0; i < session->pass_count && status == 0; i++)
		status = load(&loaded[i], &session->passes[i], dir, err);
	if (status == 0)
		status = report_loaded(session, loaded, outputs, err);
	for (size_t i = 0; i < session->pass_count; i++)
		loaded_done(&loaded[i]);
	return status;
}

int report_session(const char *dir, const struct report_outputs *outputs, struct error *err)
{
	struct session *session;
	int status;

	if (session_read(&session, dir, err) < 0)
		return -1;
	status = session->pass_count
	                 ? report_read(session, dir, outputs, err)
	                 : error_set(err, ENODATA, "%s: the session has no recording", dir);
	session_free(session);
	log_progress(NULL);
	return status;
}
