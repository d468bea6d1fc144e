/* SPDX-License-Identifier: MIT */
/* Whether a seccomp filter denies what return probes return by. */
#include <errno.h>
#include <signal.h>

#include "system/uprobes.h"

#include "tap.h"

#define EXITED(code) ((code) << 8) /* as of waitpid(2) on Linux */

int main(void)
{
	ok(!uretprobe_judge(SIGILL, "6.12.3-amd64"), "the kernel itself has refused: it passes");
	ok(!uretprobe_judge(EXITED(ENXIO), "7.0"), "or so");
	ok(uretprobe_judge(EXITED(EPERM), "6.12.3-amd64"), "the filter has");
	ok(uretprobe_judge(SIGSYS, "6.11.0"), "by a signal");
	ok(uretprobe_judge(EXITED(ENOSYS), "7.0"), "in a kernel to come");
	ok(!uretprobe_judge(EXITED(ENOSYS), "6.10.14"), "a kernel that does not know it");
	ok(!uretprobe_judge(SIGSYS, "5.15.0-91-generic"), "nor this, whatever the filter does");
	ok(!uretprobe_judge(EXITED(EPERM), "strange"), "a release that is no number");
	uretprobe_denied();
	ok(true, "trying it ends nobody but the child");
	return done_testing();
}
