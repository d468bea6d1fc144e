#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer diff and --fail-on, on synthetic sessions. Needs no privilege.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need python3

# made DIR PERF-TEXT: make a session without running a program.
made() {
	mkdir "$1"
	python3 "$top_srcdir/tests/data/mkperf.py" "$2" "$1/gil.perf.data"
	cat >"$1/session.json" <<-'EOS'
		{"session": 1, "command": ["x.py"],
		 "options": {"state_detect": false, "gil_detect": true},
		 "python": {"version": "3.13.1", "free_threaded": false},
		 "passes": [{"name": "gil", "perf_data": "gil.perf.data", "exit_status": 0,
		             "start_ns": 1000000000, "stop_ns": 1100000000, "pid": 100, "tid": 100}]}
	EOS
}

made slow "$top_srcdir/tests/data/hog.perf.txt"
# The same, except that the other thread requests the GIL when the holds of 40 ms end.
sed 's/time=1003000000/time=1041500000/; s/time=1003010000/time=1041510000/
s/time=1048000000/time=1089500000/' "$top_srcdir/tests/data/hog.perf.txt" >fast.txt
made fast fast.txt

ok 'a session is compared to itself' "$GILTRACER" diff slow slow
like "$(cat out)" 'is the same within the noise' 'and is the same'
ok 'two sessions' "$GILTRACER" diff slow fast
like "$(cat out)" 'The wait for the GIL fell from [0-9.]+ % to [0-9.]+ %' 'the verdict'
mv out text
for side in slow fast; do
	"$GILTRACER" report -q $side -o $side.html --json $side.json
done
ok 'their documents' "$GILTRACER" diff slow.json fast.json
is "$(cat out)" "$(cat text)" 'say the same as the sessions'
ok 'one of each, and a document' "$GILTRACER" diff -q slow fast.json --json diff.json
is "$(cat out)" '' '-q: no table'
is "$(json diff.json 'd["diff"], d["verdict"]')" "(1, 'fell')" 'what it says, for machines'
is "$(json diff.json 'abs(d["facts"]["gil_wait"]["a"]["ns"] -
	sum(t["wait_ns"] for t in json.load(open("slow.json"))["threads"]))')" 0 'the same numbers'
is "$(json diff.json '[abs(r["change_points"]) for r in d["threads"]] ==
	sorted([abs(r["change_points"]) for r in d["threads"]], reverse=True)')" True \
	'the largest change first'
is "$(json diff.json 'd["caveat"]')" None 'and no caveat'
made other fast.txt
sed 's/"x.py"/"-m", "other.y"/' slow/session.json >other/session.json
ok 'another program' "$GILTRACER" diff slow other --json other-diff.json
is "$(grep -c 'programs with different names: x.py and y.py' out)" 1 'one line says so'
like "$(json other-diff.json 'd["caveat"]')" 'x.py and y.py' 'and a caveat, for machines'
ok 'the document on stdout' "$GILTRACER" diff slow fast --json -
is "$(json out 'd["verdict"]')" fell 'and nothing else'

# Several a side, and the page of both.
ok 'several recordings a side' "$GILTRACER" diff slow slow.json -- fast fast.json fast --json diff.json
like "$(cat out)" 'means of 2 and 3 recordings' 'with means'
is "$(json diff.json 'd["recordings"], d["verdict"]')" "({'a': 2, 'b': 3}, 'fell')" \
	'for machines, too'
is "$(json diff.json '[f["low_percent"] <= f["percent"] <= f["high_percent"]
	for f in d["facts"]["gil_wait"].values()]')" '[True, True]' 'and ranges'
ok 'options end at --' "$GILTRACER" diff -q -- slow fast
ok 'a page' "$GILTRACER" diff -o both.html slow fast
like "$(cat err)" 'both recordings are in both.html' 'says where'
is "$(grep -c '<svg class="strip-of"' both.html)" 2 'has both'
like "$(grep -o '<h1.*</h1>' both.html)" 'The wait for the GIL fell' 'and the verdict'
ok 'on stdout' "$GILTRACER" diff -o - slow fast
mv out page.html
ok 'the same' cmp page.html both.html
ok 'of a recording with itself' "$GILTRACER" diff -q -o same.html slow slow
like "$(grep -o '<h1[^>]*' same.html)" 'data-kind="same"' 'nothing changed'

# refuses NAME ERE COMMAND…: one line and status 125.
refuses() {
	refuses_name=$1
	refuses_why=$2
	shift 2
	exits 125 "$refuses_name" "$@"
	like "$(cat err)" "$refuses_why" 'says why'
	is "$(wc -l <err)" 1 'in one line'
}
refuses 'one side only' 'two session folders or --json documents are expected' "$GILTRACER" diff slow
refuses 'three sides' "'x': put -- between the recordings before and after a change" \
	"$GILTRACER" diff slow fast x
refuses 'nothing after --' 'two session folders or --json documents are expected' \
	"$GILTRACER" diff slow --
refuses 'a page of documents' 'fast.json: --output needs session folders' \
	"$GILTRACER" diff -o x.html slow fast.json
ok 'which is not begun' test ! -e x.html
refuses 'one file for both' 'x.html: cannot take two documents' \
	"$GILTRACER" diff -o x.html --json x.html slow fast
refuses 'a missing file' 'missing: No such file' "$GILTRACER" diff slow missing
mkdir empty
refuses 'a folder that is no session' 'empty' "$GILTRACER" diff empty slow
refuses 'a file that is no JSON' 'fast.txt: neither a session folder nor JSON' \
	"$GILTRACER" diff slow fast.txt
refuses 'a comparison' 'diff.json: a comparison' "$GILTRACER" diff slow diff.json
echo '{"schema": 2, "threads": []}' >later.json
refuses 'another schema' 'later.json: schema 2' "$GILTRACER" diff slow later.json

exits 3 'a condition on a change' "$GILTRACER" diff -q slow fast --fail-on 'gil_wait<-5%'
like "$(cat err)" "--fail-on 'gil_wait<-5%': gil_wait changed by -[0-9.]+ points" 'says what it is'
exits 0 'that is not true' "$GILTRACER" diff -q slow fast --fail-on 'gil_wait>+5%'
exits 3 'a condition on a session' "$GILTRACER" report -q slow --fail-on 'longest_hold>42ms' \
	-o x.html --fail-on 'lost>0'
like "$(cat err)" 'longest_hold is 42\.9' 'says what it is'
is "$(wc -l <err)" 1 'those that are true only'
ok 'and the report is there' test -s x.html
exits 0 'conditions that are not true' "$GILTRACER" report -q slow --fail-on 'longest_hold>43ms'
rm x.html
refuses 'an unknown fact' "report: --fail-on: 'gil_wiat': unknown, expected one of gil_wait," \
	"$GILTRACER" report slow -o x.html --fail-on 'gil_wiat>1%'
ok 'before anything is read or written' test ! -e x.html
refuses 'of the default command, too' "--fail-on: 'gil_wait>1'" "$GILTRACER" --fail-on 'gil_wait>1' \
	-o x.html missing.py

# Of a program that runs.
echo 'raise SystemExit(7)' >seven.py
exits 3 'a true condition replaces the status of the program' by_library -q -o x.html \
	--python-trace none --trace-imports --fail-on 'gil_hold>=0%' seven.py
like "$(cat err)" "--fail-on 'gil_hold>=0%': gil_hold is" 'says what it is'
exits 7 'one that is not does not' by_library -q -o x.html --python-trace none \
	--trace-imports --fail-on 'gil_hold<0%' seven.py
leaves_nothing
done_testing
