#!/bin/sh
# SPDX-License-Identifier: MIT
# setup changes only what it prints; a second setup changes nothing; --undo restores the previous state.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
. "$top_srcdir/tests/system/prefix.sh"
need root uprobes groupadd getcap flock strip

GILTRACER_STATEDIR=$scratch/state
GILTRACER_ETCDIR=$scratch/etc
GILTRACER_LIBEXECDIR=$scratch/libexec
export GILTRACER_STATEDIR GILTRACER_ETCDIR GILTRACER_LIBEXECDIR
unset SUDO_USER SUDO_UID SUDO_GID
group=gts$$
python=$(private_python "$scratch/venv")
probes=$(group_of "$python")
# --persist requires a giltracer that only root can change, which is not the case in /tmp.
installed=$(mktemp -d /usr/local/lib/giltracer-test.XXXXXX) || exit 99
at_exit 'rm -rf "$installed"'
mkdir -p "$installed/bin" "$installed/share/giltracer"
cp "$top_builddir/giltracer/giltracer" "$top_builddir/giltracer/giltracer-perf" "$installed/bin/"
cp -R "$top_srcdir/probes" "$top_srcdir/share/python" "$installed/share/giltracer/"
chown -R 0:0 "$installed" && chmod -R go-w,a+rX "$installed"
GILTRACER=$installed/bin/giltracer
as_never_set_up
at_exit '"$GILTRACER" setup --undo >/dev/null 2>&1'

system() {
	cat /proc/sys/kernel/perf_event_paranoid /proc/sys/kernel/perf_event_mlock_kb
	ls -d /run/giltracer/tracing "/run/giltracer/$probes" 2>/dev/null
	find $tracefs -maxdepth 1 -printf '%p %m %g\n' | sort
	find $tracefs/events/sched $tracefs/events/header_page -printf '%p %m %g\n' | sort
	getent group "$group"
	grep "$probes/" $tracefs/uprobe_events
	ls -A "$GILTRACER_STATEDIR" "$GILTRACER_ETCDIR" "$GILTRACER_LIBEXECDIR" 2>/dev/null
}
setup() {
	"$GILTRACER" setup --group "$group" --python "$python" "$@"
}
before=$(system)

ok 'a dry run' setup --dry-run --persist
for step in "groupadd --system $group" "mount -o bind,ro $tracefs/events /run/giltracer/tracing/events" \
	"chgrp .* $tracefs/events/sched/sched_switch/id && chmod 440" \
	"install .* -m 750 giltracer-perf $scratch/libexec/perf-for-members && setcap cap_perfmon" \
	"install [0-9]+ probes in $scratch" "write $scratch/etc/systemd/system/giltracer.service"; do
	like "$(cat out)" "^(# already: )?$step" "names: $step"
done
unlike "$(cat out)" 'perf_event_paranoid' 'what all users may do stays as it is'
like "$(cat err)" "members of the group $group can record their own programs; of other programs, they see" \
	'what a member sees of others is said'
is "$(system)" "$before" 'and changes nothing'

ok 'setup' setup
like "$(cat out)" "^chgrp [0-9]+ $tracefs/events/header_page && chmod 440 .* +# was gid=0" \
	'says what it does and what was'
after=$(system)
gid=$(getent group "$group" | cut -d: -f3)
member=$GILTRACER_LIBEXECDIR/perf-for-members
is "$(cat /proc/sys/kernel/perf_event_paranoid)" "$(echo "$before" | sed -n 1p)" \
	'perf_event_paranoid is as it was'
is "$(stat -c '%a %u:%g' "$member")" "750 0:$gid" 'perf is for the group'
is "$(getcap "$member" | sed 's/.* //')" 'cap_ipc_lock,cap_perfmon=ep' 'and has what it needs'
is "$(stat -c '%a %g' $tracefs)" "$(stat -c '%a' $tracefs) 0" 'tracefs is still root'"'"'s'
is "$(stat -c '%a %g' /run/giltracer/tracing)" "750 $gid" 'a way to its events is for the group'
is "$(stat -c '%A %g' $tracefs/events/sched/sched_waking/id)" "-r--r----- $gid" \
	'so are events of the scheduler'
is "$(stat -c '%A %g' "$tracefs/events/$probes/take_gil/id")" "-r--r----- $gid" 'and our probes'
is "$(stat -c '%a %g' "/run/giltracer/$probes")" "640 $gid" 'and whose they are'
for file in trace trace_pipe uprobe_events set_event events/raw_syscalls/sys_enter/id; do
	is "$(stat -c %g $tracefs/$file)" 0 "$file is not"
done
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

# Settings that somebody else changed meanwhile are not restored.
ok 'setup, then another hand' setup --everybody
like "$(cat err)" '^giltracer: warning: --everybody: ALL USERS, .* ALL PROCESSES' \
	'--everybody says in capitals what it opens'
is "$(cat /proc/sys/kernel/perf_event_paranoid)" -1 'tracepoints are for all users'
echo 1 >/proc/sys/kernel/perf_event_paranoid
ok 'undo leaves that alone' "$GILTRACER" setup --undo
like "$(cat out)" 'kernel.perf_event_paranoid was changed after setup' 'and says so'
is "$(cat /proc/sys/kernel/perf_event_paranoid)" 1 'it is as the other left it'
echo "$before" | sed -n 1p >/proc/sys/kernel/perf_event_paranoid
is "$(system)" "$before" 'all else is restored'

# Another set-up that gives fewer permissions, and a group to which somebody was added.
ok 'everybody' setup --everybody
ok 'and then members only' setup
like "$(cat out)" '^sysctl -w kernel.perf_event_paranoid=[0-9] +# of an earlier setup' 'is taken back'
is "$(cat /proc/sys/kernel/perf_event_paranoid)" "$(echo "$before" | sed -n 1p)" 'as it was'
gpasswd --add nobody "$group" >/dev/null
ok 'undo' "$GILTRACER" setup --undo
like "$(cat out)" "^# group $group has members: not removed" 'a group that has members stays'
gpasswd --delete nobody "$group" >/dev/null && groupdel "$group"
is "$(system)" "$before" 'and nothing else'

# Both setup and --undo reverse the changes of the first version.
paranoid=$(echo "$before" | sed -n 1p)
earlier() {
	mkdir -p state etc/sysctl.d
	groupadd --system "$group"
	gid=$(getent group "$group" | cut -d: -f3)
	echo -1 >/proc/sys/kernel/perf_event_paranoid
	mount -o "remount,gid=$gid,mode=750" $tracefs
	echo 'kernel.perf_event_paranoid = -1' >etc/sysctl.d/60-giltracer.conf
	cat >state/setup.json <<END_JSON
{"setup": 1, "done": [
 {"kind": "group", "target": "$group", "value": "present"},
 {"kind": "sysctl", "target": "kernel.perf_event_paranoid", "value": "-1", "old": "$paranoid"},
 {"kind": "access", "target": "$tracefs", "value": "gid=$gid,mode=750", "old": "gid=0,mode=700"},
 {"kind": "events", "target": "$tracefs/events", "value": "gid=$gid", "old": "gid=0"},
 {"kind": "file", "target": "$scratch/etc/sysctl.d/60-giltracer.conf",
  "value": "kernel.perf_event_paranoid = -1\n"}]}
END_JSON
}
earlier
ok 'setup of an earlier version, and this one' setup
like "$(cat out)" "^sysctl -w kernel.perf_event_paranoid=$paranoid +# of an earlier" 'takes back'
like "$(cat out)" "^rm $scratch/etc/sysctl.d/60-giltracer.conf +# of an earlier" 'what it did'
is "$(cat /proc/sys/kernel/perf_event_paranoid)" "$paranoid" 'users may do no more than before'
is "$(stat -c %g $tracefs/trace_pipe)" 0 'and not read what root traces'
ok 'undo' "$GILTRACER" setup --undo
rm -rf etc
is "$(system)" "$before" 'restores what was before both'
earlier
ok 'undo of an earlier version' "$GILTRACER" setup --undo
rm -rf etc
is "$(system)" "$before" 'restores what was before it'

# A set-up that fails half-way.
GILTRACER_ETCDIR=/proc/nosuch exits 125 'a set-up that fails in its last steps' setup --persist
like "$(cat err)" 'giltracer: error: setup: write /proc/nosuch' 'says where'
is "$(system)" "$before" 'and is rolled back'

# The state after a reboot.
mkdir -p etc/sysctl.d etc/systemd/system
with_etc=$(system)
ok 'a persistent set-up' setup --persist
is "$(ls etc/sysctl.d)" '' 'leaves the settings of the kernel alone'
is "$(sed -n 's/^ExecStart= *//p' etc/systemd/system/giltracer.service)" \
	"\"$installed/bin/giltracer\" setup --boot" 'and writes a unit'
is "$(readlink etc/systemd/system/multi-user.target.wants/giltracer.service)" \
	../giltracer.service 'which is wanted at boot'
# At the next boot, the probes are gone, and root runs nothing that belongs to a user.
reboot() {
	sed -n "s,^[pr]:\($probes/[^ ]*\) .*,-:\1,p" $tracefs/uprobe_events >commands
	while read -r command; do
		echo "$command" >>$tracefs/uprobe_events
	done <commands
	rm commands
	umount /run/giltracer/tracing/events
	rm -rf /run/giltracer/tracing "/run/giltracer/$probes"
}
with_setup=$(system)
reboot
is "$(probes_in "$probes")" 0 'after a reboot nothing is there'
mv "$python" "$python.away"
printf '#!/bin/sh\nid -u >%s\n' "$scratch/was-run" >"$python" && chmod +x "$python"
ok 'setup --boot' "$GILTRACER" setup --boot
is "$(system)" "$with_setup" 'sets up what there was'
ok 'without running the interpreter' test ! -e was-run
mv "$python.away" "$python"
ok 'again' "$GILTRACER" setup --boot
is "$(cat out)" '' 'has nothing to do'
reboot
lib=$("$GILTRACER" probes --python "$python" --json |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["file"])')
cp -p "$lib" whole && printf x >>"$lib"
ok 'setup --boot, a file was changed' "$GILTRACER" setup --boot
like "$(cat err)" 'was replaced or changed: run giltracer setup' 'says so'
is "$(probes_in "$probes")" 0 'and puts no probe there'
cp -p whole "$lib" && touch -r whole "$lib"
chmod 666 state/boot.json
exits 125 'a boot file that others can write' "$GILTRACER" setup --boot
like "$(cat err)" "boot.json: users other than root can change it" 'is refused'
chmod 644 state/boot.json
# Another set-up keeps the unit.
ok 'setup without --persist' setup
ok 'keeps the unit' test -e etc/systemd/system/giltracer.service
ok 'undo' "$GILTRACER" setup --undo
rmdir etc/systemd/system/multi-user.target.wants
is "$(system)" "$with_etc" 'takes them away'

# --persist is refused if users other than root can change the program that root would start.
cp "$installed/bin/giltracer" "$installed/bin/giltracer-perf" . && mkdir -p share/giltracer &&
	cp -R "$installed/share/giltracer" share/
exits 125 'a giltracer below /tmp' ./giltracer setup --persist --group "$group" --python "$python"
like "$(cat err)" '--persist needs an installed giltracer .*users other than root can change .*, through /.*tmp' \
	'is refused'
chmod g+w "$installed/share/giltracer"
exits 125 'data that a group can write' setup --persist
like "$(cat err)" "through $installed/share/giltracer$" 'are refused'
chmod g-w "$installed/share/giltracer"
chown nobody "$installed/bin/giltracer"
exits 125 'a giltracer that is not of root' setup --persist
chown root "$installed/bin/giltracer"
is "$(system)" "$with_etc" 'nothing is done'
rm -rf giltracer giltracer-perf share

# Other users' interpreters are run, and read, with their rights, also after su, doas and pkexec.
mkdir theirs && chmod 755 . && cat >theirs/python3 <<END
#!/bin/sh
id -u >>$scratch/theirs/ran-as
exec "$python" "\$@"
END
chmod 755 theirs/python3 && chown -R nobody theirs
run "$GILTRACER" setup --dry-run --group "$group" --python "$scratch/theirs/python3"
is "$(sort -u theirs/ran-as)" "$(id -u nobody)" 'an interpreter of nobody runs as nobody'
for command in probes check; do
	: >theirs/ran-as
	run "$GILTRACER" $command --python "$scratch/theirs/python3"
	is "$(sort -u theirs/ran-as)" "$(id -u nobody)" "likewise by root's $command"
done
if command -v su >/dev/null; then
	: >theirs/ran-as
	run su root -c "'$GILTRACER' probes --python '$scratch/theirs/python3'" </dev/null
	is "$(sort -u theirs/ran-as)" "$(id -u nobody)" 'and of one who became root by su'
else
	skip 'su is not installed' 'and of one who became root by su'
fi
mkdir ours && sed 's,/theirs/,/log/,' theirs/python3 >ours/python3 && chmod 755 ours/python3
mkdir log && chmod 777 log
for who in "SUDO_UID=$(id -u nobody)" "PKEXEC_UID=$(id -u nobody)" DOAS_USER=nobody; do
	rm -f log/ran-as
	run env "$who" "$GILTRACER" probes --python "$scratch/ours/python3"
	is "$(sort -u log/ran-as)" "$(id -u nobody)" "$who: root's interpreter runs for who asked"
done
rm -f log/ran-as
run "$GILTRACER" probes --python "$scratch/ours/python3"
is "$(sort -u log/ran-as)" 0 'else as root'

# If a disk is full or read-only, setup is refused, and the state does not change.
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
like "$(cat out)" "^remove the probes $probes +# of an earlier setup" 'would replace the probes'
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
