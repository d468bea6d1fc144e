/* SPDX-License-Identifier: MIT */
/* Reads /proc/PID/maps and finds the mapped file that exports CPython's functions. */
#include "python/process.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/procfs.h"
#include "base/str.h"
#include "binary/symbols.h"

/* In field 9 of /proc/PID/stat, include/linux/sched.h. */
#define PF_KTHREAD 0x00200000

/* Only the library that contains the GIL's functions exports this. */
#define LANDMARK "PyEval_RestoreThread"

/* Exported by free-threaded builds only. */
#define LANDMARK_FREE_THREADED "_Py_MergeZeroLocalRefcount"

char *process_openable(pid_t pid, const struct procfs_mapping *m)
{
	CLEANUP(free) char *there = xasprintf("/proc/%d/root%s", (int)pid, m->path);
	const char *const candidates[] = { m->path, there };

	for (size_t i = 0; i < 2; i++) {
		struct stat st;

		/* The device in maps differs for an overlay's files, so only the inode is
		 * compared. */
		if (stat(candidates[i], &st) == 0 && st.st_ino == m->inode)
			return xstrdup(candidates[i]);
	}
	return NULL;
}

/* The link-time address of a mapping that starts at m->offset in the file. */
static bool link_address(const struct symbols *symbols, const struct procfs_mapping *m,
                         uint64_t *ret)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	Elf *elf = symbols_elf(symbols);
	size_t n = 0;

	if (elf_getphdrnum(elf, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD ||
		    (phdr.p_offset & ~page) != m->offset)
			continue;
		*ret = phdr.p_vaddr & ~page;
		return true;
	}
	return false;
}

static bool read_u32(const struct symbols *symbols, const char *name, uint32_t *ret)
{
	const uint8_t *bytes;
	uint64_t address;
	size_t len;

	if (!symbols_address(symbols, name, &address))
		return false;
	bytes = symbols_bytes(symbols, address, sizeof(*ret), &len);
	if (!bytes || len < sizeof(*ret))
		return false;
	memcpy(ret, bytes, sizeof(*ret));
	return true;
}

/* "…/libpython3.8.so.1.0", "…/python3.8": major and minor version from the file's name. */
static bool version_of_name(struct python *py, const char *path)
{
	const char *name = strrchr(path, '/'), *at = name ? strstr(name, "python") : NULL;

	return at && sscanf(at, "python%u.%u", &py->major, &py->minor) == 2;
}

/* From 3.11 on, the version is in a constant, PY_VERSION_HEX (Include/cpython/pylifecycle.h). */
static int read_version(struct python *py, const struct symbols *symbols, struct error *err)
{
	uint32_t hex;

	if (read_u32(symbols, "Py_Version", &hex)) {
		py->major = hex >> 24;
		py->minor = hex >> 16 & 0xff;
		py->micro = hex >> 8 & 0xff;
		py->version = xasprintf("%u.%u.%u", py->major, py->minor, py->micro);
	} else if (version_of_name(py, py->library) || version_of_name(py, py->image)) {
		py->version = xasprintf("%u.%u", py->major, py->minor);
	} else {
		return error_set(err, ENOTSUP, "%s: its version of Python is unknown", py->library);
	}
	if (py->major != 3 || py->minor < 6)
		return error_set(err, ENOTSUP,
		                 "%s is Python %s: giltracer needs CPython 3.6 or newer",
		                 py->library, py->version);
	return 0;
}

/* 1 if the mapped file contains the GIL's functions, 0 if not. */
static int try_mapping(struct process_python *ret, const struct procfs_mapping *m, pid_t pid,
                       struct error *err)
{
	CLEANUP(free) char *path = process_openable(pid, m);
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	struct error ignored;
	uint64_t address;

	if (!path || symbols_open_bare(&symbols, path, &ignored) < 0)
		return 0;
	if (!symbols_defines(symbols, LANDMARK) || !link_address(symbols, m, &address))
		return symbols_check(symbols, err);
	ret->bias = m->start - address;
	ret->python->free_threaded = symbols_defines(symbols, LANDMARK_FREE_THREADED);
	ret->python->library = take(path);
	return read_version(ret->python, symbols, err) < 0 ? -1 : 1;
}

static int no_python(const struct python *py, bool deleted, struct error *err)
{
	if (deleted)
		return error_set(err, ENOTSUP,
		                 "%s: the interpreter was replaced or removed after its start: "
		                 "restart the program",
		                 py->image);
	return error_set(err, ENOTSUP,
	                 "%s is not CPython, or is for another architecture: neither it nor a "
	                 "library it loads exports " LANDMARK,
	                 py->image);
}

/* Only the first mapping of each file is tried: its lowest address. */
static int search_maps(struct process_python *ret, pid_t pid, char *maps, struct error *err)
{
	const char *last = "";
	bool deleted = false;
	struct procfs_mapping m;
	int found;

	while (procfs_next_mapping(&m, &maps)) {
		if (*m.path != '/' || !strcmp(m.path, last))
			continue;
		last = m.path;
		deleted |= strstr(m.path, "python") && str_has_suffix(m.path, " (deleted)");
		found = try_mapping(ret, &m, pid, err);
		if (found)
			return found < 0 ? -1 : 0;
	}
	return no_python(ret->python, deleted, err);
}

/* ---- processes that cannot be examined */

/**
 * Information about a process that any user may read.
 * @group: the process that the number belongs to, if it is that of a thread
 */
struct identity {
	pid_t group;
	uid_t user;
	char state;
	unsigned long flags;
};

static int not_there(pid_t pid, struct error *err)
{
	/* Other users' processes may be hidden (mount option hidepid). */
	if (kill(pid, 0) < 0 && errno == EPERM)
		return error_set(err, EACCES,
		                 "process %d belongs to another user: run giltracer as that user "
		                 "or as root",
		                 (int)pid);
	return error_set(err, ESRCH, "process %d: there is no such process", (int)pid);
}

static int read_identity(struct identity *ret, pid_t pid, struct error *err)
{
	CLEANUP(free) char *status = procfs_read(pid, 0, "status", NULL);
	struct procfs_stat stat;
	const char *group, *user;
	unsigned effective;
	int number;

	if (!status || !procfs_stat(&stat, pid, 0))
		return not_there(pid, err);
	group = strstr(status, "\nTgid:");
	user = strstr(status, "\nUid:");
	if (!group || sscanf(group, "\nTgid: %d", &number) != 1 || !user ||
	    sscanf(user, "\nUid: %*u %u", &effective) != 1)
		return error_set(err, EINVAL, "process %d: /proc is not that of Linux", (int)pid);
	ret->state = stat.state;
	ret->flags = stat.flags;
	ret->group = (pid_t)number;
	ret->user = effective;
	return 0;
}

static int cannot_look(pid_t pid, struct error *err)
{
	struct identity id;

	if (read_identity(&id, pid, err) < 0)
		return -1;
	if (geteuid() == 0)
		return error_set(err, EACCES,
		                 "process %d cannot be examined: giltracer lacks the capability "
		                 "CAP_SYS_PTRACE",
		                 (int)pid);
	if (id.user != geteuid())
		return error_set(err, EACCES,
		                 "process %d belongs to another user: run giltracer as that user "
		                 "or as root",
		                 (int)pid);
	return error_set(err, EACCES,
	                 "process %d cannot be examined, because its privileges are not "
	                 "giltracer's: run giltracer as root",
	                 (int)pid);
}

/* The kernel opens the file that the process runs, even in another mount namespace. */
static int check_class(pid_t pid, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("/proc/%d/exe", (int)pid);
	CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned char ident[EI_NIDENT];

	if (fd < 0 || pread(fd, ident, sizeof(ident), 0) != (ssize_t)sizeof(ident) ||
	    memcmp(ident, ELFMAG, SELFMAG) != 0 || ident[EI_CLASS] != ELFCLASS32)
		return 0;
	return error_set(
		err, ENOTSUP,
		"process %d runs a 32-bit program: giltracer supports 64-bit programs only",
		(int)pid);
}

bool process_is_stopped(pid_t pid)
{
	struct identity id;
	struct error ignored;

	return read_identity(&id, pid, &ignored) == 0 && (id.state == 'T' || id.state == 't');
}

int process_check(pid_t pid, struct error *err)
{
	struct identity id;

	if (read_identity(&id, pid, err) < 0)
		return -1;
	if (id.flags & PF_KTHREAD)
		return error_set(err, ENOTSUP, "process %d is a kernel thread, not a program",
		                 (int)pid);
	if (id.group != pid)
		return error_set(err, EINVAL,
		                 "%d is a thread of process %d: give the number of the process",
		                 (int)pid, (int)id.group);
	if (id.state == 'Z' || id.state == 'X')
		return error_set(
			err, ESRCH,
			"process %d has ended: it is a zombie, for which its parent has not "
			"waited yet",
			(int)pid);
	return check_class(pid, err);
}

/* ---- the complete search */

static int read_image(struct python *py, pid_t pid, struct error *err)
{
	CLEANUP(free) char *link = xasprintf("/proc/%d/exe", (int)pid);
	char path[4096];
	struct stat file, here;
	ssize_t n = readlink(link, path, sizeof(path) - 1);

	if (n < 0)
		return cannot_look(pid, err);
	path[n] = '\0';
	if (stat(link, &file) == 0 && stat(path, &here) == 0 && file.st_dev == here.st_dev &&
	    file.st_ino == here.st_ino)
		py->image = xstrdup(path);
	else
		py->image = xasprintf("/proc/%d/root%s", (int)pid, path);
	py->command = xstrdup(path);
	py->executable = xstrdup(path);
	py->implementation = xstrdup("CPython");
	return 0;
}

static int find_in_maps(struct process_python *ret, pid_t pid, struct error *err)
{
	CLEANUP(free) char *maps = NULL;
	CLEANUP(python_free) struct python *py = xcalloc(1, sizeof(*py));
	struct process_python found = { .python = py };

	if (read_image(py, pid, err) < 0)
		return -1;
	maps = procfs_read(pid, 0, "maps", NULL);
	if (!maps)
		return cannot_look(pid, err);
	if (search_maps(&found, pid, maps, err) < 0)
		return error_prefix(err, "process %d", (int)pid);
	take(py);
	*ret = found;
	return 0;
}

int process_python_find(struct process_python *ret, pid_t pid, struct error *err)
{
	struct error now;

	if (process_check(pid, err) < 0)
		return -1;
	if (find_in_maps(ret, pid, err) == 0)
		return 0;
	/* If the process has ended meanwhile, its maps were incomplete, and the error above is
	 * misleading. */
	if (process_check(pid, &now) < 0 && now.code == ESRCH)
		error_set(err, ESRCH, "process %d has ended", (int)pid);
	return -1;
}

void process_python_done(struct process_python *process)
{
	python_free(process->python);
	process->python = NULL;
}
