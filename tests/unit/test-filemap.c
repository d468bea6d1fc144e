/* SPDX-License-Identifier: MIT */
/* Files that become shorter while they are read: reading goes on, and an error names the file. */
#include "base/filemap.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/thread.h"
#include "binary/module.h"
#include "binary/symbols.h"
#include "trace/perf/from_perf.h"

#include "perfbuild.h"
#include "tap.h"

#define PAGES 4

static char *dir;

static char *path_of(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static char *make(const char *name, const void *data, size_t size)
{
	char *path = path_of(name);
	CLEANUP(close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ok(fd >= 0 && write(fd, data, size) == (ssize_t)size, "%s is made", name);
	return path;
}

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static char *make_ones(const char *name)
{
	CLEANUP(free) uint8_t *ones = xcalloc(PAGES, page_size());

	memset(ones, 1, PAGES * page_size());
	return make(name, ones, PAGES * page_size());
}

static uint64_t sum(const uint8_t *data, size_t size)
{
	uint64_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += *(const volatile uint8_t *)&data[i];
	return n;
}

static bool names(const struct error *err, const char *path)
{
	return !strncmp(err->text, path, strlen(path)) &&
	       strstr(err->text, ": became shorter while it was read");
}

static void test_cut(void)
{
	CLEANUP(free) char *path = make_ones("ones"), *other = make_ones("other");
	CLEANUP(filemap_done) struct filemap map = { 0 }, rest = { 0 };
	size_t page = page_size();
	struct error err;

	if (!ok(filemap_open(&map, path, &err) == 0 && filemap_open(&rest, other, &err) == 0,
	        "both are mapped"))
		return;
	is_u64(sum(map.data, page), page, "a page is read");
	ok(truncate(path, (off_t)(2 * page)) == 0, "two pages are cut off");
	ok(!filemap_is_cut(&map) && filemap_check_all(&err) == 0, "which is not noticed");
	is_u64(sum(map.data, map.size), 2 * page, "until they are read: they are zeros");
	ok(filemap_is_cut(&map), "which is noticed");
	ok(filemap_check(&map, &err) < 0 && names(&err, path), "%s", err.text);
	ok(filemap_check_all(&err) < 0 && names(&err, path), "also among all");
	ok(sum(rest.data, rest.size) == PAGES * page && filemap_check(&rest, &err) == 0,
	   "another file is whole");
	filemap_done(&map);
	ok(filemap_check_all(&err) == 0, "a closed file does not matter");
}

static void *read_all(void *data)
{
	const struct filemap *map = data;

	return (void *)(uintptr_t)sum(map->data, map->size);
}

/* Helper threads block signals. */
static void test_threads(void)
{
	CLEANUP(free) char *path = make_ones("shared");
	CLEANUP(filemap_done) struct filemap map = { 0 };
	CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	pthread_t threads[4];
	struct error err;
	uint64_t read = 0;

	if (!ok(filemap_open_fd(&map, fd, path, 3 * page_size(), &err) == 0, "an open file"))
		return;
	is_u64(map.size, 3 * page_size(), "is mapped as far as it is wanted");
	ok(truncate(path, 0) == 0, "it becomes empty");
	for (size_t i = 0; i < 4; i++)
		ok(thread_start(&threads[i], read_all, &map) == 0, "thread %zu reads it", i);
	for (size_t i = 0; i < 4; i++) {
		void *n;

		pthread_join(threads[i], &n);
		read += (uintptr_t)n;
	}
	is_u64(read, 0, "they find zeros");
	ok(filemap_check(&map, &err) < 0 && names(&err, path), "and the error names the file");
}

static void test_foreign(void)
{
	CLEANUP(free) char *path = make_ones("foreign");
	CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = PAGES * page_size();
	void *map;

	filemap_guard_all();
	map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	ok(map != MAP_FAILED && truncate(path, (off_t)page_size()) == 0,
	   "a library's mapping is cut");
	is_u64(sum(map, size), page_size(), "what is gone is zeros");
	munmap(map, size);
}

/* What is written to a file must not be lost in silence. */
static void test_write(void)
{
#ifdef __x86_64__
	CLEANUP(free) char *path = make_ones("written");
	CLEANUP(close) int fd = open(path, O_RDWR | O_CLOEXEC);
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		volatile uint8_t *map = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED,
		                             fd, 0);

		prctl(PR_SET_DUMPABLE, 0);
		if (map == MAP_FAILED || truncate(path, 0) < 0)
			_exit(1);
		*map = 1;
		_exit(0);
	}
	ok(pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	           WTERMSIG(status) == SIGBUS,
	   "writing to a file that was cut ends the process");
#endif
}

/* ---- readers of files */

static void test_perf(void)
{
	CLEANUP(str_done) struct str b = { 0 };
	CLEANUP(free) char *path = NULL;
	struct source *source;
	struct error err;
	struct event ev;
	int more;

	put_pipe_header(&b);
	put_attr(&b,
	         (struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE,
	                                   .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_ID,
	                                   .sample_id_all = 1 },
	         1);
	while (b.len < PAGES * page_size()) {
		size_t at = put_begin(&b, PERF_RECORD_SAMPLE, 0);

		put64(&b, b.len);
		put64(&b, 1);
		put_end(&b, at);
	}
	path = make("perf.data", b.s, b.len);
	if (!ok(from_perf_open(&source, path, NULL, &err) == 0, "a perf.data is opened"))
		return;
	ok(truncate(path, (off_t)page_size()) == 0, "and cut");
	while ((more = source_next(source, &ev, &err)) > 0)
		;
	ok(more < 0 && names(&err, path), "its end is an error");
	source_close(source);
}

static void test_symbols(void)
{
	CLEANUP(free) char *text = NULL, *path = NULL;
	struct symbols *symbols;
	struct symbol_list list = { 0 };
	struct error err;
	size_t len;

	if (!ok(file_read(&text, &len, "/proc/self/exe", SIZE_MAX, &err) == 0, "a program"))
		return;
	path = make("program", text, len);
	if (!ok(symbols_open(&symbols, path, &err) == 0, "its symbols are opened"))
		return;
	ok(symbols_find(symbols, "main", &list) == 1 && symbols_check(symbols, &err) == 0,
	   "one is found");
	symbol_list_done(&list);
	symbols_free(symbols);
	if (!ok(symbols_open(&symbols, path, &err) == 0, "they are opened again"))
		return;
	ok(truncate(path, (off_t)page_size()) == 0, "the program is cut");
	symbols_find(symbols, "main", &list);
	ok(symbols_check(symbols, &err) < 0 && names(&err, path), "which is an error");
	symbol_list_done(&list);
	symbols_free(symbols);
}

static void test_module(void)
{
	CLEANUP(free) char *text = NULL, *path = NULL;
	struct modules *modules = modules_new(false);
	struct module *module;
	struct error err;
	size_t len;

	if (!ok(file_read(&text, &len, "/proc/self/exe", SIZE_MAX, &err) == 0, "a program"))
		return;
	path = make("module", text, len);
	module = modules_get(modules, path, NULL);
	ok(module_open(module) && filemap_check_all(&err) == 0, "is opened for its functions");
	ok(truncate(path, (off_t)page_size()) == 0, "and cut");
	module_functions(module);
	ok(filemap_check_all(&err) < 0 && names(&err, path), "a report fails: %s", err.text);
	modules_free(modules);
	ok(filemap_check_all(&err) == 0, "until it is closed");
}

/* KiB of files that are mapped and in memory. */
static unsigned long mapped_kib(void)
{
	CLEANUP(fclose) FILE *in = fopen("/proc/self/status", "re");
	unsigned long kib = 0, more;
	char line[128];

	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "RssFile: %lu", &more) == 1 ||
		    sscanf(line, "RssShmem: %lu", &more) == 1)
			kib += more;
	return kib;
}

static void test_drop(void)
{
	const size_t size = 16 * (size_t)FILEMAP_DROP_STEP;
	CLEANUP(free) uint8_t *ones = xcalloc(size, 1);
	CLEANUP(free) char *path = NULL;
	CLEANUP(filemap_done) struct filemap map = { 0 };
	unsigned long all, some;
	struct error err;

	memset(ones, 1, size);
	path = make("dropped", ones, size);
	if (!ok(filemap_open(&map, path, &err) == 0, "a large file"))
		return;
	is_u64(sum(map.data, size), size, "  is read");
	all = mapped_kib();
	filemap_drop(&map, FILEMAP_DROP_STEP - 1);
	is_u64(map.dropped, 0, "  a small part of it stays in memory");
	filemap_drop(&map, size - 1);
	some = mapped_kib();
	is_u64(map.dropped, size - FILEMAP_DROP_STEP, "  a large one does not");
	ok(some + 8 * FILEMAP_DROP_STEP / 1024 < all, "  which takes less memory (%lu of %lu KiB)",
	   some, all);
	is_u64(sum(map.data, size), size, "  and can be read again");
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	CLEANUP(free) char *made = xasprintf("%s/test-filemap.XXXXXX", tmp ? tmp : "/tmp");
	struct error err;

	dir = made;
	if (!ok(mkdtemp(dir), "a folder"))
		return done_testing();
	test_cut();
	test_drop();
	test_threads();
	test_foreign();
	test_write();
	test_perf();
	test_symbols();
	test_module();
	ok(file_remove_tree(dir, &err) == 0, "nothing remains");
	return done_testing();
}
