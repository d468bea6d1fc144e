/* SPDX-License-Identifier: MIT */
/* Which events of a recording become part of the report. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model/model.h"
#include "report/load.h"

#include "perfbuild.h"
#include "tap.h"

#define COMMON                                                                          \
	"format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"

enum { ID_TAKE = 1, ID_SWITCH, ID_WAKING };

static void put_event(struct str *b, uint64_t config, uint64_t id)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT,
		                        .config = config,
		                        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
		                                       PERF_SAMPLE_ID | PERF_SAMPLE_CPU |
		                                       PERF_SAMPLE_RAW,
		                        .sample_id_all = 1 };

	put_attr(b, attr, id);
}

static void put_start(struct str *b)
{
	put_pipe_header(b);
	put_event(b, 101, ID_TAKE);
	put_event(b, 102, ID_SWITCH);
	put_event(b, 103, ID_WAKING);
	put_format(b, "giltracer_x",
	           "name: take_gil_1\nID: 101\n" COMMON
	           "\tfield:unsigned long gil;\toffset:8;\tsize:8;\tsigned:0;\n");
	put_format(b, "sched",
	           "name: sched_switch\nID: 102\n" COMMON
	           "\tfield:long prev_state;\toffset:8;\tsize:8;\tsigned:1;\n"
	           "\tfield:pid_t next_pid;\toffset:16;\tsize:4;\tsigned:1;\n");
	put_format(b, "sched",
	           "name: sched_waking\nID: 103\n" COMMON
	           "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n");
}

/* On CPU 1; every thread is the main thread of its process. */
static void put_sample(struct str *b, uint64_t id, uint64_t time, uint32_t tid, uint64_t x,
                       uint32_t y)
{
	size_t at = put_begin(b, PERF_RECORD_SAMPLE, 0);

	put32(b, tid);
	put32(b, tid);
	put64(b, time);
	put64(b, id);
	put32(b, 1);
	put32(b, 0);
	put32(b, 20);
	put32(b, 0);
	put32(b, tid);
	put64(b, x);
	put32(b, y);
	put_end(b, at);
}

static void put_lost(struct str *b, uint64_t count, uint64_t time, uint32_t tid, uint32_t cpu)
{
	size_t at = put_begin(b, PERF_RECORD_LOST, 0);

	put64(b, ID_TAKE);
	put64(b, count);
	put32(b, tid);
	put32(b, tid);
	put64(b, time);
	put64(b, ID_TAKE);
	put32(b, cpu);
	put32(b, 0);
	put_end(b, at);
}

static char *write_file(const char *dir, const char *name, const struct str *data)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	char *path = xasprintf("%s/%s", dir, name);
	struct error err;

	if (filewriter_open(&w, path, &err) < 0 ||
	    fwrite(data->s, 1, data->len, w.out) != data->len || filewriter_commit(&w, &err) < 0)
		printf("# cannot write %s\n", path);
	return path;
}

/* Process 11 and its child 20; 30 is another program. */
static struct session *session_of(const char *dir)
{
	CLEANUP(str_done) struct str recording = { 0 }, machine = { 0 };
	struct session_pass pass = { .start_ns = 100, .stop_ns = 1000, .pid = 11 };
	struct session *session = session_new();

	put_start(&recording);
	put_sample(&recording, ID_TAKE, 100, 11, 0xabc, 0);
	put_lost(&recording, 5, 110, 20, 3);
	put_sample(&recording, ID_TAKE, 150, 20, 0xabc, 0);
	put_sample(&recording, ID_SWITCH, 200, 11, 1, 0);
	put_sample(&recording, ID_TAKE, 400, 20, 0xabc, 0);
	put_start(&machine);
	put_sample(&machine, ID_SWITCH, 210, 20, 1, 30);
	put_sample(&machine, ID_WAKING, 300, 30, 11, 0);
	put_sample(&machine, ID_SWITCH, 320, 30, 1, 11);
	pass.perf_data = write_file(dir, "perf.data", &recording);
	pass.wakeups = write_file(dir, "wakeups", &machine);
	session->cpus = 2;
	session->no_children = true;
	session_add_pass(session, &pass);
	free(pass.perf_data);
	free(pass.wakeups);
	return session;
}

/* A report without children has what other processes did to the one process. */
static void test_no_children(const char *dir)
{
	CLEANUP(session_free) struct session *session = session_of(dir);
	const struct lane *lane;
	const struct model *m;
	struct loaded *loaded;
	struct error err;

	if (!ok(report_load(&loaded, session, dir, NULL, &err) == 0, "a session without children"))
		return;
	m = loaded->model;
	is_u64(m->threads.n, 1, "no thread of a child or of another program is in it");
	lane = &m->threads.v[0].cpu;
	is_u64(lane->spans.n, 4, "its thread ran, slept, was runnable and ran again");
	ok(lane->spans.n > 2 && lane->spans.v[2].state == CPU_RUNNABLE &&
	           lane->spans.v[2].start_ns == 300,
	   "a wake-up by another program is in it");
	ok(lane->spans.n > 3 && lane->spans.v[3].state == CPU_RUNNING &&
	           lane->spans.v[3].start_ns == 320,
	   "and the end of another program's time on the CPU");
	is_u64(m->caveats[CAVEAT_MISSED_WAKEUPS], 0, "no wake-up is missing");
	is_u64(m->caveats[CAVEAT_LOST], 5, "what was lost while a child ran is counted");
	report_unload(loaded, 1);
}

/* Each of several flaws is reported. */
static void test_warnings(const char *dir)
{
	static const char *const warnings[] = { "neither files nor lines",
		                                "waits for locks are missing", "counts as sleep",
		                                "is truncated" };
	CLEANUP(str_done) struct str recording = { 0 };
	CLEANUP(session_free) struct session *session = session_new();
	struct session_pass pass = { .start_ns = 100, .stop_ns = 1000, .pid = 11 };
	struct loaded *loaded;
	struct error err;

	put_start(&recording);
	put_sample(&recording, ID_TAKE, 100, 11, 0xabc, 0);
	put_sample(&recording, ID_TAKE, 150, 11, 0xabc, 0);
	recording.len -= 8;
	pass.perf_data = write_file(dir, "perf.data", &recording);
	pass.wakeups = xasprintf("%s/none", dir);
	pass.code_objects = xasprintf("%s/none", dir);
	pass.python_trace = xasprintf("%s/none", dir);
	session->python_trace = xstrdup(SESSION_TRACE_NATIVE);
	session->cpus = 2;
	session_add_pass(session, &pass);
	free(pass.perf_data);
	free(pass.wakeups);
	free(pass.code_objects);
	free(pass.python_trace);
	if (!ok(report_load(&loaded, session, dir, NULL, &err) == 0, "a session with four flaws"))
		return;
	is_u64(loaded->warnings.n, 4, "each of them is reported");
	for (size_t i = 0; i < 4 && i < loaded->warnings.n; i++)
		ok(strstr(loaded->warnings.v[i], warnings[i]) != NULL, "  %s", warnings[i]);
	report_unload(loaded, 1);
}

int main(void)
{
	char dir[] = "/tmp/giltracer-test-XXXXXX";
	struct error err;

	if (!mkdtemp(dir))
		return 99;
	test_no_children(dir);
	test_warnings(dir);
	ok(file_remove_tree(dir, &err) == 0, "cleaned up");
	return done_testing();
}
