/* SPDX-License-Identifier: MIT */
/* Any bytes as a list of code objects: each one is found, and each instruction has a line. */
#include <stdlib.h>
#include <string.h>

#include "python/pycode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(pycode_close) struct pycode *codes = NULL;
	struct error err;

	if (pycode_open_memory(&codes, data, size, &err) < 0)
		return 0;
	for (size_t i = 0; i < pycode_count(codes); i++) {
		const struct pycode_entry *e = pycode_get(codes, i);

		if (e->table_len && !e->table)
			abort();
		for (uint64_t at = 0; at < 64; at++)
			pycode_line(codes, e, e->address + at * 2);
		pycode_line(codes, e, UINT64_MAX);
		pycode_find(codes, e->address, e->first_line);
	}
	return 0;
}
