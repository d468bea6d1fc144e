/* SPDX-License-Identifier: MIT */
/* Outputs of recordings that are too large for them: calls nested deeper than Python allows, more
 * threads than a page can show. */
#include <errno.h>

#include "export/export.h"

#include "report-fixture.h"
#include "tap.h"

#define DEPTH 5000

/* Calls within calls, each with a millisecond of its own. */
static void nest(struct fixture *f)
{
	fixture_slices(f, 1);
	f->slices.threads[0].pid = f->slices.threads[0].tid = 1;
	for (uint16_t i = 0; i < DEPTH; i++)
		fixture_slice(f, 0, "f", i, i, 2 * DEPTH - 2 * i);
}

static size_t count(const char *text, size_t len, char wanted)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == wanted;
	return n;
}

static void test_deep(void)
{
	struct error err = { 0 };
	struct analysis *analysis;
	struct fixture f;
	size_t len = 0, most = 0;
	char *text = NULL;
	uint64_t sum = 0;
	FILE *out = open_memstream(&text, &len);

	fixture_init(&f, 2 * DEPTH);
	fixture_thread(&f, 1, 1, "main");
	fixture_gil(&f, 0, GIL_HOLD, 2 * DEPTH);
	nest(&f);
	analysis = analysis_new(&f.report);
	ok(export_folded(analysis, out, &err) == 0, "deep calls are folded");
	fclose(out);
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		size_t frames = count(line, (size_t)(end - line), ';');

		most = frames > most ? frames : most;
		sum += strtoull(strrchr(strndupa(line, (size_t)(end - line)), ' '), NULL, 10);
	}
	is_u64(count(text, len, '\n'), 1000, "to the depth that Python allows");
	is_u64(most, 1000, "which the longest line has");
	is_u64(sum, 2 * DEPTH * FIXTURE_MS, "and no time is missing");
	free(text);
	analysis_free(analysis);
	fixture_done(&f);
}

static void test_threads(void)
{
	struct error err = { 0 };
	struct analysis *analysis;
	struct fixture f;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	fixture_init(&f, 10);
	for (uint32_t i = 0; i <= HTML_MAX_THREADS; i++)
		fixture_thread(&f, 1, i + 1, "python");
	analysis = analysis_new(&f.report);
	ok(report_html(analysis, out, &err) < 0 && err.code == E2BIG,
	   "a page of too many threads is refused");
	ok(strstr(err.text, "50001 threads") && strstr(err.text, "50000"), "%s", err.text);
	fclose(out);
	is_u64(len, 0, "nothing of it is written");
	free(text);
	analysis_free(analysis);
	fixture_done(&f);
}

int main(void)
{
	test_deep();
	test_threads();
	return done_testing();
}
