/* SPDX-License-Identifier: MIT */
/* Installs and removes probe groups according to their owners; tracefs.c writes the commands. */
#include "system/uprobes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/procfs.h"
#include "base/str.h"
#include "python/probes.h"
#include "system/host.h"
#include "system/perf_access.h"
#include "system/tracefs.h"

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

/* More than the kernel needs to close all events of a perf. */
#define CLOSING_MS 60000

struct uprobes {
	char *root;
	char *group;
	char **events;
	int fd;    /* shared lock on the group's record */
	int hold;  /* keeps the group's marker open */
	int tried; /* uprobes_try */
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
	if (uprobes->tried >= 0)
		close(uprobes->tried);
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

	u->fd = u->hold = u->tried = -1;
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

int uprobes_try(struct uprobes *u, struct error *err)
{
	u->tried = perf_hold_event(u->group, strchr(u->events[0], ':') + 1, err);
	return u->tried < 0 ? -1 : 0;
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
		if (uprobes->tried >= 0)
			close(take_fd(&uprobes->tried));
		if (!lease_is_used(uprobes->group) && lease_read(uprobes->group, &record))
			remove_group(uprobes->root, uprobes->group, &ignored);
	}
	uprobes_free(uprobes);
}

/* Keeps nothing of our parent's open, least of all a pipe whose reader waits for its end. */
static void close_others(const struct uprobes *u, const int *pidfds, size_t count)
{
	CLEANUP(closedir) DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);
		bool keep = fd == dirfd(dir) || fd == u->fd || fd == u->hold || fd == u->tried;

		for (size_t i = 0; i < count; i++)
			keep |= fd == pidfds[i];
		if (!keep)
			close(fd);
	}
}

static void release_after(struct uprobes *u, const int *pidfds, size_t count)
	__attribute__((noreturn));

static void release_after(struct uprobes *u, const int *pidfds, size_t count)
{
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "giltracer-end");
	if (chdir("/") < 0)
		log_debug("chdir: %s", strerror(errno));
	close_others(u, pidfds, count);
	for (size_t i = 0; i < count; i++)
		poll(&(struct pollfd){ .fd = pidfds[i], .events = POLLIN }, 1, CLOSING_MS);
	uprobes_release(u);
	_exit(0);
}

pid_t uprobes_release_after(struct uprobes *uprobes, const int *pidfds, size_t count)
{
	pid_t pid = fork();

	if (pid == 0)
		release_after(uprobes, pidfds, count);
	if (pid > 0)
		uprobes_free(uprobes);
	return pid;
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
static bool is_named_like(const struct procfs_mapping *m, const struct probe_set *set)
{
	const char *base = str_base(set->path);
	size_t len = strlen(base);
	const char *theirs = str_base(m->path);

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

/* ---- leases: whose the probes are */

#define RECORD_MAX 8192
#define LOCKS_MAX  (1u << 20)
#define SUFFIX     "_c"
#define RUNDIR     "/run/giltracer"

/* Twenty seconds in total: installing or removing takes one or two, and more where many giltracers end
 * at the same time. */
#define LOCK_LOOK_NS 20000000
#define LOCK_TRIES   1000

static const char *rundir(void)
{
	const char *dir = secure_getenv("GILTRACER_RUNDIR");

	return dir && *dir ? dir : NULL;
}

char *lease_path(const char *name)
{
	const char *dir = rundir();

	return xasprintf("%s/%s", dir ? dir : RUNDIR, name);
}

/* A container may see the host's processes and still have its own /run. A user who may not read
 * this is not root, and installs nothing. */
static bool is_run_of_init(const struct stat *run)
{
	struct stat init;

	return stat("/proc/1/root/run", &init) < 0 ||
	       (init.st_dev == run->st_dev && init.st_ino == run->st_ino);
}

static uint32_t hash(uint32_t seed, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		seed = (seed ^ bytes[i]) * 0x01000193;
	return seed;
}

char *lease_suffix(void)
{
	const char *dir = rundir();
	struct stat run = { 0 };
	uint32_t sum = 0x811c9dc5;

	if (stat("/run", &run) < 0 ||
	    (!dir && !sandbox_own_pid_namespace() && is_run_of_init(&run)))
		return xstrdup("");
	sum = hash(sum, &run.st_dev, sizeof(run.st_dev));
	sum = hash(sum, &run.st_ino, sizeof(run.st_ino));
	if (dir)
		sum = hash(sum, dir, strlen(dir));
	return xasprintf(SUFFIX "%06x", (sum ^ sum >> 24) & 0xffffff);
}

bool lease_is_foreign(const char *group)
{
	CLEANUP(free) char *ours = lease_suffix();
	const char *last = strrchr(group, '_');
	bool has_suffix = last && strlen(last) == strlen(SUFFIX) + 6;

	return strcmp(has_suffix ? last : "", ours) != 0;
}

static int is_of_places(const struct dirent *entry)
{
	return str_has_prefix(entry->d_name, LEASE_PLACES);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

int lease_make_folder(struct error *err)
{
	CLEANUP(free) char *dir = lease_path("");

	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return error_errno(err, "%s", dir);
	return 0;
}

void lease_drop_places(size_t keep)
{
	CLEANUP(free) char *folder = lease_path("");
	CLEANUP(close) int dir = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent **entries = NULL;
	int n = dir < 0 ? -1 : scandirat(dir, ".", &entries, is_of_places, NULL);
	CLEANUP(free) struct timespec *written = xcalloc(n > 0 ? (size_t)n : 1, sizeof(*written));
	struct stat st;

	for (int i = 0; i < n; i++)
		if (fstatat(dir, entries[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			written[i] = st.st_mtim;
	for (int i = 0; i < n; i++) {
		size_t newer = 0;

		for (int other = 0; other < n; other++)
			newer += is_later(&written[other], &written[i]);
		if (newer >= keep)
			unlinkat(dir, entries[i]->d_name, 0);
	}
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
}

/* The process that holds the lock, found in a line such as "3: FLOCK  ADVISORY  WRITE 1234
 * fe:00:5678 0 EOF" of /proc/locks; 0: none that is visible. */
static int lock_holder(const struct stat *st)
{
	CLEANUP(free) char *text = NULL;
	CLEANUP(free)
	char *file = xasprintf(" %02x:%02x:%" PRIu64 " ", major(st->st_dev), minor(st->st_dev),
	                       (uint64_t)st->st_ino);
	struct error ignored;
	char *rest, *line;
	int pid = 0;

	if (file_read(&text, NULL, "/proc/locks", LOCKS_MAX, &ignored) < 0)
		return 0;
	rest = text;
	while (!pid && (line = strsep(&rest, "\n")))
		if (!strstr(line, file) || sscanf(line, "%*s FLOCK ADVISORY %*s %d", &pid) != 1)
			pid = 0;
	return pid;
}

static int say_locked(int fd, const char *path, struct error *err)
{
	CLEANUP(free) char *comm = NULL;
	struct stat st;
	int pid = fstat(fd, &st) == 0 ? lock_holder(&st) : 0;

	if (!pid)
		return error_set(err, EBUSY, "%s is locked by another process", path);
	comm = procfs_comm(pid, 0);
	return error_set(err, EBUSY, "%s is locked by process %d (%s)", path, pid,
	                 comm ? comm : "which has ended");
}

/* Any process that can open the file can hold the lock for ever, so there is a deadline, and
 * signals that ask us to end are obeyed even while they are blocked. */
static int lock_in_time(int fd, int how, const char *path, struct error *err)
{
	const struct timespec pause = { .tv_nsec = LOCK_LOOK_NS };

	for (unsigned i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, how | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return error_errno(err, "%s: cannot lock", path);
		if (signals_ending())
			return error_set(err, EINTR, "interrupted");
		nanosleep(&pause, NULL);
	}
	return say_locked(fd, path, err);
}

int lease_lock_all(int *ret_fd, struct error *err)
{
	CLEANUP(free) char *path = lease_path("lock");
	CLEANUP(close) int fd = -1;

	if (lease_make_folder(err) < 0)
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_errno(err, "%s", path);
	if (lock_in_time(fd, LOCK_EX, path, err) < 0)
		return -1;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int record_open(const char *group, int flags)
{
	CLEANUP(free) char *path = lease_path(group);

	return open(path, flags | O_CLOEXEC, 0600);
}

bool lease_read(const char *group, struct lease_record *ret)
{
	CLEANUP(free) char *path = lease_path(group);
	CLEANUP(free) char *text = NULL;
	struct error ignored;

	if (file_read(&text, NULL, path, RECORD_MAX, &ignored) < 0)
		return false;
	return sscanf(text, "run %" SCNu64 " %" SCNu64, &ret->dev, &ret->ino) == 2;
}

/* The file is overwritten in place, because users hold locks on the inode. Any reader could lock it
 * for ever, so nobody else may read it. */
int lease_write(const char *group, const char *file, struct error *err)
{
	CLEANUP(close) int fd = record_open(group, O_RDWR | O_CREAT);
	CLEANUP(free) char *text = NULL;
	struct stat st;

	if (fd < 0)
		return error_errno(err, "cannot record the owner of %s", group);
	if (stat(file, &st) < 0)
		return error_errno(err, "%s", file);
	text = xasprintf("run %" PRIu64 " %" PRIu64 " %s\n", (uint64_t)st.st_dev,
	                 (uint64_t)st.st_ino, file);
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, strlen(text), 0) != (ssize_t)strlen(text))
		return error_errno(err, "cannot record the owner of %s", group);
	return 0;
}

void lease_remove(const char *group)
{
	CLEANUP(free) char *path = lease_path(group);

	unlink(path);
}

int lease_share(const char *group, int *ret_fd, struct error *err)
{
	CLEANUP(close) int fd = record_open(group, O_RDONLY);
	CLEANUP(free) char *path = lease_path(group);

	if (fd < 0)
		return error_errno(err, "record of %s", group);
	if (lock_in_time(fd, LOCK_SH, path, err) < 0)
		return -1;
	*ret_fd = take_fd(&fd);
	return 0;
}

bool lease_is_used(const char *group)
{
	CLEANUP(close) int fd = record_open(group, O_RDONLY);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* The path must not contain blanks, at which tracefs splits its commands. */
int lease_mark(const char *root, const char *group, struct error *err)
{
	CLEANUP(free) char *path = lease_path(group);
	CLEANUP(free) char *line = xasprintf("p:%s/" LEASE_MARKER " %s:0x0", group, path);

	if (strpbrk(path, " \t\n"))
		return error_set(err, EINVAL, "%s: a folder for records must not contain spaces",
		                 path);
	if (tracefs_has_event(root, group, LEASE_MARKER))
		return 0;
	return tracefs_command(root, line, err);
}

int lease_hold(const char *root, const char *group)
{
	CLEANUP(free) char *path = xasprintf("%s/events/%s/" LEASE_MARKER "/id", root, group);
	CLEANUP(free) char *id = NULL;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.disabled = 1,
	};
	struct error ignored;

	if (file_read(&id, NULL, path, RECORD_MAX, &ignored) < 0)
		return -1;
	attr.config = strtoull(id, NULL, 10);
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}
