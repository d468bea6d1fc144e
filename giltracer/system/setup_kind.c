/* SPDX-License-Identifier: MIT */
/* Reads, describes, makes and undoes each kind of change. */
#include "system/setup_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "system/host.h"
#include "locate/probes.h"
#include "system/uprobes.h"

#define FILE_MAX (4u << 20)

static char *group_current(const struct setup_step *step)
{
	return getgrnam(step->target) ? xstrdup("present") : NULL;
}

/* Whether an administrator has added members since: setup's own member has been removed before. */
static bool has_members(const char *name)
{
	const struct group *group = getgrnam(name);

	return group && *group->gr_mem;
}

static char *group_text(const struct setup_step *step, const char *value)
{
	if (!value && has_members(step->target))
		return xasprintf("# group %s has members: not removed", step->target);
	return xasprintf("%s %s", value ? "groupadd --system" : "groupdel", step->target);
}

static int group_apply(const struct setup_step *step, const char *value, struct error *err)
{
	const char *const add[] = { "groupadd", "--system", step->target, NULL };
	const char *const del[] = { "groupdel", step->target, NULL };

	if (!value && has_members(step->target))
		return 0;
	return host_run(value ? add : del, err);
}

const struct setup_kind setup_group = { "group", group_current, group_text, group_apply };

/* Splits "USER GROUP"; names of users and groups have no blanks. */
static char *member_split(const struct setup_step *step, const char **ret_group)
{
	char *user = xstrdup(step->target), *space = strchr(user, ' ');

	*ret_group = space ? space + 1 : "";
	if (space)
		*space = '\0';
	return user;
}

static char *member_current(const struct setup_step *step)
{
	const char *name;
	CLEANUP(free) char *user = member_split(step, &name);
	const struct group *group = getgrnam(name);
	const struct passwd *pw = getpwnam(user);

	if (!group)
		return NULL;
	if (pw && pw->pw_gid == group->gr_gid)
		return xstrdup("member");
	for (char **member = group->gr_mem; *member; member++)
		if (!strcmp(*member, user))
			return xstrdup("member");
	return NULL;
}

static char *member_text(const struct setup_step *step, const char *value)
{
	const char *group;
	CLEANUP(free) char *user = member_split(step, &group);

	return xasprintf("gpasswd %s %s %s", value ? "--add" : "--delete", user, group);
}

static int member_apply(const struct setup_step *step, const char *value, struct error *err)
{
	const char *group;
	CLEANUP(free) char *user = member_split(step, &group);
	const char *const argv[] = { "gpasswd", value ? "--add" : "--delete", user, group, NULL };

	return host_run(argv, err);
}

const struct setup_kind setup_member = { "member", member_current, member_text, member_apply };

static char *sysctl_current(const struct setup_step *step)
{
	return host_sysctl(step->target);
}

static char *sysctl_text(const struct setup_step *step, const char *value)
{
	return xasprintf("sysctl -w %s=%s", step->target, value ? value : "?");
}

static int sysctl_apply(const struct setup_step *step, const char *value, struct error *err)
{
	if (!value)
		return error_set(err, EINVAL, "%s: its previous value is unknown", step->target);
	return host_sysctl_write(step->target, value, err);
}

const struct setup_kind setup_sysctl = { "sysctl", sysctl_current, sysctl_text, sysctl_apply };

static char *mount_current(const struct setup_step *step)
{
	struct statfs fs;

	if (statfs(step->target, &fs) < 0)
		return NULL;
	if (fs.f_type == TRACEFS_MAGIC)
		return xstrdup("tracefs");
	return fs.f_type == DEBUGFS_MAGIC ? xstrdup("debugfs") : NULL;
}

static char *mount_text(const struct setup_step *step, const char *value)
{
	return value ? xasprintf("mount -t %s %s %s", value, value, step->target)
	             : xasprintf("umount %s", step->target);
}

static int mount_apply(const struct setup_step *step, const char *value, struct error *err)
{
	if (value ? mount(value, step->target, value, MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0
	          : umount2(step->target, UMOUNT_NOFOLLOW) < 0)
		return error_errno(err, "%s", step->target);
	return 0;
}

const struct setup_kind setup_mount = { "mount", mount_current, mount_text, mount_apply };

static char *access_current(const struct setup_step *step)
{
	struct stat st;

	if (stat(step->target, &st) < 0)
		return NULL;
	return xasprintf("gid=%u,mode=%o", (unsigned)st.st_gid, (unsigned)st.st_mode & 07777);
}

static char *access_text(const struct setup_step *step, const char *value)
{
	return xasprintf("mount -o remount,%s %s", value, step->target);
}

/* The present mount options: a remount clears all that it does not name. */
static unsigned long mount_flags(const char *path)
{
	static const struct {
		const char *name;
		unsigned long flag;
	} flags[] = {
		{ "ro", MS_RDONLY },     { "nosuid", MS_NOSUID },   { "nodev", MS_NODEV },
		{ "noexec", MS_NOEXEC }, { "noatime", MS_NOATIME }, { "relatime", MS_RELATIME },
	};
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	unsigned long ret = 0;
	struct mntent *entry;

	while (mounts && (entry = getmntent(mounts))) {
		if (strcmp(entry->mnt_dir, path) != 0)
			continue;
		ret = 0;
		for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
			if (hasmntopt(entry, flags[i].name))
				ret |= flags[i].flag;
	}
	if (mounts)
		endmntent(mounts);
	return ret;
}

static int access_apply(const struct setup_step *step, const char *value, struct error *err)
{
	if (mount(NULL, step->target, NULL, MS_REMOUNT | mount_flags(step->target), value) < 0)
		return error_errno(err, "cannot remount %s with %s", step->target, value);
	return 0;
}

const struct setup_kind setup_access = { "access", access_current, access_text, access_apply };

static char *events_current(const struct setup_step *step)
{
	CLEANUP(free) char *path = xasprintf("%s/sched/sched_waking/format", step->target);
	struct stat st;

	return stat(path, &st) < 0 ? NULL : xasprintf("gid=%u", (unsigned)st.st_gid);
}

static char *events_text(const struct setup_step *step, const char *value)
{
	return xasprintf("chgrp -R %s %s", value ? value + strlen("gid=") : "0", step->target);
}

static gid_t walk_gid; /* nftw has no argument for its callback */

static int events_visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type == FTW_SL || type == FTW_NS)
		return 0;
	/* Events may disappear during the walk. */
	return lchown(path, (uid_t)-1, walk_gid) < 0 && errno != ENOENT;
}

static int events_apply(const struct setup_step *step, const char *value, struct error *err)
{
	walk_gid = value ? (gid_t)strtoul(value + strlen("gid="), NULL, 10) : 0;
	if (nftw(step->target, events_visit, 16, FTW_PHYS) != 0)
		return error_errno(err, "cannot change the group of %s", step->target);
	return 0;
}

const struct setup_kind setup_events = { "events", events_current, events_text, events_apply };

static char *probes_current(const struct setup_step *step)
{
	if (step->set)
		return uprobes_is_set_up(step->set) ? xstrdup(step->set->path) : NULL;
	return xstrdup(step->value);
}

static char *probes_text(const struct setup_step *step, const char *value)
{
	if (!value || !step->set)
		return xasprintf("remove the probes %s", step->target);
	return xasprintf("install %zu probes in %s", step->set->probes.n, value);
}

static int probes_apply(const struct setup_step *step, const char *value, struct error *err)
{
	if (!value || !step->set)
		return uprobes_uninstall(step->target, err);
	return uprobes_install(step->set, err);
}

const struct setup_kind setup_probes = { "probes", probes_current, probes_text, probes_apply };

static char *file_current(const struct setup_step *step)
{
	struct error ignored;
	char *text;

	return file_read(&text, NULL, step->target, FILE_MAX, &ignored) < 0 ? NULL : text;
}

static char *file_text(const struct setup_step *step, const char *value)
{
	return xasprintf("%s %s", value ? "write" : "rm", step->target);
}

static int file_apply(const struct setup_step *step, const char *value, struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };

	if (!value)
		return unlink(step->target) < 0 && errno != ENOENT
		               ? error_errno(err, "%s", step->target)
		               : 0;
	if (filewriter_open(&w, step->target, err) < 0)
		return -1;
	fputs(value, w.out);
	if (fchmod(fileno(w.out), 0644) < 0)
		return error_errno(err, "%s", step->target);
	return filewriter_commit(&w, err);
}

const struct setup_kind setup_file = { "file", file_current, file_text, file_apply };

static char *link_current(const struct setup_step *step)
{
	char text[PATH_MAX];
	ssize_t len = readlink(step->target, text, sizeof(text));

	return len < 0 ? NULL : xstrndup(text, (size_t)len);
}

static char *link_text(const struct setup_step *step, const char *value)
{
	return value ? xasprintf("ln -sf %s %s", value, step->target)
	             : xasprintf("rm %s", step->target);
}

static int link_apply(const struct setup_step *step, const char *value, struct error *err)
{
	CLEANUP(free) char *copy = xstrdup(step->target);

	if (unlink(step->target) < 0 && errno != ENOENT)
		return error_errno(err, "%s", step->target);
	if (value && mkdir(dirname(copy), 0755) < 0 && errno != EEXIST)
		return error_errno(err, "%s", copy);
	if (value && symlink(value, step->target) < 0)
		return error_errno(err, "%s", step->target);
	return 0;
}

const struct setup_kind setup_link = { "link", link_current, link_text, link_apply };

const struct setup_kind *setup_kind_find(const char *name)
{
	static const struct setup_kind *const kinds[] = {
		&setup_group, &setup_member, &setup_sysctl, &setup_mount,
		&setup_share, &setup_bind,   &setup_guard,  &setup_probes,
		&setup_file,  &setup_link,   &setup_access, &setup_events,
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i]->name, name))
			return kinds[i];
	return NULL;
}
