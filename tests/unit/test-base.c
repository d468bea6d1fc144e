/* SPDX-License-Identifier: MIT */
/* Errors, options, files, vectors, searching, names of clones and x86-64 decoding. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "binary/clone.h"
#include "base/error.h"
#include "base/file.h"
#include "base/filemap.h"
#include "base/opts.h"
#include "base/procfs.h"
#include "base/vec.h"
#include "base/str.h"
#include "base/utf8.h"
#include "binary/x86.h"

#include "tap.h"

/* argv is writable. */
#define W(s)      \
	(char[])  \
	{         \
		s \
	}

static void test_error(void)
{
	struct error err = { 0 };

	ok(error_set(&err, EINVAL, "record at %#x: bad header", 0x68) == -1,
	   "error_set returns -1");
	error_prefix(&err, "%s", "perf.data");
	is_str(err.text, "perf.data: record at 0x68: bad header",
	       "error_prefix puts the place before the text");
	errno = ENOENT;
	error_errno(&err, "%s", "x");
	is_str(err.text, "x: No such file or directory",
	       "error_errno adds the explanation of errno");
	ok(err.code == ENOENT, "error_errno keeps errno as the code");
}

static void test_opts(void)
{
	static const char *const kinds[] = { "viztracer", "none", "auto", NULL };
	const char *output = NULL, *module = NULL;
	bool verbose = false, detect = true;
	unsigned limit = 0, kind = 0;
	struct opt_list events = { 0 };
	const struct opt opts[] = {
		OPT_STR('o', "output", "FILE", &output, "write to FILE"),
		OPT_FLAG('v', "verbose", &verbose, "more"),
		OPT_UNFLAG(0, "no-gil-detect", &detect, "no uprobes"),
		OPT_UINT('n', "limit", "COUNT", &limit, 1, 100, "stop after COUNT"),
		OPT_CHOICE(0, "python-trace", "KIND", &kind, kinds, "kind"),
		OPT_LIST('e', "event", "EVENT", &events, "events"),
		OPT_REST('m', NULL, "MODULE", &module, "module"),
		OPT_END,
	};
	char *argv[] = { W("x"),
		         W("-vn5"),
		         W("--output=a b"),
		         W("--no-gil-detect"),
		         W("-e"),
		         W("x"),
		         W("--event"),
		         W("y"),
		         W("--python-trace"),
		         W("none"),
		         W("prog"),
		         W("-v"),
		         NULL };
	char *argv_m[] = { W("x"), W("-m"), W("mod"), W("-v"), NULL };
	char *argv_bad[] = { W("x"), W("-n"), W("101"), NULL };
	char *argv_unknown[] = { W("x"), W("--nope"), NULL };
	struct error err;

	ok(opts_parse(opts, 12, argv, &err) == 10, "parsing stops at the program");
	ok(verbose && !detect && limit == 5 && kind == 1, "flags, numbers and choices are set");
	is_str(output, "a b", "an option's value can follow =");
	ok(events.n == 2 && !strcmp(events.v[1], "y"), "each use of a list option appends");
	opt_list_done(&events);
	ok(opts_parse(opts, 4, argv_m, &err) == 3, "parsing stops after -m MODULE");
	is_str(module, "mod", "the value of -m is MODULE");
	ok(opts_parse(opts, 3, argv_bad, &err) < 0, "a number out of range is refused");
	is_str(err.text, "option -n: '101' is too large, expected 1 to 100",
	       "the error names the option and the range");
	ok(opts_parse(opts, 2, argv_unknown, &err) < 0, "an unknown option is refused");
}

/* Deeper than a path can be long. */
static bool make_deep(const char *dir)
{
	static const char name[] = "a-name-of-a-folder-of-fifty-two-characters-as-a-test";
	int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (unsigned i = 0; i < 100 && at >= 0; i++) {
		int next = mkdirat(at, name, 0700) < 0 ? -1 : openat(at, name, O_PATH | O_CLOEXEC);

		close(at);
		at = next;
	}
	return at >= 0 && close(at) == 0;
}

/* A file that a process makes just before the folder is removed; libc's function is not used. */
static const char *late_file;

int unlinkat(int in, const char *name, int flags)
{
	if (flags == AT_REMOVEDIR && late_file) {
		close(open(late_file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		late_file = NULL;
	}
	return (int)syscall(SYS_unlinkat, in, name, flags);
}

static void test_file(void)
{
	char dir[] = "/tmp/giltracer-test-XXXXXX";
	CLEANUP(str_done) struct str path = { 0 };
	CLEANUP(free) char *text = NULL;
	struct filewriter w;
	struct error err;

	if (!ok(mkdtemp(dir) != NULL, "a scratch folder can be made"))
		return;
	str_addf(&path, "%s/file", dir);
	ok(filewriter_open(&w, path.s, &err) == 0, "a filewriter opens");
	fputs("hello", w.out);
	filewriter_done(&w);
	ok(access(path.s, F_OK) < 0, "a file that is not committed is removed");
	ok(filewriter_open(&w, path.s, &err) == 0, "a filewriter opens again");
	fputs("hello", w.out);
	ok(filewriter_commit(&w, &err) == 0, "a filewriter commits");
	filewriter_done(&w);
	ok(file_read(&text, NULL, path.s, 100, &err) == 0 && !strcmp(text, "hello"),
	   "file_read returns the whole file");
	free(take(text));
	ok(file_read(&text, NULL, path.s, 4, &err) < 0 && err.code == EFBIG,
	   "file_read refuses a larger file");
	ok(filewriter_open(&w, "/dev/full", &err) == 0, "a device is written in place");
	fputs("hello", w.out);
	ok(filewriter_commit(&w, &err) < 0 && err.code == ENOSPC, "a full disk is an error");
	filewriter_done(&w);
	ok(make_deep(dir), "folders can be made that no path names");
	ok(file_remove_tree(dir, &err) == 0 && access(dir, F_OK) < 0, "a tree is removed");
	ok(file_remove_tree(dir, &err) == 0, "removing a missing tree is not an error");
	ok(mkdir(dir, 0700) == 0, "a folder");
	late_file = path.s;
	ok(file_remove_tree(dir, &err) == 0 && !late_file && access(dir, F_OK) < 0,
	   "a file that is made during the removal is removed, too");
}

static void test_vec(void)
{
	VEC(int) v = { 0 };

	for (int i = 0; i < 1000; i++)
		*vec_push(&v) = i;
	ok(v.n == 1000 && v.v[999] == 999, "a vector grows");
	vec_done(&v);
	ok(v.n == 0 && !v.v, "vec_done empties the vector");
}

static void test_search(void)
{
	static const uint64_t v[] = { 2, 5, 5, UINT64_MAX };
	static const size_t beyond[] = { 0, 0, 1, 1, 1, 3, 3 };
	static const size_t from[] = { 0, 0, 0, 1, 1, 1, 3 };
	size_t n = sizeof(v) / sizeof(*v);

	for (uint64_t value = 0; value < sizeof(beyond) / sizeof(*beyond); value++) {
		is_u64(SEARCH(n, i, v[i] <= value), beyond[value],
		       "SEARCH finds the first number above %d", (int)value);
		is_u64(SEARCH(n, i, v[i] < value), from[value],
		       "SEARCH finds the first number of at least %d", (int)value);
	}
	is_u64(SEARCH(n, i, v[i] <= UINT64_MAX), n, "SEARCH finds no number above the last");
	for (size_t most = 0; most < n; most++)
		is_u64(SEARCH(most, i, v[i] <= 5), most < 3 ? most : 3,
		       "SEARCH looks at the first %zu numbers only", most);
	for (size_t most = 0; most <= n; most++)
		for (uint64_t value = 0; value < 8; value++)
			is_u64(SEARCH_BACK(most, i, v[i] < value), SEARCH(most, i, v[i] < value),
			       "SEARCH_BACK finds the same among %zu: %d", most, (int)value);
	for (size_t value = 0; value <= 70; value++)
		is_u64(SEARCH_BACK(69, i, i < value), value < 69 ? value : 69,
		       "SEARCH_BACK finds %zu of 69", value);
}

static void test_clone(void)
{
	ok(clone_of("collect", "collect"), "clone_of: a symbol is the function of its own name");
	ok(clone_of("collect.cold", "collect"), "clone_of: a cold part belongs to its function");
	ok(!clone_of("collector", "collect"), "clone_of: a longer name is another function");
	ok(!clone_of("col", "collect"), "clone_of: a shorter name is another function");
	ok(clone_is_whole("take_gil", "take_gil"), "clone_is_whole: a function is complete");
	ok(clone_is_whole("take_gil.constprop.0.isra.12", "take_gil"),
	   "clone_is_whole: a clone of a clone is complete");
	ok(!clone_is_whole("take_gil.cold", "take_gil"),
	   "clone_is_whole: a cold part is not complete");
	ok(!clone_is_whole("take_gil.part.0.cold", "take_gil"),
	   "clone_is_whole: a clone's cold part is not complete");
	ok(!clone_is_whole("take_gil.", "take_gil"),
	   "clone_is_whole: a dot without a word is refused");
	ok(!clone_is_whole("take_gil..0", "take_gil"), "clone_is_whole: an empty word is refused");
	ok(!clone_is_whole("take_gil.parts.0", "take_gil"),
	   "clone_is_whole: a longer word is refused");
	ok(!clone_is_whole("take", "take_gil"), "clone_is_whole: a shorter name is refused");
}

static void test_x86(void)
{
	static const uint8_t jump[] = { 0xe9, 0xfb, 0xff, 0xff, 0xff };
	static const uint8_t above[] = { 0x0f, 0x87, 0x00, 0x01, 0x00, 0x00 };
	static const uint8_t call[] = { 0xe8, 0x00, 0x01, 0x00, 0x00 };
	static const uint8_t slot[] = { 0x3e, 0xff, 0x25, 0x00, 0x01, 0x00, 0x00 };
	static const uint8_t back[] = { 0x74, 0xfe };
	static const uint8_t by_register[] = { 0xff, 0xe0 };
	struct x86_branch b = { 0 };

	ok(x86_branch(jump, sizeof(jump), 0x1000, &b) && b.kind == X86_JUMP, "a jump is decoded");
	ok(b.target == 0x1000 && !b.slot, "the jump leads to itself");
	ok(!x86_branch(jump, sizeof(jump) - 1, 0x1000, &b), "a truncated jump is not a branch");
	ok(x86_branch(above, sizeof(above), 0x1000, &b), "a conditional jump is decoded");
	ok(b.kind == X86_CONDITIONAL && b.target == 0x1106, "a conditional jump has a target");
	ok(!x86_branch(above, sizeof(above) - 1, 0x1000, &b),
	   "a truncated conditional jump is not a branch");
	ok(x86_branch(call, sizeof(call), 0x1000, &b) && b.kind == X86_CALL,
	   "a call is decoded as a call");
	is_u64(b.target, 0x1105, "a call has a target");
	ok(!x86_wide_branch(back, sizeof(back), 0x1000, &b), "a short jump is not a wide branch");
	ok(x86_branch(back, sizeof(back), 0x1000, &b), "a short jump is a branch");
	is_u64(b.target, 0x1000, "a short jump can lead back");
	ok(!x86_branch(slot, sizeof(slot), 0x1000, &b), "a prefix is not a branch");
	ok(x86_branch_of(slot, sizeof(slot), 0x1000, &b) && b.slot,
	   "an instruction with a prefix is a branch");
	is_u64(b.target, 0x1107, "its target is the address of a slot");
	ok(!x86_branch(by_register, sizeof(by_register), 0, &b),
	   "a jump through a register is not a branch");
	ok(!x86_branch(NULL, 0, 0x1000, &b), "no bytes are not a branch");
}

/* Characters that would control a terminal, or make it show something other than the text. */
static void test_safe(void)
{
	char *got = utf8_safe_lines("a\x1b]0;x\x07\x7f\tb\n\xc2\x9b"
	                            "31m\x9b\xe2\x80\xae"
	                            "gpj.\xe2\x81\xa6\xc3\xa9\xe2\x80\xa8");

	is_str(got, "a?]0;x??\tb\n?31m\xef\xbf\xbd?gpj.?\xc3\xa9?",
	       "utf8_safe_lines replaces control characters, bidirectional controls and invalid "
	       "bytes");
	free(got);
}

/* Opening a FIFO waits for a writer, and opening a device may start it, so neither may be
 * opened. */
static void test_not_opened(const char *dir)
{
	char *path = xasprintf("%s/fifo", dir), *text, events[512];
	int watch = inotify_init1(IN_NONBLOCK);
	struct error err = { 0 };
	struct filemap map;

	ok(mkfifo(path, 0600) == 0 && inotify_add_watch(watch, path, IN_OPEN) >= 0,
	   "a FIFO is made and watched");
	ok(filemap_open(&map, path, &err) < 0 && strstr(err.text, "not a regular file"),
	   "a FIFO is not mapped");
	ok(file_read_member(&text, NULL, path, 64, &err) < 0 &&
	           strstr(err.text, "not a regular file"),
	   "a FIFO is not read");
	ok(file_open_regular(path, &err) < 0 && err.code == EINVAL, "a FIFO is refused");
	ok(file_open_append(path, &err) < 0 && err.code == EINVAL, "nothing is appended to it");
	ok(read(watch, events, sizeof(events)) < 0 && errno == EAGAIN,
	   "the FIFO was not opened at all");
	ok(file_open_regular("/dev/null", &err) < 0 && err.code == EINVAL, "a device is refused");
	close(watch);
	unlink(path);
	free(path);
}

static void test_procfs(void)
{
	char maps[] = "400000-401000 r--p 00000000 08:01 17 /usr/bin/a b (deleted)\n"
		      "nonsense\n"
		      "7f0000000000-7f0000002000 rw-p 00001000 00:00 0 \n";
	const char *name = "a) R 1 (b";
	struct procfs_threads threads = { 0 };
	struct procfs_mapping m;
	struct procfs_stat stat;
	char *rest = maps, *comm;

	prctl(PR_SET_NAME, name);
	ok(procfs_stat(&stat, getpid(), getpid()), "our own state is known");
	is_str(stat.name, name, "a name may contain anything");
	ok(stat.state == 'R' && stat.parent == getppid() && stat.start_time,
	   "it is not taken for what follows it");
	comm = procfs_comm(getpid(), 0);
	is_str(comm, name, "the kernel gives the same name");
	free(comm);
	ok(procfs_threads(&threads, getpid()) && threads.v.n == 1 && threads.v.v[0] == getpid(),
	   "the only thread is listed");
	vec_done(&threads.v);
	ok(!procfs_stat(&stat, 0, 0) && !procfs_threads(&threads, 0) &&
	           !procfs_read(0, 0, "maps", NULL),
	   "there is no process 0");
	ok(procfs_next_mapping(&m, &rest) && m.start == 0x400000 && m.end == 0x401000 &&
	           m.major == 8 && m.minor == 1 && m.inode == 17,
	   "a mapping is read");
	is_str(m.path, "/usr/bin/a b (deleted)", "with its whole path");
	ok(procfs_next_mapping(&m, &rest) && m.offset == 0x1000 && !*m.path &&
	           !strcmp(m.rights, "rw-p"),
	   "another line is skipped, and one without a path is read");
	ok(!procfs_next_mapping(&m, &rest), "there are no more");
}

int main(void)
{
	char dir[] = "/tmp/test-base.XXXXXX";

	test_error();
	test_opts();
	test_file();
	test_vec();
	test_search();
	test_clone();
	test_x86();
	test_safe();
	test_procfs();
	ok(mkdtemp(dir) != NULL, "a scratch folder can be made");
	test_not_opened(dir);
	rmdir(dir);
	return done_testing();
}
