/* SPDX-License-Identifier: MIT */
/* Records as text, one line each, for `giltracer dump` and tests. */
#ifndef GILTRACER_PERFDATA_PRINT_H
#define GILTRACER_PERFDATA_PRINT_H

#include <stddef.h>
#include <stdio.h>

#include "perfdata/header.h"
#include "perfdata/reader.h"

/* Prints text (until its NUL, at most len bytes) in double quotes; bytes that are not printable
 * ASCII, '"' and '\' become \xNN. */
void print_quoted(FILE *out, const char *text, size_t len);

/* OFFSET TYPE [TIME PID/TID cpu=N EVENT] KEY=VALUE... */
void print_record(FILE *out, const struct perf_header *header, const struct perfdata_record *rec);

/* Events with their ids, host, build-ids. */
void print_header(FILE *out, const struct perf_header *header);

#endif
