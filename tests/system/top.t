#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer top: who has the GIL now, and who waits for it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

# start COMMAND…: a program whose two threads want the GIL all the time.
start() {
	rm -f ready go
	mkfifo ready go
	"$@" "$top_srcdir/tests/system/attach.py" ready go &
	pid=$!
	read -r _ <ready || :
}

finish() {
	: >go
	status=0
	wait $pid || status=$?
	is $status 0 "$1: the program ends as without giltracer"
}

start python3
exits 0 'a line a second' "$GILTRACER" top -p $pid -n 2
is "$(wc -l <out | tr -d ' ')" 2 '  as many as were asked for'
like "$(head -n 1 out)" '^has the GIL: .* [0-9]+ ~[0-9]+% in [a-z_.<>]+ \(.*\.py:[0-9]+\).*; waits: .*samples\)$' \
	'  with estimated shares, and the function that runs'
exits 0 'JSON' "$GILTRACER" top -p $pid -n 1 --json
mv out top.json
is "$(json top.json 'd["exact"]')" False '  which says that they are estimated'
is "$(json top.json 'd["samples"] > 0 and all(0 <= t[k] <= 100 for t in d["threads"]
	for k in ("has_percent", "waits_percent", "runnable_percent", "asleep_percent"))')" True \
	'  from samples, as shares'
is "$(json top.json 'sum(t["has_percent"] for t in d["threads"]) + d["free_percent"] < 100.01')" True \
	'  and the GIL has one holder at a time'
if grep -q '^#define HAVE_NCURSES' "$top_builddir/config.h"; then
	run python3 "$top_srcdir/tests/system/top-screen.py" "$GILTRACER" $pid sq
	like "$(cat out)" 'estimated from samples' 'a terminal has a screen'
	like "$(cat out)" 'exit status 0' '  which q ends'
fi
finish 'watched'

# Where the library counts, times are exact.
mkdir totals
start env LD_PRELOAD="$top_builddir/giltracer/preload/libgiltracer-preload.so" \
	GILTRACER_TOTALS="$PWD/totals" "$(python3 -c 'import sys; print(sys.executable)')"
exits 0 'a program that counts' "$GILTRACER" top -p $pid -n 1 --json
mv out exact.json
is "$(json exact.json 'd["exact"]')" True '  has exact shares'
is "$(json exact.json 'sum(t["has_percent"] for t in d["threads"]) > 50')" True \
	'  of a GIL that is wanted all the time'
finish 'counted'

exits 125 'without a process' "$GILTRACER" top
like "$(cat err)" 'option -p PID is missing' '  says so'
exits 125 'a process that is gone' "$GILTRACER" top -p $pid
like "$(cat err)" "process $pid: there is no such process" '  says so'

done_testing
