/* SPDX-License-Identifier: MIT */
/* Processes that we start, what they get of us, and signals that come meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "tap.h"

static struct error err;

/* sh -c SCRIPT, which writes to descriptor 5; what it wrote is in text. */
static char text[4096];
static int shell(struct child *child, struct child_spec spec, const char *script)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char *)(uintptr_t)script, NULL };
	int fds[2], ret;
	size_t len = 0;
	ssize_t n;

	if (pipe2(fds, O_CLOEXEC) < 0)
		exit(99);
	spec.file = "sh";
	spec.argv = argv;
	spec.fds = &(struct child_fd){ fds[1], 5 };
	spec.fd_count = 1;
	ret = child_spawn(child, &spec, &err);
	close(fds[1]);
	if (ret == 0 && spec.held)
		ret = child_release(child, &err);
	while ((n = read(fds[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(fds[0]);
	return ret;
}

static void test_spawn(void)
{
	struct child child = CHILD_NONE;

	ok(shell(&child, (struct child_spec){ 0 }, "echo here >&5; exit 3") == 0,
	   "a program starts");
	is_str(text, "here\n", "with the descriptor that it is given");
	child_wait(&child);
	ok(child_ended(&child) && WIFEXITED(child.status) && WEXITSTATUS(child.status) == 3,
	   "and its exit status is known");
	child_done(&child);
	ok(waitpid(-1, NULL, WNOHANG) < 0, "it is reaped");
}

static void test_errors(void)
{
	char *argv[] = { (char[]){ "x" }, NULL };
	struct child child = CHILD_NONE;

	ok(child_spawn(&child, &(struct child_spec){ .file = "/nonexistent", .argv = argv }, &err) <
	           0,
	   "what is not there does not start");
	is_u64((uint64_t)err.code, ENOENT, "which is ENOENT");
	child_done(&child);
	ok(child_spawn(&child, &(struct child_spec){ .file = "/etc/passwd", .argv = argv }, &err) <
	           0,
	   "what is no program does not start");
	is_u64((uint64_t)err.code, EACCES, "which is EACCES");
	child_done(&child);
	ok(waitpid(-1, NULL, WNOHANG) < 0, "neither leaves a process");
}

static bool write_five(void)
{
	return write(5, "five ", 5) == 5;
}

static bool refuse(void)
{
	return false;
}

static void test_held(void)
{
	struct child child = CHILD_NONE;
	char *env[] = { (char[]){ "TEST_CHILD=yes" }, NULL };

	ok(shell(&child, (struct child_spec){ .held = true, .env = env, .prepare = write_five },
	         "echo $TEST_CHILD >&5") == 0,
	   "a held one is released");
	is_str(text, "five yes\n", "prepared, and with a larger environment");
	ok(!getenv("TEST_CHILD"), "which is not ours");
	child_wait(&child);
	child_done(&child);

	child = (struct child)CHILD_NONE;
	ok(shell(&child, (struct child_spec){ .prepare = refuse }, "echo >&5") == 0,
	   "one that is not prepared");
	child_wait(&child);
	ok(!*text && WEXITSTATUS(child.status) == 127, "  executes nothing");
	child_done(&child);
}

/* A held child whose parent gives up never executes its file. */
static void test_given_up(void)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "exit 9" }, NULL };
	struct child child = CHILD_NONE;

	ok(child_spawn(&child, &(struct child_spec){ .file = "sh", .argv = argv, .held = true },
	               &err) == 0,
	   "a held child");
	ok(!child_ended(&child), "  waits");
	close(child.release_fd);
	child.release_fd = -1;
	child_wait(&child);
	ok(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 125, "  and ends without us");
	child_done(&child);
}

/* As by the kernel, if memory runs out. */
static void test_killed_early(void)
{
	char *argv[] = { (char[]){ "true" }, NULL };
	struct child child = CHILD_NONE;

	ok(child_spawn(&child, &(struct child_spec){ .file = "true", .argv = argv, .held = true },
	               &err) == 0,
	   "a held child");
	kill(child.pid, SIGKILL);
	child_wait(&child);
	ok(child_release(&child, &err) < 0, "  that somebody kills cannot be released");
	is_u64((uint64_t)err.code, EPIPE, "  and we go on");
	child_done(&child);
}

static void test_killed(void)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "1000" }, NULL };
	struct child child = CHILD_NONE;

	ok(child_spawn(&child,
	               &(struct child_spec){ .file = "sleep", .argv = argv, .own_group = true },
	               &err) == 0,
	   "a child in a group of its own");
	is_u64((uint64_t)getpgid(child.pid), (uint64_t)child.pid, "  is its leader");
	kill(child.pid, SIGSTOP);
	waitid(P_PID, (id_t)child.pid, &(siginfo_t){ 0 }, WSTOPPED | WNOWAIT);
	ok(child_change(&child) == CLD_STOPPED, "  that it was stopped is seen");
	ok(child_change(&child) == 0, "  once");
	kill(child.pid, SIGCONT);
	waitid(P_PID, (id_t)child.pid, &(siginfo_t){ 0 }, WCONTINUED | WNOWAIT);
	ok(child_change(&child) == CLD_CONTINUED, "  and that it was continued");
	child_done(&child);
	ok(child.reaped && WIFSIGNALED(child.status), "  and it is killed when we are done");
}

static void test_signals(void)
{
	struct child child = CHILD_NONE;
	struct signals signals;
	sigset_t now;

	ok(signals_block(&signals, &err) == 0, "signals are read, not obeyed");
	ok(!signals_ending() && signals_take(&signals) == 0, "none has come");
	raise(SIGUSR1);
	ok(!signals_ending() && signals_take(&signals) == 0, "not each asks to end");
	raise(SIGINT);
	raise(SIGTERM);
	ok(signals_ending(), "one that does is seen");
	is_u64((uint64_t)signals_take(&signals), SIGINT, "and taken, the first");
	ok(!signals_ending() && signals_take(&signals) == 0, "with all that have come");
	/* A child with the old mask dies of a signal that we hold back. */
	shell(&child, (struct child_spec){ .mask = &signals.old }, "kill -TERM $$; echo on >&5");
	child_wait(&child);
	ok(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGTERM && !*text,
	   "children have the mask of before");
	child_done(&child);
	signals_take(&signals);
	signals_restore(&signals);
	sigprocmask(SIG_BLOCK, NULL, &now);
	ok(!sigismember(&now, SIGTERM) && signals.fd == -1, "and so have we, in the end");
}

int main(void)
{
	test_spawn();
	test_errors();
	test_held();
	test_given_up();
	test_killed_early();
	test_killed();
	test_signals();
	return done_testing();
}
