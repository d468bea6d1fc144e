/* SPDX-License-Identifier: MIT */
/* For tests that look at files which a compiler makes on the spot. */
#ifndef GILTRACER_TESTS_BUILT_H
#define GILTRACER_TESTS_BUILT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/file.h"
#include "launch/host.h"

/* Run words; the last is NULL. */
static bool built_runs(const char *const *argv)
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

#endif
