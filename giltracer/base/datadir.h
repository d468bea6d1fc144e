/* SPDX-License-Identifier: MIT */
/* Where our own data files are: in the build tree, beside an installed binary, or where
 * $GILTRACER_DATADIR says. */
#ifndef GILTRACER_BASE_DATADIR_H
#define GILTRACER_BASE_DATADIR_H

#include "error.h"

/*
 * The path of a data file or folder, named as in the source tree: "probes", "share/python/x.py",
 * "share/report/page.html". Installed, share/X is <datadir>/giltracer/X and probes is
 * <datadir>/giltracer/probes. Caller frees. ENOENT names every place that was looked at.
 */
int datadir_find(char **ret, const char *name, struct error *err);

/* The same for a shared library of ours: in the build folder by name, installed by the last part
 * of name. */
int datadir_find_library(char **ret, const char *name, struct error *err);

#endif
