#!/bin/sh
# SPDX-License-Identifier: MIT
# setup changes what it says and nothing else, twice is once, and --undo restores what was found.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
. "$top_srcdir/tests/system/prefix.sh"
need root uprobes groupadd flock strip

GILTRACER_STATEDIR=$scratch/state
GILTRACER_ETCDIR=$scratch/etc
export GILTRACER_STATEDIR GILTRACER_ETCDIR
unset SUDO_USER SUDO_UID SUDO_GID
group=gts$$
python=$(private_python "$scratch/venv")
probes=$(group_of "$python")
as_never_set_up
at_exit '"$GILTRACER" setup --undo >/dev/null 2>&1'

system() {
	cat /proc/sys/kernel/perf_event_paranoid /proc/sys/kernel/perf_event_mlock_kb
	stat -c '%a %g' $tracefs $tracefs/events/sched/sched_waking/id
	getent group "$group"
	grep "$probes/" $tracefs/uprobe_events
	ls -A "$GILTRACER_STATEDIR" "$GILTRACER_ETCDIR" 2>/dev/null
}
setup() {
	"$GILTRACER" setup --group "$group" --python "$python" "$@"
}
before=$(system)

ok 'a dry run' setup --dry-run --persist
for step in "groupadd --system $group" 'sysctl -w kernel.perf_event_paranoid=-1' \
	"mount -o remount,gid=.*,mode=750 $tracefs" "install [0-9]+ probes in $scratch" \
	"write $scratch/etc/systemd/system/giltracer.service"; do
	like "$(cat out)" "^(# already: )?$step" "names: $step"
done
is "$(system)" "$before" 'and changes nothing'

ok 'setup' setup
like "$(cat out)" '^sysctl -w kernel.perf_event_paranoid=-1 +# was ' 'says what it does and what was'
after=$(system)
gid=$(getent group "$group" | cut -d: -f3)
is "$(cat /proc/sys/kernel/perf_event_paranoid)" -1 'tracepoints are for all users'
is "$(stat -c '%a %g' $tracefs)" "750 $gid" 'tracefs is for the group'
is "$(stat -c '%A %g' $tracefs/events/sched/sched_waking/id)" "-r--r----- $gid" 'old events too'
is "$(stat -c '%A %g' "$tracefs/events/$probes/take_gil/id")" "-r--r----- $gid" 'and our probes'
state=$(cat state/setup.json)
ok 'setup again' setup
is "$(cat out)" '' 'has nothing to do'
is "$(system)" "$after" 'and changes nothing'
is "$(cat state/setup.json)" "$state" 'nor forgets what was before'

ok 'a dry undo' "$GILTRACER" setup --undo --dry-run
like "$(cat out)" "^groupdel $group" 'names its steps'
is "$(system)" "$after" 'and changes nothing'
ok 'undo' "$GILTRACER" setup --undo
is "$(system)" "$before" 'restores what was found'
ok 'undo again' "$GILTRACER" setup --undo
like "$(cat err)" 'nothing to undo' 'has nothing to do'

# What somebody else changed since is theirs.
ok 'setup, then another hand' setup
echo 1 >/proc/sys/kernel/perf_event_paranoid
ok 'undo leaves that alone' "$GILTRACER" setup --undo
like "$(cat out)" 'kernel.perf_event_paranoid is no longer as setup left it' 'and says so'
is "$(cat /proc/sys/kernel/perf_event_paranoid)" 1 'it is as the other left it'
echo "$before" | sed -n 1p >/proc/sys/kernel/perf_event_paranoid
is "$(system)" "$before" 'all else is restored'

# Half-way.
GILTRACER_ETCDIR=/proc/nosuch exits 125 'a set-up that fails in its last steps' setup --persist
like "$(cat err)" 'giltracer: error: setup: write /proc/nosuch' 'says where'
is "$(system)" "$before" 'and is rolled back'

# Across a reboot.
mkdir -p etc/sysctl.d etc/systemd/system
with_etc=$(system)
ok 'a persistent set-up' setup --persist
like "$(cat etc/sysctl.d/60-giltracer.conf)" '^kernel.perf_event_paranoid = -1$' 'writes sysctl.d'
like "$(cat etc/systemd/system/giltracer.service)" \
	"^ExecStart= \"[^\"]*giltracer\" \"setup\" \"--persist\" .*\"--python\" \"$python\"" 'and a unit'
is "$(readlink etc/systemd/system/multi-user.target.wants/giltracer.service)" \
	../giltracer.service 'which is wanted at boot'
ok 'undo' "$GILTRACER" setup --undo
rmdir etc/systemd/system/multi-user.target.wants
is "$(system)" "$with_etc" 'takes them away'

# Disks that are full or read-only: refused, and all is as before.
full() {
	unshare -m sh -c 'mount -t tmpfs -o size=4k none "$1" && head -c 9999 /dev/zero >"$1/fill"
		shift; exec "$@"' - "$@"
}
read_only() {
	unshare -m sh -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift &&
		exec "$@"' - "$@"
}
if unshare -m true 2>/dev/null; then
	for where in "full $scratch/state" 'full /run' 'read_only /run' 'read_only /etc'; do
		mkdir -p state
		# shellcheck disable=SC2086
		exits 125 "$where" $where "$GILTRACER" setup --group "$group" --python "$python"
		like "$(cat err)" '^giltracer: error: setup: .*(No space|Read-only|cannot lock)' 'says so'
		unlike "$(cat err)" 'not rolled back' 'and rolls back'
		rmdir state 2>/dev/null
		is "$(system)" "$with_etc" 'what was done'
	done
else
	skip 'unshare -m' 'disks that are full or read-only'
fi

# The interpreter is upgraded: another build at the same place.
ok 'setup' setup
lib=$("$GILTRACER" probes --python "$python" --json |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["file"])')
cp "$lib" new && strip_for_good --strip-all new && mv new "$lib" && chmod 755 "$lib"
run "$GILTRACER" check --python "$python"
like "$(cat out)" "^note +old probes +$probes: " 'an upgrade is noticed'
ok 'a dry run' setup --dry-run
like "$(cat out)" "^remove the probes $probes +# of an earlier set-up" 'would replace the probes'
ok 'setup again' setup
is "$(probes_in "$probes")" 0 'replaces them'
ok 'by some of the new build' test "$(probes_in "$(group_of "$python")")" -ge 4
ok 'undo' "$GILTRACER" setup --undo
is "$(system)" "$with_etc" 'takes all away'

exits 125 'a group that is none' "$GILTRACER" setup --group 'a b'
like "$(cat err)" "option --group: 'a b' is not a group" 'is refused'
exits 125 'an interpreter that is none' "$GILTRACER" setup --group "$group" --python nosuch
is "$(getent group "$group")" '' 'changes nothing'
exits 125 'without root' nobody "$GILTRACER" setup
like "$(cat err)" 'sudo giltracer setup' 'is refused with the command'

rm -rf "$scratch/venv"
leaves_nothing
done_testing
