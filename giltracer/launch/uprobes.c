/* SPDX-License-Identifier: MIT */
/* Who may install, who owns, and who removes. tracefs.c does what the kernel has to be told. */
#include "uprobes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "launch/framefetch.h"
#include "launch/probes.h"

#define RECORD_MAX 8192

struct uprobes {
	char *root;
	char *group;
	char **events;
	bool owned;
	int fd; /* shared lock on the group's record */
};

/*
 * The record of a group, RUNDIR/GROUP: who owns it, and which file its probes are in. The kernel
 * holds the file itself and not its name, so a file that was replaced is known by its inode.
 */
struct record {
	bool setup;
	uint64_t dev, ino;
};

/* Path of a file in RUNDIR; caller frees. */
static char *run_path(const char *name)
{
	const char *dir = secure_getenv("GILTRACER_RUNDIR");

	return xasprintf("%s/%s", dir && *dir ? dir : "/run/giltracer", name);
}

static int make_rundir(struct error *err)
{
	CLEANUP(free) char *dir = run_path("");

	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return error_errno(err, "%s", dir);
	return 0;
}

/* One at a time installs and removes. Only who may do that can open the file. */
static int lock_all(int *ret_fd, struct error *err)
{
	CLEANUP(free) char *path = run_path("lock");
	int fd;

	if (make_rundir(err) < 0)
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_errno(err, "%s", path);
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR) {
			error_errno(err, "%s: cannot lock", path);
			close(fd);
			return -1;
		}
	*ret_fd = fd;
	return 0;
}

static int record_open(const char *group, int flags)
{
	CLEANUP(free) char *path = run_path(group);

	return open(path, flags | O_CLOEXEC, 0644);
}

static bool record_read(const char *group, struct record *ret)
{
	CLEANUP(free) char *path = run_path(group);
	CLEANUP(free) char *text = NULL;
	struct error ignored;
	char owner[8];

	if (file_read(&text, NULL, path, RECORD_MAX, &ignored) < 0)
		return false;
	if (sscanf(text, "%7s %" SCNu64 " %" SCNu64, owner, &ret->dev, &ret->ino) != 3)
		return false;
	ret->setup = !strcmp(owner, "setup");
	return true;
}

/* In place, since users hold locks on the inode. */
static int record_write(const struct probe_set *set, bool setup, struct error *err)
{
	CLEANUP(close) int fd = record_open(set->group, O_RDWR | O_CREAT);
	CLEANUP(free) char *text = NULL;
	struct stat st;

	if (fd < 0)
		return error_errno(err, "cannot record the owner of %s", set->group);
	if (stat(set->path, &st) < 0)
		return error_errno(err, "%s", set->path);
	text = xasprintf("%s %" PRIu64 " %" PRIu64 " %s\n", setup ? "setup" : "run",
	                 (uint64_t)st.st_dev, (uint64_t)st.st_ino, set->path);
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, strlen(text), 0) != (ssize_t)strlen(text))
		return error_errno(err, "cannot record the owner of %s", set->group);
	return fchmod(fd, 0644) < 0 ? error_errno(err, "record of %s", set->group) : 0;
}

/* From now on whoever uses the group last removes it. */
static int record_give_up(const char *group, struct error *err)
{
	CLEANUP(close) int fd = record_open(group, O_RDWR);

	if (fd < 0 || pwrite(fd, "run  ", 5, 0) != 5)
		return error_errno(err, "record of %s", group);
	return 0;
}

static void record_remove(const char *group)
{
	CLEANUP(free) char *path = run_path(group);

	unlink(path);
}

/* Whether a living process has the record locked. */
static bool group_is_used(const char *group)
{
	CLEANUP(close) int fd = record_open(group, O_RDONLY);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* Tracefs splits its commands at blanks: a file whose path has one is probed through a link. */
static int probe_path(char **ret, const struct probe_set *set, bool create, struct error *err)
{
	CLEANUP(free) char *link = NULL;
	CLEANUP(free) char *name = NULL;

	if (!strpbrk(set->path, " \t\n")) {
		*ret = xstrdup(set->path);
		return 0;
	}
	name = xasprintf("%s.elf", set->group);
	link = run_path(name);
	if (create && ((unlink(link) < 0 && errno != ENOENT) || symlink(set->path, link) < 0))
		return error_errno(err, "%s", link);
	*ret = take(link);
	return 0;
}

/* As the kernel prints it, so that installed probes can be compared as text. */
static char *probe_line(const struct probe_set *set, const struct probe *probe, const char *path)
{
	return xasprintf("%c:%s/%s %s:0x%016" PRIx64 "%s%s", probe->ret ? 'r' : 'p', set->group,
	                 probe->event, path, probe->offset, probe->fetch ? " " : "",
	                 probe->fetch ? probe->fetch : "");
}

static bool line_exists(const struct tracefs_probes *probes, const char *line)
{
	for (size_t i = 0; i < probes->v.n; i++)
		if (!strcmp(probes->v.v[i].line, line))
			return true;
	return false;
}

static size_t count_group(const struct tracefs_probes *probes, const char *group)
{
	size_t n = 0;

	for (size_t i = 0; i < probes->v.n; i++)
		n += !strcmp(probes->v.v[i].group, group);
	return n;
}

static bool file_is_same(const struct probe_set *set)
{
	struct record record;
	struct stat st;

	return record_read(set->group, &record) && stat(set->path, &st) == 0 &&
	       st.st_dev == record.dev && st.st_ino == record.ino;
}

/* All of the set, nothing else in the group, and in the file that is on disk now. */
static int verify(const char *root, const struct probe_set *set, bool *ret, struct error *err)
{
	CLEANUP(tracefs_probes_done) struct tracefs_probes probes = { 0 };
	CLEANUP(free) char *path = NULL;

	*ret = false;
	if (tracefs_read_probes(&probes, root, err) < 0 || probe_path(&path, set, false, err) < 0)
		return -1;
	if (!file_is_same(set) || count_group(&probes, set->group) != set->probes.n)
		return 0;
	for (size_t i = 0; i < set->probes.n; i++) {
		CLEANUP(free) char *line = probe_line(set, &set->probes.v[i], path);

		if (!line_exists(&probes, line))
			return 0;
	}
	*ret = true;
	return 0;
}

/* For a user who may use the events but not read uprobe_events: setup's record has to do. */
static bool verify_by_record(const char *root, const struct probe_set *set)
{
	if (!file_is_same(set))
		return false;
	for (size_t i = 0; i < set->probes.n; i++)
		if (!tracefs_has_event(root, set->group, set->probes.v[i].event))
			return false;
	return true;
}

static int remove_group(const char *root, const char *group, struct error *err)
{
	CLEANUP(tracefs_probes_done) struct tracefs_probes probes = { 0 };
	CLEANUP(free) char *name = xasprintf("%s.elf", group);

	if (tracefs_read_probes(&probes, root, err) < 0)
		return -1;
	for (size_t i = 0; i < probes.v.n; i++)
		if (!strcmp(probes.v.v[i].group, group) &&
		    tracefs_remove(root, group, probes.v.v[i].event, err) < 0)
			return -1;
	record_remove(group);
	record_remove(name);
	return 0;
}

static int install_all(const char *root, const struct probe_set *set, struct error *err)
{
	CLEANUP(free) char *path = NULL;
	struct error ignored;

	if (probe_path(&path, set, true, err) < 0)
		return -1;
	for (size_t i = 0; i < set->probes.n; i++) {
		CLEANUP(free) char *line = probe_line(set, &set->probes.v[i], path);

		if (tracefs_command(root, line, err) < 0) {
			remove_group(root, set->group, &ignored);
			return -1;
		}
	}
	return 0;
}

/* Make the group what the set says. Under the lock. */
static int install_locked(const char *root, const struct probe_set *set, bool setup,
                          struct error *err)
{
	struct record record = { .setup = false };
	bool good;

	if (verify(root, set, &good, err) < 0)
		return -1;
	if (good && record_read(set->group, &record))
		return setup && !record.setup ? record_write(set, true, err) : 0;
	if (group_is_used(set->group))
		return error_set(
			err, EBUSY,
			"the probes of another build of %s are in use by another giltracer",
			set->path);
	if (record_read(set->group, &record))
		setup |= record.setup;
	if (remove_group(root, set->group, err) < 0)
		return -1;
	/* The record comes first: without it, what a kill leaves behind would have no owner. */
	if (record_write(set, setup, err) < 0)
		return -1;
	return install_all(root, set, err);
}

static int remove_strays_locked(const char *root, size_t *ret_removed, struct error *err)
{
	CLEANUP(uprobe_groups_done) struct uprobe_groups groups = { 0 };

	if (uprobes_list(&groups, err) < 0)
		return -1;
	for (size_t i = 0; i < groups.groups.n; i++) {
		const struct uprobe_group *group = &groups.groups.v[i];
		struct error busy;

		/* A perf that outlived its giltracer keeps them busy: the next run will do it. */
		if (uprobe_group_is_stray(group) && remove_group(root, group->name, &busy) == 0)
			(*ret_removed)++;
	}
	return 0;
}

static int share(const char *group, int *ret_fd, struct error *err)
{
	CLEANUP(close) int fd = record_open(group, O_RDONLY);

	if (fd < 0 || flock(fd, LOCK_SH) < 0)
		return error_errno(err, "record of %s", group);
	*ret_fd = take_fd(&fd);
	return 0;
}

static int prepare_as_root(struct uprobes *u, const struct probe_set *set, struct error *err)
{
	CLEANUP(close) int lock = -1;
	struct record record = { .setup = false };
	struct error ignored;
	size_t removed = 0;

	if (lock_all(&lock, err) < 0)
		return -1;
	remove_strays_locked(u->root, &removed, &ignored);
	if (install_locked(u->root, set, false, err) < 0)
		return -1;
	record_read(set->group, &record);
	u->owned = !record.setup;
	return share(set->group, &u->fd, err);
}

static int prepare_as_user(struct uprobes *u, const struct probe_set *set, struct error *err)
{
	struct error why;
	bool good = false;
	char frames[32] = "";

	if (verify(u->root, set, &good, &why) < 0)
		good = why.code == EACCES && verify_by_record(u->root, set);
	if (good)
		return share(set->group, &u->fd, err);
	if (set->frames != FRAMEFETCH_DEFAULT)
		snprintf(frames, sizeof(frames), " --frames %u", set->frames);
	return error_set(err, EACCES,
	                 "the probes for %s are not installed and this user cannot install them: "
	                 "sudo giltracer setup --python %s%s",
	                 set->path, set->python, frames);
}

static void name_events(struct uprobes *u, const struct probe_set *set)
{
	u->group = xstrdup(set->group);
	u->events = xcalloc(set->probes.n + 1, sizeof(*u->events));
	for (size_t i = 0; i < set->probes.n; i++)
		u->events[i] = xasprintf("%s:%s", set->group, set->probes.v[i].event);
}

/* Without giving up what others use. */
static void uprobes_free(struct uprobes *uprobes)
{
	if (!uprobes)
		return;
	for (size_t i = 0; uprobes->events && uprobes->events[i]; i++)
		free(uprobes->events[i]);
	free(uprobes->events);
	free(uprobes->group);
	free(uprobes->root);
	if (uprobes->fd >= 0)
		close(uprobes->fd);
	free(uprobes);
}

DEFINE_CLEANUP(struct uprobes *, uprobes_free);

int uprobes_prepare(const struct probe_set *set, struct uprobes **ret, struct error *err)
{
	CLEANUP(uprobes_free) struct uprobes *u = xcalloc(1, sizeof(*u));

	u->fd = -1;
	if (tracefs_find(&u->root, err) < 0)
		return -1;
	name_events(u, set);
	if (tracefs_can_install(u->root) ? prepare_as_root(u, set, err) < 0
	                                 : prepare_as_user(u, set, err) < 0)
		return -1;
	*ret = take(u);
	return 0;
}

const char *const *uprobes_events(const struct uprobes *uprobes)
{
	return (const char *const *)uprobes->events;
}

bool uprobes_owned(const struct uprobes *uprobes)
{
	return uprobes->owned;
}

void uprobes_release(struct uprobes *uprobes)
{
	CLEANUP(close) int lock = -1;
	struct record record;
	struct error ignored;

	if (uprobes && tracefs_can_install(uprobes->root) && lock_all(&lock, &ignored) == 0) {
		close(uprobes->fd);
		uprobes->fd = -1;
		/* setup may have adopted them meanwhile, or left them to us. */
		if (!group_is_used(uprobes->group) && record_read(uprobes->group, &record) &&
		    !record.setup)
			remove_group(uprobes->root, uprobes->group, &ignored);
	}
	uprobes_free(uprobes);
}

int uprobes_install(const struct probe_set *set, struct error *err)
{
	CLEANUP(free) char *root = NULL;
	CLEANUP(close) int lock = -1;

	if (tracefs_find(&root, err) < 0 || lock_all(&lock, err) < 0)
		return -1;
	return install_locked(root, set, true, err);
}

bool uprobes_is_set_up(const struct probe_set *set)
{
	CLEANUP(free) char *root = NULL;
	struct record record;
	struct error ignored;
	bool good = false;

	return tracefs_find(&root, &ignored) == 0 && verify(root, set, &good, &ignored) == 0 &&
	       good && record_read(set->group, &record) && record.setup;
}

int uprobes_uninstall(const char *group, struct error *err)
{
	CLEANUP(free) char *root = NULL;
	CLEANUP(close) int lock = -1;

	if (tracefs_find(&root, err) < 0 || lock_all(&lock, err) < 0)
		return -1;
	if (group_is_used(group))
		return record_give_up(group, err);
	return remove_group(root, group, err);
}

static struct uprobe_group *find_group(struct uprobe_groups *groups,
                                       const struct tracefs_probe *probe)
{
	struct record record = { .setup = false };
	struct uprobe_group *group;

	for (size_t i = 0; i < groups->groups.n; i++)
		if (!strcmp(groups->groups.v[i].name, probe->group))
			return &groups->groups.v[i];
	group = vec_push(&groups->groups);
	record_read(probe->group, &record);
	*group = (struct uprobe_group){ .name = xstrdup(probe->group),
		                        .path = xstrdup(probe->path),
		                        .setup = record.setup,
		                        .used = group_is_used(probe->group) };
	return group;
}

int uprobes_list(struct uprobe_groups *ret, struct error *err)
{
	CLEANUP(tracefs_probes_done) struct tracefs_probes probes = { 0 };
	CLEANUP(free) char *root = NULL;

	*ret = (struct uprobe_groups){ 0 };
	if (tracefs_find(&root, err) < 0 || tracefs_read_probes(&probes, root, err) < 0)
		return -1;
	for (size_t i = 0; i < probes.v.n; i++)
		find_group(ret, &probes.v.v[i])->probes++;
	return 0;
}

void uprobe_groups_done(struct uprobe_groups *groups)
{
	for (size_t i = 0; i < groups->groups.n; i++) {
		free(groups->groups.v[i].name);
		free(groups->groups.v[i].path);
	}
	vec_done(&groups->groups);
}

int uprobes_remove_strays(size_t *ret_removed, struct error *err)
{
	CLEANUP(free) char *root = NULL;
	CLEANUP(close) int lock = -1;
	size_t removed = 0;

	if (tracefs_find(&root, err) < 0 || lock_all(&lock, err) < 0 ||
	    remove_strays_locked(root, &removed, err) < 0)
		return -1;
	if (ret_removed)
		*ret_removed = removed;
	return 0;
}
