/* SPDX-License-Identifier: MIT */
/* Any bytes as a VizTracer JSON: an error, or calls in order that do not overlap at a depth. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "trace/names.h"
#include "trace/slices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct slices *slices)
{
	for (size_t i = 0; i < slices->thread_count; i++) {
		const struct slice_thread *t = &slices->threads[i];

		for (size_t k = 0; k < t->n; k++)
			if ((k && t->v[k].start_ns < t->v[k - 1].start_ns) ||
			    t->v[k].depth > t->max_depth ||
			    t->v[k].name >= names_count(slices->names))
				abort();
	}
}

/* The input is read from a path, so it is in a file in memory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slices *slices = NULL;
	struct error err = { 0 };
	int fd = memfd_create("viztracer", MFD_CLOEXEC);
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (from_viztracer_read(&slices, path, 0, NULL, &err) == 0)
		check(slices);
	else if (!err.text[0])
		abort();
	slices_free(slices);
	close(fd);
	return 0;
}
