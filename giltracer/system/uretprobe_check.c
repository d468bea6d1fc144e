/* SPDX-License-Identifier: MIT */
/* Makes the same system call as a return probe. */
#include "system/uretprobe_check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system/sandbox.h"
#include "base/child.h"

#ifdef __x86_64__
#define URETPROBE 335
#endif

bool uretprobe_judge(int status, const char *release)
{
	unsigned major, minor;

	if (sscanf(release, "%u.%u", &major, &minor) != 2 || major < 6 ||
	    (major == 6 && minor < 11))
		return false;
	return WIFSIGNALED(status) ? WTERMSIG(status) != SIGILL : WEXITSTATUS(status) != ENXIO;
}

#ifdef URETPROBE
static void try_it(void) __attribute__((noreturn));

static void try_it(void)
{
	/* Neither a core dump nor a report of one. */
	prctl(PR_SET_DUMPABLE, 0);
	signal(SIGILL, SIG_DFL);
	_exit(syscall(URETPROBE) < 0 ? errno : 0);
}

bool uretprobe_denied(void)
{
	struct child child = CHILD_NONE;
	struct utsname host;

	if (!sandbox_filtered() || uname(&host) < 0)
		return false;
	child.pid = fork();
	if (child.pid < 0)
		return false;
	if (child.pid == 0)
		try_it();
	child_wait(&child);
	return child.reaped && uretprobe_judge(child.status, host.release);
}
#else
bool uretprobe_denied(void)
{
	return false;
}
#endif
