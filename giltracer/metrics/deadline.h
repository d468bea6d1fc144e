/* SPDX-License-Identifier: MIT */
/* Connections that may not last: whoever sends or reads too slowly is cut off. */
#ifndef GILTRACER_METRICS_DEADLINE_H
#define GILTRACER_METRICS_DEADLINE_H

#include <stdint.h>

struct deadlines;
struct deadline;

/* Watches with a thread of its own. NULL: there can be no more threads. */
struct deadlines *deadlines_new(uint64_t after_ns);
void deadlines_free(struct deadlines *deadlines);

/* A connected socket is shut down after that time, unless it is renewed or removed before. */
struct deadline *deadline_add(struct deadlines *deadlines, int socket);
void deadline_renew(struct deadlines *deadlines, struct deadline *deadline);
void deadline_remove(struct deadlines *deadlines, struct deadline *deadline);

#endif
