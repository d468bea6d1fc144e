/* SPDX-License-Identifier: MIT */
/* The first line of a script: which Python would run it, with which options. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "python/shebang.h"
#include "tap.h"

static char path[] = "/tmp/test-shebang.XXXXXX";

static void write_script(const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	if (!f || fwrite(text, 1, len, f) != len || fclose(f) != 0)
		exit(99);
}

/* Reads a script with this text: "PYTHON OPTION...", and "+" for other options. */
static char *read_of(const char *text)
{
	struct shebang shebang;
	char *ret;

	write_script(text, strlen(text));
	shebang_read(&shebang, path);
	ret = xstrdup(shebang.python ? shebang.python : "-");
	for (size_t i = 0; i < shebang.options.n; i++) {
		char *longer = xasprintf("%s %s", ret, shebang.options.v[i]);

		free(ret);
		ret = longer;
	}
	if (shebang.left_out) {
		char *longer = xasprintf("%s +", ret);

		free(ret);
		ret = longer;
	}
	shebang_done(&shebang);
	return ret;
}

static void reads(const char *text, const char *want, const char *name)
{
	char *got = read_of(text);

	is_str(got, want, "%s", name);
	free(got);
}

static void test_lines(void)
{
	reads("#!/usr/bin/python3\n", "/usr/bin/python3", "a path is read");
	reads("#!/usr/bin/python3", "/usr/bin/python3", "a line without an end is read");
	reads("#! \t/usr/bin/python3 \r\n", "/usr/bin/python3",
	      "blanks around the path, and a DOS line end, are removed");
	reads("#!/usr/bin/env python3\n", "python3", "a name after env is read");
	reads("#!/usr/bin/env -S python3 -Es -u\n", "python3 -Es -u",
	      "options after env -S are read");
	reads("#!/usr/bin/env -Spython3.12 -I\n", "python3.12 -I",
	      "env -S without a blank is read");
	reads("#!/opt/pypy/bin/pypy3\n", "/opt/pypy/bin/pypy3", "PyPy is read as a Python");
	reads("#!/usr/bin/python3 -E  -s\n", "/usr/bin/python3 -E -s",
	      "two blanks are treated as one");
}

static void test_options(void)
{
	reads("#!/usr/bin/python3 -X dev\n", "/usr/bin/python3 +",
	      "an option with a value is left out");
	reads("#!/usr/bin/python3 -bX\n", "/usr/bin/python3 +",
	      "it is left out after another letter, too");
	reads("#!/usr/bin/python3 -u --check\n", "/usr/bin/python3 -u +",
	      "a long option is left out");
	reads("#!/usr/bin/python3 -\n", "/usr/bin/python3 +", "a single - is left out");
}

static void test_others(void)
{
	reads("#!/bin/sh\necho\n", "-", "another interpreter is not a Python");
	reads("#!/usr/bin/env perl\n", "-", "another interpreter after env is not a Python");
	reads("#!/usr/bin/env\n", "-", "env alone is not a Python");
	reads("#!/usr/bin/env -S\n", "-", "env -S alone is not a Python");
	reads("#!\n", "-", "nothing after #! is not a Python");
	reads("#!   \n#!/usr/bin/python3\n", "-", "only the first line counts");
	reads("print()\n#!/usr/bin/python3\n", "-",
	      "without #! on the first line there is no Python");
	reads("", "-", "an empty file has no Python");
	reads("#!/usr/lib/python3/run\n", "-", "a folder's name is not the interpreter's");
}

/* Written by installers if the path is too long for the kernel. */
static void test_exec(void)
{
	reads("#!/bin/sh\n'''exec' /long/bin/python3 \"$0\" \"$@\"\n' '''\n", "/long/bin/python3",
	      "'exec' of a path is read");
	reads("#!/bin/sh\n'''exec' \"/with blank/bin/python3\" \"$0\" \"$@\"\n' '''\n",
	      "/with blank/bin/python3", "'exec' of a path in quotes is read");
	reads("#!/bin/sh\n'''exec' \"/with blank/bin/python3\n", "-",
	      "quotes that do not end are refused");
	reads("#!/bin/sh\n'''exec' /bin/true \"$0\"\n", "-",
	      "'exec' of another program is not a Python");
}

static void test_files(void)
{
	struct shebang shebang;
	char head[5000];

	memset(head, 'x', sizeof(head));
	memcpy(head, "#!", 2);
	write_script(head, sizeof(head));
	shebang_read(&shebang, path);
	is_u64(strlen(shebang.line), 4094, "4 KiB of a line without an end are read");
	shebang_done(&shebang);
	write_script("#!/usr/bin/python3\0 -u\n", 23);
	shebang_read(&shebang, path);
	is_str(shebang.line, "/usr/bin/python3", "a zero byte ends the line");
	shebang_done(&shebang);

	unlink(path);
	shebang_read(&shebang, path);
	ok(!shebang.line && !shebang.python, "a missing file has no first line");
	shebang_done(&shebang);
	if (mkfifo(path, 0600) == 0) {
		shebang_read(&shebang, path);
		ok(!shebang.line, "a FIFO is not opened");
		shebang_done(&shebang);
	}
}

int main(void)
{
	int fd = mkstemp(path);

	if (fd < 0)
		return 99;
	close(fd);
	test_lines();
	test_options();
	test_others();
	test_exec();
	test_files();
	unlink(path);
	return done_testing();
}
