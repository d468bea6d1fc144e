/* SPDX-License-Identifier: MIT */
/* Many places of a process's memory in one system call. */
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

/* to has room for len bytes, and stays where it is until batch_read. */
void batch_add(struct batch *batch, uint64_t address, void *to, size_t len);

/* All of it, in the order in which it was added; it is empty then. False: something of it cannot be
 * read, and what was to be read is anything. */
bool batch_read(struct batch *batch, pid_t pid);

void batch_done(struct batch *batch);

#endif
