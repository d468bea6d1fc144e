/* SPDX-License-Identifier: MIT */
/* What a scraper receives: OpenMetrics 1.0, or Prometheus' text format 0.0.4. */
#ifndef GILTRACER_METRICS_EXPOSITION_H
#define GILTRACER_METRICS_EXPOSITION_H

#include "base/str.h"
#include "metrics/watch.h"

enum exposition { EXPOSITION_PROMETHEUS, EXPOSITION_OPENMETRICS };

/* The value of Content-Type. */
const char *exposition_type(enum exposition format);

/* Append the metrics of all processes as of the last watch_update(). */
void exposition_write(struct str *out, const struct watch *watch, enum exposition format);

#endif
