/* SPDX-License-Identifier: MIT */
/* The input as a file in memory, for functions that read from a path. */
#ifndef GILTRACER_TESTS_FUZZ_FILE_BYTES_H
#define GILTRACER_TESTS_FUZZ_FILE_BYTES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct file_bytes {
	int fd;
	char path[64];
};

static struct file_bytes file_bytes_make(const uint8_t *data, size_t size)
{
	struct file_bytes f = { .fd = memfd_create("fuzz", MFD_CLOEXEC) };

	if (f.fd < 0 || write(f.fd, data, size) != (ssize_t)size)
		abort();
	snprintf(f.path, sizeof(f.path), "/proc/self/fd/%d", f.fd);
	return f;
}

#endif
