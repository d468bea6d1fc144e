/* SPDX-License-Identifier: MIT */
/* The code objects that were seen in a running process, written as a list that reports read. */
#ifndef GILTRACER_LIVE_CODES_H
#define GILTRACER_LIVE_CODES_H

#include "base/error.h"
#include "live/target.h"

/* Write them to path in the format of trace/pycode.h, completely or not at all. */
int codes_write(const struct target *target, const char *path, struct error *err);

#endif
