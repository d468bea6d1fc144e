#!/bin/sh
# SPDX-License-Identifier: MIT
# If a kernel or a container refuses something, check and the run print the same reason and the same
# remedy, and everything that can still be recorded is recorded.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root perf uprobes setpriv unshare gcc flock

paranoid=/proc/sys/kernel/perf_event_paranoid
default_settings
chmod 755 "$scratch"
chmod 777 "$TMPDIR"
mkdir -m 777 out-of
python=$(private_python "$scratch/venv")
gcc -o deny "$top_srcdir/tests/system/deny.c" || exit 99
cat >two.py <<'END_PY'
import threading
import time

def spin():
    until = time.monotonic() + 0.1
    while time.monotonic() < until:
        pass

if __name__ == "__main__":
    print("ran", flush=True)
    threads = [threading.Thread(target=spin) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
END_PY

# trace SURROUNDINGS… -- OPTION…: trace the program, under the command before --.
trace() {
	tap_before=
	while [ "$1" != -- ]; do
		tap_before="$tap_before $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # words
	$tap_before "$GILTRACER" -q --probes uprobes --python "$python" --python-trace none -o out-of/x.html \
		--json out-of/x.json "$@" two.py
}

# refused NAME TEXT REMEDY SURROUNDINGS…: check reports this reason and remedy, and the run fails with
# the same words. Check succeeds, because the library needs no permission.
guard=missing
refused() {
	name=$1 text=$2 remedy=$3
	shift 3
	ok "$name: check" "$@" "$GILTRACER" check --python "$python"
	like "$(grep "^$guard" out)" "$text" 'says which guard it is'
	why=$(sed -n "/^$guard/{N;s/^[a-z]* *[a-z]* *\(events *\)\{0,1\}//;s/\n */ /;p;q;}" out)
	like "$why" "-> $remedy" 'and what gives it'
	exits 125 'the run' trace "$@" --
	is "$(sed 's/^giltracer: error: //; s/ (--no-gil-detect.*//' err)" "$why" 'says the same words'
	is "$(cat out)" '' 'the program did not run'
}

# switches NAME SURROUNDINGS…: with neither probes nor tracepoints, switches are recorded.
switches() {
	name=$1
	shift
	ok "$name: --no-gil-detect" trace "$@" -- --no-gil-detect || return
	is "$(json out-of/x.json '[c["code"] for c in d["caveats"] if c["code"] == "tracepoints"]')" \
		"['tracepoints']" 'records when threads ran, and says what is missing'
	is "$(json out-of/x.json 'len(workers()), all(t["states"]["running_ns"] > 1e6 and
		sum(t["states"].values()) == t["total_ns"] for t in workers())')" '(2, True)' \
		'of all threads'
}

# inside SCRIPT COMMAND…: run the script, then the command, in a new mount namespace.
inside() {
	# shellcheck disable=SC2016
	unshare -m sh -c 'sh -e "$0" && exec "$@"' "$@"
}
as_nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'

options='outside of this container: docker or podman run'
refused 'a user namespace' "perf_event_paranoid is [0-9]; without CAP_PERFMON it must be at most -1" \
	"$options .*--userns=host --cap-add PERFMON" unshare -U -r
ok 'check' unshare -Ur "$GILTRACER" check --python "$python"
like "$(cat out)" '^note +surroundings +this is a user namespace' 'tells the surroundings'
like "$(cat out)" '^note +capabilities +missing CAP_PERFMON, ' 'and what would be needed'
switches 'a user namespace' unshare -U -r

bare='setpriv --inh-caps=-all --bounding-set'
# shellcheck disable=SC2086
refused 'root without CAP_PERFMON' 'without CAP_PERFMON it must be at most -1' "$options --cap-add PERFMON" \
	$bare=-perfmon,-sys_admin
for lack in perfmon sys_admin sys_ptrace ipc_lock sys_nice dac_override; do
	# shellcheck disable=SC2086
	ok "without CAP_$lack alone" trace $bare=-$lack --
	is "$(json out-of/x.json 'len(workers()), all(t["holds"] for t in workers())')" '(2, True)' \
		'the GIL is recorded'
done
# shellcheck disable=SC2086
ok 'check without CAP_IPC_LOCK' $bare=-ipc_lock "$GILTRACER" check --python "$python"
like "$(cat out)" '^note +ring buffers +[0-9]+ KiB .*without CAP_IPC_LOCK' 'says what that bounds'
like "$(cat out)" '-> .*(--cap-add IPC_LOCK|giltracer setup)' 'and what gives more'

for code in 1 38; do
	refused "a filter that says $code" 'a seccomp filter denies perf_event_open' \
		"$options .*--security-opt seccomp=unconfined" ./deny $code
done
refused 'a filter or module that says 13' 'denied by a security module .* not by kernel.perf_event_paranoid' \
	"$options .*seccomp=unconfined" ./deny 13

# The kernel lowers the limit if samples take too long, and refuses higher frequencies.
echo 100 >rate
echo "mount --bind $scratch/rate /proc/sys/kernel/perf_event_max_sample_rate" >make-slow
echo pass >empty.py
ok 'a kernel that permits few samples' inside ./make-slow "$GILTRACER" record -v -o session \
	--python-trace none --python "$python" empty.py
like "$(cat err)" 'name=giltracer_native,freq=100,' 'is not asked for more'

# Debian's and Ubuntu's kernels have levels 3 and 4: without the capability, no event can be opened.
for level in 3 4; do
	echo $level >level
	echo "mount --bind $scratch/level $paranoid" >make-level
	# shellcheck disable=SC2086
	refused "perf_event_paranoid=$level" "paranoid is $level; without CAP_PERFMON it must be at most 2" \
		"$options --cap-add PERFMON" inside ./make-level $bare=-perfmon,-sys_admin ./deny 13
done

mkdir security && echo 'none integrity [confidentiality]' >security/lockdown
hide='mount -t tmpfs none /sys/kernel/tracing && mount -t tmpfs none /sys/kernel/debug'
cat >make-lockdown <<END_SH
mount --bind $scratch/security /sys/kernel/security || mount -t tmpfs none /sys/kernel
$hide
END_SH
[ ! -d /sys/kernel/security ] ||
	refused 'lockdown' 'tracefs with uprobe_events is not mounted' \
		'boot .*without lockdown=confidentiality' inside ./make-lockdown

echo "$hide" >make-hidden
refused 'no tracefs' 'tracefs with uprobe_events is not mounted' '(sudo )?giltracer setup' \
	inside ./make-hidden
switches 'no tracefs' inside ./make-hidden
cat >make-read-only <<'END_SH'
mount --bind /sys/kernel/tracing /sys/kernel/tracing
mount -o remount,bind,ro /sys/kernel/tracing
END_SH
refused 'tracefs read-only' 'mounted read-only: probes cannot be installed' \
	'(sudo )?giltracer setup|outside' inside ./make-read-only
ok 'tracefs read-only: --no-gil-detect' trace inside ./make-read-only -- --no-gil-detect
is "$(json out-of/x.json '[c["code"] for c in d["caveats"] if c["code"] == "tracepoints"]')" '[]' \
	'has tracepoints'

# An ordinary user, with an interpreter that is not in root's home.
for_all_users
python=/usr/bin/python3
guard='note *tracefs' # what only root may do is not missing
refused 'an ordinary user' 'cannot be read by this user' 'as root: sudo giltracer' nobody
switches 'an ordinary user' nobody
ok 'an ordinary user: check' nobody "$GILTRACER" check --python "$python"
is "$(grep -c '^missing' out)" 0 'misses nothing'
echo 4 >level
# shellcheck disable=SC2086 # words
ok 'an ordinary user at perf_event_paranoid=4: check' inside ./make-level ./deny 13 \
	$as_nobody "$GILTRACER" check --python "$python"
like "$(sed -n '/^missing *perf events/{n;p;}' out)" '-> sudo giltracer setup$' 'is told to set up'
like "$(cat out)" '^ok +preload ' 'and can record by the library'

rm -rf "$scratch/venv"
leaves_nothing
done_testing
