/* SPDX-License-Identifier: MIT */
/* When a recording has to end although the program goes on. */
#ifndef GILTRACER_RECORD_LIMIT_H
#define GILTRACER_RECORD_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include "record/perfcmd.h"

/**
 * @duration_s: how long tracing may be on; 0: as long as it likes
 * @max_mib: how large the recordings of an execution may become together; 0: likewise
 * @folder, @least_free: where they are, and bytes to be left in that file system; limit_begin()
 * sets them
 */
struct limit {
	unsigned duration_s;
	unsigned max_mib;
	uint64_t least_free;
	const char *folder;
};

/* Before anything is recorded into folder: what is free there now. */
void limit_begin(struct limit *limit, const char *folder);

/* In how many ms to look again, after elapsed_ns of tracing. */
int limit_wait_ms(const struct limit *limit, uint64_t elapsed_ns);

/* The sentence where it is their size. */
char *limit_size_text(const struct limit *limit, uint64_t elapsed_ns);

/* Why the recordings have to end now: a sentence that the caller frees; NULL: they need not. */
char *limit_reached(const struct limit *limit, uint64_t elapsed_ns,
                    const struct perf_plan *recordings, size_t count);

#endif
