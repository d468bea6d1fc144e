/* SPDX-License-Identifier: MIT */
/* When a recording ends although the program goes on. */
#ifndef GILTRACER_RECORD_LIMIT_H
#define GILTRACER_RECORD_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include "record/perf.h"

/**
 * @duration_s: how long tracing may be on; 0: no limit
 * @max_mib: how large the recordings of an execution may become together; 0: no limit
 * @folder, @least_free: where they are, and the bytes to leave free in that file system; set by
 * limit_begin()
 */
struct limit {
	unsigned duration_s;
	unsigned max_mib;
	uint64_t least_free;
	const char *folder;
};

/* Note how much is free in folder, before anything is recorded there. */
void limit_begin(struct limit *limit, const char *folder);

/* In how many ms to check again, after elapsed_ns of tracing. */
int limit_wait_ms(const struct limit *limit, uint64_t elapsed_ns);

/* The sentence about the limit of size; the caller frees it. */
char *limit_size_text(const struct limit *limit, uint64_t elapsed_ns);

/* Why the recordings have to end now: a sentence that the caller frees, or NULL if they may go
 * on. */
char *limit_reached(const struct limit *limit, uint64_t elapsed_ns,
                    const struct perf_plan *recordings, size_t count);

#endif
