/* SPDX-License-Identifier: MIT */
/* A perf that does not behave: each is one error, and none is waited for. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/perf.h"

#include "tap.h"

static char path[] = "/tmp/giltracer-recorder-XXXXXX";
static struct signals signals;

static bool write_perf(const char *script)
{
	FILE *f = fopen(path, "w");

	return f && fprintf(f, "#!/bin/sh\n%s\n", script) > 0 && fclose(f) == 0 &&
	       chmod(path, 0755) == 0;
}

/* @answer_ms: 0 for as long as a busy machine needs */
static int start(const char *script, unsigned answer_ms, struct error *err)
{
	const struct perf_plan plan = {
		.perf = path,
		.output = "unused",
		.pid = 1,
		.answer_ms = answer_ms,
	};
	struct recorder rec = RECORDER_NONE;
	pid_t pid;
	int ret;

	if (!write_perf(script))
		return 1;
	ret = recorder_start(&rec, &plan, &signals, err);
	if (ret == 0)
		ret = recorder_ready(&rec, &plan, &signals, err);
	pid = rec.perf.pid;
	recorder_done(&rec);
	ok(pid <= 0 || (kill(pid, 0) < 0 && errno == ESRCH), "it is gone");
	return ret;
}

int main(void)
{
	struct error err = { .text = "" };
	int fd = mkstemp(path);

	if (!ok(fd >= 0 && close(fd) == 0 && signals_block(&signals, &err) == 0, "set up"))
		return done_testing();
	ok(start("exec tail -f /dev/null", 300, &err) < 0, "one that never answers is given up");
	is_str(err.text, "perf record has not answered for 300 ms", "and the error says so");
	ok(start("echo out of luck; exit 3", 0, &err) < 0, "one that ends at once is an error");
	is_str(err.text, "perf record could not start: out of luck", "with what it said");
	ok(start("echo 'WARNING: Kernel address maps (/proc/{kallsyms,modules}) are restricted,'\n"
	         "echo 'check /proc/sys/kernel/kptr_restrict and others.'\n"
	         "echo 'Samples in kernel functions may not be resolved if a suitable vmlinux'\n"
	         "echo 'file is not found in the buildid cache or in the vmlinux path.'\n"
	         "echo 'Check /proc/kallsyms permission or run as root.'\n"
	         "echo 'out of luck'; exit 3",
	         0, &err) < 0,
	   "so is one that has worries");
	is_str(err.text, "perf record could not start: out of luck", "which are left out");
	ok(start("echo 'Permission error mapping pages.'; exit 3", 0, &err) < 0,
	   "one that gets not even the smallest buffer is an error");
	ok(start("echo 'WARNING: Ignored open failure for pid 7'; exit 255", 0, &err) < 0 &&
	           err.code == ESRCH,
	   "one that gives up without a word lost a thread");
	signals_restore(&signals);
	unlink(path);
	return done_testing();
}
