/* SPDX-License-Identifier: MIT */
#include "live/memory.h"

#include <sys/uio.h>

bool memory_read(pid_t pid, uint64_t address, void *ret, size_t len)
{
	const struct iovec here = { .iov_base = ret, .iov_len = len };
	const struct iovec there = { .iov_base = (void *)(uintptr_t)address, .iov_len = len };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)len;
}

bool memory_write(pid_t pid, uint64_t address, const void *bytes, size_t len)
{
	const struct iovec here = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
	const struct iovec there = { .iov_base = (void *)(uintptr_t)address, .iov_len = len };

	return process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)len;
}
