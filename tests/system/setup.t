#!/bin/sh
# SPDX-License-Identifier: MIT
# setup changes only what it prints and what the host needs; a second setup changes nothing; --undo restores the
# previous state, also that of earlier versions.

# All of it happens in a mount namespace with settings, a tracefs and an /etc of its own, so that the host's
# set-up stays as it is.
if [ "$(id -u)" -eq 0 ] && [ -z "${GILTRACER_TEST_INSIDE:-}" ] && unshare -m true 2>/dev/null; then
	exec env GILTRACER_TEST_INSIDE=1 unshare -m sh "$0" "$@"
fi
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root unshare groupadd
if [ -z "${GILTRACER_TEST_INSIDE:-}" ]; then
	echo "1..0 # SKIP no mount namespaces: $(unshare -m true 2>&1)"
	exit 0
fi

GILTRACER_STATEDIR=$scratch/state
GILTRACER_ETCDIR=$scratch/etc
export GILTRACER_STATEDIR GILTRACER_ETCDIR
mkdir -p kernel etc/sysctl.d
at_exit umount -R /proc/sys/kernel/perf_event_paranoid /proc/sys/kernel/perf_event_mlock_kb /etc
for name in perf_event_paranoid perf_event_mlock_kb; do
	: >kernel/$name
	mount --bind kernel/$name /proc/sys/kernel/$name || exit 99
done
for folder in /sys/kernel/tracing /sys/kernel/debug; do
	mount -t tmpfs none $folder || exit 99
done
cp -a /etc own-etc && mount --bind own-etc /etc || exit 99

# host PARANOID MLOCK: settings of the kernel. As in the kernel, a shorter value replaces a longer one.
host() {
	echo "$1" >kernel/perf_event_paranoid
	printf '%05d\n' "$2" >kernel/perf_event_mlock_kb
}
paranoid() {
	cat /proc/sys/kernel/perf_event_paranoid
}
system() {
	head /proc/sys/kernel/perf_event_paranoid /proc/sys/kernel/perf_event_mlock_kb
	grep ' /sys/kernel/tracing ' /proc/self/mounts
	getent group gtgroup
	find "$GILTRACER_STATEDIR" "$GILTRACER_ETCDIR" -type f 2>/dev/null
}
setup() {
	"$GILTRACER" setup "$@"
}

# Debian's kernels have level 3, Ubuntu's level 4.
host 4 516
before=$(system)
ok 'a dry run' setup --dry-run --persist
for step in 'mount -t tracefs tracefs /sys/kernel/tracing' 'sysctl -w kernel.perf_event_paranoid=2' \
	'sysctl -w kernel.perf_event_mlock_kb=16896' "write $scratch/etc/sysctl.d/60-giltracer.conf"; do
	like "$(cat out)" "^$step$" "names: $step"
done
is "$(wc -l <out)" 4 'and nothing else'
like "$(cat err)" 'all users can record their own processes: .* uprobes and the scheduler.s events are for root only' \
	'who can do what is said'
is "$(system)" "$before" 'and changes nothing'

ok 'setup' setup
like "$(cat out)" '^sysctl -w kernel.perf_event_paranoid=2 +# was 4' 'says what it does and what was'
is "$(paranoid)" 2 'users may record their own processes'
is "$(cat kernel/perf_event_mlock_kb)" 16896 'with rings that hold whole stacks'
is "$(stat -f -c %T /sys/kernel/tracing)" tracefs 'root may record by uprobes'
is "$(find state -uid 0 ! -perm /022 | sort | tr '\n' ' ')" 'state state/setup.json ' 'what was is recorded, by root'
after=$(system)
state=$(cat state/setup.json)
ok 'setup again' setup
is "$(cat out)" '' 'has nothing to do'
is "$(system)" "$after" 'and changes nothing'
is "$(cat state/setup.json)" "$state" 'nor forgets what was before'
ok 'a dry undo' setup --undo --dry-run
like "$(cat out)" '^umount /sys/kernel/tracing$' 'names its steps'
is "$(system)" "$after" 'and changes nothing'
ok 'undo' setup --undo
is "$(system)" "$before" 'restores what was found'
mkdir rundir && : >rundir/places-0123456789abcdef-1
GILTRACER_RUNDIR=$scratch/rundir
export GILTRACER_RUNDIR
ok 'undo again' setup --undo
unset GILTRACER_RUNDIR
like "$(cat err)" 'nothing to undo' 'has nothing to do'
is "$(find rundir -name 'places-*')" '' 'but drops what was found in interpreters'

# Settings that permit as much already are left alone.
mount -t tracefs tracefs /sys/kernel/tracing
for level in 2 1 -1; do
	host $level 20000
	before=$(system)
	ok "a system at $level" setup --persist
	like "$(cat err)" 'this system needed no change' 'needs no change'
	is "$(system)" "$before" 'and gets none'
done
umount /sys/kernel/tracing

# Settings that somebody else changed meanwhile are not restored.
host 3 516
before=$(system)
ok 'setup, then another hand' setup
echo 1 >kernel/perf_event_paranoid
ok 'undo leaves that alone' setup --undo
like "$(cat out)" 'kernel.perf_event_paranoid was changed after setup' 'and says so'
is "$(paranoid)" 1 'it is as the other left it'
host 3 516
is "$(system)" "$before" 'all else is restored'

# A set-up that fails half-way.
GILTRACER_ETCDIR=/proc/nosuch exits 125 'a set-up that fails in its last step' setup --persist
like "$(cat err)" 'giltracer: error: setup: write /proc/nosuch' 'says where'
is "$(system)" "$before" 'and is rolled back'
mount --bind kernel/perf_event_mlock_kb /proc/sys/kernel/perf_event_mlock_kb
mount -o remount,bind,ro /proc/sys/kernel/perf_event_mlock_kb
exits 125 'settings that are read-only, as in a container' setup
like "$(cat err)" 'giltracer: error: setup: sysctl -w kernel.perf_event_mlock_kb=16896: .*Read-only' 'are an error'
is "$(system)" "$before" 'and all is rolled back'
umount /proc/sys/kernel/perf_event_mlock_kb
mkdir -p state && mount -t tmpfs -o size=4k none state && head -c 9999 /dev/zero >state/fill 2>/dev/null
exits 125 'a disk that is full' setup
like "$(cat err)" '^giltracer: error: setup: .*No space' 'is an error'
is "$(paranoid)" 3 'before anything is changed'
umount state && rmdir state
is "$(system)" "$before" 'and nothing is'

# The state after a restart: root executes nothing of ours then.
ok 'a persistent set-up' setup --persist
is "$(find etc -type f)" etc/sysctl.d/60-giltracer.conf 'writes one file'
is "$(grep -v '^#' etc/sysctl.d/60-giltracer.conf)" 'kernel.perf_event_paranoid = 2
kernel.perf_event_mlock_kb = 16896' 'of settings'
is "$(stat -c '%a %u %g' etc/sysctl.d/60-giltracer.conf)" '644 0 0' 'which only root can change'
after=$(system)
ok 'setup without --persist' setup
is "$(system)" "$after" 'keeps the file'
umount /sys/kernel/tracing
host 2 16896
ok 'after a restart, setup' setup
is "$(system)" "$after" 'only mounts tracefs'
ok 'undo' setup --undo
is "$(system)" "$before" 'takes all back'

# An earlier version gave a group a program with capabilities, and the scheduler's events.
earlier() {
	mkdir -p state libexec run/tracing/events etc/systemd/system/multi-user.target.wants
	groupadd --system gtgroup && gpasswd --add nobody gtgroup >/dev/null
	cp /bin/true libexec/perf-for-members
	mount -o bind,ro kernel run/tracing/events
	echo shared >shared && chmod 440 shared && chgrp gtgroup shared
	echo x >etc/systemd/system/giltracer.service
	ln -s ../giltracer.service etc/systemd/system/multi-user.target.wants/giltracer.service
	gid=$(getent group gtgroup | cut -d: -f3)
	cat >state/setup.json <<END_JSON
{"setup": 1, "done": [
 {"kind": "group", "target": "gtgroup", "value": "present"},
 {"kind": "member", "target": "nobody gtgroup", "value": "member"},
 {"kind": "bind", "target": "$scratch/run/tracing/events", "value": "$scratch/kernel"},
 {"kind": "share", "target": "$scratch/shared", "value": "gid=$gid,mode=440", "old": "gid=0,mode=400"},
 {"kind": "guard", "target": "$scratch/libexec/perf-for-members", "value": "gid=$gid,sum=0"},
 {"kind": "probes", "target": "giltracer_abc_012345", "value": "/usr/bin/python3"},
 {"kind": "file", "target": "$scratch/etc/systemd/system/giltracer.service", "value": "x\n"},
 {"kind": "link", "target": "$scratch/etc/systemd/system/multi-user.target.wants/giltracer.service",
  "value": "../giltracer.service"}]}
END_JSON
}
is_undone() {
	left=$(ls -d libexec/* run/* etc/systemd/system/*.service 2>/dev/null)
	is "$left$(getent group gtgroup)$(stat -c ' %a %g' shared)" \
		' 400 0' "$1"
	rm -rf libexec run etc/systemd shared
}
earlier
ok 'after an earlier version, setup' setup
like "$(cat out)" "^rm $scratch/libexec/perf-for-members +# of an earlier setup" 'takes back what it did'
is_undone 'the program with capabilities, the group and the events'
ok 'undo' setup --undo
is "$(system)" "$before" 'restores what was before both'
earlier
ok 'undo of an earlier version' setup --undo
is_undone 'takes it back, too'
is "$(system)" "$before" 'and restores the rest'
earlier
gpasswd --add root gtgroup >/dev/null
ok 'a group to which an administrator added somebody' setup --undo
like "$(cat out)" '^# group gtgroup has members: not removed' 'stays'
gpasswd --delete root gtgroup >/dev/null && groupdel gtgroup
is_undone 'and nothing else'

for option in --everybody '--group x' '--python /usr/bin/python3'; do
	# shellcheck disable=SC2086 # words
	exits 125 "$option" setup $option
done
for_all_users
exits 125 'without root' nobody "$GILTRACER" setup
like "$(cat err)" 'sudo giltracer setup' 'is refused with the command'

leaves_nothing
done_testing
