/* SPDX-License-Identifier: MIT */
/* Any sequence of events gives a model whose invariants hold. */
#include <stdio.h>
#include <stdlib.h>

#include "model-bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct names *names = names_new();
	struct model *m = model_from_bytes(data, size, names);
	struct error err = { 0 };

	if (model_check(m, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	model_free(m);
	names_free(names);
	return 0;
}
