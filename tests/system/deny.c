/* SPDX-License-Identifier: MIT */
/* deny ERRNO PROGRAM [ARG...]: run PROGRAM with a filter, like a container's, by which
 * perf_event_open fails with ERRNO. Without CAP_SYS_ADMIN, it also gets no new privileges. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned code = argc > 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	if (!code || (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) &&
	              (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	               prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))))
		return 99;
	execvp(argv[2], argv + 2);
	return 98;
}
