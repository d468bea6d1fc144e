/* SPDX-License-Identifier: MIT */
/* The GIL's functions in machine code made here: a release in a part that was moved away, ways out
 * of take_gil, and what makes one sure. */
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "launch/code.h"
#include "launch/symbols.h"

#include "built.h"
#include "tap.h"

static const struct code_release *release_in(const struct code_gil *gil,
                                             const struct symbols *symbols, const char *function)
{
	uint64_t address;

	for (size_t i = 0; i < gil->releases.n && symbols_address(symbols, function, &address); i++)
		if (gil->releases.v[i].function == address)
			return &gil->releases.v[i];
	return NULL;
}

static void test_releases(const struct code_gil *gil, const struct symbols *symbols)
{
	const struct code_release *drop = release_in(gil, symbols, "drop_gil");
	const struct code_release *cold = release_in(gil, symbols, "writes");

	is_u64(gil->releases.n, 2, "there are two releases");
	ok(gil->complete, "and that is all");
	if (ok(drop && drop->is_drop, "one is drop_gil"))
		is_str(drop->gil, "+0x10(arg1)", "which finds the GIL so");
	if (ok(cold && !cold->is_drop, "one is in a part of another function")) {
		is_str(cold->gil, "+0x10(+0x10(arg1))", "whose argument leads to the GIL");
		is_u64((uint64_t)cold->gil_register, 3, "which is in %%rbx then");
	}
}

static const struct code_take *take_at(const struct code_gil *gil, const struct symbols *symbols,
                                       const char *function)
{
	uint64_t address;

	return symbols_address(symbols, function, &address) ? code_gil_take(gil, address) : NULL;
}

static void test_takes(const struct code_gil *gil, const struct symbols *symbols)
{
	const struct code_take *take = take_at(gil, symbols, "take_gil");
	const struct code_take *second = take_at(gil, symbols, "take_gil2");

	is_u64(gil->takes.n, 2, "there are two copies of take_gil");
	if (ok(take && second, "and they are these")) {
		is_str(take->confirmed, "RestoreThread and AcquireThread come to it",
		       "one is sure");
		is_str(second->confirmed, "a forked child and the evaluation loop come to it",
		       "the other by another way");
		is_u64(take->returned.n, 1, "one is left on one way, behind the unlocking");
		is_u64(second->returned.n, 0, "the other does more on a way out");
	}
}

static void test_code(const char *path, bool sure)
{
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	CLEANUP(code_gil_free) struct code_gil *gil = NULL;
	struct error err = { 0 };

	if (!ok(symbols_open(&symbols, path, &err) == 0, "%s opens", path))
		return;
	gil = code_find_gil(symbols);
	if (sure) {
		test_releases(gil, symbols);
		test_takes(gil, symbols);
		return;
	}
	is_u64(gil->takes.n, 2, "without names, they are found");
	ok(!gil->takes.v[0].confirmed && !gil->takes.v[1].confirmed, "but nothing is sure");
}

/* The library, and one without the names by which a copy of take_gil is known. */
static void test_all(const char *source)
{
	if (ok(RUN("cc", "-shared", "-nostartfiles", "-o", "x.so", source, "-lpthread"),
	       "a library is assembled"))
		test_code("x.so", true);
	if (ok(RUN("cp", source, "y.s") &&
	               RUN("sed", "-i", "-e", "s/PyEval_A/Other_/; s/PyOS_/Other_/", "y.s") &&
	               RUN("cc", "-shared", "-nostartfiles", "-s", "-o", "y.so", "y.s",
	                   "-lpthread"),
	       "and one that lacks some names"))
		test_code("y.so", false);
}

int main(void)
{
	const char *top = getenv("top_srcdir");
	CLEANUP(free) char *given = xasprintf("%s/tests/unit/code.s", top ? top : ".");
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
	if (chdir("/") < 0 || file_remove_tree(dir, &err) < 0)
		return 99;
	return done_testing();
}
