/* SPDX-License-Identifier: MIT */
/* Writes the code objects seen in a running process as a list that reports read. */
#ifndef GILTRACER_LIVE_CODES_H
#define GILTRACER_LIVE_CODES_H

#include "base/error.h"
#include "live/target.h"

/* Write them to path in the format of trace/pycode.h, completely or not at all. */
int codes_write(const struct target *target, const char *path, struct error *err);

#endif
