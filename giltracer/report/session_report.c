/* SPDX-License-Identifier: MIT */
/* Writes the reports of a session. */
#include "session/session.h"
#include "report/session_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/filemap.h"
#include "base/log.h"
#include "report/annotate.h"
#include "report/load.h"
#include "report/phrases.h"
#include "report/report.h"
#include "session/privacy.h"
#include "trace/preload/from_preload.h"

static void fill_python(struct recording_python *ret, const struct session *session)
{
	*ret = (struct recording_python){
		.executable = session->executable,
		.version = session->python_version,
		.implementation = session->implementation,
		.build_id = session->build_id,
		.free_threaded = session->free_threaded,
		.gil = session->pass_count ? session_gil_name(session->passes[0].gil) : NULL,
		.functions = session->functions,
		.function_count = session->function_count,
	};
}

static void fill_pass(struct recording_pass *ret, const struct session *session,
                      const struct session_pass *pass, const struct loaded *loaded)
{
	*ret = (struct recording_pass){
		.kind = pass->kind,
		.free_threaded = session->free_threaded,
		.locks_known = loaded->locks_known || session->free_threaded,
		.attached = pass->start_ns && !pass->tid,
		.gil_recorded = pass->kind == PASS_GIL && (pass->perf_data || pass->preload),
		.exit_status = pass->exit_status,
		.wall_ns = pass->wall_ns,
		.quota = pass->quota,
		.model = loaded->model,
		.source = loaded->source,
		.hogs = &loaded->holds.hogs,
		.patterns = &loaded->holds.patterns,
		.slices = loaded->slices,
		.samples = loaded->samples,
		.slices_note = loaded->slices ? NULL : str_get(&loaded->note),
	};
}

static int check_place(const char **seen, size_t *n, const char *path, struct error *err)
{
	if (!path || !strcmp(path, "/dev/null"))
		return 0;
	for (size_t i = 0; i < *n; i++)
		if (!strcmp(seen[i], path))
			return error_set(err, EINVAL, "%s: cannot take two documents",
			                 strcmp(path, "-") ? path : "standard output (-)");
	seen[(*n)++] = path;
	return 0;
}

int report_check_outputs(const struct report_outputs *outputs, struct error *err)
{
	CLEANUP(free) const char **seen = xcalloc(outputs->document_count + 3, sizeof(*seen));
	size_t n = 0;

	if (check_place(seen, &n, outputs->html, err) < 0 ||
	    check_place(seen, &n, outputs->json, err) < 0 ||
	    check_place(seen, &n, outputs->markdown, err) < 0)
		return -1;
	for (size_t i = 0; i < outputs->document_count; i++)
		if (check_place(seen, &n, outputs->documents[i].path, err) < 0)
			return -1;
	return 0;
}

/* A number within bounds; *ret_end is what follows it. */
static int parse_number(double *ret, const char *text, const char **ret_end, double least,
                        double most)
{
	char *end = NULL;
	double value = strspn(text, "0123456789.") ? strtod(text, &end) : 0;

	if (!end || end == text || !(value >= least && value <= most))
		return -1;
	*ret = value;
	*ret_end = end;
	return 0;
}

int without_gil_parse(const struct whatif_options **ret, struct without_gil *w, struct error *err)
{
	const char *at = w->cpus, *end;

	*ret = NULL;
	w->options = (struct whatif_options)WHATIF_OPTIONS_DEFAULT;
	if (w->cost && !w->cpus)
		return error_set(err, EINVAL, "option --without-gil-cost: needs --without-gil");
	if (!w->cpus)
		return 0;
	if (w->cost && (parse_number(&w->options.factor, w->cost, &end, 0.1, 100) < 0 || *end))
		return error_set(err, EINVAL,
		                 "option --without-gil-cost: %s is not a number from 0.1 to 100",
		                 w->cost);
	for (w->options.runs = 0; w->options.runs < WHATIF_FREE_RUNS; at = end + 1) {
		if (parse_number(&w->options.cpus[w->options.runs++], at, &end, 1, 65536) < 0)
			break;
		if (*end && *end != ',')
			break;
		if (!*end) {
			*ret = &w->options;
			return 0;
		}
	}
	return error_set(
		err, EINVAL,
		"option --without-gil: %s is not a list of up to %d numbers of CPUs, such as "
		"2,4,8,64",
		w->cpus, WHATIF_FREE_RUNS);
}

/* Does not check stdout ("-") for errors, because main does. */
static int write_file(const struct analysis *a, const char *path, report_writer *writer,
                      struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };

	if (!strcmp(path, "-"))
		return writer(a, stdout, err);
	if (filewriter_open(&w, path, err) < 0)
		return -1;
	if (writer(a, w.out, err) < 0)
		return error_prefix(err, "%s", path);
	return filewriter_commit(&w, err);
}

/* The runner of GitHub executes "::COMMAND::" also behind blanks, and "##[COMMAND]" anywhere in a line,
 * which names of threads and functions may contain. It stops that until a text that only we know. */
static int write_text(const struct analysis *a, const struct report_outputs *outputs,
                      struct error *err)
{
	const char *actions = getenv("GITHUB_ACTIONS");
	bool guard = outputs->annotations || (actions && *actions);
	unsigned long long token[2];
	int ret;

	if (!guard)
		return report_text(a, outputs->text, err);
	if (getrandom(token, sizeof(token), 0) != (ssize_t)sizeof(token))
		return error_errno(err, "getrandom");
	fprintf(outputs->text, "::stop-commands::giltracer-%016llx%016llx\n", token[0], token[1]);
	ret = report_text(a, outputs->text, err);
	fprintf(outputs->text, "::giltracer-%016llx%016llx::\n", token[0], token[1]);
	return ret;
}

static int write_all(const struct analysis *a, const struct report_outputs *outputs,
                     struct error *err)
{
	struct error too_large = { 0 };

	/* First, because a person waits for the verdict. */
	log_progress(NULL);
	if (outputs->text && write_text(a, outputs, err) < 0)
		return -1;
	if (outputs->text)
		fflush(outputs->text);
	log_progress("writing the report");
	if (outputs->html && write_file(a, outputs->html, report_html, err) < 0) {
		if (err->code != E2BIG)
			return -1;
		/* Continue, because everything else can be written. */
		too_large = *err;
	}
	if (outputs->json && write_file(a, outputs->json, report_json, err) < 0)
		return -1;
	if (outputs->markdown && write_file(a, outputs->markdown, report_markdown, err) < 0)
		return -1;
	for (size_t i = 0; i < outputs->document_count; i++)
		if (write_file(a, outputs->documents[i].path, outputs->documents[i].write, err) < 0)
			return -1;
	log_progress(NULL);
	if (outputs->annotations)
		annotate_github(a, getenv("GITHUB_WORKSPACE"), outputs->annotations);
	if (too_large.code) {
		*err = too_large;
		return -1;
	}
	if (outputs->html && strcmp(outputs->html, "-") != 0)
		log_info("the whole report is in %s: open it in a browser", outputs->html);
	return 0;
}

/**
 * A session that has been read.
 * @privacy: NULL: nothing is hidden
 * @host: in one line; the rest is what its recording borrows
 */
struct opened {
	struct session *session;
	struct privacy *privacy;
	struct loaded *loaded;
	struct sources sources;
	struct recording_pass *passes;
	struct recording_note *notes;
	char *host;
	struct recording recording;
};

const struct recording *opened_recording(const struct opened *opened)
{
	return &opened->recording;
}

void session_close(struct opened *o)
{
	if (!o)
		return;
	if (o->loaded)
		report_unload(o->loaded, o->session->pass_count);
	sources_done(&o->sources);
	free(o->passes);
	free(o->notes);
	free(o->host);
	session_free(o->session);
	privacy_free(o->privacy);
	free(o);
}

static void fill_recording(struct opened *o)
{
	const struct session *session = o->session;

	o->passes = xcalloc(session->pass_count, sizeof(*o->passes));
	o->notes = xcalloc(session->note_count + 1, sizeof(*o->notes));
	o->host = xasprintf(
		"Linux %s, %s, %u CPU%s, perf %s", session->kernel ? session->kernel : "?",
		session->arch ? session->arch : "?", session->cpus, session->cpus == 1 ? "" : "s",
		session->perf_version ? session->perf_version : "?");
	o->recording = (struct recording){
		.version = PACKAGE_VERSION,
		.command = (const char *const *)session->command,
		.created = session->created,
		.host = o->host,
		.cpus = session->cpus,
		.state_detect = session->state_detect,
		.gil_detect = session->gil_detect,
		.one_run = session->one_run,
		.passes = o->passes,
		.pass_count = session->pass_count,
		.notes = o->notes,
		.note_count = session->note_count,
		.sources = &o->sources,
	};
	fill_python(&o->recording.python, session);
	for (size_t i = 0; i < session->pass_count; i++)
		fill_pass(&o->passes[i], session, &session->passes[i], &o->loaded[i]);
	for (size_t i = 0; i < session->note_count; i++)
		o->notes[i] = (struct recording_note){ session->notes[i].code,
			                               session->notes[i].count,
			                               session->notes[i].text };
}

static int load(struct opened *o, const char *dir, struct error *err)
{
	const struct session *session = o->session;
	struct error ignored;

	log_progress("reading the recording");
	if (report_load(&o->loaded, session, dir, o->privacy, err) < 0)
		return -1;
	for (size_t i = 0; i < session->pass_count; i++)
		for (size_t k = 0; k < o->loaded[i].warnings.n; k++)
			log_warn("%s pass: %s", pass_kind_name(session->passes[i].kind),
			         o->loaded[i].warnings.v[k]);
	if (sources_read(&o->sources, dir, &ignored) < 0)
		log_warn("%s: the report shows no lines of the program", ignored.text);
	if (o->privacy)
		privacy_of_sources(o->privacy, &o->sources);
	fill_recording(o);
	return 0;
}

static void add_name(struct session_pass *pass, const char *line)
{
	char *end;
	unsigned long pid = strtoul(line, &end, 10), tid = strtoul(end, &end, 10);

	if (!pid || pid > INT32_MAX || !tid || tid > INT32_MAX || *end != ' ')
		return;
	pass->threads[pass->thread_count++] = (struct session_thread){ (uint32_t)pid, (uint32_t)tid,
		                                                       xstrdup(end + 1) };
}

#define NAMES_MAX_BYTES (64 << 20)

/* Lines "PID TID NAME", which whoever has recorded did not live to put into the session. */
static void read_names(struct session_pass *pass, const char *path)
{
	CLEANUP(free) char *text = NULL;
	char *line, *rest;
	struct error ignored;
	size_t lines = 1;

	if (file_read_member(&text, NULL, path, NAMES_MAX_BYTES, &ignored) < 0)
		return;
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	pass->threads = xreallocarray(pass->threads, pass->thread_count + lines,
	                              sizeof(*pass->threads));
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		add_name(pass, line);
}

static void find_names(struct session *session, const char *dir)
{
	struct session_pass *pass = session->passes;
	CLEANUP(free) char *children = xasprintf("%s/gil.children", dir);
	CLEANUP(free) char *names = NULL;

	if (!session->pass_count || pass->thread_count || !pass->preload)
		return;
	names = xasprintf("%s/%s/%s", dir, pass->preload, from_preload_names);
	read_names(pass, names);
	read_names(pass, children);
}

/* What a flight recorder has recorded is reported as of a program that was already running. */
static int cut_flight(struct session *session, const char *dir, struct error *err)
{
	struct session_pass *pass = session->passes;
	CLEANUP(free) char *folder = NULL;
	CLEANUP(free) char *text = NULL;
	uint64_t start_ns, end_ns;

	if (!session->flight_ns || !session->pass_count || !pass->preload)
		return 0;
	folder = xasprintf("%s/%s", dir, pass->preload);
	if (from_preload_window(&start_ns, &end_ns, folder, session->flight_ns, pass->stop_ns,
	                        err) < 0)
		return -1;
	if (start_ns <= pass->start_ns)
		return 0;
	if (start_ns >= end_ns)
		return error_set(err, ENODATA,
		                 "%s: newer events have replaced all of the recording (--max-size)",
		                 dir);
	text = xasprintf("the report is of the last %.3g s%s", (double)(end_ns - start_ns) / 1e9,
	                 end_ns - start_ns < session->flight_ns
	                         ? ": there was no room for more (--max-size)"
	                         : " (--flight)");
	session_add_note(session, "flight", 1, text);
	pass->start_ns = start_ns;
	pass->stop_ns = end_ns;
	pass->wall_ns = end_ns - start_ns;
	pass->tid = 0;
	return 0;
}

/* Before anything else is read, so that nothing that must be hidden gets further. */
static void hide(struct opened *o)
{
	o->privacy = privacy_new();
	privacy_of_session(o->privacy, o->session);
	session_add_note(o->session, "confidential", 1, phrase(PHRASE_confidential));
}

int session_open(struct opened **ret, const char *dir, bool confidential, struct error *err)
{
	struct opened *o = xcalloc(1, sizeof(*o));
	int status = session_read(&o->session, dir, err);

	if (status == 0) {
		find_names(o->session, dir);
		status = cut_flight(o->session, dir, err);
	}
	if (status == 0) {
		if (confidential)
			hide(o);
		status = o->session->pass_count
		                 ? load(o, dir, err)
		                 : error_set(err, ENODATA, "%s: the session has no recording", dir);
	}
	log_progress(NULL);
	if (status == 0)
		*ret = o;
	else
		session_close(o);
	return status;
}

int report_session(const char *dir, const struct report_outputs *outputs, struct error *err)
{
	struct opened *opened;
	struct analysis *analysis;
	int status;

	if (session_open(&opened, dir, outputs->confidential, err) < 0)
		return -1;
	opened->recording.without_gil = outputs->without_gil;
	analysis = analysis_new(&opened->recording);
	if (outputs->summary)
		summary_init(outputs->summary, analysis);
	status = write_all(analysis, outputs, err);
	analysis_free(analysis);
	if (status == 0)
		status = filemap_check_all(err); /* names are read as they are needed */
	session_close(opened);
	log_progress(NULL);
	return status;
}
