/* SPDX-License-Identifier: MIT */
/* Child processes, and the signals that arrive while they run. */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path_owner.h"
#include "base/str.h"

static const int OUR_SIGNALS[] = { SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };

static ssize_t read_all(int fd, void *buf, size_t size)
{
	ssize_t n;

	do {
		n = read(fd, buf, size);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* Runs in the child. dup2 clears CLOEXEC, but does nothing if both descriptors are the same. */
static void give_fds(const struct child_spec *spec)
{
	for (size_t i = 0; i < spec->fd_count; i++) {
		const struct child_fd *fd = &spec->fds[i];

		if (fd->ours == fd->theirs)
			fcntl(fd->ours, F_SETFD, 0);
		else if (dup2(fd->ours, fd->theirs) < 0)
			_exit(125);
	}
}

static bool is_given(const struct child_spec *spec, int fd)
{
	for (size_t i = 0; i < spec->fd_count; i++)
		if (spec->fds[i].theirs == fd)
			return true;
	return false;
}

/* Another user's program gets none of our standard streams. */
static void close_streams(const struct child_spec *spec)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (is_given(spec, fd))
			continue;
		close(fd);
		/* The kernel takes the lowest number that is free. */
		if (open("/dev/null", O_RDWR) != fd)
			_exit(125);
	}
}

static void leave_terminal(pid_t parent)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(125);
}

/* Between fork and exec, no lock may be taken that another thread may have held at the fork. */
static void run_child(const struct child_spec *spec, pid_t parent, gid_t group, int release_fd,
                      int error_fd) __attribute__((noreturn));

static void run_child(const struct child_spec *spec, pid_t parent, gid_t group, int release_fd,
                      int error_fd)
{
	bool other = spec->as && geteuid() == 0;
	char byte;
	int code;

	if (spec->own_group)
		leave_terminal(parent);
	/* The read fails if giltracer gave up and closed its end. */
	if (spec->held && read_all(release_fd, &byte, 1) != 1)
		_exit(125);
	/* Before give_fds(), because it closes all but the standard streams on exec. */
	if (!path_owner_become(spec->as, group) || (spec->dir && chdir(spec->dir) < 0))
		_exit(125);
	give_fds(spec);
	if (other)
		close_streams(spec);
	sigprocmask(SIG_SETMASK, spec->mask, NULL);
	for (char *const *variable = spec->env; variable && *variable; variable++)
		putenv(*variable);
	if (spec->prepare && !spec->prepare())
		_exit(127);
	/* execvp() would run a file of unknown format with a shell; execv() does not. */
	if (strchr(spec->file, '/'))
		execv(spec->file, spec->argv);
	else
		execvp(spec->file, spec->argv);
	code = errno;
	if (write(error_fd, &code, sizeof(code)) < 0)
		_exit(125);
	_exit(127);
}

/* CLOEXEC closes the error pipe once the program is executed. */
static int wait_exec(struct child *child, struct error *err)
{
	int code;
	ssize_t n = read_all(child->error_fd, &code, sizeof(code));

	close(take_fd(&child->error_fd));
	if (n != (ssize_t)sizeof(code))
		return 0;
	child_wait(child);
	errno = code;
	return error_errno(err, "cannot execute");
}

int child_spawn(struct child *ret, const struct child_spec *spec, struct error *err)
{
	CLEANUP(close) int release_r = -1;
	CLEANUP(close) int release_w = -1;
	CLEANUP(close) int error_r = -1;
	CLEANUP(close) int error_w = -1;
	gid_t group = path_owner_group(spec->as);
	pid_t parent = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_errno(err, "pipe");
	release_r = fds[0];
	release_w = fds[1];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_errno(err, "pipe");
	error_r = fds[0];
	error_w = fds[1];
	*ret = (struct child){ .release_fd = -1, .error_fd = -1 };
	ret->pid = fork();
	if (ret->pid < 0) {
		ret->pid = 0;
		return error_errno(err, "fork");
	}
	if (ret->pid == 0) {
		close(release_w);
		close(error_r);
		run_child(spec, parent, group, release_r, error_w);
	}
	close(take_fd(&error_w));
	ret->error_fd = take_fd(&error_r);
	if (!spec->held)
		return wait_exec(ret, err);
	ret->release_fd = take_fd(&release_w);
	return 0;
}

int child_release(struct child *child, struct error *err)
{
	int fd = take_fd(&child->release_fd);
	/* Somebody may have killed it meanwhile. */
	void (*old)(int) = signal(SIGPIPE, SIG_IGN);
	ssize_t n = write(fd, "x", 1);

	if (n != 1)
		error_errno(err, "cannot start it");
	signal(SIGPIPE, old);
	close(fd);
	if (n != 1)
		return -1;
	return wait_exec(child, err);
}

bool child_ended(struct child *child)
{
	if (!child->reaped && child->pid > 0 &&
	    waitpid(child->pid, &child->status, WNOHANG) == child->pid)
		child->reaped = true;
	return child->reaped;
}

int child_change(const struct child *child)
{
	siginfo_t info = { .si_pid = 0 };

	if (child->reaped || child->pid <= 0 ||
	    waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) < 0 ||
	    !info.si_pid)
		return 0;
	return info.si_code == CLD_CONTINUED ? CLD_CONTINUED : CLD_STOPPED;
}

void child_wait(struct child *child)
{
	while (!child->reaped && child->pid > 0) {
		if (waitpid(child->pid, &child->status, 0) == child->pid)
			child->reaped = true;
		else if (errno != EINTR)
			break;
	}
}

void child_done(struct child *child)
{
	if (child->release_fd >= 0)
		close(take_fd(&child->release_fd));
	if (child->error_fd >= 0)
		close(take_fd(&child->error_fd));
	if (child->pid > 0 && !child->reaped) {
		kill(child->pid, SIGKILL);
		child_wait(child);
	}
}

int signals_block(struct signals *ret, struct error *err)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(OUR_SIGNALS) / sizeof(*OUR_SIGNALS); i++)
		sigaddset(&set, OUR_SIGNALS[i]);
	if (sigprocmask(SIG_BLOCK, &set, &ret->old) < 0)
		return error_errno(err, "sigprocmask");
	ret->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (ret->fd < 0) {
		sigprocmask(SIG_SETMASK, &ret->old, NULL);
		return error_errno(err, "signalfd");
	}
	return 0;
}

bool signals_ending(void)
{
	sigset_t set;

	return sigpending(&set) == 0 && (sigismember(&set, SIGINT) || sigismember(&set, SIGQUIT) ||
	                                 sigismember(&set, SIGTERM) || sigismember(&set, SIGHUP));
}

static bool asks_to_end(uint32_t signal)
{
	return signal == SIGINT || signal == SIGQUIT || signal == SIGTERM || signal == SIGHUP;
}

int signals_take(const struct signals *signals)
{
	struct signalfd_siginfo info;
	int ret = 0;

	while (read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (!ret && asks_to_end(info.ssi_signo))
			ret = (int)info.ssi_signo;
	return ret;
}

void signals_restore(struct signals *signals)
{
	close(take_fd(&signals->fd));
	sigprocmask(SIG_SETMASK, &signals->old, NULL);
}

/* ---- a child whose output is captured */

/* Runs a program and reads its output through a pipe. */

static int64_t now_ms(void)
{
	return (int64_t)(clock_now_ns() / NS_PER_MS);
}

/* Reads until the output ends or a limit is reached. */
static int read_output(struct str *text, struct captured *ret, int fd,
                       const struct capture *capture, struct error *err)
{
	int64_t deadline = capture->timeout_ms ? now_ms() + capture->timeout_ms : INT64_MAX;
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char buf[4096];

	for (;;) {
		int64_t left = capture->timeout_ms ? deadline - now_ms() : -1;
		ssize_t n;

		ret->late = capture->timeout_ms && left <= 0;
		if (ret->late)
			return 0;
		if (poll(&pfd, 1, (int)left) <= 0)
			continue;
		n = read(fd, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? error_errno(err, "read") : 0;
		str_addn(text, buf, (size_t)n);
		ret->endless = text->len > capture->max;
		if (ret->endless)
			return 0;
	}
}

static int spawn(struct child *ret, const struct capture *capture, int out, int null,
                 struct error *err)
{
	const struct child_fd fds[] = { { out, STDOUT_FILENO },
		                        { capture->no_errors ? null : out, STDERR_FILENO },
		                        { null, STDIN_FILENO } };

	return child_spawn(ret,
	                   &(struct child_spec){
				   .file = capture->argv[0],
				   /* The cast is safe: exec does not change what argv points to. */
				   .argv = (char *const *)(uintptr_t)capture->argv,
				   .fds = fds,
				   .fd_count = capture->no_input ? 3 : 2,
				   .as = capture->as,
				   .dir = capture->dir,
				   .prepare = capture->prepare,
			   },
	                   err);
}

int capture_run(struct captured *ret, const struct capture *capture, struct error *err)
{
	CLEANUP(str_done) struct str text = { 0 };
	CLEANUP(close) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	CLEANUP(close) int read_fd = -1;
	struct captured captured = { .status = 0 };
	struct child child = CHILD_NONE;
	int fds[2], failed;

	if (null < 0 || pipe2(fds, O_CLOEXEC) < 0)
		return error_errno(err, "cannot start %s", capture->argv[0]);
	read_fd = fds[0];
	failed = spawn(&child, capture, fds[1], null, err);
	close(fds[1]);
	if (!failed)
		failed = read_output(&text, &captured, read_fd, capture, err);
	if (!failed && !captured.late && !captured.endless)
		child_wait(&child);
	child_done(&child);
	if (failed)
		return error_prefix(err, "%s", capture->argv[0]);
	captured.status = child.status;
	captured.text = str_take(&text);
	*ret = captured;
	return 0;
}
