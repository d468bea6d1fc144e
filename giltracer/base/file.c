/* SPDX-License-Identifier: MIT */
/* Whole files: read, written atomically, removed. */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "alloc.h"
#include "cleanup.h"
#include "idmap.h"
#include "str.h"
#include "vec.h"

/* Reopens the file that seen refers to. Without /proc that is not possible, so path is opened
 * instead. */
static int reopen(int seen, const char *path, int flags)
{
	CLEANUP(free) char *link = xasprintf("/proc/self/fd/%d", seen);
	int fd = open(link, flags | O_CLOEXEC | O_NOCTTY);

	if (fd < 0 && errno == ENOENT)
		fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd;
}

/* Files of these are made when they are read, which may wait, or remove what is read from them, as
 * kmsg and trace_pipe do. */
static bool is_on_disk(int fd)
{
	static const long made[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, TRACEFS_MAGIC, DEBUGFS_MAGIC,
		                     SECURITYFS_MAGIC };
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++)
		if ((long)fs.f_type == made[i])
			return false;
	return true;
}

static int open_regular(const char *path, int flags, int access, struct error *err)
{
	CLEANUP(close) int seen = open(path, O_PATH | O_CLOEXEC | flags);
	struct stat st;
	int fd;

	if (seen < 0 || fstat(seen, &st) < 0)
		return error_errno(err, "%s", path);
	if (!S_ISREG(st.st_mode) || !is_on_disk(seen))
		return error_set(err, EINVAL, "%s: not a regular file", path);
	fd = reopen(seen, path, access);
	return fd < 0 ? error_errno(err, "%s", path) : fd;
}

int file_open_regular(const char *path, struct error *err)
{
	return open_regular(path, 0, O_RDONLY, err);
}

int file_open_member(const char *path, struct error *err)
{
	return open_regular(path, O_NOFOLLOW, O_RDONLY, err);
}

int file_open_append(const char *path, struct error *err)
{
	const int access = O_WRONLY | O_APPEND;
	int fd = open(path, access | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST)
		return open_regular(path, O_NOFOLLOW, access, err);
	return fd < 0 ? error_errno(err, "%s", path) : fd;
}

static int read_fd(char **ret, size_t *ret_len, int fd, const char *path, size_t max,
                   struct error *err)
{
	CLEANUP(str_done) struct str text = { 0 };
	char buf[16384];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(err, "%s", path);
		if (text.len + (size_t)n > max)
			return error_set(err, EFBIG, "%s: larger than %zu bytes", path, max);
		str_addn(&text, buf, (size_t)n);
	}
	if (ret_len)
		*ret_len = text.len;
	*ret = str_take(&text);
	return 0;
}

int file_read(char **ret, size_t *ret_len, const char *path, size_t max, struct error *err)
{
	CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return error_errno(err, "%s", path);
	return read_fd(ret, ret_len, fd, path, max, err);
}

int file_read_member(char **ret, size_t *ret_len, const char *path, size_t max, struct error *err)
{
	CLEANUP(close) int fd = file_open_member(path, err);

	return fd < 0 ? -1 : read_fd(ret, ret_len, fd, path, max, err);
}

int file_write_control(const char *path, const char *text, int append, struct error *err)
{
	CLEANUP(close) int fd = open(path, O_WRONLY | O_CLOEXEC | (append ? O_APPEND : 0));
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return error_errno(err, "%s", path);
	n = write(fd, text, len);
	if (n < 0)
		return error_errno(err, "%s", path);
	if ((size_t)n != len)
		return error_set(err, EIO, "%s: short write", path);
	return 0;
}

/* A file without a name in the folder of path: nothing of it remains if the process is killed. -1:
 * the file system has no such files. */
static int open_unnamed(const char *path)
{
	CLEANUP(free) char *folder = xstrdup(path);
	char *slash = strrchr(folder, '/');

	if (slash)
		slash[slash == folder] = '\0';
	return open(slash ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* Gives it a name beside path, from where it can replace that. */
static int name_file(struct filewriter *w)
{
	CLEANUP(free) char *file = xasprintf("/proc/self/fd/%d", fileno(w->out));

	w->temp = xasprintf("%s.%d", w->path, (int)getpid());
	unlink(w->temp);
	return linkat(AT_FDCWD, file, AT_FDCWD, w->temp, AT_SYMLINK_FOLLOW);
}

/* A path to what is open or to a device, which nobody but its user can have put there. */
static bool is_named(const char *path)
{
	return str_has_prefix(path, "/proc/") ||
	       (str_has_prefix(path, "/dev/") && !str_has_prefix(path, "/dev/shm/"));
}

/* Returns a descriptor of O_PATH, -1 for a path whose file is made or replaced, or -2 with err. */
static int see_in_place(const char *path, struct stat *ret, struct error *err)
{
	CLEANUP(close) int seen = open(path, O_PATH | O_CLOEXEC);

	if (seen < 0 || fstat(seen, ret) < 0 || (S_ISREG(ret->st_mode) && !is_named(path)))
		return -1;
	if (S_ISFIFO(ret->st_mode) ? is_named(path) || ret->st_uid == geteuid()
	                           : is_named(path) && !S_ISBLK(ret->st_mode))
		return take_fd(&seen);
	error_set(err, EINVAL, "%s: %s", path,
	          S_ISFIFO(ret->st_mode)  ? "a FIFO of another user"
	          : S_ISDIR(ret->st_mode) ? "is a folder"
	                                  : "neither a regular file nor a FIFO");
	return -2;
}

int filewriter_check(const char *path, struct error *err)
{
	struct stat st;
	CLEANUP(close) int seen = see_in_place(path, &st, err);

	return seen == -2 ? -1 : seen >= 0;
}

static int open_in_place(struct filewriter *ret, int seen, const struct stat *st, const char *path,
                         struct error *err)
{
	bool fifo = S_ISFIFO(st->st_mode);
	/* Without O_NONBLOCK, a FIFO waits for a reader. */
	CLEANUP(close) int fd = reopen(seen, path, O_WRONLY | (fifo ? O_NONBLOCK : O_TRUNC));
	FILE *out;

	if (fd < 0 && fifo && errno == ENXIO)
		return error_set(err, ENXIO, "%s: no process reads this FIFO", path);
	if (fd < 0 || fcntl(fd, F_SETFL, 0) < 0 || !(out = fdopen(fd, "w")))
		return error_errno(err, "%s", path);
	take_fd(&fd);
	*ret = (struct filewriter){ .out = out, .path = xstrdup(path) };
	return 0;
}

int filewriter_open(struct filewriter *ret, const char *path, struct error *err)
{
	CLEANUP(free) char *temp = NULL;
	CLEANUP(close) int fd = -1;
	struct stat st;
	CLEANUP(close) int seen = see_in_place(path, &st, err);
	mode_t mask;
	bool unnamed;

	if (seen != -1)
		return seen < 0 ? -1 : open_in_place(ret, seen, &st, path, err);
	fd = open_unnamed(path);
	unnamed = fd >= 0;
	if (!unnamed) {
		temp = xasprintf("%s.XXXXXX", path);
		fd = mkostemp(temp, O_CLOEXEC);
	}
	if (fd < 0)
		return error_errno(err, "%s", path);
	mask = umask(0);
	umask(mask);
	*ret = (struct filewriter){ .path = xstrdup(path), .temp = take(temp), .unnamed = unnamed };
	if (fchmod(fd, 0666 & ~mask) < 0 || !(ret->out = fdopen(fd, "w"))) {
		error_errno(err, "%s", path);
		filewriter_done(ret);
		return -1;
	}
	take_fd(&fd);
	return 0;
}

/* Returns 0, or the errno of the write that failed. For an earlier failure stdio keeps only a flag,
 * so we write again, one byte to a file that will be discarded, to get an errno. */
static int write_error(FILE *out)
{
	if (fflush(out) != 0)
		return errno;
	if (!ferror(out))
		return 0;
	clearerr(out);
	return putc('\n', out) == EOF || fflush(out) != 0 ? errno : EIO;
}

int filewriter_commit(struct filewriter *w, struct error *err)
{
	int failed = write_error(w->out);

	if (!failed && w->unnamed && name_file(w) < 0)
		failed = errno;
	if (fclose(take(w->out)) != 0 && !failed)
		failed = errno;
	if (failed) {
		errno = failed;
		return error_errno(err, "%s: cannot write", w->path);
	}
	if (w->temp && rename(w->temp, w->path) < 0)
		return error_errno(err, "%s", w->path);
	free(take(w->temp));
	return 0;
}

void filewriter_done(struct filewriter *w)
{
	if (w->out)
		fclose(w->out);
	if (w->temp)
		unlink(w->temp);
	free(w->temp);
	free(w->path);
	*w = (struct filewriter){ 0 };
}

static int remove_in(int in, const char *name);

/* Not what is on another file system. */
static int remove_contents(int in, DIR *dir)
{
	struct dirent *entry;
	struct stat st, parent;

	if (in != AT_FDCWD &&
	    (fstat(dirfd(dir), &st) < 0 || fstat(in, &parent) < 0 || st.st_dev != parent.st_dev))
		return 0;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    remove_in(dirfd(dir), entry->d_name) < 0)
			return -1;
	return 0;
}

/* A process that ends meanwhile may still make files in the folder. */
#define REMOVE_TRIES 100

/* Removes the folder, which is open as dir. */
static int remove_dir(int in, const char *name, DIR *dir)
{
	for (unsigned i = 0; i < REMOVE_TRIES; i++) {
		rewinddir(dir);
		if (remove_contents(in, dir) < 0)
			return -1;
		if (unlinkat(in, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != ENOTEMPTY)
			return -1;
	}
	return -1;
}

/* By descriptors: others may put a link in the place of a folder meanwhile. */
static int remove_in(int in, const char *name)
{
	CLEANUP(closedir) DIR *dir = NULL;
	int fd;

	if (unlinkat(in, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -1;
	fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir)
		return remove_dir(in, name, dir);
	return unlinkat(in, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -1;
}

int file_remove_folder(int in, const char *name, int folder)
{
	int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(closedir) DIR *dir = own < 0 ? NULL : fdopendir(own);

	return dir ? remove_dir(in, name, dir) : -1;
}

int file_remove_tree(const char *path, struct error *err)
{
	return remove_in(AT_FDCWD, path) < 0 ? error_errno(err, "%s: cannot remove", path) : 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* The files that were seen. */
struct seen {
	VEC(struct stat) files;
	struct idmap by_number;
};

/* Whether it is a file that was not seen before. A file that cannot be examined counts as one. */
static bool is_new(struct seen *seen, const char *path)
{
	struct stat st;
	uint32_t at;

	if (stat(path, &st) < 0)
		return true;
	/* Files of different file systems may have the same number. */
	for (uint64_t key = st.st_ino;
	     !idmap_add(&seen->by_number, key, (uint32_t)seen->files.n, &at); key++)
		if (seen->files.v[at].st_ino == st.st_ino && seen->files.v[at].st_dev == st.st_dev)
			return false;
	*vec_push(&seen->files) = st;
	return true;
}

int folder_each(const char *dir, const char *suffix,
                int (*fn)(void *data, const char *path, struct error *err), void *data,
                struct error *err)
{
	struct dirent **entries;
	struct seen seen = { 0 };
	CLEANUP(close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int n = fd < 0 ? -1 : scandirat(fd, ".", &entries, NULL, by_name), ret = 0;

	if (n < 0)
		return error_errno(err, "%s", dir);
	for (int i = 0; i < n; i++) {
		CLEANUP(free) struct dirent *entry = entries[i];
		CLEANUP(free) char *path = xasprintf("%s/%s", dir, entry->d_name);

		if (ret == 0 && str_has_suffix(entry->d_name, suffix) && is_new(&seen, path) &&
		    fn(data, path, err) < 0)
			ret = -1;
	}
	free(entries);
	vec_done(&seen.files);
	idmap_done(&seen.by_number);
	return ret;
}
