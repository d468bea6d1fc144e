/* SPDX-License-Identifier: MIT */
#include "python/memory.h"

#define AT_ONCE 1024 /* UIO_MAXIOV */

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

/* ---- many parts at once */

void batch_add(struct batch *b, uint64_t address, void *to, size_t len)
{
	*vec_push(&b->here) = (struct iovec){ .iov_base = to, .iov_len = len };
	*vec_push(&b->there) = (struct iovec){ .iov_base = (void *)(uintptr_t)address,
		                               .iov_len = len };
}

bool batch_read(struct batch *b, pid_t pid)
{
	bool whole = true;

	for (size_t i = 0, n; i < b->here.n && whole; i += n) {
		ssize_t want = 0;

		n = b->here.n - i < AT_ONCE ? b->here.n - i : AT_ONCE;
		for (size_t j = i; j < i + n; j++)
			want += (ssize_t)b->here.v[j].iov_len;
		whole = process_vm_readv(pid, b->here.v + i, n, b->there.v + i, n, 0) == want;
	}
	b->here.n = b->there.n = 0;
	return whole;
}

void batch_done(struct batch *b)
{
	vec_done(&b->here);
	vec_done(&b->there);
}
