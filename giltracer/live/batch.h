/* SPDX-License-Identifier: MIT */
/* Reads many parts of a process's memory in one system call. */
#ifndef GILTRACER_LIVE_BATCH_H
#define GILTRACER_LIVE_BATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/vec.h"

struct batch {
	VEC(struct iovec) here;
	VEC(struct iovec) there;
};

/* to has room for len bytes and must remain valid until batch_read. */
void batch_add(struct batch *batch, uint64_t address, void *to, size_t len);

/* Reads everything that was added, in that order, and empties the batch. False: some of it cannot
 * be read, and the contents of all buffers are undefined. */
bool batch_read(struct batch *batch, pid_t pid);

void batch_done(struct batch *batch);

#endif
