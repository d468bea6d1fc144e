#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer top shows which threads hold the GIL and which wait for it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/attach.sh"

start python3
exits 0 'a line a second' "$GILTRACER" top -p $pid -n 2 --probes none
is "$(wc -l <out | tr -d ' ')" 2 '  as many as were asked for'
like "$(head -n 1 out)" '^has the GIL: .* [0-9]+ ~[0-9]+% in [a-z_.<>]+ \(.*\.py:[0-9]+\).*; waits: .*samples\)$' \
	'  with estimated shares, and the function that runs'
exits 0 'JSON' "$GILTRACER" top -p $pid -n 1 --json --probes none
mv out top.json
is "$(json top.json 'd["exact"]')" False '  which says that they are estimated'
is "$(json top.json 'sorted(t["name"] for t in d["threads"])')" \
	"['MainThread', 'my hog', 'my victim']" '  of threads as the program calls them'
is "$(json top.json '{t["waits_for"] for t in d["threads"]}')" '{None}' \
	'  and do not say for whom exactly'
is "$(json top.json 'd["samples"] > 0 and all(0 <= t[k] <= 100 for t in d["threads"]
	for k in ("has_percent", "waits_percent", "runnable_percent", "asleep_percent"))')" True \
	'  from samples, as shares'
is "$(json top.json 'sum(t["has_percent"] for t in d["threads"]) + d["free_percent"] < 100.01')" True \
	'  and the GIL has one holder at a time'
if grep -q '^#define HAVE_NCURSES' "$top_builddir/config.h"; then
	run python3 "$top_srcdir/tests/system/top-screen.py" "$GILTRACER" "$pid --probes none" srq
	like "$(cat out)" 'estimated from samples' 'a terminal has a screen'
	like "$(cat out)" 'exit status 0' '  which q ends'
	ok '  and r writes a report' grep -q '"samples"' giltracer.html
fi

# lifted FILE: extract the facts of a page into facts.json.
lifted() {
	python3 - "$1" >facts.json <<'END'
import re, sys
with open(sys.argv[1]) as page:
    print(re.search(r'id="gt-report">(.*?)</script>', page.read(), re.S).group(1))
END
}

# top writes a report of the last seconds when it ends, and on request.
exits 0 'a report of the last second' "$GILTRACER" top -p $pid -n 2 --keep-last 1 -o last.html
lifted last.html
is "$(json facts.json 'd["verdict"]["kind"]')" sampled '  is made of samples'
is "$(json facts.json 'd["passes"][0]["wall_ns"] >= 1e9 and d["samples"]["count"] > 0')" True \
	'  which go back so far'
is "$(json facts.json '("hog", 17) in [(p["function"].split(".")[-1], p["line"])
	for p in d["samples"]["places"] if p["what"] == "holds"]')" True \
	'  and have the call that keeps the GIL'
mkfifo lines
"$GILTRACER" top -p $pid -o asked.html >lines 2>err &
top=$!
exec 4<lines
read -r _ <&4
kill -USR1 $top
until [ -s asked.html ]; do
	kill -0 $top || break
done
ok 'SIGUSR1 asks for one meanwhile' kill -INT $top
exec 4<&-
status=0
wait $top || status=$?
is $status 0 '  and Ctrl-C ends it'
lifted asked.html
is "$(json facts.json 'd["verdict"]["kind"]')" sampled '  with a report'
exits 125 'a report that cannot be written' "$GILTRACER" top -p $pid -o nosuch/report.html
like "$(cat err)" 'nosuch/report.html' '  is known at once'
finish 'watched'

# If the library counts, times are exact.
mkdir totals
start env LD_PRELOAD="$top_builddir/giltracer/preload/libgiltracer-preload.so" \
	GILTRACER_TOTALS="$PWD/totals" "$(python3 -c 'import sys; print(sys.executable)')"
exits 0 'a program that counts' "$GILTRACER" top -p $pid -n 1 --json
mv out exact.json
is "$(json exact.json 'd["exact"]')" True '  has exact shares'
is "$(json exact.json 'sum(t["has_percent"] for t in d["threads"]) > 50')" True \
	'  of a GIL that is wanted all the time'
is "$(json exact.json 'all(abs(sum(w["percent"] for w in t["waits_for"]) - t["waits_percent"]) < 0.001
	for t in d["threads"])')" True '  and says for whom each thread waits, all of its wait'
is "$(json exact.json '[w["percent"] > 0 for t in d["threads"] if t["name"] == "my victim"
	for w in t["waits_for"] if (w["holder"], w["threads"]) == ("group", "my hog")]')" '[True]' \
	'  the one that wants it for the one that keeps it'
exits 0 '  which a line says, too' "$GILTRACER" top -p $pid -n 1
like "$(cat out)" 'waits: .*my victim [0-9]+ [0-9]+% for .*my hog [0-9]+%' \
	'  without the mark of estimates'
if grep -q '^#define HAVE_NCURSES' "$top_builddir/config.h"; then
	# Where "estimated from samples" was before, the first letter is there.
	run python3 "$top_srcdir/tests/system/top-screen.py" "$GILTRACER" $pid q 'xact times'
	like "$(cat out)" 'xact times' '  and a terminal'
	like "$(cat out)" 'for% mostly' '  with a column for it'
fi
finish 'counted'

exits 125 'without a process' "$GILTRACER" top
like "$(cat err)" 'option -p PID is missing' '  says so'
exits 125 'a process that is gone' "$GILTRACER" top -p $pid
like "$(cat err)" "process $pid: there is no such process" '  says so'

done_testing
