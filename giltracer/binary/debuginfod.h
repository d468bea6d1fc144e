/* SPDX-License-Identifier: MIT */
/* Debug files from a debuginfod server, through elfutils' libdebuginfod, if that is installed. */
#ifndef GILTRACER_BINARY_DEBUGINFOD_H
#define GILTRACER_BINARY_DEBUGINFOD_H

#include <stdbool.h>

/* Whether $DEBUGINFOD_URLS names a server. */
bool debuginfod_is_wanted(void);

/*
 * The path of a build's debug file in libdebuginfod's cache, or NULL. No server is asked unless
 * $DEBUGINFOD_URLS names one. It gives up if nothing was received for 15 seconds, or for
 * $DEBUGINFOD_TIMEOUT seconds if that is less, or if a signal is pending that ends giltracer.
 * Caller frees.
 */
char *debuginfod_get(const char *build_id);

#endif
