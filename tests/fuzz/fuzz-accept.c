/* SPDX-License-Identifier: MIT */
/* Any text is read as the headers of a scraper, and as the condition of --record-when. */
#include <stdlib.h>
#include <string.h>

#include "metrics/serve.h"
#include "metrics/autorecord.h"

#include "budget.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct trigger trigger;
	struct error err = { 0 };

	if (!text)
		return;
	memcpy(text, data, size);
	text[size] = '\0';
	if (serve_accepted(text) > EXPOSITION_OPENMETRICS)
		abort();
	serve_may_gzip(text);
	if (trigger_parse(&trigger, text, &err) == 0) {
		if (trigger.measure > TRIGGER_KEPT || trigger.percent > 99 || !trigger.for_ns)
			abort();
	} else if (!err.text[0]) {
		abort();
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	budget_run(read_text, data, size);
	return 0;
}
