/* SPDX-License-Identifier: MIT */
/* Grants to a group: read access to files of tracefs, and the right to execute giltracer-perf. */
#include "system/setup_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "system/perf_guard.h"
#include "system/probe_lease.h"
#include "system/sandbox.h"

#define CAPABILITY_XATTR "security.capability"

static char *share_current(const struct setup_step *step)
{
	struct stat st;

	if (stat(step->target, &st) < 0)
		return NULL;
	return xasprintf("gid=%u,mode=%o", (unsigned)st.st_gid, (unsigned)st.st_mode & 07777);
}

static bool share_parse(const char *value, unsigned *ret_gid, unsigned *ret_mode)
{
	return value && sscanf(value, "gid=%u,mode=%o", ret_gid, ret_mode) == 2;
}

static char *share_text(const struct setup_step *step, const char *value)
{
	char gid[64];
	unsigned mode;

	/* A group that does not exist yet has no number, see setup.c. */
	if (!value || sscanf(value, "gid=%63[^,],mode=%o", gid, &mode) != 2)
		return xasprintf("# %s: its previous owner is unknown", step->target);
	return xasprintf("chgrp %s %s && chmod %o %s", gid, step->target, mode, step->target);
}

static int share_apply(const struct setup_step *step, const char *value, struct error *err)
{
	unsigned gid, mode;

	if (!share_parse(value, &gid, &mode))
		return error_set(err, EINVAL, "%s: its previous owner is unknown", step->target);
	if (chown(step->target, (uid_t)-1, gid) < 0 || chmod(step->target, mode) < 0)
		return error_errno(err, "%s", step->target);
	return 0;
}

const struct setup_kind setup_share = { "share", share_current, share_text, share_apply };

char *setup_share_value(const char *path, const char *gid, unsigned bits)
{
	struct stat st;

	if (stat(path, &st) < 0 || (st.st_mode << 3 & bits) == bits)
		return NULL;
	return xasprintf("gid=%s,mode=%o", gid, ((unsigned)st.st_mode & 07707) | bits);
}

/* ---- a bind mount of tracefs's events */

static char *bind_current(const struct setup_step *step)
{
	struct stat there, here;

	if (stat(step->target, &there) < 0 || stat(step->value, &here) < 0 ||
	    there.st_dev != here.st_dev || there.st_ino != here.st_ino)
		return NULL;
	return xstrdup(step->value);
}

static char *bind_text(const struct setup_step *step, const char *value)
{
	return value ? xasprintf("mount -o bind,ro %s %s", value, step->target)
	             : xasprintf("umount %s", step->target);
}

static int bind_undo(const char *path, struct error *err)
{
	CLEANUP(free) char *copy = xstrdup(path);

	if (umount2(path, UMOUNT_NOFOLLOW | MNT_DETACH) < 0 && errno != EINVAL && errno != ENOENT)
		return error_errno(err, "%s", path);
	rmdir(path);
	rmdir(dirname(copy));
	return 0;
}

/* Nobody but root can enter the parent folder of the bind mount until it is shared. */
static int bind_apply(const struct setup_step *step, const char *value, struct error *err)
{
	const unsigned long how = MS_BIND | MS_NOSUID | MS_NODEV | MS_NOEXEC;
	CLEANUP(free) char *copy = xstrdup(step->target);
	struct error ignored;

	if (!value)
		return bind_undo(step->target, err);
	if (lease_make_folder(err) < 0)
		return -1;
	if ((mkdir(dirname(copy), 0700) < 0 && errno != EEXIST) ||
	    (mkdir(step->target, 0755) < 0 && errno != EEXIST))
		return error_errno(err, "%s", step->target);
	if (mount(value, step->target, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, step->target, NULL, how | MS_REMOUNT | MS_RDONLY, NULL) < 0) {
		error_errno(err, "%s", step->target);
		bind_undo(step->target, &ignored);
		return -1;
	}
	return 0;
}

const struct setup_kind setup_bind = { "bind", bind_current, bind_text, bind_apply };

/* ---- giltracer-perf */

static uint64_t sum_of(const struct filemap *map)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (size_t i = 0; i < map->size; i++)
		sum = (sum ^ map->data[i]) * 0x100000001b3;
	return sum;
}

static struct vfs_cap_data capabilities(void)
{
	struct vfs_cap_data caps = { .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE };

	caps.data[CAP_TO_INDEX(CAP_PERFMON)].permitted |= CAP_TO_MASK(CAP_PERFMON);
	caps.data[CAP_TO_INDEX(CAP_IPC_LOCK)].permitted |= CAP_TO_MASK(CAP_IPC_LOCK);
	return caps;
}

static bool has_capabilities(const char *path)
{
	const struct vfs_cap_data want = capabilities();
	struct vfs_cap_data got;

	return getxattr(path, CAPABILITY_XATTR, &got, sizeof(got)) == (ssize_t)XATTR_CAPS_SZ_2 &&
	       !memcmp(&got, &want, XATTR_CAPS_SZ_2);
}

/* "gid=N,sum=CONTENTS"; NULL for a file that differs from ours in any other way. */
static char *guard_describe(const char *path, const char *gid)
{
	CLEANUP(filemap_done) struct filemap map = { 0 };
	struct error ignored;

	if (filemap_open(&map, path, &ignored) < 0)
		return NULL;
	return xasprintf("gid=%s,sum=%016" PRIx64, gid, sum_of(&map));
}

static char *guard_current(const struct setup_step *step)
{
	CLEANUP(free) char *gid = NULL;
	struct stat st;

	if (lstat(step->target, &st) < 0)
		return NULL;
	if (!S_ISREG(st.st_mode) || st.st_uid || (st.st_mode & 07777) != 0750 ||
	    !has_capabilities(step->target))
		return xstrdup("other");
	gid = xasprintf("%u", (unsigned)st.st_gid);
	return guard_describe(step->target, gid);
}

char *setup_guard_value(const char *gid)
{
	CLEANUP(free) char *program = NULL;
	struct error ignored;

	return perf_guard_find_program(&program, &ignored) < 0 ? NULL
	                                                       : guard_describe(program, gid);
}

static char *guard_text(const struct setup_step *step, const char *value)
{
	int gid_len = value ? (int)strcspn(value + strlen("gid="), ",") : 0;

	if (!value || !str_has_prefix(value, "gid="))
		return xasprintf("rm %s", step->target);
	return xasprintf("install -o root -g %.*s -m 750 giltracer-perf %s && setcap "
	                 "cap_perfmon,cap_ipc_lock=ep %s",
	                 gid_len, value + strlen("gid="), step->target, step->target);
}

/* Makes the folder of path. Fails unless only root can write to it and capabilities of files
 * count there. */
static int make_folder(const char *path, struct error *err)
{
	CLEANUP(free) char *copy = xstrdup(path);
	const char *dir = dirname(copy);
	struct statvfs fs;
	struct stat st;

	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(copy, 0755); /* stat() below reports failures */
		*slash = '/';
	}
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return error_errno(err, "%s", dir);
	if (stat(dir, &st) < 0 || statvfs(dir, &fs) < 0)
		return error_errno(err, "%s", dir);
	if (st.st_uid || st.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, EPERM, "%s: writable by users other than root", dir);
	if (fs.f_flag & ST_NOSUID)
		return error_set(err, EPERM,
		                 "%s: is mounted nosuid, where capabilities of files do not count "
		                 "(configure --libexecdir puts it elsewhere)",
		                 dir);
	return 0;
}

static int guard_copy(FILE *out, const struct filemap *map, unsigned gid, const char *path,
                      struct error *err)
{
	const struct vfs_cap_data caps = capabilities();

	if (fwrite(map->data, 1, map->size, out) != map->size || fflush(out) != 0 ||
	    fchown(fileno(out), 0, gid) < 0 || fchmod(fileno(out), 0750) < 0)
		return error_errno(err, "%s", path);
	/* Capabilities are set last: a change of owner clears them. */
	if (fsetxattr(fileno(out), CAPABILITY_XATTR, &caps, XATTR_CAPS_SZ_2, 0) < 0)
		return error_errno(
			err, "%s: capabilities (Linux 5.8 is the first with CAP_PERFMON)", path);
	return 0;
}

static int guard_remove(const char *path, struct error *err)
{
	CLEANUP(free) char *copy = xstrdup(path);

	if (unlink(path) < 0 && errno != ENOENT)
		return error_errno(err, "%s", path);
	rmdir(dirname(copy)); /* stays if it is not empty */
	return 0;
}

/* A previous version of ours cannot be restored, so it is removed. */
static int guard_apply(const struct setup_step *step, const char *value, struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	CLEANUP(filemap_done) struct filemap map = { 0 };
	CLEANUP(free) char *program = NULL;
	CLEANUP(free) char *copied = NULL;
	unsigned gid;

	if (!value || sscanf(value, "gid=%u,", &gid) != 1)
		return guard_remove(step->target, err);
	if (perf_guard_find_program(&program, err) < 0 || make_folder(step->target, err) < 0 ||
	    filemap_open(&map, program, err) < 0)
		return -1;
	copied = xasprintf("gid=%u,sum=%016" PRIx64, gid, sum_of(&map));
	if (strcmp(copied, value) != 0)
		return guard_remove(step->target, err);
	if (filewriter_open(&w, step->target, err) < 0 ||
	    guard_copy(w.out, &map, gid, step->target, err) < 0)
		return -1;
	return filewriter_commit(&w, err);
}

const struct setup_kind setup_guard = { "guard", guard_current, guard_text, guard_apply };
