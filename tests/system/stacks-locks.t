#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer stacks, and top, show for which lock a thread waits, and which thread has it: read from an RLock, otherwise
# inferred from the source, and marked so.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

# waits_for THREAD: the lock that it waits for, the thread that has it, and whether that is inferred.
waits_for() {
	json out "[t['lock'] and ({v: k for k, v in ${names}.items()}.get(t['lock']['holder_tid']), t['lock']['expression'],
		t['lock']['inferred']) for t in d['threads'] if t['tid'] == ${names}['$1']][0]"
}

cp "$top_srcdir/tests/system/stacks-locks.py" .
every_cpython pythons
while read -r version python <&3; do
	begun "$python" stacks-locks.py
	names=$(cat tids)
	ok "$version: stacks of threads that wait for locks" "$GILTRACER" stacks --json -p $pid
	case $version in
	3.6)
		is "$(json out '[t["lock"] for t in d["threads"] if t["lock"]]')" '[]' "$version: no lock is shown"
		echo >&5
		over
		continue
		;;
	esac
	is "$(waits_for get)" "('second', 'other', True)" "$version: the lock of another thread"
	is "$(waits_for second)" "('get', 'cache._lock', True)" "$version: a lock with another name"
	is "$(waits_for third)" "('second', 'lock', True)" "$version: the same lock, which the source does not name"
	case $version in
	3.1[4-9]) is "$(waits_for want)" "('keep', 'self.again', False)" "$version: an RLock knows its owner" ;;
	*) is "$(waits_for want)" "('keep', 'self.again', True)" "$version: an RLock's owner is inferred" ;;
	esac
	is "$(waits_for keep)" None "$version: a thread that waits for an event"
	held=$(waits_for get)$(waits_for second)$(waits_for third)$(waits_for want)$(waits_for keep)
	ok "$version: top" "$GILTRACER" top --json -n 1 -p $pid
	is "$(waits_for get)$(waits_for second)$(waits_for third)$(waits_for want)$(waits_for keep)" "$held" \
		"$version: shows the same"
	"$GILTRACER" top -n 1 -p $pid >text
	like "$(cat text)" '; waits for locks: [a-z]+ [0-9]+ for [a-z._]+, held by [0-9]+( \(inferred\))?; ' \
		"$version: in a line, too"
	"$GILTRACER" stacks -p $pid >text
	like "$(cat text)" '^Deadlock: [0-9]+ waits for [0-9]+, which waits for [0-9]+ \(inferred\)\.$' \
		"$version: two threads wait for each other"
	like "$(cat text)" \
		'^thread [0-9]+ third: waits for the lock lock, as 1 other does, held by [0-9]+ \(inferred\), sleeping$' \
		"$version: in words"
	echo >&5
	over
done 3<pythons

# Hundreds of threads wait in one line of a long file. CPU time is limited, which does not depend on other programs.
"$tap_python" - >many.py <<'PYTHON'
print("""import threading

lock = threading.Lock()
""", '# a line of a usual length in a long file\n' * 3000, """


def waits():
    with lock:
        pass


def calls():
    waits()


lock.acquire()
for i in range(500):
    threading.Thread(target=calls).start()
with open('ready', 'w') as ready, open('go') as go:
    print('ready', file=ready, flush=True)
    go.read()
lock.release()""", sep='')
PYTHON
begun "$tap_python" many.py
# shellcheck disable=SC3045 # dash has it
(ulimit -t 2 && exec "$GILTRACER" stacks -p $pid) >text
is $? 0 'stacks of 500 threads that wait for a lock take little time'
over
wait $pid
is $? 0 '  the program ends as without giltracer'

done_testing
