/* SPDX-License-Identifier: MIT */
/* Standard input for two runs: what the first one reads is there for the second. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/stdin_tee.h"
#include "tap.h"

/* What can be read from fd, up to its end. */
static char text[1 << 20];
static const char *read_from(int fd)
{
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	return text;
}

/*
 * Our standard input is a pipe into which another process writes: ours would have the end to write
 * to, too, and so would the one that reads. It writes the second text after more().
 */
static pid_t writer;
static int go;
static void pipe_with(const char *first, const char *second, size_t times)
{
	int fds[2], wait[2];
	char byte;

	if (pipe(fds) < 0 || pipe2(wait, O_CLOEXEC) < 0)
		exit(99);
	writer = fork();
	if (writer == 0) {
		close(fds[0]);
		close(wait[1]);
		if (write(fds[1], first, strlen(first)) < 0 || read(wait[0], &byte, 1) < 0)
			_exit(1);
		for (size_t i = 0; i < times; i++)
			if (write(fds[1], second, strlen(second)) < 0)
				_exit(1);
		_exit(0);
	}
	close(fds[1]);
	close(wait[0]);
	go = wait[1];
	dup2(fds[0], 0);
	close(fds[0]);
}

static void more(void)
{
	if (write(go, "x", 1) != 1)
		exit(99);
}

/* Whoever reads from the process, it has ended. */
static void end_writer(void)
{
	close(go);
	waitpid(writer, NULL, 0);
}

static void test_pipe(void)
{
	struct stdin_tee tee;
	struct error err;
	int fd = -1;

	pipe_with("one\n", "two\n", 1);
	ok(stdin_tee_first(&tee, "/tmp", &fd, &err) == 0 && fd >= 0, "a pipe is read by a process");
	ok(tee.child.pid > 0 && tee.copy >= 0, "which keeps a copy");
	ok(read(fd, text, 4) == 4 && !memcmp(text, "one\n", 4),
	   "what is there arrives before the writer has ended");
	more();
	is_str(read_from(fd), "two\n", "and then the rest");
	close(fd);
	end_writer();
	for (int i = 2; i <= 3; i++) {
		ok(stdin_tee_again(&tee, &fd, &err) == 0 && fd >= 3, "run %d", i);
		is_str(read_from(fd), "one\ntwo\n", "  has the same, from its beginning");
		ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "  by a descriptor that no child inherits");
		close(fd);
	}
	stdin_tee_done(&tee);
	is_u64((uint64_t)tee.copy, (uint64_t)-1, "the copy is gone");
	ok(waitpid(-1, NULL, WNOHANG) < 0, "and the process");
}

/* The program may end before its input does: nobody waits for the writer. */
static void test_closed(void)
{
	struct stdin_tee tee;
	struct error err;
	int fd = -1;

	pipe_with("unread", "", 0);
	ok(stdin_tee_first(&tee, "/tmp", &fd, &err) == 0, "a program that reads nothing");
	close(fd);
	ok(stdin_tee_again(&tee, &fd, &err) == 0, "  runs again while the writer is still there");
	close(fd);
	stdin_tee_done(&tee);
	ok(waitpid(-1, NULL, WNOHANG) == 0, "  which is left alone");
	end_writer();
	ok(waitpid(-1, NULL, WNOHANG) < 0, "  and leaves no process");
}

static void test_large(void)
{
	static char block[1001];
	struct stdin_tee tee;
	struct error err;
	int fd = -1;

	memset(block, 'x', sizeof(block) - 1);
	pipe_with("", block, 500);
	more();
	ok(stdin_tee_first(&tee, "/tmp", &fd, &err) == 0, "more than fits into a pipe");
	is_u64(strlen(read_from(fd)), 500000, "  arrives whole");
	close(fd);
	end_writer();
	ok(stdin_tee_again(&tee, &fd, &err) == 0, "  and again");
	is_u64(strlen(read_from(fd)), 500000, "  whole");
	close(fd);
	stdin_tee_done(&tee);
}

/* The program gets all of it, and the copy must not seem to be all. */
static void test_full(void)
{
	static char block[1001];
	struct rlimit old, small;
	struct stdin_tee tee;
	struct error err = { 0 };
	int fd = -1, ret;

	memset(block, 'x', sizeof(block) - 1);
	pipe_with("", block, 20);
	more();
	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){ .rlim_cur = 4096, .rlim_max = old.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	ret = stdin_tee_first(&tee, "/tmp", &fd, &err);
	setrlimit(RLIMIT_FSIZE, &old);
	ok(ret == 0, "a copy for which there is no room");
	is_u64(strlen(read_from(fd)), 20000, "  does not end the program's input");
	close(fd);
	ok(stdin_tee_again(&tee, &fd, &err) < 0 && strstr(err.text, "could not be copied"),
	   "  and there is no second run, which says why");
	stdin_tee_done(&tee);
	end_writer();
}

static void test_file(void)
{
	char path[] = "/tmp/test-stdin-tee.XXXXXX";
	struct stdin_tee tee;
	struct error err;
	int fd = -1, file = mkstemp(path);

	unlink(path);
	if (file < 0 || write(file, "0123456789", 10) != 10 || lseek(file, 4, SEEK_SET) != 4 ||
	    dup2(file, 0) < 0)
		exit(99);
	close(file);
	ok(stdin_tee_first(&tee, "/tmp", &fd, &err) == 0 && fd == -1, "a file is given as it is");
	is_str(read_from(0), "456789", "  from where it stands");
	ok(stdin_tee_again(&tee, &fd, &err) == 0 && fd == -1, "  and to the second run");
	is_str(read_from(0), "456789", "  from the same place");
	stdin_tee_done(&tee);
}

static void test_none(void)
{
	struct stdin_tee tee;
	struct error err;
	int fd = -1, null = open("/dev/null", O_RDONLY);

	dup2(null, 0);
	close(null);
	ok(stdin_tee_first(&tee, "/tmp", &fd, &err) == 0 && fd == -1 && tee.child.pid == 0,
	   "a device is given as it is");
	ok(stdin_tee_again(&tee, &fd, &err) == 0 && fd == -1, "  also again");
	stdin_tee_done(&tee);
	close(0);
	ok(stdin_tee_first(&tee, "/tmp", &fd, &err) == 0 && fd == -1, "so is no standard input");
	stdin_tee_done(&tee);
	open("/dev/null", O_RDONLY); /* or the pipe would be it, without dup2 */
	pipe_with("x", "", 0);
	ok(stdin_tee_first(&tee, "/nonexistent", &fd, &err) < 0 &&
	           strstr(err.text, "/nonexistent/"),
	   "a folder that is not there is named");
	stdin_tee_done(&tee);
	end_writer();
}

int main(void)
{
	test_pipe();
	test_closed();
	test_large();
	test_full();
	test_file();
	test_none();
	return done_testing();
}
