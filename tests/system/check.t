#!/bin/sh
# SPDX-License-Identifier: MIT
# check says what is missing, by which guard, and how to get it; it is content only if recording
# works.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"

check() {
	"$GILTRACER" check "$@"
}
python=$(cpythons | sed -n '1s/^[^ ]* //p')

# What is missing is a line "missing WHAT …", and below it what to do.
missing() {
	like "$(cat out)" "^missing +$1" "$2"
	like "$(sed -n "/^missing *$(echo "$1" | sed 's/ .*//')/{n;p;}" out)" "^ +-> $3" 'with what to do'
}

mkdir bin
for tool in sh env; do
	ln -s "$(command -v $tool)" bin/
done
PATH=$scratch/bin exits 1 'without perf' check --python "$python"
missing 'perf +perf is not installed' 'says so' 'apt-get install linux-perf'
printf '#!/bin/sh\necho perf version 4.19.1\n' >bin/perf && chmod +x bin/perf
PATH=$scratch/bin exits 1 'with an old perf' check --python "$python"
like "$(cat out)" '^missing +perf +perf 4\.19\.1 is too old' 'says so'
exits 1 'without an interpreter' check --python ./nosuch
like "$(cat out)" '^missing +python .*nosuch: No such file' 'says so'
exits 1 'with another program' check --python /bin/ls
like "$(cat out)" '^missing +python .*is not a Python interpreter' 'says so'
exits 125 'a word too many' check x
is "$(cat err)" "giltracer: error: check: unexpected argument 'x'" 'is refused'

if has root && has uprobes && has perf; then
	ok 'as root, where recording works' check --python "$python"
	like "$(cat out)" '^ok +uprobes +' 'check is content'
	is "$(grep -c '^missing' out)" 0 'and misses nothing'
	ok 'what it says holds' "$GILTRACER" -q --python "$python" --python-trace none \
		-o x.html -m this

	# A container's root: a user namespace, in which no capability counts.
	if unshare -Ur true 2>/dev/null &&
		[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 0 ]; then
		exits 1 'in a user namespace' unshare -Ur "$GILTRACER" check --python "$python"
		like "$(cat out)" '^note +surroundings +this is a user namespace.*CAP_PERFMON' 'says so'
		like "$(cat out)" 'perf_event_paranoid is [0-9]+, it has to be at most -1' 'and what bars'
		like "$(cat out)" '-> outside of this container' 'and that it cannot be mended inside'
	else
		skip 'no user namespaces, or everything allowed' 'in a user namespace'
	fi

	# tracefs out of sight, and read-only: in a mount namespace of our own.
	hide='mount -t tmpfs none /sys/kernel/tracing && mount -t tmpfs none /sys/kernel/debug'
	exits 1 'without tracefs' unshare -m sh -c \
		"$hide && exec \"\$0\" check --python \"\$1\"" "$GILTRACER" "$python"
	missing 'tracefs .*is not mounted' 'says so' 'giltracer setup'
	show='mount --bind /sys/kernel/tracing /sys/kernel/tracing'
	show="$show && mount -o remount,bind,ro /sys/kernel/tracing"
	exits 1 'with tracefs read-only' unshare -m sh -c \
		"$show && exec \"\$0\" check --python \"\$1\"" "$GILTRACER" "$python"
	like "$(cat out)" 'tracefs +.*read-only' 'says so'

	# A seccomp filter that denies the system call, as container engines have it.
	cat >deny.c <<-'END'
		#include <errno.h>
		#include <linux/filter.h>
		#include <linux/seccomp.h>
		#include <stddef.h>
		#include <sys/prctl.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		int main(int c, char **v)
		{
			struct sock_filter f[] = {
				BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
				BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
				BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
			};
			struct sock_fprog p = { sizeof(f) / sizeof(*f), f };
			if (c < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
			    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
				return 99;
			execv(v[1], v + 1);
			return 98;
		}
	END
	if cc -o deny deny.c 2>/dev/null; then
		exits 1 'where seccomp denies perf_event_open' ./deny "$GILTRACER" check --python "$python"
		like "$(cat out)" '^missing +perf events .*seccomp filter denies perf_event_open' 'says so'
		like "$(cat out)" 'outside of this container' 'and who can allow it'
	else
		skip 'cc and the headers of Linux' 'where seccomp denies perf_event_open'
	fi

	# An ordinary user.
	if nobody "$GILTRACER" --version >/dev/null 2>&1 &&
		[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 0 ] && [ -x /usr/bin/python3 ]; then
		exits 1 'as an ordinary user without setup' nobody "$GILTRACER" check \
			--python /usr/bin/python3
		missing 'uprobes' 'says so' 'sudo giltracer setup --python /usr/bin/python3'
	else
		skip 'everything is allowed, or the build folder is not' 'as an ordinary user'
	fi
else
	skip 'run as root, with perf and tracefs' 'where recording works'
fi

leaves_nothing
done_testing
