/* SPDX-License-Identifier: MIT */
/* The GIL's functions in machine code made by this test: a release in a part that was moved away,
 * exits of take_gil, and what confirms a copy of take_gil. */
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "python/gil_scan.h"
#include "binary/symbols.h"

#include "built.h"
#include "tap.h"

static const struct gil_scan_release *
release_in(const struct gil_scan *gil, const struct symbols *symbols, const char *function)
{
	uint64_t address;

	for (size_t i = 0; i < gil->releases.n && symbols_address(symbols, function, &address); i++)
		if (gil->releases.v[i].function == address)
			return &gil->releases.v[i];
	return NULL;
}

static void test_releases(const struct gil_scan *gil, const struct symbols *symbols)
{
	const struct gil_scan_release *drop = release_in(gil, symbols, "drop_gil");
	const struct gil_scan_release *cold = release_in(gil, symbols, "writes");

	is_u64(gil->releases.n, 3, "there are two releases, one of which has two signals");
	ok(gil->complete, "all calls of pthread_cond_signal are explained");
	if (ok(drop && drop->is_drop, "one release is drop_gil"))
		is_str(drop->gil, "+0x10(arg1)",
		       "drop_gil reaches the GIL through its first argument");
	if (ok(cold && !cold->is_drop, "one release is in a part of another function")) {
		is_str(cold->gil, "+0x10(+0x10(arg1))",
		       "that function's argument leads to the GIL");
		is_u64((uint64_t)cold->gil_register, 3,
		       "the GIL's address is in %%rbx at the signal");
	}
}

static const struct gil_scan_take *take_at(const struct gil_scan *gil,
                                           const struct symbols *symbols, const char *function)
{
	uint64_t address;

	return symbols_address(symbols, function, &address) ? gil_scan_take_at(gil, address) : NULL;
}

static void test_takes(const struct gil_scan *gil, const struct symbols *symbols)
{
	const struct gil_scan_take *take = take_at(gil, symbols, "take_gil");
	const struct gil_scan_take *second = take_at(gil, symbols, "take_gil2");

	is_u64(gil->takes.n, 2, "there are two copies of take_gil");
	if (ok(take && second, "both copies are found at their entries")) {
		is_str(take->confirmed, "PyEval_RestoreThread and PyEval_AcquireThread lead to it",
		       "one copy is confirmed by exported functions");
		is_str(second->confirmed, "PyOS_AfterFork_Child and the evaluation loop lead to it",
		       "the other copy is confirmed by a forked child");
		is_u64(take->returned.n, 1, "the first copy returns after the unlock on one path");
		is_u64(second->returned.n, 0,
		       "the second copy calls another function on a path to the exit");
	}
}

static void test_code(const char *path, bool sure)
{
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	CLEANUP(gil_scan_free) struct gil_scan *gil = NULL;
	struct error err = { 0 };

	if (!ok(symbols_open(&symbols, path, &err) == 0, "%s opens", path))
		return;
	gil = gil_scan_new(symbols);
	ok(!gil->gave_up, "the search is completed");
	if (sure) {
		test_releases(gil, symbols);
		test_takes(gil, symbols);
		return;
	}
	is_u64(gil->takes.n, 2, "without names, two copies of take_gil are found");
	ok(!gil->takes.v[0].confirmed && !gil->takes.v[1].confirmed,
	   "without names, no copy is confirmed");
}

/* Scans the library, and one without the names that confirm a copy of take_gil. */
static void test_all(const char *source)
{
	if (ok(RUN("cc", "-shared", "-nostartfiles", "-o", "x.so", source, "-lpthread"),
	       "a library is assembled"))
		test_code("x.so", true);
	if (ok(RUN("cp", source, "y.s") &&
	               RUN("sed", "-i", "-e", "s/PyEval_A/Other_/; s/PyOS_/Other_/", "y.s") &&
	               RUN("cc", "-shared", "-nostartfiles", "-s", "-o", "y.so", "y.s",
	                   "-lpthread"),
	       "a library without some names is assembled"))
		test_code("y.so", false);
}

/* A function with jumps to many places, whose states do not converge, with a run through it for
 * each of its calls. */
static bool write_maze(const char *path, unsigned blocks)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	struct error err = { 0 };
	uint32_t random = 1;

	if (filewriter_open(&w, path, &err) < 0)
		return false;
	fputs(".globl maze\nmaze:\n.cfi_startproc\n", w.out);
	for (unsigned i = 0; i < blocks; i++) {
		random = random * 1664525 + 1013904223;
		fprintf(w.out, "b%u:\tadd $%u, %%rdi\n\tmov %%rdi, %u(%%rsp)\n\tjne b%u\n", i,
		        random >> 20, i % 64 * 8, (random >> 8) % blocks);
		if (i % 8 == 0)
			fputs("\tcall pthread_cond_signal@PLT\n", w.out);
	}
	fputs("\tret\n.cfi_endproc\n", w.out);
	return filewriter_commit(&w, &err) == 0;
}

static void test_maze(void)
{
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	CLEANUP(gil_scan_free) struct gil_scan *gil = NULL;
	struct error err;

	if (!ok(write_maze("maze.s", 4000) &&
	                RUN("cc", "-shared", "-nostartfiles", "-o", "maze.so", "maze.s",
	                    "-lpthread") &&
	                symbols_open(&symbols, "maze.so", &err) == 0,
	        "a maze is assembled"))
		return;
	gil = gil_scan_new(symbols);
	ok(gil->gave_up && !gil->complete,
	   "the search in the maze is given up, and this is reported");
}

int main(void)
{
	CLEANUP(free) char *given = xasprintf("%s/tests/unit/code.s", top_srcdir());
	CLEANUP(free) char *source = realpath(given, NULL);
	char dir[] = "/tmp/giltracer-test-XXXXXX";
	struct error err;

#ifndef __x86_64__
	printf("1..0 # SKIP x86-64 only\n");
	return 0;
#endif
	if (access("/usr/bin/cc", X_OK) < 0 || access("/usr/bin/strip", X_OK) < 0) {
		printf("1..0 # SKIP needs cc and strip: apt-get install gcc binutils\n");
		return 0;
	}
	if (!source || !mkdtemp(dir) || chdir(dir) < 0)
		return 99;
	setenv("GILTRACER_DEBUGDIR", "", 1);
	test_all(source);
	test_maze();
	if (chdir("/") < 0 || file_remove_tree(dir, &err) < 0)
		return 99;
	return done_testing();
}
