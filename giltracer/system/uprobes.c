/* SPDX-License-Identifier: MIT */
/* Installs and removes probe groups according to their owners; tracefs.c writes the commands. */
#include "system/uprobes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/procfs.h"
#include "base/str.h"
#include "python/probes.h"
#include "system/probe_lease.h"
#include "system/sandbox.h"

/* ---- return probes and seccomp */

#ifdef __x86_64__
#define URETPROBE 335
#endif

bool uretprobe_judge(int status, const char *release)
{
	unsigned major, minor;

	if (sscanf(release, "%u.%u", &major, &minor) != 2 || major < 6 ||
	    (major == 6 && minor < 11))
		return false;
	return WIFSIGNALED(status) ? WTERMSIG(status) != SIGILL : WEXITSTATUS(status) != ENXIO;
}

#ifdef URETPROBE
static void try_it(void) __attribute__((noreturn));

static void try_it(void)
{
	/* Neither a core dump nor a report of one. */
	prctl(PR_SET_DUMPABLE, 0);
	signal(SIGILL, SIG_DFL);
	_exit(syscall(URETPROBE) < 0 ? errno : 0);
}

bool uretprobe_denied(void)
{
	struct child child = CHILD_NONE;
	struct utsname host;

	if (!sandbox_filtered() || uname(&host) < 0)
		return false;
	child.pid = fork();
	if (child.pid < 0)
		return false;
	if (child.pid == 0)
		try_it();
	child_wait(&child);
	return child.reaped && uretprobe_judge(child.status, host.release);
}
#else
bool uretprobe_denied(void)
{
	return false;
}
#endif

/* ---- uprobes */

/* A giltracer in another container may remove our probes before they are in use. That is rare,
 * so a few attempts suffice. */
#define PREPARE_TRIES 3

struct uprobes {
	char *root;
	char *group;
	char **events;
	int fd;   /* shared lock on the group's record */
	int hold; /* keeps the group's marker open */
};

/* Tracefs splits its commands at blanks, and # begins a comment. A file whose path contains such
 * a character is probed through a link. */
static int probe_path(char **ret, const struct probe_set *set, bool create, struct error *err)
{
	CLEANUP(free) char *link = NULL;
	CLEANUP(free) char *name = NULL;

	if (!strpbrk(set->path, " \t\n#")) {
		*ret = xstrdup(set->path);
		return 0;
	}
	name = xasprintf("%s.elf", set->group);
	link = lease_path(name);
	if (create && ((unlink(link) < 0 && errno != ENOENT) || symlink(set->path, link) < 0))
		return error_errno(err, "%s", link);
	*ret = take(link);
	return 0;
}

/* In the form that the kernel prints, so that installed probes can be compared as text. */
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

/* Counts the probes of a group, without its marker. */
static size_t count_group(const struct tracefs_probes *probes, const char *group)
{
	size_t n = 0;

	for (size_t i = 0; i < probes->v.n; i++)
		n += !strcmp(probes->v.v[i].group, group) &&
		     !str_has_prefix(probes->v.v[i].event, LEASE_MARKER);
	return n;
}

/* Whether the file at path is the one in the record. */
static bool is_recorded_file(const struct lease_record *record, const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_dev == record->dev && st.st_ino == record->ino;
}

static bool file_is_same(const struct probe_set *set)
{
	struct lease_record record;

	return lease_read(set->group, &record) && is_recorded_file(&record, set->path);
}

/* The offsets are valid only for the file that was examined; package managers replace files at
 * any time. */
static int check_file(const struct probe_set *set, struct error *err)
{
	if (probe_set_is_current(set))
		return 0;
	return error_set(err, ESTALE,
	                 "%s was replaced or changed while its functions were looked for: try "
	                 "again",
	                 set->path);
}

/* Whether the group contains exactly the probes of the set, in the file that is now on disk. */
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

/* Removes the marker first: if it is open, the whole group stays. */
static int remove_events(const struct tracefs_probes *probes, const char *root, const char *group,
                         bool wait, struct error *err)
{
	for (int markers = 1; markers >= 0; markers--)
		for (size_t i = 0; i < probes->v.n; i++) {
			const struct tracefs_probe *probe = &probes->v.v[i];

			if (!strcmp(probe->group, group) &&
			    str_has_prefix(probe->event, LEASE_MARKER) == markers &&
			    tracefs_remove(root, group, probe->event, wait, err) < 0)
				return -1;
		}
	return 0;
}

static int remove_group(const char *root, const char *group, struct error *err)
{
	CLEANUP(tracefs_probes_done) struct tracefs_probes probes = { 0 };
	CLEANUP(free) char *name = xasprintf("%s.elf", group);

	if (tracefs_read_probes(&probes, root, err) < 0 ||
	    remove_events(&probes, root, group, true, err) < 0)
		return -1;
	lease_remove(group);
	lease_remove(name);
	return 0;
}

/* Groups of another container have no records here: the kernel knows whether they are in use. */
static int remove_foreign(const char *root, const char *group, struct error *err)
{
	CLEANUP(tracefs_probes_done) struct tracefs_probes probes = { 0 };

	if (tracefs_read_probes(&probes, root, err) < 0)
		return -1;
	return remove_events(&probes, root, group, false, err);
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
	if (check_file(set, err) == 0)
		return 0;
	remove_group(root, set->group, &ignored);
	return -1;
}

/* Installs the probes of the set; the caller holds the lock. */
static int install_locked(const char *root, const struct probe_set *set, struct error *err)
{
	bool good;

	if (verify(root, set, &good, err) < 0)
		return -1;
	if (good)
		return check_file(set, err);
	if (lease_is_used(set->group))
		return error_set(
			err, EBUSY,
			"the probes of another build of %s are in use by another giltracer",
			set->path);
	/* The record is written before the probes: without it, probes left behind by a kill would
	 * have no owner. */
	if (remove_group(root, set->group, err) < 0 ||
	    lease_write(set->group, set->path, err) < 0 || lease_mark(root, set->group, err) < 0)
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

		/* A perf that outlives its giltracer keeps probes busy; the next run removes
		 * them. */
		if (group->foreign ? remove_foreign(root, group->name, &busy) == 0
		                   : uprobe_group_is_stray(group) &&
		                             remove_group(root, group->name, &busy) == 0)
			(*ret_removed)++;
	}
	return 0;
}

/* Installs the probes and holds them by keeping the marker open, if the kernel permits that. */
static int install_and_hold(struct uprobes *u, const struct probe_set *set, struct error *err)
{
	bool good = false;

	for (unsigned i = 0; i < PREPARE_TRIES; i++) {
		if (install_locked(u->root, set, err) < 0)
			return -1;
		u->hold = lease_hold(u->root, set->group);
		if (verify(u->root, set, &good, err) < 0)
			return -1;
		if (good)
			return 0;
		if (u->hold >= 0)
			close(take_fd(&u->hold));
	}
	return error_set(err, EBUSY, "another giltracer is removing the probes of %s", set->path);
}

static int prepare_locked(struct uprobes *u, const struct probe_set *set, struct error *err)
{
	CLEANUP(close) int lock = -1;
	struct error ignored;
	size_t removed = 0;

	if (lease_lock_all(&lock, err) < 0)
		return -1;
	remove_strays_locked(u->root, &removed, &ignored);
	if (install_and_hold(u, set, err) < 0)
		return -1;
	return lease_share(set->group, &u->fd, err);
}

static void name_events(struct uprobes *u, const struct probe_set *set)
{
	u->group = xstrdup(set->group);
	u->events = xcalloc(set->probes.n + 1, sizeof(*u->events));
	for (size_t i = 0; i < set->probes.n; i++)
		u->events[i] = xasprintf("%s:%s", set->group, set->probes.v[i].event);
}

/* Frees the object only; the probes stay. */
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
	if (uprobes->hold >= 0)
		close(uprobes->hold);
	free(uprobes);
}

DEFINE_CLEANUP(struct uprobes *, uprobes_free);

static int check_returns(const struct probe_set *set, struct error *err)
{
	bool returns = false;

	for (size_t i = 0; i < set->probes.n; i++)
		returns |= set->probes.v[i].ret;
	if (!returns || !uretprobe_denied())
		return 0;
	return error_set(err, EPERM,
	                 "the active seccomp filter denies uretprobe, the system call by "
	                 "which functions with return probes return on this kernel: the "
	                 "program would be killed");
}

int uprobes_prepare(const struct probe_set *set, struct uprobes **ret, struct error *err)
{
	CLEANUP(uprobes_free) struct uprobes *u = xcalloc(1, sizeof(*u));

	u->fd = u->hold = -1;
	if (check_returns(set, err) < 0)
		return -1;
	if (tracefs_find(&u->root, err) < 0)
		return -1;
	name_events(u, set);
	if (tracefs_is_read_only(u->root))
		return error_set(err, EROFS, "%s is mounted read-only: probes cannot be installed",
		                 u->root);
	if (!tracefs_can_install(u->root))
		return error_set(err, EACCES, "%s: this user cannot install probes", u->root);
	if (prepare_locked(u, set, err) < 0)
		return -1;
	*ret = take(u);
	return 0;
}

const char *const *uprobes_events(const struct uprobes *uprobes)
{
	return (const char *const *)uprobes->events;
}

void uprobes_release(struct uprobes *uprobes)
{
	CLEANUP(close) int lock = -1;
	struct lease_record record;
	struct error ignored;

	if (uprobes && tracefs_can_install(uprobes->root) && lease_lock_all(&lock, &ignored) == 0) {
		close(take_fd(&uprobes->fd));
		if (uprobes->hold >= 0)
			close(take_fd(&uprobes->hold));
		if (!lease_is_used(uprobes->group) && lease_read(uprobes->group, &record))
			remove_group(uprobes->root, uprobes->group, &ignored);
	}
	uprobes_free(uprobes);
}

static struct uprobe_group *find_group(struct uprobe_groups *groups,
                                       const struct tracefs_probe *probe)
{
	struct uprobe_group *group;

	for (size_t i = 0; i < groups->groups.n; i++)
		if (!strcmp(groups->groups.v[i].name, probe->group))
			return &groups->groups.v[i];
	group = vec_push(&groups->groups);
	*group = (struct uprobe_group){ .name = xstrdup(probe->group),
		                        .path = xstrdup(probe->path) };
	group->foreign = lease_is_foreign(probe->group);
	group->used = !group->foreign && lease_is_used(probe->group);
	return group;
}

/* Ignores a marker, whose path is that of its group's record. */
static void count_probe(struct uprobe_group *group, const struct tracefs_probe *probe)
{
	if (str_has_prefix(probe->event, LEASE_MARKER))
		return;
	group->probes++;
	free(group->path);
	group->path = xstrdup(probe->path);
}

int uprobes_list(struct uprobe_groups *ret, struct error *err)
{
	CLEANUP(tracefs_probes_done) struct tracefs_probes probes = { 0 };
	CLEANUP(free) char *root = NULL;

	*ret = (struct uprobe_groups){ 0 };
	if (tracefs_find(&root, err) < 0 || tracefs_read_probes(&probes, root, err) < 0)
		return -1;
	for (size_t i = 0; i < probes.v.n; i++)
		count_probe(find_group(ret, &probes.v.v[i]), &probes.v.v[i]);
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

	if (tracefs_find(&root, err) < 0 || lease_lock_all(&lock, err) < 0 ||
	    remove_strays_locked(root, &removed, err) < 0)
		return -1;
	if (ret_removed)
		*ret_removed = removed;
	return 0;
}

/* ---- whether the probes are in place in a running process */

#define BREAKPOINT 0xcc

#ifdef __x86_64__
#define KNOWS_BREAKPOINTS true
#else
#define KNOWS_BREAKPOINTS false
#endif

static bool covers(const struct procfs_mapping *m, uint64_t offset)
{
	return offset >= m->offset && offset - m->offset < m->end - m->start;
}

/* Notes the probes that have their breakpoints in this mapping; returns the number of new ones. */
static size_t find_inserted(bool *inserted, int memory, const struct procfs_mapping *m,
                            const struct probe_set *set)
{
	size_t found = 0;

	for (size_t i = 0; i < set->probes.n; i++) {
		uint64_t offset = set->probes.v[i].offset;
		uint8_t byte;

		if (inserted[i] || !covers(m, offset) ||
		    pread(memory, &byte, 1, (off_t)(m->start + offset - m->offset)) != 1 ||
		    byte != BREAKPOINT)
			continue;
		inserted[i] = true;
		found++;
	}
	return found;
}

/* The last part of a path: the folder may differ in a container or behind a link. */
static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_named_like(const struct procfs_mapping *m, const struct probe_set *set)
{
	const char *base = base_name(set->path);
	size_t len = strlen(base);
	const char *theirs = base_name(m->path);

	/* The kernel appends " (deleted)" to the name of a removed file. */
	return !strncmp(theirs, base, len) && (!theirs[len] || theirs[len] == ' ');
}

int probe_verify_file(const struct probe_set *set, struct error *err)
{
	if (probe_set_is_current(set))
		return 0;
	return error_set(err, ESTALE,
	                 "%s was replaced or changed after its probes were placed: run it again",
	                 set->path);
}

static int explain(const struct probe_set *set, const char *path, struct error *err)
{
	if (probe_verify_file(set, err) < 0)
		return -1;
	if (!path)
		return error_set(err, ESTALE,
		                 "the program does not run %s, which contains the probes",
		                 set->path);
	return error_set(err, ESTALE,
	                 "the kernel has not inserted the probes of %s into the program: an "
	                 "overlay copied the file after they were placed, or its file "
	                 "system does not support uprobes; place them again (giltracer "
	                 "setup), or use --no-gil-detect",
	                 set->path);
}

/* A file may have several executable segments, such as those of a BOLT-optimised build; their
 * mappings follow each other. */
static int check(char *maps, int memory, const struct probe_set *set, struct error *err)
{
	CLEANUP(free) bool *inserted = xcalloc(set->probes.n + 1, sizeof(*inserted));
	const char *path = NULL, *file = "";
	size_t count = 0;
	struct procfs_mapping m;

	while (procfs_next_mapping(&m, &maps)) {
		if (m.rights[2] != 'x' || *m.path != '/')
			continue;
		if (strcmp(m.path, file) != 0) {
			memset(inserted, 0, set->probes.n * sizeof(*inserted));
			count = 0;
			file = m.path;
		}
		count += find_inserted(inserted, memory, &m, set);
		if (count == set->probes.n)
			return 0;
		if (is_named_like(&m, set))
			path = m.path;
	}
	return explain(set, path, err);
}

int probe_verify_process(pid_t pid, const struct probe_set *set, struct error *err)
{
	CLEANUP(free) char *maps = procfs_read(pid, 0, "maps", NULL);
	CLEANUP(free) char *memory_path = procfs_path(pid, 0, "mem");
	CLEANUP(close) int memory = open(memory_path, O_RDONLY | O_CLOEXEC);

	if (!KNOWS_BREAKPOINTS || memory < 0 || !maps)
		return 0;
	return check(maps, memory, set, err);
}
