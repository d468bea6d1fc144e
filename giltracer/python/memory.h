/* SPDX-License-Identifier: MIT */
/* Reads the memory of another process while it runs (process_vm_readv(2)); it is neither stopped
 * nor changed by that. The data may mix two states, so the reader has to check it. */
#ifndef GILTRACER_PYTHON_MEMORY_H
#define GILTRACER_PYTHON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/vec.h"

/* Reads exactly len bytes. False: not all of them are mapped, or errno is EPERM or ESRCH. */
bool memory_read(pid_t pid, uint64_t address, void *ret, size_t len);

/* Writes exactly len bytes, likewise. */
bool memory_write(pid_t pid, uint64_t address, const void *bytes, size_t len);

static inline bool memory_u64(pid_t pid, uint64_t address, uint64_t *ret)
{
	return memory_read(pid, address, ret, sizeof(*ret));
}

static inline bool memory_u32(pid_t pid, uint64_t address, uint32_t *ret)
{
	return memory_read(pid, address, ret, sizeof(*ret));
}

/* A number at offset in a buffer, which must contain all of it. */
static inline uint64_t bytes_u64(const uint8_t *bytes, size_t offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static inline uint32_t bytes_u32(const uint8_t *bytes, size_t offset)
{
	uint32_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

/* Reads of many parts of a process's memory in one system call. */
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

/* Offset of tid in glibc's struct pthread (nptl/descr.h, since 2.4). */
#ifdef __aarch64__
#define MEMORY_PTHREAD_TID 0xd0
#else
#define MEMORY_PTHREAD_TID 0x2d0
#endif

/* The kernel's number of a thread, in its process's namespace, by its pthread_t, which points to glibc's
 * struct pthread. The caller compares it with the kernel's list. */
static inline bool memory_pthread_tid(pid_t pid, uint64_t pthread, uint32_t *ret)
{
	return memory_u32(pid, pthread + MEMORY_PTHREAD_TID, ret);
}

#endif
