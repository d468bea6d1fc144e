/* SPDX-License-Identifier: MIT */
/* session.json: a document that was written is read again; an invalid one is refused with the key's
 * name. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "record/record.h"
#include "base/str.h"
#include "session/session.h"
#include "session/temp_session.h"
#include "tap.h"

static struct session *example(void)
{
	struct session *s = session_new();
	char data[] = "gil.perf.data", trace[] = "gil.viztracer.json";
	char wakeups[] = "gil.wakeups.perf.data";
	char main_name[] = "MainThread", child_name[] = "a \xe2\x82\xac";
	struct session_thread threads[] = { { 0, 4194302, main_name }, { 7, 8, child_name } };
	struct session_slept slept[] = { { 7, 8, 'T', false }, { 7, 9, 'S', true } };
	struct session_pass pass = {
		.kind = PASS_GIL,
		.slept = slept,
		.slept_count = 2,
		.perf_data = data,
		.python_trace = trace,
		.wakeups = wakeups,
		.exit_status = 143,
		.signal = 15,
		.wall_ns = 5000000000123,
		.start_ns = 1ull << 60,
		.stop_ns = (1ull << 60) + 1,
		.quota = { 25000, 100000, 124, 104 },
		.suspended = { { { 7, 8 }, { 1ull << 60, (1ull << 60) + 1 } }, 2 },
		.pid = 4194303,
		.tid = 4194302,
		.threads = threads,
		.thread_count = 2,
	};

	s->created = xstrdup("2026-01-31T12:00:00Z");
	s->cwd = xstrdup("/home/\xc3\xa9");
	s->command = xcalloc(3, sizeof(*s->command));
	s->command[0] = xstrdup("a \"b\".py");
	s->command[1] = xstrdup("");
	s->cpus = 2;
	s->gil_detect = true;
	s->one_run = true;
	s->python_version = xstrdup("3.11.7");
	s->releases_known = true;
	s->functions = xcalloc(1, sizeof(*s->functions));
	s->function_count = 1;
	s->functions[0].name = xstrdup("take_gil");
	s->functions[0].kind = xstrdup("symbol");
	s->functions[0].offset = 0x24f7b0;
	session_add_pass(s, &pass);
	session_add_note(s, "exit-status", 3, "the two runs ended differently");
	return s;
}

static void check_example(const struct session *s)
{
	const struct session_pass *pass = &s->passes[0];

	is_str(s->created, "2026-01-31T12:00:00Z", "the date is read");
	is_str(s->cwd, "/home/\xc3\xa9", "a path that is not ASCII is read");
	is_str(s->command[0], "a \"b\".py", "an argument with quotes is read");
	is_str(s->command[1], "", "an empty argument is read");
	ok(!s->command[2], "there are no more arguments");
	ok(!s->kernel, "an unknown text is NULL");
	ok(s->gil_detect && s->one_run && !s->state_detect, "options are read");
	is_u64(s->cpus, 2, "the number of CPUs is read");
	is_u64(s->function_count, 1, "one function is read");
	is_u64(s->functions[0].offset, 0x24f7b0, "the function's offset is read");
	ok(s->releases_known, "releases_known is read");
	ok(pass->suspended.n == 2 && pass->suspended.v[0].to_ns == 8 &&
	           pass->suspended.v[1].from_ns == 1ull << 60,
	   "when it was stopped is read");
	ok(pass->quota.quota_us == 25000 && pass->quota.period_us == 100000 &&
	           pass->quota.periods == 124 && pass->quota.throttled == 104,
	   "the CPU limit is read");
	if (!ok(s->pass_count == 1 && s->note_count == 1, "one pass and one note are read"))
		return;
	is_str(pass->perf_data, "gil.perf.data", "the pass has its perf.data");
	is_str(pass->python_trace, "gil.viztracer.json", "the pass has its Python-side trace");
	is_str(pass->wakeups, "gil.wakeups.perf.data", "the pass has its wake-ups");
	ok(!pass->python_trace_note, "the pass has no note on its Python-side trace");
	ok(pass->exit_status == 143 && pass->signal == 15, "exit status and signal are read");
	is_u64(pass->start_ns, 1ull << 60, "the start is read to the ns");
	is_u64(pass->stop_ns, (1ull << 60) + 1, "the end is read to the ns");
	is_u64(pass->pid, 4194303, "the pid is read");
	if (ok(pass->thread_count == 2, "names of two threads are read"))
		ok(!pass->threads[0].pid && pass->threads[1].pid == 7 &&
		           pass->threads[1].tid == 8 &&
		           !strcmp(pass->threads[1].name, "a \xe2\x82\xac"),
		   "a thread of a child has its process");
	if (ok(pass->slept_count == 2, "threads that slept throughout are read"))
		ok(pass->slept[0].pid == 7 && pass->slept[0].tid == 8 &&
		           pass->slept[0].state == 'T' && !pass->slept[0].no_gil &&
		           pass->slept[1].state == 'S' && pass->slept[1].no_gil,
		   "with their states");
	is_u64(s->notes[0].count, 3, "the note's count is read");
}

static void test_round_trip(void)
{
	char dir[] = "/tmp/giltracer-test.XXXXXX";
	struct session *written = example(), *read = NULL;
	struct error err = { 0 };

	if (!ok(mkdtemp(dir), "a scratch folder can be made"))
		return;
	ok(session_read(&read, dir, &err) < 0 && err.code == ENOENT && strstr(err.text, dir),
	   "a folder without a session is named: %s", err.text);
	ok(session_write(written, dir, &err) == 0, "a session is written");
	if (ok(session_read(&read, dir, &err) == 0, "the session is read"))
		check_example(read);
	session_free(read);
	session_free(written);
	ok(file_remove_tree(dir, &err) == 0 && access(dir, F_OK) < 0, "the folder is removed");
}

static void test_not_utf8(void)
{
	char dir[] = "/tmp/giltracer-test.XXXXXX";
	struct session *s = session_new(), *read = NULL;
	struct error err = { 0 };

	if (!ok(mkdtemp(dir), "a scratch folder can be made"))
		return;
	s->cwd = xstrdup("/caf\xe9/x");
	ok(session_write(s, dir, &err) == 0, "a path that is not UTF-8 is written");
	if (ok(session_read(&read, dir, &err) == 0, "the session with that path is read"))
		is_str(read->cwd, "/caf\xef\xbf\xbd/x", "its invalid byte became U+FFFD");
	session_free(read);
	session_free(s);
	file_remove_tree(dir, &err);
}

static size_t allocations_left;

static void *allocate(size_t size)
{
	return allocations_left && allocations_left-- ? malloc(size) : NULL;
}

/* Each attempt may allocate once more than the one before, until the document is written. */
static void test_no_memory(void)
{
	char dir[] = "/tmp/giltracer-test.XXXXXX";
	struct session *s = example(), *read = NULL;
	CLEANUP(free) char *path = mkdtemp(dir) ? xasprintf("%s/session.json", dir) : NULL;
	bool left = false, refused = true;
	struct error err = { 0 };
	size_t n = 0;

	if (!ok(path, "a scratch folder can be made"))
		return;
	json_set_alloc_funcs(allocate, free);
	for (allocations_left = n; session_write(s, dir, &err) < 0; allocations_left = ++n) {
		left |= access(path, F_OK) == 0;
		refused &= err.code == ENOMEM;
	}
	json_set_alloc_funcs(malloc, free);
	ok(n > 0 && refused,
	   "a session is refused with ENOMEM if there is no memory for all of it");
	ok(!left, "  no part of it is written");
	ok(session_read(&read, dir, &err) == 0 && read->pass_count == 1 && read->note_count == 1 &&
	           read->passes[0].thread_count == 2 && read->function_count == 1,
	   "with enough memory, the whole session is written");
	session_free(read);
	session_free(s);
	file_remove_tree(dir, &err);
}

static void refused(const char *text, const char *because)
{
	struct session *s = NULL;
	struct error err = { 0 };
	int ret = session_parse(&s, text, strlen(text), &err);

	if (!ok(ret < 0 && !s && strstr(err.text, because), "refused: %s", because))
		printf("# %s: '%s'\n", text, err.text);
	session_free(s);
}

/* The number that fits into 8 MiB would take 600 MB. */
static void test_many_objects(void)
{
	CLEANUP(str_done) struct str text = { 0 };

	str_adds(&text, "{\"session\": 1, \"notes\": [{}");
	for (size_t i = 0; i < 300000; i++)
		str_adds(&text, ",{}");
	str_adds(&text, "]}");
	refused(text.s, "more than 300000 objects");
}

static void test_brackets(void)
{
	CLEANUP(str_done) struct str text = { 0 };
	struct session *s = NULL;
	struct error err = { 0 };

	str_adds(&text, "{\"session\": 1, \"cwd\": \"\\\"");
	for (size_t i = 0; i < 300001; i++)
		str_adds(&text, "[");
	str_adds(&text, "\"}");
	ok(session_parse(&s, text.s, text.len, &err) == 0, "brackets in a text are no objects");
	session_free(s);
}

static void test_refused(void)
{
	refused("", "line 1");
	refused("[]", "not a giltracer session");
	refused("{}", "not a giltracer session");
	refused("{\"session\": 2}", "session version 2");
	refused("{\"session\": \"1\"}", "session: not a number");
	refused("{\"session\": 1, \"cwd\": 3}", "cwd: not a string");
	refused("{\"session\": 1, \"cwd\": \"a\", \"cwd\": \"b\"}", "duplicate");
	refused("{\"session\": 1, \"host\": []}", "host: not an object");
	refused("{\"session\": 1, \"host\": {\"cpus\": -1}}", "host.cpus: not a number in range");
	refused("{\"session\": 1, \"command\": [1]}", "command: not an array of strings");
	refused("{\"session\": 1, \"options\": {\"one_run\": 1}}", "options.one_run: not true");
	refused("{\"session\": 1, \"passes\": [3]}", "passes: not an array of objects");
	refused("{\"session\": 1, \"passes\": [{}, {}, {}]}", "passes: not an array of at most 2");
	refused("{\"session\": 1, \"passes\": [{\"name\": \"gil\", \"perf_data\": \"a\"},"
	        " {\"name\": \"gil\", \"perf_data\": \"a\"}]}",
	        "passes: not of different names");
	refused("{\"session\": 1, \"python\": {\"gil_functions\": [{}]}}",
	        "gil_functions[0].name: missing");
	refused("{\"session\": 1, \"passes\": [{\"name\": \"x\"}]}", "passes[0].name: not gil");
	refused("{\"session\": 1, \"passes\": [{\"name\": \"gil\"}]}", "passes[0].perf_data");
	refused("{\"session\": 1, \"passes\": [{\"name\": \"gil\", \"perf_data\": \"../x\"}]}",
	        "the name of a file in the folder");
	refused("{\"session\": 1, \"passes\": [{\"name\": \"gil\", \"perf_data\": \"x\","
	        "\"pid\": 4294967296}]}",
	        "passes[0].pid: not a number in range");
	refused("{\"session\": 1, \"notes\": [{\"code\": \"x\"}]}", "notes[0].");
}

static void test_unknown_keys(void)
{
	const char *text = "{\"session\": 1, \"later\": {\"x\": [1]}, \"passes\": null}";
	struct session *s = NULL;
	struct error err = { 0 };

	ok(session_parse(&s, text, strlen(text), &err) == 0 && s->pass_count == 0,
	   "an unknown key is ignored, and null is treated as absent");
	session_free(s);
}

/* A recording contains arguments and code. */
static void test_private(void)
{
	char dir[] = "/tmp/test-session.XXXXXX", *kept = NULL, *path;
	struct error err = { 0 };
	struct stat st;

	umask(022);
	path = mkdtemp(dir) ? xasprintf("%s/kept", dir) : NULL;
	ok(path && record_make_folder(&kept, path, &err) == 0 && stat(path, &st) == 0 &&
	           (st.st_mode & 07777) == 0700,
	   "only the user can access a folder that is kept");
	record_remove_folder(path);
	rmdir(dir);
	free(kept);
	free(path);
}

/* ---- temporary folders, in one that others can change */

static unsigned count_in(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir)))
		n += *entry->d_name != '.';
	if (dir)
		closedir(dir);
	return n;
}

static void make_file(const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);

	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	free(path);
}

/* Its lock is the third file that is open. */
static void test_no_lock(const char *base)
{
	struct temp_session session = SCRATCH_NONE;
	int next = dup(0);
	struct rlimit limit;
	struct rlimit low;
	struct error err;

	close(next);
	getrlimit(RLIMIT_NOFILE, &limit);
	low = (struct rlimit){ (rlim_t)next + 2, limit.rlim_max };
	setrlimit(RLIMIT_NOFILE, &low);
	ok(temp_session_make_in(&session, base, &err) < 0 && err.code == EMFILE,
	   "a session that cannot be locked is refused");
	setrlimit(RLIMIT_NOFILE, &limit);
	ok(count_in(base) == 0, "it leaves no folder");
}

static void test_replaced(const char *base)
{
	struct temp_session session = SCRATCH_NONE;
	char *other = xasprintf("%s/other", base), *moved = xasprintf("%s/moved", base), *path;
	struct error err;

	ok(temp_session_make_in(&session, base, &err) == 0 && mkdir(other, 0700) == 0,
	   "a session and another folder");
	make_file(session.path, "ours");
	make_file(other, "theirs");
	path = xstrdup(session.path);
	ok(rename(path, moved) == 0 && symlink(other, path) == 0, "a link is put in its place");
	ok(temp_session_remove(&session, &err) == 0 && count_in(other) == 1,
	   "the session is removed, but not what the link leads to");
	unlink(path);
	ok(rename(other, path) == 0, "a folder has the name of a session");
	ok(temp_session_make_in(&session, base, &err) == 0 && count_in(path) == 1,
	   "a folder without a lock is no dead session");
	make_file(path, "lock");
	ok(temp_session_remove(&session, &err) == 0 &&
	           temp_session_make_in(&session, base, &err) == 0 && access(path, F_OK) < 0,
	   "one whose lock nobody has is removed");
	ok(count_in(moved) == 2, "one of another name is not");
	ok(temp_session_remove(&session, &err) == 0 && file_remove_tree(moved, &err) == 0 &&
	           count_in(base) == 0,
	   "nothing is left");
	free(path);
	free(moved);
	free(other);
}

static void test_temporary(void)
{
	char base[] = "/tmp/test-session.XXXXXX";

	ok(mkdtemp(base) != NULL, "a folder");
	test_no_lock(base);
	test_replaced(base);
	rmdir(base);
}

int main(void)
{
	test_temporary();
	test_private();
	test_round_trip();
	test_not_utf8();
	test_no_memory();
	test_refused();
	test_many_objects();
	test_brackets();
	test_unknown_keys();
	return done_testing();
}
