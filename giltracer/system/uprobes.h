/* SPDX-License-Identifier: MIT */
/*
 * Uprobes in the kernel, through tracefs. Each of our groups is owned by the giltracers that use it
 * at present, the last of which removes it. A group that no living giltracer owns is a stray; see
 * "leases" below. Tracefs may be mounted anywhere.
 */
#ifndef GILTRACER_SYSTEM_UPROBES_H
#define GILTRACER_SYSTEM_UPROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"
#include "system/tracefs.h"

/* ---- return probes and seccomp */

/*
 * Return probes and seccomp. Since Linux 6.11, a function with a return probe on x86-64 returns by
 * a special system call, uretprobe(2). From 6.14 on, and in stable releases of that time, it
 * bypasses seccomp filters; before, a filter that does not know the call kills the program when
 * such a function returns (arch/x86/kernel/uprobes.c, kernel/seccomp.c).
 */

/* Whether the present filter denies the call; false if there is no filter. Tries the call in a
 * child process. */
bool uretprobe_denied(void);

/*
 * The same from how the child ended (see waitpid; its exit status is the call's errno) and the
 * kernel's release, "6.12.3-amd64". The kernel kills by SIGILL if uretprobe is called from
 * elsewhere; the related uprobe(2) of 6.18 returns ENXIO.
 */
bool uretprobe_judge(int status, const char *release);

struct probe_set;
struct uprobes;

/*
 * Make the probes of set usable: use those that are installed if they are correct (path, offsets,
 * arguments and the build of the file now on disk), else install them. Strays are removed. For users
 * without the right, sandbox_remedy() has the advice.
 */
int uprobes_prepare(const struct probe_set *set, struct uprobes **ret, struct error *err);

/* Whether this user may record them. The kernel is asked by opening the first one, which stays open: to
 * close it takes 70 ms if nobody else has. */
int uprobes_try(struct uprobes *uprobes, struct error *err);

/* "GROUP:EVENT" names for perf -e, NULL-terminated; borrowed until uprobes_release. */
const char *const *uprobes_events(const struct uprobes *uprobes);

/* Stop using them; their last user removes them. Call it after perf has
 * ended. NULL is allowed. */
void uprobes_release(struct uprobes *uprobes);

/*
 * The same in a process of its own, as soon as those of these pidfds have ended, because the kernel takes 50
 * to 100 ms for each probe that it removes. That process keeps nothing else of ours open. Returns its pid, or
 * -1 if there is none and the probes are still ours.
 */
pid_t uprobes_release_after(struct uprobes *uprobes, const int *pidfds, size_t count);

/* One of our groups in the kernel. */
struct uprobe_group {
	char *name;
	char *path; /* of the file it probes */
	size_t probes;
	bool used;    /* by a living giltracer; not known of a foreign group */
	bool foreign; /* made in another container: removed if the kernel permits it */
};

struct uprobe_groups {
	VEC(struct uprobe_group) groups;
};

/* List all our groups; free with uprobe_groups_done. */
int uprobes_list(struct uprobe_groups *ret, struct error *err);
void uprobe_groups_done(struct uprobe_groups *groups);

static inline bool uprobe_group_is_stray(const struct uprobe_group *group)
{
	return !group->used && !group->foreign;
}

/* Remove strays, and foreign groups that are not in use; *ret_removed may be NULL. */
int uprobes_remove_strays(size_t *ret_removed, struct error *err);

DEFINE_CLEANUP(struct uprobes *, uprobes_release);

DEFINE_CLEANUP_IN(struct uprobe_groups, uprobe_groups_done);

/* ---- whether the probes are in place in a running process */

struct probe_set;

/*
 * Call it when the probes are placed and known to the recorder, and nothing runs yet. Error ESTALE:
 * the file has changed since its functions were found, so that a probe may be in the middle of an
 * instruction, with unpredictable effects.
 */
int probe_verify_file(const struct probe_set *set, struct error *err);

/*
 * The kernel puts its breakpoints into the file that it found when the probes were placed. A
 * process is recorded without its GIL if it runs another file, because the file was replaced or an
 * overlay copied it, or if the kernel has put no breakpoints into it. Call it while a recorder is
 * attached and the process waits. Error ESTALE: the probes are missing, and why. A process that
 * this user may not read passes.
 */
int probe_verify_process(pid_t pid, const struct probe_set *set, struct error *err);

/* ---- leases: whose the probes are */

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

/* Files in RUNDIR whose names begin so contain the places of an interpreter's probes, for the next recording. Remove
 * all but the newest keep. */
#define LEASE_PLACES "places-"

void lease_drop_places(size_t keep);

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
