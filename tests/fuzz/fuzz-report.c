/* SPDX-License-Identifier: MIT */
/* A session folder becomes the page, the table, the document and folded stacks, within a budget
 * that depends on the size of the recording. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "export/export.h"
#include "report/session_report.h"

#include "budget.h"
#include "session-bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/giltracer-fuzz-XXXXXX";

static void write_file(const char *name, const void *data, size_t size)
{
	CLEANUP(free) char *path = xasprintf("%s/%s", dir, name);
	FILE *file = fopen(path, "w");

	if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
		abort();
}

static void write_session(uint8_t options, const struct session_bytes *s)
{
	CLEANUP(free)
	char *text = xasprintf(
		"{\"session\": 1, \"command\": [\"x.py\"], \"host\": {\"cpus\": 2}, \"options\": "
		"{\"gil_detect\": true, \"state_detect\": true}, \"python\": {\"version\": "
		"\"3.11.2\", \"free_threaded\": %s, \"releases_known\": %s}, \"passes\": [{"
		"\"name\": \"%s\", \"perf_data\": \"perf.data\", %s %s \"pid\": %d, \"tid\": %d, "
		"\"threads\": [{\"tid\": %d, \"name\": \"one\"}]}]}",
		options & 1 ? "true" : "false", options & 2 ? "true" : "false",
		options & 4 ? "stacks" : "gil",
		s->calls.len ? "\"python_trace\": \"calls.json\"," : "",
		options & 8 ? "\"start_ns\": 1000000, \"stop_ns\": 50000000," : "", PROGRAM,
		PROGRAM, PROGRAM + 1);

	write_file("session.json", text, strlen(text));
	write_file("perf.data", s->records.s, s->records.len);
	write_file("calls.json", str_get(&s->calls), s->calls.len);
}

static void report(const uint8_t *data, size_t size)
{
	const struct report_document document = {
		export_formats[data[0] % EXPORT_FORMAT_COUNT].write,
		"/dev/null",
	};
	FILE *text = fopen("/dev/null", "w");
	struct summary summary = { 0 };
	const struct report_outputs outputs = {
		.html = "/dev/null",
		.json = "/dev/null",
		.summary = &summary,
		.text = text,
		.documents = &document,
		.document_count = data[0] & 16 ? 1 : 0,
	};
	struct error err = { 0 };

	(void)size;
	/* The folder is valid, but it may have too many threads, or nothing to export. */
	if (report_session(dir, &outputs, &err) < 0 && err.code != E2BIG && err.code != ENODATA) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	summary_done(&summary);
	fclose(text);
}

static void remove_folder(void)
{
	struct error ignored;

	file_remove_tree(dir, &ignored);
}

/* The template of the page is in the build tree, two folders above this program. */
static void setup(void)
{
	char exe[PATH_MAX], *slash;
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	CLEANUP(free) char *share = NULL;

	if (len <= 0 || !mkdtemp(dir))
		abort();
	atexit(remove_folder);
	exe[len] = '\0';
	slash = strrchr(exe, '/');
	share = xasprintf("%.*s/../../share", (int)(slash - exe), exe);
	setenv("GILTRACER_DATADIR", share, 1);
	log_set_level(LOG_ERROR);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool ready;
	struct session_bytes s;

	if (!ready)
		setup();
	ready = true;
	if (!size)
		return 0;
	session_bytes_make(&s, data + 1, size - 1);
	write_session(data[0], &s);
	/* With thousands of threads, the report may be much longer than the input. */
	budget_run(report, data, s.records.len + s.calls.len);
	session_bytes_done(&s);
	return 0;
}
