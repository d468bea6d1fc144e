/* SPDX-License-Identifier: MIT */
/*
 * Uprobes in the kernel, through tracefs. A group of ours is owned either by `giltracer setup`,
 * and then stays, or by the giltracers that use it right now, and then the last of them removes it.
 * A group that neither setup nor a living giltracer owns is a stray; probe_lease.h has who owns what.
 * Tracefs is where it is mounted.
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
 * Make the probes of set usable: those that are installed and verified (path, offsets, arguments
 * and the build of the file now on disk), else install them if we may. Strays are removed on the
 * way if we may. sandbox_remedy() has what a user without
 * the right is to be told.
 */
int uprobes_prepare(const struct probe_set *set, struct uprobes **ret, struct error *err);

/* "GROUP:EVENT" names for perf -e, NULL-terminated; borrowed until uprobes_release. */
const char *const *uprobes_events(const struct uprobes *uprobes);

/* Whether this process may have to remove them: false if setup owns them. */
bool uprobes_owned(const struct uprobes *uprobes);

/* Stop using them: the last user removes what setup does not own. NULL is fine. After perf ended.
 */
void uprobes_release(struct uprobes *uprobes);

/* For setup. Install on behalf of the system: they stay until uprobes_uninstall. Twice is one. What
 * is in use when it is uninstalled goes when its last user does. */
int uprobes_install(const struct probe_set *set, struct error *err);
bool uprobes_is_set_up(const struct probe_set *set);
int uprobes_uninstall(const char *group, struct error *err);

/* A group of ours in the kernel. */
struct uprobe_group {
	char *name;
	char *path; /* of the file it probes */
	size_t probes;
	bool setup;    /* installed by setup */
	bool used;     /* a living giltracer uses it; not known of a foreign one */
	bool outdated; /* the file was replaced since */
	bool foreign;  /* of another container: removed if the kernel lets us */
};

struct uprobe_groups {
	VEC(struct uprobe_group) groups;
};

/* All groups of ours; done by uprobe_groups_done. */
int uprobes_list(struct uprobe_groups *ret, struct error *err);
void uprobe_groups_done(struct uprobe_groups *groups);

static inline bool uprobe_group_is_stray(const struct uprobe_group *group)
{
	return !group->setup && !group->used && !group->foreign;
}

/* Remove strays, and foreign groups that nothing has open; *ret_removed may be NULL. */
int uprobes_remove_strays(size_t *ret_removed, struct error *err);

DEFINE_CLEANUP(struct uprobes *, uprobes_release);

static inline void cleanup_uprobe_groups_done(struct uprobe_groups *groups)
{
	uprobe_groups_done(groups);
}

#endif
