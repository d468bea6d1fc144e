/* SPDX-License-Identifier: MIT */
/* Expected outputs in tests/golden; GILTRACER_TEST_REGEN=1 rewrites them. */
#ifndef GILTRACER_TESTS_GOLDEN_H
#define GILTRACER_TESTS_GOLDEN_H

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"

#include "tap.h"

static inline void golden_write(const char *path, const char *text)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	struct error err = { 0 };
	bool good = filewriter_open(&w, path, &err) == 0;

	if (good) {
		fputs(text, w.out);
		good = filewriter_commit(&w, &err) == 0;
	}
	ok(good, "%s is rewritten %s", path, err.text);
}

/* The text is that of tests/golden/NAME. */
static inline void golden_is(const char *name, const char *text)
{
	const char *top = getenv("top_srcdir");
	CLEANUP(str_done) struct str path = { 0 };
	CLEANUP(free) char *want = NULL;
	struct error err = { 0 };

	str_addf(&path, "%s/tests/golden/%s", top ? top : ".", name);
	if (getenv("GILTRACER_TEST_REGEN")) {
		golden_write(path.s, text);
		return;
	}
	if (!ok(file_read(&want, NULL, path.s, 1 << 20, &err) == 0, "%s is there %s", name,
	        err.text))
		return;
	if (!ok(!strcmp(want, text), "as in tests/golden/%s", name))
		fprintf(stderr, "# got:\n%s", text);
}

#endif
