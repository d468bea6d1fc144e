/* SPDX-License-Identifier: MIT */
/* Which processes are exported: those of a folder of pages, as they come and go. */
#ifndef GILTRACER_METRICS_WATCH_H
#define GILTRACER_METRICS_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "metrics/process.h"

/* Processes beyond that have no series; they are counted. Each takes two descriptors. */
#define METRICS_PROCESSES 300

/**
 * @root: only this process and its descendants; 0: all
 * @ours: the folder is the launcher's, who removes what the dead left
 */
struct watch_folder {
	char *path;
	pid_t root;
	bool ours;
};

/**
 * @processes: by time of discovery; each was read at the last watch_update()
 * @left_out: how many are not in it
 * @label_arguments: of the programs; set before the first process is added
 */
struct watch {
	VEC(struct watch_folder) folders;
	VEC(struct metrics_process *) processes;
	unsigned left_out;
	bool label_arguments;
};

/* All processes whose pages are in a folder, which belongs to the caller. */
void watch_add_folder(struct watch *watch, const char *path);

/* A process that runs, and its descendants. Errors of totals_open_process. */
int watch_add_process(struct watch *watch, pid_t pid, struct error *err);

/* The same without descendants, by the totals of the process, which are the watch's from now on. ESRCH. */
int watch_add_totals(struct watch *watch, struct totals *totals, pid_t pid, struct error *err);

/* Find new ones, forget those that ended, read all. */
void watch_update(struct watch *watch);

void watch_done(struct watch *watch);

#endif
