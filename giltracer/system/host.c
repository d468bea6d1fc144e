/* SPDX-License-Identifier: MIT */
/* Asks the kernel for single settings, and runs short programs. */
#include "system/host.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
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

/* The last line that is not empty, where programs usually print the reason of a failure. */
static const char *last_line(char *text)
{
	char *end = text + strlen(text), *line;

	while (end > text && end[-1] == '\n')
		*--end = '\0';
	line = strrchr(text, '\n');
	return line ? line + 1 : text;
}

int host_run(const char *const *argv, struct error *err)
{
	const struct capture capture = { .argv = argv, .no_input = true, .max = OUTPUT_MAX };
	struct captured out;
	int status = 0;

	if (capture_run(&out, &capture, err) < 0)
		return err->code == ENOENT
		               ? error_set(err, ENOENT, "%s: not found in PATH", argv[0])
		               : -1;
	if (out.status && *out.text)
		status = error_set(err, EIO, "%s: %s", argv[0], last_line(out.text));
	else if (out.status)
		status = error_set(err, EIO, "%s: failed with wait status %#x", argv[0],
		                   (unsigned)out.status);
	free(out.text);
	return status;
}

bool host_capable(int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	return syscall(SYS_capget, &header, sets) == 0 &&
	       sets[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

bool host_may_have(int capability)
{
	return prctl(PR_CAPBSET_READ, capability) == 1;
}

/* A program executed by root gets all of the bounding set, and the inheritable capabilities. */
bool host_give_up_syslog(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (prctl(PR_CAPBSET_DROP, CAP_SYSLOG, 0, 0, 0) == 0 &&
	    syscall(SYS_capget, &header, sets) == 0) {
		sets[CAP_TO_INDEX(CAP_SYSLOG)].inheritable &= ~CAP_TO_MASK(CAP_SYSLOG);
		syscall(SYS_capset, &header, sets);
	}
	return true;
}
