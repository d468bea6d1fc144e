/* SPDX-License-Identifier: MIT */
/* Finds our data files: in the build tree, next to an installed binary, or in
 * $GILTRACER_DATADIR. */
#ifndef GILTRACER_BASE_DATADIR_H
#define GILTRACER_BASE_DATADIR_H

#include "error.h"

/*
 * The path of a data file or folder, named as in the source tree: "probes", "share/python/x.py",
 * "share/report/page.html". If installed, share/X is <datadir>/giltracer/X and probes is
 * <datadir>/giltracer/probes. Caller frees. The text of ENOENT lists the paths that were tried.
 */
int datadir_find(char **ret, const char *name, struct error *err);

/* The same for a shared library of ours: in the build folder it is looked up by name; if installed,
 * by the last component of name. */
int datadir_find_library(char **ret, const char *name, struct error *err);

#endif
