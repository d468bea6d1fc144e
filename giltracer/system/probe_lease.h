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
#ifndef GILTRACER_SYSTEM_PROBE_LEASE_H
#define GILTRACER_SYSTEM_PROBE_LEASE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define LEASE_MARKER "owner_"

struct tracefs_probes;

/**
 * @setup: it stays until setup --undo
 * @dev, @ino: the file that its probes are in: the kernel holds the file itself and not its name,
 *             so a file that was replaced is known by its inode
 */
struct lease_record {
	bool setup;
	uint64_t dev, ino;
};

/* Path of a file in RUNDIR; caller frees. */
char *lease_path(const char *name);

/* Make RUNDIR, which need not exist. */
int lease_make_folder(struct error *err);

/* What groups of ours end in here: "" but in a container, which is what has a process namespace or
 * a /run of its own, or with $GILTRACER_RUNDIR. Caller frees. */
char *lease_suffix(void);

/* Whether group was made where lease_suffix is another. */
bool lease_is_foreign(const char *group);

/* One at a time installs and removes. Only who may do that can open the file. *ret_fd is for the
 * caller to close. Errors: EBUSY, with the holder's name, after ten seconds; EINTR a signal asks us
 * to end. */
int lease_lock_all(int *ret_fd, struct error *err);

bool lease_read(const char *group, struct lease_record *ret);

/* Whether setup has installed a group for the file at this path, whichever file that was. */
bool lease_is_set_up(const char *path);

/* Record that the probes of group are in file. readers: of setup's, the group of those who use
 * them; 0: root alone. */
int lease_write(const char *group, const char *file, bool setup, gid_t readers, struct error *err);

/* From now on whoever uses the group last removes it. */
int lease_give_up(const char *group, struct error *err);
void lease_remove(const char *group);

/* Share the record until *ret_fd is closed. Errors as of lease_lock_all. */
int lease_share(const char *group, int *ret_fd, struct error *err);

/* Whether a living process shares it. */
bool lease_is_used(const char *group);

/* Install the marker that says so, of a group that has a record. Twice is one. */
int lease_mark(const char *root, const char *group, bool setup, struct error *err);

/* Keep the marker of those that run open. -1 if the kernel does not let us, or it is not there. */
int lease_hold(const char *root, const char *group);

/* Whether one of the probes marks group as setup's. */
bool lease_is_marked_setup(const struct tracefs_probes *probes, const char *group);

#endif
