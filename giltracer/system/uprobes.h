/* SPDX-License-Identifier: MIT */
/*
 * Uprobes in the kernel, through tracefs. Each of our groups is owned by the giltracers that use it
 * at present, the last of which removes it. A group that no living giltracer owns is a stray; see
 * probe_lease.h. Tracefs may be mounted anywhere.
 */
#ifndef GILTRACER_SYSTEM_UPROBES_H
#define GILTRACER_SYSTEM_UPROBES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"
#include "system/tracefs.h"

struct probe_set;
struct uprobes;

/*
 * Make the probes of set usable: use those that are installed if they are correct (path, offsets,
 * arguments and the build of the file now on disk), else install them. Strays are removed. For users
 * without the right, sandbox_remedy() has the advice.
 */
int uprobes_prepare(const struct probe_set *set, struct uprobes **ret, struct error *err);

/* "GROUP:EVENT" names for perf -e, NULL-terminated; borrowed until uprobes_release. */
const char *const *uprobes_events(const struct uprobes *uprobes);

/* Stop using them; their last user removes them. Call it after perf has
 * ended. NULL is allowed. */
void uprobes_release(struct uprobes *uprobes);

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

static inline void cleanup_uprobe_groups_done(struct uprobe_groups *groups)
{
	uprobe_groups_done(groups);
}

#endif
