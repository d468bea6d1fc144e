/* SPDX-License-Identifier: MIT */
/* The perf that is given capabilities. */
#ifndef GILTRACER_SYSTEM_PERF_PATH_H
#define GILTRACER_SYSTEM_PERF_PATH_H

/* The system's perf, which is root's and nobody else can write: not by PATH, which is the caller's.
 * NULL if there is none. */
const char *perf_path(void);

#endif
