/* SPDX-License-Identifier: MIT */
/* The bulk data of the page: every span, call, stack and sample, see share/report/FORMAT.md. */
#ifndef GILTRACER_REPORT_HTML_PAYLOAD_H
#define GILTRACER_REPORT_HTML_PAYLOAD_H

#include <stdio.h>

#include "report/report.h"
#include "report/html/rows.h"

struct payload;

/* Begin to encode all passes, in threads; rows are those of the passes, by index. Both are
 * borrowed until payload_free, which may be called at any time. */
int payload_start(struct payload **ret, const struct recording *recording, const struct rows *rows,
                  struct error *err);
void payload_free(struct payload *payload);

/* Write the blocks as they become ready. */
void payload_write(struct payload *payload, FILE *out);

#endif
