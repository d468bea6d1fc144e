/* SPDX-License-Identifier: MIT */
/* The perf that runs with capabilities. */
#ifndef GILTRACER_SYSTEM_PERF_PATH_H
#define GILTRACER_SYSTEM_PERF_PATH_H

/* The path of the system's perf, which is owned by root and writable by root only; NULL if there
 * is none. PATH is not searched, because the caller chooses it. */
const char *perf_path(void);

#endif
