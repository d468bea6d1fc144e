/* SPDX-License-Identifier: MIT */
/* The bulk data of the page: every span, call, stack and sample, see share/report/FORMAT.md. */
#ifndef GILTRACER_REPORT_PAYLOAD_H
#define GILTRACER_REPORT_PAYLOAD_H

#include <stdio.h>

#include "report/report.h"
#include "report/rows.h"

/* Write the blocks of all passes; rows are those of the passes, by index. */
int payload_write(const struct report *report, const struct rows *rows, FILE *out,
                  struct error *err);

#endif
