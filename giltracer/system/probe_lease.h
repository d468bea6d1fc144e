/* SPDX-License-Identifier: MIT */
/*
 * Who owns a probe group is known from three things:
 *
 * - its record, RUNDIR/GROUP, says in which file its probes are. Its users hold a shared flock(2) on
 *   the record, which the kernel drops however they die;
 * - its marker is a uprobe of the group in the record instead of a program, so that it never fires.
 *   Its users keep it open through perf. The kernel does not remove an open uprobe, so that
 *   giltracers in another container, which cannot see this RUNDIR, do not remove it as a stray;
 * - in a container, its name ends in "_c" and 6 digits: the same interpreter of one image has
 *   another group in each container, and the owner can be told from outside.
 *
 * RUNDIR is /run/giltracer, or $GILTRACER_RUNDIR.
 */
#ifndef GILTRACER_SYSTEM_PROBE_LEASE_H
#define GILTRACER_SYSTEM_PROBE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define LEASE_MARKER "owner_run"

/**
 * @dev, @ino: the file with its probes. The kernel keeps the file rather than its name, so a
 * replaced file is recognized by its inode
 */
struct lease_record {
	uint64_t dev, ino;
};

/* The path of a file in RUNDIR; the caller frees it. */
char *lease_path(const char *name);

/* Make RUNDIR unless it exists. */
int lease_make_folder(struct error *err);

/* The suffix of our groups here: "" outside of containers. A container is recognized by its own
 * process namespace or its own /run; $GILTRACER_RUNDIR counts as one, too. The caller frees it. */
char *lease_suffix(void);

/* Whether group was made where lease_suffix() differs. */
bool lease_is_foreign(const char *group);

/*
 * Lock all groups: one process at a time installs and removes probes. Only users who may do that
 * can open the file. The caller closes *ret_fd. Errors: EBUSY, with the holder's name, after
 * twenty seconds; EINTR: a signal asks us to end.
 */
int lease_lock_all(int *ret_fd, struct error *err);

bool lease_read(const char *group, struct lease_record *ret);

/* Record that the probes of group are in file. */
int lease_write(const char *group, const char *file, struct error *err);
void lease_remove(const char *group);

/* Share the record until *ret_fd is closed. Errors are those of lease_lock_all. */
int lease_share(const char *group, int *ret_fd, struct error *err);

/* Whether a living process shares the record. */
bool lease_is_used(const char *group);

/* Install the marker of a group that has a record. If it is installed already, this does nothing. */
int lease_mark(const char *root, const char *group, struct error *err);

/* Keep the marker open. Returns -1 if the kernel does not permit that, or
 * there is no marker. */
int lease_hold(const char *root, const char *group);

#endif
