/* SPDX-License-Identifier: MIT */
/* How a program is linked, which determines whether a library can be preloaded into it. */
#ifndef GILTRACER_BINARY_DYNAMIC_H
#define GILTRACER_BINARY_DYNAMIC_H

#include <stdbool.h>

#include "base/error.h"

/**
 * @ours: it is for this machine's architecture
 * @interpreter: path of its dynamic linker, "" if it is linked statically
 * @sanitized: it needs AddressSanitizer's runtime
 */
struct dynamic {
	bool ours, sanitized;
	char interpreter[256];
};

/* Errors as for image_open. */
int dynamic_read(struct dynamic *ret, const char *path, struct error *err);

#endif
