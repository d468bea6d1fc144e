/* SPDX-License-Identifier: MIT */
/* Debug files from a debuginfod server, by way of elfutils' libdebuginfod, if that is installed. */
#ifndef GILTRACER_BINARY_DEBUGINFOD_H
#define GILTRACER_BINARY_DEBUGINFOD_H

#include <stdbool.h>

/* Whether $DEBUGINFOD_URLS names a server. */
bool debuginfod_is_wanted(void);

/*
 * The path of the debug file of a build, in the cache where libdebuginfod keeps it; NULL if there
 * is none. Nothing is asked unless $DEBUGINFOD_URLS names a server. It gives up when nothing has
 * come for 15 seconds, or for $DEBUGINFOD_TIMEOUT of them if that is less, and when a signal is
 * pending that ends giltracer. Caller frees.
 */
char *debuginfod_get(const char *build_id);

#endif
