/* SPDX-License-Identifier: MIT */
/*
 * Processes that we start: by argument vector, with exactly the descriptors that they are given,
 * and with the signal mask that we were started with. Waiting for them, and for signals to us.
 */
#ifndef GILTRACER_BASE_CHILD_H
#define GILTRACER_BASE_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* A descriptor of ours, and its number in the child. */
struct child_fd {
	int ours, theirs;
};

/**
 * @file: what to execute, looked up in PATH unless it has a slash
 * @argv: NULL-terminated
 * @fds: fd_count descriptors that it gets besides those it inherits because they are not CLOEXEC
 * @env: what its environment has more or other than ours, "NAME=VALUE", NULL-terminated; NULL:
 * nothing
 * @held: do not execute it yet: child_release does
 * @own_group: a process group of its own, so that the terminal's signals do not reach it; it gets
 *             SIGTERM when we die
 * @mask: signal mask; NULL for the current one
 * @as: whose rights it has, if we are root; 0: ours
 * @prepare: runs in the child last of all; false: nothing is executed; NULL for none
 */
struct child_spec {
	const char *file;
	char *const *argv;
	const struct child_fd *fds;
	size_t fd_count;
	char *const *env;
	bool held;
	bool own_group;
	const sigset_t *mask;
	uid_t as;
	bool (*prepare)(void);
};

/* pid 0: none. Plain data; end with child_done. */
struct child {
	pid_t pid;
	int release_fd, error_fd; /* -1 when done with */
	bool reaped;
	int status; /* as of waitpid, once reaped */
};

#define CHILD_NONE                               \
	{                                        \
		.release_fd = -1, .error_fd = -1 \
	}

/*
 * Start a process. Unless held, returns after it was executed; the error's code is execvp's errno,
 * ENOENT or EACCES for instance.
 */
int child_spawn(struct child *ret, const struct child_spec *spec, struct error *err);

/* Let a held one execute its file. Errors as of child_spawn. */
int child_release(struct child *child, struct error *err);

/* Whether it has ended, without waiting; then child->status is valid. */
bool child_ended(struct child *child);

/* Whether it was stopped or continued (SIGSTOP, SIGTSTP, SIGCONT) since the last call. */
bool child_stopped(const struct child *child);

/* Wait for its end. */
void child_wait(struct child *child);

/* Kill it if it still runs, and reap it. */
void child_done(struct child *child);

/*
 * Signals while a program runs: those that a terminal or a person sends us are read from fd
 * instead of ending us, so that everything is removed on the way out. Children get the old mask.
 */
struct signals {
	sigset_t old;
	int fd;
};

int signals_block(struct signals *ret, struct error *err);

/* Whether one that asks us to end has come and was not read yet. */
bool signals_ending(void);

/* Takes those that have come: returns the first that asks us to end, or 0. */
int signals_take(const struct signals *signals);

/* From now on as before; what is still pending takes effect here. */
void signals_restore(struct signals *signals);

#endif
