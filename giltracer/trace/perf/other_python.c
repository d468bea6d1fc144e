/* SPDX-License-Identifier: MIT */
/* Finds interpreters that run in the recording, but were not probed. */
#include "trace/perf/other_python.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "binary/module.h"

/* A python with its code in a libpython has one or two pages of code; a static one has
 * megabytes. */
#define STATIC_BYTES (256 << 10)

/* "python", "python3", "python3.13", "python3.13t", but neither "python3-config" nor
 * "pythonize". */
static bool is_python(const char *base)
{
	if (!str_has_prefix(base, "python"))
		return false;
	base += strlen("python");
	base += strspn(base, "0123456789.");
	base += strspn(base, "dmtu");
	return !*base;
}

static bool is_build(const struct build_id *id, const char *hex)
{
	for (size_t i = 0; i < id->size; i++) {
		char byte[3];

		snprintf(byte, sizeof(byte), "%02x", id->bytes[i]);
		/* If one of the two ids is shorter, only its bytes are compared. */
		if (!hex[0] || !hex[1])
			return true;
		if (byte[0] != hex[0] || byte[1] != hex[1])
			return false;
		hex += 2;
	}
	return true;
}

bool is_other_python(const char *path, uint64_t length, const struct build_id *id,
                     const char *probed)
{
	const char *base = str_base(path);

	if (!(str_has_prefix(base, "libpython") && strstr(base, ".so")) &&
	    !(is_python(base) && length >= STATIC_BYTES))
		return false;
	return !probed || (id->size && *probed && !is_build(id, probed));
}
