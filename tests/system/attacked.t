#!/bin/sh
# SPDX-License-Identifier: MIT
# The owner of a process or of a recording can have anything in it, and can change it while it is read:
# giltracer neither dies nor hangs, and its memory is bounded.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need python3

# ---- processes that pretend to have an interpreter

# start PYTHON KIND: sets $pid.
start() {
	begun "$1" "$top_srcdir/tests/system/hostile-memory.py" \
		"$top_srcdir/probes/$("$1" -c 'import sys
print("%d.%d" % sys.version_info[:2])').yaml" "$2" ready
	at_exit "kill -9 $pid 2>/dev/null"
}

# bounded COMMAND…: with 600 MB of memory, and 20 seconds; with AddressSanitizer, 60 seconds alone.
bounded() {
	if grep -q __asan_init "$GILTRACER"; then # AddressSanitizer reserves terabytes
		timeout 60 "$@"
	else
		timeout 20 sh -c 'ulimit -v 600000 && exec "$@"' - "$@"
	fi
}

# refused PYTHON KIND WHY
refused() {
	start "$1" "$2"
	exits 125 "$version: $2: stacks" bounded "$GILTRACER" stacks -p "$pid"
	like "$(cat err)" "$3" '  are refused'
}

# killed: it cannot end by itself.
killed() {
	kill -9 "$pid"
	wait "$pid" 2>/dev/null || :
}

cpythons >interpreters
while read -r version python <&3; do
	case $version in *t) continue ;; esac
	[ -e "$top_srcdir/probes/$version.yaml" ] || continue
	grep -q ' root: _PyRuntime' "$top_srcdir/probes/$version.yaml" || continue
	refused "$python" states 'threads changed'
	killed
	refused "$python" states-cycle 'threads changed'
	killed
	refused "$python" stacks 'more than 500000 Python frames'
	exits 125 '  top' bounded "$GILTRACER" top --json -p "$pid"
	like "$(cat err)" 'more than 500000 Python frames' '  is refused as well'
	killed
	start "$python" frames-cycle
	ok "$version: a stack that leads back to itself" bounded "$GILTRACER" stacks -p "$pid"
	unlike "$(cat out)" work '  has no frames'
	killed
	start "$python" codes
	ok "$version: 20,000 functions with a megabyte each" bounded "$GILTRACER" stacks -p "$pid"
	like "$(cat out)" work '  are shown'
	killed
done 3<interpreters
ok 'there were interpreters' test -s interpreters

# ---- files that are written to while they are read

# survives NAME COMMAND…: it ends with 0 or, and an error, with 125; 20 times.
survives() {
	name=$1
	shift
	: >ends
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		status=0
		bounded "$@" >out 2>err </dev/null || status=$?
		[ $status = 125 ] && grep -q '^giltracer: error: ' err && status=0
		[ $status = 0 ] || echo "$status: $(tail -n 1 err)" >>ends
	done
	is "$(cat ends)" '' "$name while its files change"
}

# changing FILE…: sets $pid.
changing() {
	begun python3 "$top_srcdir/tests/system/change-files.py" ready "$@"
	at_exit "kill -9 $pid 2>/dev/null"
}

cat >short.py <<'END_PY'
import threading

threads = [threading.Thread(target=sum, args=(range(1000000),)) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
END_PY
ok 'a session' by_library record -q -o session short.py
changing session/gil.preload/*
survives 'a report' "$GILTRACER" report -q session -o x.html
survives 'dump' "$GILTRACER" dump session/gil.preload
killed
ok 'a recording of perf' python3 "$top_srcdir/tests/data/mkperf.py" \
	"$top_srcdir/tests/data/every-record.perf.txt" every.perf.data
changing every.perf.data
survives 'dump of records' "$GILTRACER" dump every.perf.data
survives 'dump of events' "$GILTRACER" dump --events every.perf.data
killed

done_testing
