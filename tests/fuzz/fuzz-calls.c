/* SPDX-License-Identifier: MIT */
/* Python calls of the preload library from anywhere are read or refused. The first two bytes say how
 * much of the rest is the log; what follows is one file of records. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trace/from_calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* By their start; no call has a time before the one that was before it. */
static void check(const struct slice_thread *t)
{
	for (size_t i = 1; i < t->n; i++)
		if (t->v[i].start_ns < t->v[i - 1].start_ns)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slices *slices = NULL;
	uint16_t len = 0;
	struct error err;

	if (size < sizeof(len))
		return 0;
	memcpy(&len, data, sizeof(len));
	data += sizeof(len);
	size -= sizeof(len);
	if (len > size)
		len = (uint16_t)size;
	if (from_calls_read_memory(&slices, data, len, data + len, size - len, &err) < 0)
		return 0;
	for (size_t i = 0; i < slices->thread_count; i++)
		check(&slices->threads[i]);
	slices_free(slices);
	return 0;
}
