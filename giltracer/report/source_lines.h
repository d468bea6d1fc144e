/* SPDX-License-Identifier: MIT */
/* Adds the source lines that a report may show to a session that was just recorded. */
#ifndef GILTRACER_REPORT_SOURCE_LINES_H
#define GILTRACER_REPORT_SOURCE_LINES_H

#include "base/error.h"

/* To be called soon after the recording, because the program's files may change: a file that is
 * newer than the recording is not read. */
int source_lines_save(const char *dir, struct error *err);

#endif
