/* SPDX-License-Identifier: MIT */
/* Python calls of the preload library, from untrusted files, are read or refused. The first two
 * bytes are the length of the log; one file of records follows it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trace/aio.h"
#include "trace/calls/from_calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Calls are in the order of their start. */
static void check(const struct slice_thread *t)
{
	for (size_t i = 1; i < t->n; i++)
		if (t->v[i].start_ns < t->v[i - 1].start_ns)
			abort();
}

/* The parts of a task's life add up to it, and its steps do not overlap. */
static void check_tasks(const struct aio *aio)
{
	for (size_t i = 0; i < aio->v.n; i++) {
		const struct aio_task *t = &aio->v.v[i];

		if (t->running_ns + t->waiting_ns + t->late_ns + t->unknown_ns !=
		    t->last_ns - t->first_ns)
			abort();
	}
	for (size_t i = 0; i < aio->steps.n; i++) {
		const struct aio_step *s = &aio->steps.v[i];

		if (s->from_ns > s->ready_ns || s->ready_ns > s->known_ns ||
		    s->known_ns > s->start_ns || s->start_ns > s->end_ns)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slices *slices = NULL;
	const struct from_calls_options options = { 0 };
	uint16_t len = 0;
	struct error err;

	if (size < sizeof(len))
		return 0;
	memcpy(&len, data, sizeof(len));
	data += sizeof(len);
	size -= sizeof(len);
	if (len > size)
		len = (uint16_t)size;
	if (from_calls_read_memory(&slices, data, len, data + len, size - len, &options, &err) < 0)
		return 0;
	for (size_t i = 0; i < slices->thread_count; i++)
		check(&slices->threads[i]);
	if (slices->tasks)
		check_tasks(slices->tasks);
	slices_free(slices);
	return 0;
}
