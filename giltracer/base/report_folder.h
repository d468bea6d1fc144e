/* SPDX-License-Identifier: MIT */
/* A folder for reports that nobody asked for, whose oldest are deleted. */
#ifndef GILTRACER_BASE_REPORT_FOLDER_H
#define GILTRACER_BASE_REPORT_FOLDER_H

#include <sys/types.h>

#include "base/error.h"

/* Open the folder, which is made if it is missing. Reports go to this folder, also if its name is given to
 * another one later. The caller closes *ret. */
int report_folder_open(int *ret, const char *path, struct error *err);

/* giltracer-TIME-PID.html; the caller frees it. */
char *report_folder_name(pid_t pid);

/* Delete the oldest reports, but never the newest, until the size of all is at most limit_mib. Other
 * files are left alone. */
void report_folder_trim(int folder, unsigned limit_mib);

#endif
