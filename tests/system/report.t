#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer report: a synthetic session folder becomes table, JSON, page and folded stacks, which agree;
# hostile names have no effect; a file that cannot be read or written causes one clear message. Needs
# no privilege.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need python3

# session DIR: make a session from tests/data/hog.perf.txt, with hostile program arguments.
session() {
	mkdir "$1"
	python3 "$top_srcdir/tests/data/mkperf.py" "$top_srcdir/tests/data/hog.perf.txt" \
		"$1/gil.perf.data"
	cat >"$1/session.json" <<-'EOS'
		{"session": 1, "giltracer": "0", "created": "2026-01-31T12:00:00Z",
		 "command": ["hog.py", "</script><script>alert(1)</script>", "\"'\u001b[31m\u202e"],
		 "cwd": "/", "host": {"kernel": "6.18.0", "arch": "x86_64", "cpus": 2, "perf": "6.1"},
		 "options": {"state_detect": false, "gil_detect": true, "one_run": false,
		             "python_trace": "auto"},
		 "python": {"executable": "/</script>/python3", "version": "3.11.2",
		            "implementation": "CPython", "build_id": "ab", "free_threaded": false,
		            "gil_functions": [{"name": "take_gil", "offset": 4096, "kind": "symbol"}]},
		 "passes": [{"name": "gil", "perf_data": "gil.perf.data", "python_trace": null,
		             "python_trace_note": "no <trace> here", "exit_status": 0, "signal": 0,
		             "wall_ns": 120000000, "start_ns": 1000000000, "stop_ns": 1100000000,
		             "pid": 100, "tid": 100}],
		 "notes": [{"code": "two-runs", "count": 2, "text": "a note & more"}]}
	EOS
}

session hog
ok 'a report is made' "$GILTRACER" report hog -o hog.html --json hog.json
cp out table
like "$(cat table)" '^  The GIL limits this program' 'the verdict comes first'
like "$(cat table)" '^  python3 101 +99\.0 +' 'the hog is in the table'
like "$(cat table)" '102 +python3 101 +[78][0-9]\.[0-9] ' 'and is blamed'
like "$(cat table)" 'note: a note & more \(2 times\)' 'notes are shown'
is "$(tr -d '\n' <table | LC_ALL=C tr -d '\040-\176\200-\377')" '' \
	'no control character reaches the terminal'
# On a terminal, here with 90 columns, no line is wider, and the words are the same.
ok 'a narrow terminal' python3 "$top_srcdir/tests/system/narrow.py" \
	"$GILTRACER" report hog -o narrow.html --json narrow.json
is "$(cat out)" "$(printf 'widest True other True\nsame True')" 'has lines that fit, with all the words'
ok 'the table is UTF-8' python3 -c 'open("table", encoding="utf-8").read()'

# What the page reads is what is written.
if want typescript 'the documents of the page have the types with which its sources are checked'; then
	python3 -c 'import re
page = open("hog.html", encoding="utf-8").read()
for name, text in re.findall("""<script type="application/json" id="gt-(\\w+)">(.*?)</script>""", page, re.S):
    print(f"const {name} = {text};\nconst {name}_typed: {name.capitalize()} = {name};")' >documents.ts
	is "$(grep -c typed documents.ts)" 3 'the page has three documents'
	"$(npm_program tsc)" --noEmit --strict --lib esnext "$top_srcdir/share/report/types.d.ts" documents.ts >tsc.out
	is "$?:$(cat tsc.out)" 0: 'the documents of the page have the types with which its sources are checked'
fi

# The main thread holds the GIL for 2 ms, and then computes without it for 98 ms, less a switch wait of 1 us.
for cost in 1 2; do
	ok "without the GIL, cost $cost" "$GILTRACER" report hog -o without.html --json without$cost.json \
		--without-gil 1,64 --without-gil-cost $cost
done
is "$(json without1.json '(d["without_gil"]["recorded_ns"], d["without_gil"]["runs"][1]["expected_ns"])')" \
	'(100000000, 99999000)' '  the main thread has a CPU of its own'
is "$(json without2.json 'd["without_gil"]["runs"][1]["expected_ns"]')" 101999000 \
	'  what it did with the GIL takes twice as long'
is "$(json without2.json '[(p["what"], p["ns"]) for p in d["without_gil"]["critical_path"]]')" \
	"[('C code', 97999000), ('Python code', 4000000)]" '  which is the critical path'
is "$(json without1.json '[r["expected_ns"] == r["cpu_ns"] > 2 * 99999000 for r in d["without_gil"]["runs"][:1]]')" \
	'[True]' '  on one CPU, three threads share it'
like "$(cat out)" 'without the GIL, 1 CPU  *CPUs  *[0-9.]+ ' '  in a table'
like "$(cat out)" 'differs from the recording by 1\.0 %' '  with its error'
like "$(cat without.html)" 'the recorded schedule, replayed' '  and so on the page'
is "$(json hog.json 'd["without_gil"]')" None '  if it is asked for'
for bad in 0 x '2,' 1,2,3,4,5,6,7,8,9 nan; do
	exits 125 "no number of CPUs: $bad" "$GILTRACER" report hog -o without.html --without-gil $bad
	like "$(cat err)" 'option --without-gil: ' '  is refused'
done
exits 125 'a cost without a replay' "$GILTRACER" report hog -o without.html --without-gil-cost 2

# All outputs have the same numbers.
is "$(json hog.json 'all(t["hold_ns"] + t["wait_ns"] + t["free_wait_ns"] + t["no_gil_ns"] + t["unknown_ns"]
	== t["total_ns"] for t in d["threads"])')" True 'the parts of each life are the whole'
is "$(json hog.json '[t["hold_ns"] for t in d["threads"] if t["tid"] == 101]')" '[82800000]' \
	'the hog held for 39.9 and 42.9 ms'
is "$(json hog.json 'all(0 <= f["held_asleep_ns"] <= f["held_off_cpu_ns"] <= f["hold_ns"]
	for f in d["functions"])')" True 'a function cannot be off the CPU for longer than it held'
cat >compare.py <<'EOS'
import json, re, sys
page = open("hog.html", encoding="utf-8").read()
parts = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)
docs = [json.loads(p) for p in parts]
report = json.load(open("hog.json", encoding="utf-8"))
assert docs[0] == report, "the page has the JSON document"
meta = next(d for d in docs if "main_pass" in d)
threads = meta["passes"][0]["threads"]
for t in report["threads"]:
    other = next(o for o in threads if o["tid"] == t["tid"])
    assert all(other[k] == v for k, v in t.items()), (t, other)
for t in report["threads"]:
    row = "%.1f %.1f %.1f %.1f %.1f %.1f %.3f %.3f" % (
        t["total_ns"] / 1e6, *(100 * t[k + "_ns"] / t["total_ns"] for k in (
            "no_gil", "hold", "wait", "free_wait", "unknown")),
        t["longest_wait_ns"] / 1e6, t["longest_hold_ns"] / 1e6)
    lines = [" ".join(l.split()) for l in open("table", encoding="utf-8")]
    assert any(l.endswith(row) for l in lines), (row, lines)
    cells = "".join("<td>%s</td>" % c for c in row.split())
    assert cells in page, cells
EOS
ok 'page, JSON and table have the same numbers' python3 compare.py

# Hostile text: the only elements are ours, and nothing refers to the network.
is "$(grep -c 'alert(1)</script>' hog.html)" 0 'an argument cannot end a script element'
unlike "$(grep -o '<script[^>]*>' hog.html | sort -u)" 'src=' 'no script is loaded'
is "$(grep -c '<script>alert' hog.html)" 0 'and none is smuggled in'
like "$(cat hog.html)" 'Content-Security-Policy' 'a policy forbids the rest'
like "$(cat hog.html)" '<table>' 'there are tables without JavaScript'
like "$(cat hog.html)" 'class="headline" data-kind="gil-bound"' 'and the verdict'
like "$(cat hog.html)" "spent [0-9.]*$(printf '\302\240')% of" '  whose numbers stay with their units'

# The outputs and their files.
run "$GILTRACER" report --json - hog -o x.html
mv out stdout.json
mv err stderr
ok 'JSON on stdout is JSON alone' python3 -c 'import json; json.load(open("stdout.json"))'
like "$(cat stderr)" 'The GIL limits' 'then the table goes to stderr'
ok 'quietly' "$GILTRACER" report -q hog -o x.html
is "$(cat out err)" '' 'nothing is printed'
ok 'the default output is giltracer.html' "$GILTRACER" report hog
is "$(tail -n 1 err)" 'giltracer: the whole report is in giltracer.html: open it in a browser' \
	'which is said at the end'
ok 'and is there' test -s giltracer.html
cp -r hog moved
ok 'folders can be moved and read-only' "$GILTRACER" report -q moved -o moved.html
ok 'the same session gives the same page' cmp hog.html moved.html

# Folded stacks.
ok 'holds by stack' "$GILTRACER" report -q hog -o x.html --export folded=on --export folded-waits=off
is "$(awk '{ sum += $NF } END { print sum }' on)" \
	"$(json hog.json 'sum(t["hold_ns"] for t in d["threads"])')" 'they add up to all holds'
is "$(awk '{ sum += $NF } END { print sum }' off)" \
	"$(json hog.json 'sum(t["wait_ns"] for t in d["threads"])')" 'and the others to all waits'
is "$(grep -cvE '^[^;]+(;[^;]+)+ [0-9]+$' on)" 0 'each line is a stack and a number'

# refuses STATUS MESSAGE NAME COMMAND…: the error is one line, and no file is left.
refuses() {
	refuses_status=$1
	refuses_message=$2
	refuses_name=$3
	shift 3
	exits "$refuses_status" "$refuses_name" "$@"
	like "$(cat err)" "^giltracer: error: report: $refuses_message" "$refuses_name: says why"
	is "$(wc -l <err)" 1 "$refuses_name: in one line"
}
mkdir empty out-dir
rm -f x.html
refuses 125 'a session folder is expected' 'no folder' "$GILTRACER" report
refuses 125 'nosuch: ' 'a folder that is not there' "$GILTRACER" report nosuch -o x.html
refuses 125 'empty: ' 'a folder without a session' "$GILTRACER" report empty -o x.html
refuses 125 "'moved': only one session" 'two folders' "$GILTRACER" report hog moved -o x.html
refuses 125 'nosuch/x.html: ' 'an output that is nowhere' "$GILTRACER" report hog -o nosuch/x.html
refuses 125 "option --export: 'x' is not one of" 'an unknown format' \
	"$GILTRACER" report hog --export x=y -o x.html
refuses 125 'off: the session has no call stacks' 'no stacks' \
	"$GILTRACER" report -q hog --export folded-off-cpu=off -o y.html
rm -f moved/gil.perf.data
refuses 125 'moved/gil.perf.data: ' 'a recording that is gone' \
	"$GILTRACER" report moved -o x.html
printf 'not perf' >moved/gil.perf.data
refuses 125 'moved/gil.perf.data: ' 'a recording that is none' "$GILTRACER" report moved -o x.html
ok 'no half-written page is left' test ! -e x.html
is "$(find . -name 'x.html*' -o -name '*.html.??????')" '' 'nor a temporary file'

# A full disk.
refuses 125 '/dev/full: cannot write: No space left' 'a full disk, page' \
	"$GILTRACER" report -q hog -o /dev/full
refuses 125 '/dev/full: cannot write: No space left' 'a full disk, JSON' \
	"$GILTRACER" report -q hog -o x.html --json /dev/full
exits 125 'a full disk, stdout' sh -c '"$1" report hog -o x.html >/dev/full' sh "$GILTRACER"
like "$(cat err)" 'standard output: cannot write' 'says so'

# From a truncated recording, its complete records are reported.
head -c 3000 hog/gil.perf.data >moved/gil.perf.data
run "$GILTRACER" report moved -o cut.html --json cut.json
if [ $status -eq 0 ]; then
	like "$(json cut.json '[c["code"] for c in d["caveats"]]')" truncated \
		'a cut recording is reported as cut'
else
	like "$(cat err)" 'moved/gil.perf.data: ' 'a cut recording is refused with a reason'
fi

leaves_nothing
done_testing
