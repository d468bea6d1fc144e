#!/bin/sh
# SPDX-License-Identifier: MIT
# What an ordinary user can record: own programs by the library, with the times at which threads ran; and, where
# the administrator opens tracefs and perf as the manual describes, the scheduler's events, too.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root perf uprobes setpriv flock

python=/usr/bin/python3
gid=54321
for_all_users
mkdir home && chown 65534 home
cat >home/two.py <<'END'
import sys
import threading

def count():
    for _ in range(300000):
        pass

if __name__ == "__main__":
    threads = [threading.Thread(target=count) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sys.exit(7)
END
# The user gets neither our standard input nor our environment variables.
as_user() {
	(cd home && env -i PATH="$PATH" LC_ALL=C HOME="$scratch/home" TMPDIR="$scratch/home" \
		GILTRACER_TEST_ID="$scratch" setpriv --reuid=65534 --regid=65534 "$groups" --inh-caps=-all \
		--bounding-set=-all "$@") </dev/null
}
record() {
	as_user "$GILTRACER" -q --python-trace none --python "$python" --json two.json -o two.html "$@" two.py
}
running='[t["states"]["running_ns"] > 1e6 for t in workers()]'
groups=--clear-groups

default_settings
exits 7 'an ordinary user records, with the exit status of the program' record
consistent home/two.json 'the report'
is "$(json home/two.json 'all(t["holds"] > 0 for t in workers())')" True 'by the library'
is "$(json home/two.json "$running")" '[True, True]' 'with the times at which threads ran'
exits 7 'why they sleep' record --state-detect --one-run
is "$(json home/two.json '[c["code"] for c in d["caveats"] if c["code"] == "tracepoints"]')" \
	"['tracepoints']" 'is said to be unknown'
exits 125 'uprobes' record --probes uprobes
like "$(cat err)" '-> as root: sudo giltracer' 'are for root'
tail -f /dev/null &
other=$!
exits 125 'a process of another user' as_user "$GILTRACER" -q -o x.html --duration 1 -p $other
kill $other
wait $other 2>/dev/null
exits 125 'setup --undo' as_user "$GILTRACER" setup --undo

# The manual's two commands. Tracefs has one owner and mode for the whole kernel.
listed() {
	stat -c '%a %g' $tracefs
	find $tracefs/events/sched $tracefs/trace_pipe $tracefs/uprobe_events -printf '%p %m %g\n' | sort
}
before=$(listed)
mode=$(stat -c %a $tracefs)
at_exit "mount -o remount,gid=0,mode=$mode $tracefs"
mount -o remount,gid=$gid,mode=750 $tracefs
echo -1 >/proc/sys/kernel/perf_event_paranoid
groups=--groups=$gid
ok 'a member of the group that may read tracefs: check' as_user "$GILTRACER" check --python "$python"
like "$(cat out)" '^ok +tracepoints +of the whole machine' 'is content'
exits 7 'and the scheduler tells why threads sleep' record --state-detect --one-run
is "$(json home/two.json "$running")" '[True, True]' 'and when they run'
is "$(json home/two.json '[c["code"] for c in d["caveats"] if c["code"] == "tracepoints"]')" '[]' 'nothing is missing'
consistent home/two.json 'the report'
# What the manual warns of.
groups=--clear-groups
ok 'but anybody can then record all processes' as_user perf record -q --no-bpf-event -N -B -o all.data \
	-a -e cpu-clock -- true
rm -f home/all.data
mount -o remount,gid=0,mode="$mode" $tracefs
as_found
is "$(listed)" "$before" 'all is as it was'

is "$(find home -mindepth 1 | sort | tr '\n' ' ')" 'home/two.html home/two.json home/two.py ' 'no other file is left'
leaves_nothing
done_testing
