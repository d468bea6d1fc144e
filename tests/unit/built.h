/* SPDX-License-Identifier: MIT */
/* For tests that read files which they compile themselves. */
#ifndef GILTRACER_TESTS_BUILT_H
#define GILTRACER_TESTS_BUILT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "system/host.h"

#include "tap.h"

/* Run words; the last is NULL. */
__attribute__((unused)) static bool built_runs(const char *const *argv)
{
	struct error err = { 0 };

	if (host_run(argv, &err) == 0)
		return true;
	printf("# %s\n", err.text);
	return false;
}

#define RUN(...) built_runs((const char *const[]){ __VA_ARGS__, NULL })

__attribute__((unused)) static bool built_write(const char *path, const char *text)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	struct error err = { 0 };

	if (filewriter_open(&w, path, &err) < 0)
		return false;
	fputs(text, w.out);
	return filewriter_commit(&w, &err) == 0;
}

/* The main function of such a test: runs body in a temporary folder, with no debug files but
 * the system's. Skips the test if there is no compiler. */
__attribute__((unused)) static int built_main(void (*body)(void))
{
	char dir[] = "/tmp/giltracer-test-XXXXXX";
	struct error err;

	if (access("/usr/bin/cc", X_OK) < 0 || access("/usr/bin/objcopy", X_OK) < 0) {
		printf("1..0 # SKIP needs cc and objcopy: apt-get install gcc binutils\n");
		return 0;
	}
	if (!mkdtemp(dir) || chdir(dir) < 0)
		return 99;
	unsetenv("GILTRACER_DEBUGDIR");
	unsetenv("DEBUGINFOD_URLS");
	body();
	if (chdir("/") < 0 || file_remove_tree(dir, &err) < 0)
		return 99;
	return done_testing();
}

#endif
