/* SPDX-License-Identifier: MIT */
/*
 * Who owns a probe group. Three things say so:
 *
 * - its record, RUNDIR/GROUP, says whether setup or giltracers that run installed it, and in which
 *   file. Its users hold a shared flock(2) on it, which the kernel drops however they die;
 * - its marker, a uprobe of the group that is in no program but in the record itself, and so never
 *   fires: "owner_setup", or "owner_run", which its users keep open through perf. The kernel does
 *   not remove what is open, so that those who cannot see RUNDIR, in another container, cannot
 *   take it for a stray;
 * - the end of its name, "_c" and 6 digits in a container: the same interpreter of one image is
 *   another group in each of them, and whose group it is can be told from outside.
 *
 * RUNDIR is /run/giltracer, or $GILTRACER_RUNDIR.
 */
#ifndef GILTRACER_LAUNCH_OWNER_H
#define GILTRACER_LAUNCH_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define OWNER_MARKER "owner_"

struct tracefs_probes;

/**
 * @setup: it stays until setup --undo
 * @dev, @ino: the file that its probes are in: the kernel holds the file itself and not its name,
 *             so a file that was replaced is known by its inode
 */
struct owner_record {
	bool setup;
	uint64_t dev, ino;
};

/* Path of a file in RUNDIR; caller frees. */
char *owner_path(const char *name);

/* What groups of ours end in here: "" but in a container, which is what has a process namespace or
 * a /run of its own, or with $GILTRACER_RUNDIR. Caller frees. */
char *owner_suffix(void);

/* Whether group was made where owner_suffix is another. */
bool owner_is_foreign(const char *group);

/* One at a time installs and removes. Only who may do that can open the file. *ret_fd is for the
 * caller to close. */
int owner_lock_all(int *ret_fd, struct error *err);

bool owner_read(const char *group, struct owner_record *ret);

/* Whether setup has installed a group for the file at this path, whichever file that was. */
bool owner_is_set_up(const char *path);

/* Record that the probes of group are in file. */
int owner_write(const char *group, const char *file, bool setup, struct error *err);

/* From now on whoever uses the group last removes it. */
int owner_give_up(const char *group, struct error *err);
void owner_remove(const char *group);

/* Share the record until *ret_fd is closed. */
int owner_share(const char *group, int *ret_fd, struct error *err);

/* Whether a living process shares it. */
bool owner_is_used(const char *group);

/* Install the marker that says so, of a group that has a record. Twice is one. */
int owner_mark(const char *root, const char *group, bool setup, struct error *err);

/* Keep the marker of those that run open. -1 if the kernel does not let us, or it is not there. */
int owner_hold(const char *root, const char *group);

/* Whether one of the probes marks group as setup's. */
bool owner_is_marked_setup(const struct tracefs_probes *probes, const char *group);

#endif
