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

/* The first line that differs. */
static inline void golden_show(const char *want, const char *got)
{
	unsigned line = 1;
	size_t from = 0;

	for (size_t i = 0; want[i] && want[i] == got[i]; i++)
		if (want[i] == '\n') {
			from = i + 1;
			line++;
		}
	printf("# line %u\n# got:  %.*s\n# want: %.*s\n", line, (int)strcspn(got + from, "\n"),
	       got + from, (int)strcspn(want + from, "\n"), want + from);
}

/* The text is that of tests/golden/NAME. */
static inline void golden_is(const char *name, const char *text)
{
	CLEANUP(str_done) struct str path = { 0 };
	CLEANUP(free) char *want = NULL;
	struct error err = { 0 };

	str_addf(&path, "%s/tests/golden/%s", top_srcdir(), name);
	if (getenv("GILTRACER_TEST_REGEN")) {
		golden_write(path.s, text);
		return;
	}
	if (!ok(file_read(&want, NULL, path.s, 1 << 20, &err) == 0, "%s is there %s", name,
	        err.text))
		return;
	if (!ok(!strcmp(want, text), "as in tests/golden/%s", name))
		golden_show(want, text);
}

#endif
