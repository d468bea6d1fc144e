/* SPDX-License-Identifier: MIT */
/*
 * Child processes: started from an argument vector, with exactly the descriptors that they are
 * given and with the signal mask that we were started with. Also waiting for them, and for signals
 * to us.
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
 * @fds: fd_count descriptors to pass on, in addition to those that are inherited because they are
 * not CLOEXEC
 * @env: variables to add to our environment or to replace in it, "NAME=VALUE", NULL-terminated;
 * NULL: none
 * @held: the file is not executed until child_release
 * @own_group: start a process group, so that the terminal's signals do not reach the child; it gets
 *             SIGTERM when we die
 * @mask: signal mask; NULL for the current one
 * @as: the user as whom the child runs, if we are root, with nothing of ours but fds, env and what
 * path_owner_become() leaves; 0: as ourselves
 * @dir: the folder to start in; NULL: ours or, for another user, the root
 * @prepare: called in the child just before exec; if it returns false, nothing is executed; NULL
 * for none
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
	const char *dir;
	bool (*prepare)(void);
};

/* pid 0: no process. Plain data; end with child_done. */
struct child {
	pid_t pid;
	int release_fd, error_fd; /* -1 once closed */
	bool reaped;
	int status; /* as from waitpid; valid once reaped */
};

#define CHILD_NONE                               \
	{                                        \
		.release_fd = -1, .error_fd = -1 \
	}

/*
 * Starts a process. Unless it is held, this returns after the file was executed. The error's code
 * is execvp's errno, for instance ENOENT or EACCES.
 */
int child_spawn(struct child *ret, const struct child_spec *spec, struct error *err);

/* Lets a held child execute its file. Errors as for child_spawn. */
int child_release(struct child *child, struct error *err);

/* Whether the child has ended, without waiting; if so, child->status is valid. */
bool child_ended(struct child *child);

/* The next change that was not returned yet: CLD_STOPPED (SIGSTOP, SIGTSTP), CLD_CONTINUED, or 0 if
 * there is none. Of several changes, the kernel may report only the last. */
int child_change(const struct child *child);

/* Wait until the child ends. */
void child_wait(struct child *child);

/* Kill the child if it still runs, and reap it. */
void child_done(struct child *child);

/*
 * Signals while a program runs: those that a terminal or a person sends us are read from fd instead
 * of ending us, so that we can remove everything before we exit. Children get the old mask.
 */
struct signals {
	sigset_t old;
	int fd;
};

int signals_block(struct signals *ret, struct error *err);

/* Whether a signal that asks us to end is pending. */
bool signals_ending(void);

/* Reads all pending signals. Returns the first that asks us to end, or 0. */
int signals_take(const struct signals *signals);

/* Restores the old mask; signals that are still pending take effect here. */
void signals_restore(struct signals *signals);

/* ---- a child whose output is captured */

/* Run a program until it ends and capture its output. */

/**
 * @argv: NULL-terminated; argv[0] is looked up in PATH unless it contains a slash
 * @no_input: stdin is /dev/null; otherwise it is inherited
 * @no_errors: stderr is /dev/null; otherwise it is captured with stdout
 * @max: largest output in bytes; a program that prints more is killed
 * @timeout_ms: the program is killed after this time; 0: never
 * @as, @dir, @prepare: as in struct child_spec
 */
struct capture {
	const char *const *argv;
	bool no_input, no_errors;
	size_t max;
	int timeout_ms;
	uid_t as;
	const char *dir;
	bool (*prepare)(void);
};

/* @text: owned, never NULL; @status: as from waitpid; @endless, @late: killed for too much output,
 * or after the timeout */
struct captured {
	char *text;
	int status;
	bool endless, late;
};

/* Fails if the program cannot be started, with execvp's errno as the code, or if its output cannot
 * be read. ret is then unchanged. */
int capture_run(struct captured *ret, const struct capture *capture, struct error *err);

#endif
