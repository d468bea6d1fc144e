/* SPDX-License-Identifier: MIT */
/* Who may see the record of a probe group, and that nobody can hang others by locking it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "system/uprobes.h"
#include "tap.h"

#define GROUP "giltracer_abc123_0a1b2c"

static unsigned mode_of(const char *name)
{
	CLEANUP(free) char *path = lease_path(name);
	struct stat st;

	return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

/* A process named "a hog" that holds the lock until it is killed. */
static pid_t lock_for_ever(const char *name)
{
	CLEANUP(free) char *path = lease_path(name);
	int ready[2], fd;
	char byte;
	pid_t pid;

	if (pipe(ready) < 0 || (pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		prctl(PR_SET_NAME, "a hog");
		fd = open(path, O_RDONLY);
		if (flock(fd, LOCK_EX) == 0 && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	ok(read(ready[0], &byte, 1) == 1, "%s is locked", name);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_record(void)
{
	struct lease_record record = { 0 };
	struct error err = { 0 };

	ok(lease_write(GROUP, "/dev/null", &err) == 0, "a record");
	ok(mode_of(GROUP) == 0600, "is its user's alone: who can read it can lock it");
	ok(lease_read(GROUP, &record) && record.ino, "and names the file");
}

static void test_share(void)
{
	struct error err = { 0 };
	int a = -1, b = -1;

	ok(!lease_is_used(GROUP), "nobody uses it");
	ok(lease_share(GROUP, &a, &err) == 0 && lease_share(GROUP, &b, &err) == 0, "two share it");
	ok(lease_is_used(GROUP), "it is used");
	close(a);
	ok(lease_is_used(GROUP), "also by the other one");
	close(b);
	ok(!lease_is_used(GROUP), "and then by nobody");
}

static void test_hog(void)
{
	pid_t pid = lock_for_ever(GROUP);
	CLEANUP(free) char *holder = xasprintf("is locked by process %d (a hog)", (int)pid);
	struct error err = { 0 };
	int fd = -1;

	ok(lease_share(GROUP, &fd, &err) < 0 && err.code == EBUSY, "a lock that stays is an error");
	ok(strstr(err.text, holder), "with the name of who holds it");
	printf("# %s\n", err.text);
	end(pid);
	ok(lease_share(GROUP, &fd, &err) == 0, "until that has ended");
	close(fd);
}

static void test_signal(void)
{
	struct error err = { 0 };
	struct signals signals;
	int fd = -1;
	pid_t pid;

	ok(lease_lock_all(&fd, &err) == 0, "all is locked, and free again");
	close(fd);
	ok(mode_of("lock") == 0600, "by nobody else");
	pid = lock_for_ever("lock");
	ok(signals_block(&signals, &err) == 0 && raise(SIGTERM) == 0, "a blocked SIGTERM");
	ok(lease_lock_all(&fd, &err) < 0 && err.code == EINTR, "ends the waiting");
	ok(signals_take(&signals) == SIGTERM, "and is still there for who asks");
	signals_restore(&signals);
	end(pid);
}

int main(void)
{
	char dir[] = "/tmp/test-probe-lease.XXXXXX";
	struct error ignored;

	ok(mkdtemp(dir) && setenv("GILTRACER_RUNDIR", dir, 1) == 0, "a folder of its own");
	test_record();
	test_share();
	test_hog();
	test_signal();
	file_remove_tree(dir, &ignored);
	return done_testing();
}
