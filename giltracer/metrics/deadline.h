/* SPDX-License-Identifier: MIT */
/* Limits the duration of connections: clients that send or read too slowly are cut off. */
#ifndef GILTRACER_METRICS_DEADLINE_H
#define GILTRACER_METRICS_DEADLINE_H

#include <stdint.h>

struct deadlines;
struct deadline;

/* Starts a thread that watches. NULL: no more threads can be created. */
struct deadlines *deadlines_new(uint64_t after_ns);
void deadlines_free(struct deadlines *deadlines);

/* A connected socket is shut down after after_ns, unless it is renewed or removed before. */
struct deadline *deadline_add(struct deadlines *deadlines, int socket);
void deadline_renew(struct deadlines *deadlines, struct deadline *deadline);
void deadline_remove(struct deadlines *deadlines, struct deadline *deadline);

#endif
