/* SPDX-License-Identifier: MIT */
/* Limits the duration of connections: clients that send or read too slowly are cut off. */
#ifndef GILTRACER_METRICS_DEADLINE_H
#define GILTRACER_METRICS_DEADLINE_H

#include <stdint.h>

struct deadlines;
struct deadline;

/**
 * @after_ns: a connection is shut down after this time, unless it is renewed or removed before
 * @most: so many connections keep others waiting,
 * @full_ns: so those that are older than this are shut down then
 */
struct deadlines_limits {
	uint64_t after_ns;
	unsigned most;
	uint64_t full_ns;
};

/* Starts a thread that watches. NULL: no more threads can be created. */
struct deadlines *deadlines_new(const struct deadlines_limits *limits);
void deadlines_free(struct deadlines *deadlines);

/* A connected socket; renewed when a request was answered. */
struct deadline *deadline_add(struct deadlines *deadlines, int socket);
void deadline_renew(struct deadlines *deadlines, struct deadline *deadline);
void deadline_remove(struct deadlines *deadlines, struct deadline *deadline);

#endif
