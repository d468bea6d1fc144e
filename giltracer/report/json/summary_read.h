/* SPDX-License-Identifier: MIT */
/* A summary of a JSON document that --json wrote. */
#ifndef GILTRACER_REPORT_JSON_SUMMARY_READ_H
#define GILTRACER_REPORT_JSON_SUMMARY_READ_H

#include "analysis/diff.h"
#include "base/error.h"

/* Parses schema 1; free with summary_done, even after an error. */
int summary_read(struct summary *ret, const char *text, size_t len, struct error *err);

#endif
