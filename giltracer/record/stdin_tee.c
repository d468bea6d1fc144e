/* SPDX-License-Identifier: MIT */
/* Standard input for a program that runs twice. */
#include "record/stdin_tee.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

static int open_copy(const char *dir, struct error *err)
{
	CLEANUP(free) char *path = NULL;
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	path = xasprintf("%s/.stdin.XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, "%s", path);
	unlink(path);
	return fd;
}

/* False: see errno. */
static bool write_all(int fd, const char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(fd, buf, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		buf += n;
		len -= (size_t)n;
	}
	return true;
}

/* Waits if our standard input does not block. */
static ssize_t read_input(char *buf, size_t size)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	ssize_t n;

	while ((n = read(STDIN_FILENO, buf, size)) < 0 && (errno == EINTR || errno == EAGAIN))
		poll(&input, 1, -1);
	return n;
}

/* Runs in the child process. It ends by EPIPE when the program closes its input. If there is no room
 * for the copy, the program still gets all of its input. */
static void run_tee(const struct stdin_tee *tee, int to, pid_t parent) __attribute__((noreturn));

static void run_tee(const struct stdin_tee *tee, int to, pid_t parent)
{
	char buf[65536];
	ssize_t n;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	if (getppid() != parent)
		_exit(125);
	while ((n = read_input(buf, sizeof(buf))) > 0) {
		if (!*tee->partial && !write_all(tee->copy, buf, (size_t)n))
			*tee->partial = true;
		if (!write_all(to, buf, (size_t)n))
			_exit(errno == EPIPE ? 0 : 125);
	}
	_exit(n < 0 ? 125 : 0);
}

static int start_tee(struct stdin_tee *tee, int *ret_fd, struct error *err)
{
	pid_t parent = getpid();
	int fds[2];

	tee->partial = mmap(NULL, sizeof(*tee->partial), PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tee->partial == MAP_FAILED) {
		tee->partial = NULL;
		return error_errno(err, "mmap");
	}
	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_errno(err, "pipe");
	tee->child.pid = fork();
	if (tee->child.pid < 0) {
		tee->child.pid = 0;
		close(fds[0]);
		close(fds[1]);
		return error_errno(err, "fork");
	}
	if (tee->child.pid == 0) {
		close(fds[0]);
		run_tee(tee, fds[1], parent);
	}
	close(fds[1]);
	*ret_fd = fds[0];
	return 0;
}

int stdin_tee_first(struct stdin_tee *tee, const char *dir, int *ret_fd, struct error *err)
{
	struct stat st;

	*tee = (struct stdin_tee)STDIN_TEE_NONE;
	*ret_fd = -1;
	if (isatty(STDIN_FILENO) || fstat(STDIN_FILENO, &st) < 0 || S_ISCHR(st.st_mode))
		return 0;
	if (S_ISREG(st.st_mode)) {
		tee->offset = lseek(STDIN_FILENO, 0, SEEK_CUR);
		return 0;
	}
	tee->copy = open_copy(dir, err);
	if (tee->copy < 0)
		return -1;
	return start_tee(tee, ret_fd, err);
}

/* Whether the copy is not all of the input: the child ends normally at the end of that, and is killed
 * when it is no longer needed. */
static bool has_failed(const struct stdin_tee *tee)
{
	int status = tee->child.status;

	if (tee->child.pid <= 0 || *tee->partial)
		return tee->child.pid > 0;
	return WIFSIGNALED(status) ? WTERMSIG(status) != SIGKILL : WEXITSTATUS(status) != 0;
}

int stdin_tee_again(struct stdin_tee *tee, int *ret_fd, struct error *err)
{
	*ret_fd = -1;
	if (tee->offset >= 0 && lseek(STDIN_FILENO, tee->offset, SEEK_SET) < 0)
		return error_errno(err, "standard input");
	if (tee->copy < 0)
		return 0;
	child_done(&tee->child);
	if (has_failed(tee))
		return error_set(err, EIO,
		                 "standard input could not be copied (is the disk full?)");
	if (lseek(tee->copy, 0, SEEK_SET) < 0)
		return error_errno(err, "standard input");
	*ret_fd = fcntl(tee->copy, F_DUPFD_CLOEXEC, 3);
	return *ret_fd < 0 ? error_errno(err, "standard input") : 0;
}

void stdin_tee_done(struct stdin_tee *tee)
{
	child_done(&tee->child);
	if (tee->partial)
		munmap(tee->partial, sizeof(*tee->partial));
	tee->partial = NULL;
	if (tee->copy >= 0)
		close(take_fd(&tee->copy));
}
