/* SPDX-License-Identifier: MIT */
/* Below which folder separate debug files are. */
#ifndef GILTRACER_BASE_DEBUGDIR_H
#define GILTRACER_BASE_DEBUGDIR_H

/*
 * /usr/lib/debug, or $GILTRACER_DEBUGDIR, which replaces it. NULL if that is set but empty: then no
 * separate debug information of any kind is wanted. Borrowed from the environment.
 */
const char *debugdir(void);

#endif
