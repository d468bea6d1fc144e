/* SPDX-License-Identifier: MIT */
/* The exported processes: those with pages in a folder, as they come and go. */
#ifndef GILTRACER_METRICS_WATCH_H
#define GILTRACER_METRICS_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "metrics/process.h"

/* Further processes have no series, but are counted. Each process takes two descriptors. */
#define METRICS_PROCESSES 300

/**
 * @root: only this process and its descendants; 0: all
 * @ours: we made the folder, and remove the files of dead processes
 */
struct watch_folder {
	char *path;
	pid_t root;
	bool ours;
};

/**
 * @processes: in the order of discovery, as read by the last watch_update()
 * @left_out: the number of processes beyond METRICS_PROCESSES
 * @label_arguments: export the programs' arguments; set before the first process is added
 */
struct watch {
	VEC(struct watch_folder) folders;
	VEC(struct metrics_process *) processes;
	unsigned left_out;
	bool label_arguments;
};

/* Add all processes with pages in a folder, which we made. */
void watch_add_folder(struct watch *watch, const char *path);

/* Add a running process and its descendants. Errors are those of totals_open_process. */
int watch_add_process(struct watch *watch, pid_t pid, struct error *err);

/* Add a process without its descendants, by its totals, which the watch owns from now on. Error
 * ESRCH. */
int watch_add_totals(struct watch *watch, struct totals *totals, pid_t pid, struct error *err);

/* Find new processes, forget those that have ended, and read all. */
void watch_update(struct watch *watch);

void watch_done(struct watch *watch);

#endif
