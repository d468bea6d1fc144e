/* SPDX-License-Identifier: MIT */
/* An untrusted probe definition is refused, or it is read and can be translated. */
#include <stdint.h>
#include <stdlib.h>

#include "python/probedef.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(probedef_free) struct probedef *def = NULL;
	struct error err = { 0 };

	if (probedef_parse(&def, "fuzz", (const char *)data, size, &err) < 0) {
		if (def || !*err.text)
			abort();
		return 0;
	}
	for (size_t i = 0; i < def->functions.n; i++) {
		const char *gil = def->functions.v[i].gil;
		CLEANUP(free) char *fetch = gil ? probedef_fetch(gil) : NULL;

		if (!def->functions.v[i].name || (gil && !fetch))
			abort();
	}
	return 0;
}
