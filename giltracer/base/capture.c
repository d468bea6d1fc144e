/* SPDX-License-Identifier: MIT */
/* Runs a program and reads its output through a pipe. */
#include "base/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"

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
