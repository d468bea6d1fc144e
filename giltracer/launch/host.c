/* SPDX-License-Identifier: MIT */
/* Small questions to the kernel, and small programs run to their end. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"

#define SMALL_MAX  65536
#define OUTPUT_MAX (1u << 20)

static char *sysctl_path(const char *name)
{
	char *path = xasprintf("/proc/sys/%s", name);

	for (char *s = path; *s; s++)
		if (*s == '.')
			*s = '/';
	return path;
}

char *host_sysctl(const char *name)
{
	CLEANUP(free) char *path = sysctl_path(name);
	CLEANUP(free) char *text = NULL;
	struct error ignored;

	if (file_read(&text, NULL, path, SMALL_MAX, &ignored) < 0)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	return take(text);
}

int host_sysctl_write(const char *name, const char *value, struct error *err)
{
	CLEANUP(free) char *path = sysctl_path(name);

	return file_write_control(path, value, 0, err);
}

static void __attribute__((noreturn)) exec_program(const char *const *argv, int out)
{
	int null = open("/dev/null", O_RDONLY);

	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
	    dup2(out, STDERR_FILENO) >= 0)
		/* exec does not change what argv points to, it only is not declared so. */
		execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static void read_all(struct str *ret, int fd)
{
	char buf[4096];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && ret->len < OUTPUT_MAX)
			str_addn(ret, buf, (size_t)n);
}

/* The last line that is not empty: there programs put their reason. */
static const char *last_line(char *text)
{
	char *end = text + strlen(text), *line;

	while (end > text && end[-1] == '\n')
		*--end = '\0';
	line = strrchr(text, '\n');
	return line ? line + 1 : text;
}

static int wait_for(pid_t pid, const char *name, struct str *said, struct error *err)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return error_errno(err, "cannot wait for %s", name);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && !said->len)
		return error_set(err, ENOENT, "%s: not found in PATH", name);
	if (!said->len)
		return error_set(err, EIO, "%s: failed with wait status %#x", name,
		                 (unsigned)status);
	return error_set(err, EIO, "%s: %s", name, last_line(said->s));
}

int host_run(const char *const *argv, struct error *err)
{
	CLEANUP(str_done) struct str said = { 0 };
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_errno(err, "cannot start %s", argv[0]);
	pid = fork();
	if (pid == 0)
		exec_program(argv, fds[1]);
	close(fds[1]);
	if (pid >= 0)
		read_all(&said, fds[0]);
	close(fds[0]);
	if (pid < 0)
		return error_errno(err, "cannot start %s", argv[0]);
	return wait_for(pid, argv[0], &said, err);
}

/* field: of proc(5)'s status, a set in hexadecimal. */
static bool has_capability(const char *field, int capability)
{
	CLEANUP(free) char *text = NULL;
	struct error ignored;
	const char *line;

	return file_read(&text, NULL, "/proc/self/status", SMALL_MAX, &ignored) == 0 &&
	       (line = strstr(text, field)) &&
	       strtoull(line + strlen(field), NULL, 16) >> capability & 1;
}

bool host_capable(int capability)
{
	return has_capability("\nCapEff:", capability);
}

bool host_may_have(int capability)
{
	return has_capability("\nCapBnd:", capability);
}
