/* SPDX-License-Identifier: MIT */
/* A recording of the preload library, from an untrusted file, is read or refused. The first two
 * bytes are the length of the log; the records of one thread follow it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trace/preload/from_preload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t len = 0;
	uint64_t last_ns = 0;
	struct source *source = NULL;
	struct error err = { 0 };
	struct event ev;

	if (size < sizeof(len))
		return 0;
	memcpy(&len, data, sizeof(len));
	data += sizeof(len);
	size -= sizeof(len);
	if (len > size)
		len = (uint16_t)size;
	if (from_preload_open_memory(&source, data, len, data + len, size - len, &err) < 0)
		return 0;
	while (source_next(source, &ev, &err) > 0) {
		if (ev.time_ns < last_ns)
			abort();
		last_ns = ev.time_ns;
	}
	source_close(source);
	return 0;
}
