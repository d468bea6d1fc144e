/* SPDX-License-Identifier: MIT */
/* Symbols of ELF files made by this test: clones, stripped files and their debug files,
 * build-ids. */
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "system/host.h"
#include "binary/symbols.h"

#include "built.h"
#include "tap.h"

static const char source[] =
	"#define AS(name) __asm__(name) __attribute__((noinline, used))\n"
	"static int one(int x) AS(\"take_gil\");\n"
	"static int two(int x) AS(\"take_gil.constprop.0\");\n"
	"static int three(int x) AS(\"take_gil.isra.0.lto_priv.2\");\n"
	"static int cold(int x) AS(\"take_gil.cold\");\n"
	"static int longer(int x) AS(\"take_gil_not\");\n"
	"static int one(int x) { return x * 3; }\n"
	"static int two(int x) { return x * 5; }\n"
	"static int three(int x) { return x * 7; }\n"
	"static int cold(int x) { return x * 11; }\n"
	"static int longer(int x) { return x * 13; }\n"
	"int _PyRuntime = 1;\n"
	"int main(int c, char **v) { return one(c) + two(c) + three(c) + cold(c) + longer(c); }\n";

static void check_clones(const char *path, enum symbol_kind kind, const char *what)
{
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	CLEANUP(symbol_list_done) struct symbol_list list = { 0 };
	CLEANUP(free) char *described = NULL;
	struct error err = { 0 };
	uint64_t address;
	size_t len;

	if (!ok(symbols_open(&symbols, path, &err) == 0, "%s: the file opens", what))
		return;
	if (!is_u64(symbols_find(symbols, "take_gil", &list), 3,
	            "%s: all clones are found, without .cold", what))
		return;
	is_str(list.syms.v[0].name, "take_gil", "%s: the function itself is found", what);
	is_str(list.syms.v[2].name, "take_gil.isra.0.lto_priv.2", "%s: a clone of a clone is found",
	       what);
	ok(list.syms.v[1].kind == kind, "%s: its kind is %s", what, symbol_kind_name(kind));
	ok(list.syms.v[1].offset > 0 && list.syms.v[1].offset <= list.syms.v[1].address,
	   "%s: it has a file offset", what);
	ok(symbols_bytes(symbols, list.syms.v[1].address, 16, &len) && len == 16,
	   "%s: its bytes are read", what);
	described = symbols_describe(symbols, list.syms.v[1].address + 1);
	is_str(described, "take_gil.constprop.0+0x1", "%s: an address is described", what);
	ok(symbols_address(symbols, "_PyRuntime", &address) && address, "%s: data is found", what);
	ok(!symbols_offset(symbols, 1u << 30, &address), "%s: an address outside has no offset",
	   what);
}

static void test_tables(void)
{
	check_clones("x", SYMBOL_TABLE, "with symbols");
	ok(RUN("objcopy", "--only-keep-debug", "x", "x.debug") &&
	           RUN("objcopy", "--strip-all", "--add-gnu-debuglink=x.debug", "x", "y"),
	   "a stripped copy is made");
	check_clones("y", SYMBOL_DEBUG, "debuglink next to it");
}

static void test_build_id_file(const char *build_id)
{
	CLEANUP(free) char *dir = xasprintf("dbg/.build-id/%.2s", build_id);
	CLEANUP(free) char *file = xasprintf("%s/%s.debug", dir, build_id + 2);

	ok(RUN("mkdir", "-p", dir) && RUN("mv", "x.debug", file),
	   "the debug file is moved below .build-id");
	setenv("GILTRACER_DEBUGDIR", "dbg", 1);
	check_clones("y", SYMBOL_DEBUG, "by build-id");
	/* The debug file of another build is in the same place. */
	ok(RUN("cc", "-g", "-O1", "-Wl,--build-id=0x1234", "-o", "other", "x.c") &&
	           RUN("objcopy", "--only-keep-debug", "other", file),
	   "another build's debug file is put there");
}

static void test_build_ids(void)
{
	CLEANUP(symbols_free) struct symbols *symbols = NULL, *plain = NULL;
	CLEANUP(symbol_list_done) struct symbol_list list = { 0 };
	struct error err = { 0 };

	if (!ok(symbols_open(&symbols, "y", &err) == 0, "the stripped copy opens"))
		return;
	is_u64(strlen(symbols_build_id(symbols)), 40, "its build-id has 40 digits");
	test_build_id_file(symbols_build_id(symbols));
	symbols_free(take(symbols));
	if (!ok(symbols_open(&symbols, "y", &err) == 0, "the stripped copy opens again"))
		return;
	is_u64(symbols_find(symbols, "take_gil", &list), 0,
	       "another build's debug file is not used");
	ok(!symbols_debug_path(symbols), "another build's debug file has no path");
	setenv("GILTRACER_DEBUGDIR", "", 1);
	if (ok(RUN("cc", "-Wl,--build-id=none", "-o", "z", "x.c") &&
	               symbols_open(&plain, "z", &err) == 0,
	       "a file without a build-id opens"))
		ok(str_has_prefix(symbols_build_id(plain), "sum"),
		   "a file without a build-id is identified by its code");
}

/* Without a build-id, the checksum in .gnu_debuglink must be that of the debug file. */
static void test_checksum(void)
{
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	struct error err = { 0 };

	unsetenv("GILTRACER_DEBUGDIR");
	if (!ok(RUN("objcopy", "--only-keep-debug", "z", "z.debug") &&
	                RUN("objcopy", "--strip-all", "--add-gnu-debuglink=z.debug", "z", "bare"),
	        "a stripped copy without a build-id is made"))
		return;
	check_clones("bare", SYMBOL_DEBUG, "the right checksum");
	if (!ok(RUN("objcopy", "--remove-section=.comment", "z.debug") &&
	                symbols_open(&symbols, "bare", &err) == 0,
	        "its debug file is changed"))
		return;
	ok(!symbols_debug_path(symbols), "a debug file with another checksum is not used");
}

/* As in Fedora: a compressed file of symbols in a section of the stripped file. */
static void test_own_table(void)
{
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	struct error err = { 0 };

	unsetenv("GILTRACER_DEBUGDIR");
	if (access("/usr/bin/xz", X_OK) < 0) {
		ok(true, "compressed symbols # SKIP apt-get install xz-utils");
		return;
	}
	if (!ok(RUN("objcopy", "--strip-debug", "--remove-section=.comment", "x", "mini") &&
	                RUN("xz", "mini") && RUN("objcopy", "--strip-all", "x", "m") &&
	                RUN("objcopy", "--add-section", ".gnu_debugdata=mini.xz", "m"),
	        "a file with compressed symbols is made"))
		return;
	check_clones("m", SYMBOL_DEBUG, "compressed symbols");
	if (ok(symbols_open(&symbols, "m", &err) == 0, "the file with compressed symbols opens"))
		is_str(symbols_debug_kind(symbols), "compressed symbols in the file",
		       "their source is named");
	symbols_free(take(symbols));
	setenv("GILTRACER_DEBUGDIR", "", 1);
	if (ok(symbols_open(&symbols, "m", &err) == 0, "it opens if the search is disabled"))
		ok(!symbols_debug_path(symbols), "compressed symbols are not used then");
}

static void test_no_elf(void)
{
	struct symbols *symbols = NULL;
	struct error err = { 0 };

	ok(symbols_open(&symbols, "x.c", &err) < 0, "a text file is refused");
	is_str(err.text, "x.c: is not an ELF file", "the error names the text file");
	ok(symbols_open(&symbols, "nosuch", &err) < 0, "a missing file is refused");
}

static void test_all(void)
{
	if (ok(built_write("x.c", source) &&
	               RUN("cc", "-g", "-O1", "-Wl,--build-id=sha1", "-o", "x", "x.c"),
	       "a program is compiled")) {
		test_tables();
		test_build_ids();
		test_checksum();
		test_own_table();
		test_no_elf();
	}
}

int main(void)
{
	return built_main(test_all);
}
