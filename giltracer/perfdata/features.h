/* SPDX-License-Identifier: MIT */
/* The feature sections of a perf.data: header.c finds them, this file reads their contents. */
#ifndef GILTRACER_PERFDATA_FEATURES_H
#define GILTRACER_PERFDATA_FEATURES_H

#include "perfdata/header.h"

/* Read one section, or the record of the pipe layout that has the same bytes. -1 and err if it is
 * invalid. */
int header_feature(struct perf_header *header, unsigned feature, struct cursor c,
                   struct error *err);
int header_tracing_data(struct perf_header *header, struct cursor c, struct error *err);
int header_build_id(struct perf_header *header, uint16_t misc, struct cursor body,
                    struct error *err);

/* Sets the event's name, which the file gives. */
void header_name_event(struct perf_header *header, uint32_t event, const char *name);

/* Sets the format of a tracepoint, now or as soon as it is read. */
void header_find_format(struct perf_header *header, uint32_t event);

/* "TRACING_DATA" for 1, and so on; NULL if unknown. */
const char *header_feature_name(unsigned feature);

#endif
