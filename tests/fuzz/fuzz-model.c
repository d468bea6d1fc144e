/* SPDX-License-Identifier: MIT */
/* Any sequence of events gives a model whose invariants hold, and which can be analysed. */
#include <stdio.h>
#include <stdlib.h>

#include "analysis/patterns.h"
#include "analysis/whatif.h"
#include "base/str.h"
#include "model-bytes.h"
#include "report/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each row of hogs belongs to a thread, and each pattern has a sentence. */
static void look_at(const struct model *m)
{
	CLEANUP(str_done) struct str text = { 0 };
	static const struct whatif_options options = WHATIF_OPTIONS_DEFAULT;
	struct patterns patterns;
	struct whatif_free replayed;
	struct hogs hogs;

	hogs_find(&hogs, m, NULL, HOGS_INTERVAL_NS);
	whatif_find(&hogs, m, NULL, 2, HOGS_INTERVAL_NS);
	whatif_free_find(&replayed, &hogs, m, NULL, 2, HOGS_INTERVAL_NS, &options);
	whatif_free_done(&replayed);
	patterns_find(&patterns, m, NULL, HOGS_INTERVAL_NS);
	for (size_t i = 0; i < patterns.v.n; i++)
		pattern_text(m, &patterns.v.v[i], &text);
	patterns_done(&patterns);
	hogs_done(&hogs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct names *names = names_new();
	struct model *m = model_from_bytes(data, size, names);
	struct error err = { 0 };

	if (model_check(m, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	look_at(m);
	model_free(m);
	names_free(names);
	return 0;
}
