/* SPDX-License-Identifier: MIT */
/* A folder for reports that nobody asked for, whose oldest are deleted. */
#ifndef GILTRACER_BASE_REPORT_FOLDER_H
#define GILTRACER_BASE_REPORT_FOLDER_H

#include <sys/types.h>

#include "base/child.h"
#include "base/error.h"

/* Open the folder, which is made if it is missing. Reports go to this folder, also if its name is given to
 * another one later. The caller closes *ret. */
int report_folder_open(int *ret, const char *path, struct error *err);

/* giltracer-TIME-PID.html; the caller frees it. */
char *report_folder_name(pid_t pid);

/* The path of the report in a process of report_folder_spawn(); the caller frees it. */
char *report_folder_path(const char *name);

/* Start this program once more, with these NULL-terminated arguments, to write a report. Nobody reads what
 * it prints. */
int report_folder_spawn(struct child *ret, int folder, const char *const argv[], struct error *err);

/* Delete the oldest reports, but never the newest, until the size of all is at most limit_mib. Other
 * files are left alone. */
void report_folder_trim(int folder, unsigned limit_mib);

#endif
