/* SPDX-License-Identifier: MIT */
/* Two documents in the format of --json, before and after the first zero byte, cause an error,
 * or any summaries are compared in both formats. */
#include <string.h>

#include "analysis/diff.h"
#include "report/diff_write.h"
#include "report/json.h"

#include "budget.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const struct summary *a, const struct summary *b, FILE *out)
{
	CLEANUP(str_done) struct str headline = { 0 };
	struct diff diff;

	diff_init(&diff, a, b);
	diff_add_headline(&headline, &diff);
	if (!headline.len)
		abort();
	diff_text(&diff, true, out);
	diff_text(&diff, false, out);
	diff_json(&diff, "0", out);
	diff_done(&diff);
}

static void read_both(const uint8_t *data, size_t size)
{
	const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
	size_t first = zero ? (size_t)(zero - data) : size;
	const char *text = (const char *)data;
	struct error err = { 0 };
	struct summary a, b;
	FILE *out = fopen("/dev/null", "w");
	int status_a = summary_read(&a, text, first, &err);
	int status_b = zero ? summary_read(&b, text + first + 1, size - first - 1, &err)
	                    : summary_read(&b, text, first, &err);

	if ((status_a < 0 || status_b < 0) && !err.text[0])
		abort();
	if (status_a == 0 && status_b == 0)
		compare(&a, &b, out);
	summary_done(&a);
	summary_done(&b);
	fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	budget_run(read_both, data, size);
	return 0;
}
