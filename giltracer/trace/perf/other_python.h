/* SPDX-License-Identifier: MIT */
/* Finds interpreters that run in the recording, but were not probed. */
#ifndef GILTRACER_TRACE_PERF_OTHER_PYTHON_H
#define GILTRACER_TRACE_PERF_OTHER_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

struct build_id;

/*
 * Whether code of length bytes from the file at path has a GIL of its own, because it is a
 * libpython or a static python, and its build-id is known and differs from probed, in hexadecimal.
 * probed NULL: no interpreter has probes.
 */
bool is_other_python(const char *path, uint64_t length, const struct build_id *id,
                     const char *probed);

#endif
