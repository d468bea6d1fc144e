#!/bin/sh
# SPDX-License-Identifier: MIT
# For each kind of recording, the session folder contains what was requested, and how it was made.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes

cat >script.py <<'EOF'
import sys, threading, time
def wait():
    for i in range(20):
        time.sleep(0.001)
if __name__ == "__main__":
    threads = [threading.Thread(target=wait) for _ in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
    print("ran")
    print("aside", file=sys.stderr)
    sys.exit(3)
EOF

session() {
	json session/session.json "$1"
}

# events PASS: print the names of the events in its recording, without the probes' groups, sorted.
events() {
	perf evlist -i session/"$1".perf.data | sed -n 's/^giltracer_[0-9a-z_]*://; /^#/!p' | sort |
		tr '\n' ' '
}

# count PASS ERE: print the number of records that match.
count() {
	perf script --show-switch-events -i session/"$1".perf.data 2>/dev/null | grep -cE "$2"
}

record() {
	"$GILTRACER" record -o session --python-trace none "$@"
}

exits 3 'the GIL pass' record script.py one 'two words'
is "$(cat out)" ran '  shows its output'
like "$(cat err)" '^aside$' '  and its errors'
is "$(ls session)" 'gil.codes
gil.perf.data
session.json' '  leaves one recording'
is "$(stat -c %a session)" 700 '  in a folder that nobody else can read'
is "$(session 'd["session"], d["command"], d["cwd"]')" \
	"(1, ['script.py', 'one', 'two words'], '$scratch')" '  says what was run'
is "$(session 'd["options"]')" \
	"{'state_detect': False, 'gil_detect': True, 'one_run': False, 'no_children': False, \
'python_trace': 'none', 'flight_ns': 0}" \
	'  and with which options'
is "$(session '[(p["name"], p["perf_data"], p["python_trace"], p["exit_status"], p["signal"])
	for p in d["passes"]]')" "[('gil', 'gil.perf.data', None, 3, 0)]" '  and what came of it'
is "$(session 'all(p["start_ns"] < p["stop_ns"] <= p["start_ns"] + p["wall_ns"]
	and p["pid"] == p["tid"] > 0 for p in d["passes"])')" True '  and when it was traced'
is "$(session '[f["name"].split(".")[0] for f in d["python"]["gil_functions"]][:1]')" "['take_gil']" \
	'  and where the functions of the GIL are'
is "$(session '[n for n in d["notes"] if n["code"] != "stolen"]')" '[]' '  with nothing to note'
like "$(events gil)" '^drop_gil.*dummy:.* sched:sched_waking take_gil.*take_gil_ret' \
	'  records probes and wake-ups'
like "$(events gil)" sched_switch '  and which threads are stopped'
ok '  has seen the threads come back' test "$(count gil take_gil_ret)" -gt 40
ok '  and leave the CPU' test "$(count gil 'PERF_RECORD_SWITCH OUT')" -gt 40

exits 3 'two passes' record --state-detect script.py
is "$(cat out)" ran '  show the output once'
is "$(grep -c '^aside$' err)" 1 '  and the errors once'
like "$(cat err)" '^giltracer: run 1 of 2: ' '  say which runs'
like "$(cat err)" '^giltracer: run 2 of 2: ' '  and that it runs again'
is "$(session '[p["name"] for p in d["passes"]], len({p["pid"] for p in d["passes"]})')" \
	"(['gil', 'stacks'], 2)" '  are two executions'
like "$(events gil)" sched:sched_switch '  have states in the first'
unlike "$(events stacks)" take_gil '  and no probes in the second'
ok '  which has stacks' test "$(count stacks '^[[:space:]]+[0-9a-f]+ .*(take_gil|PyEval|clock_nanosleep)')" -gt 10

exits 3 'one run' record --state-detect --one-run script.py
is "$(cat out)" ran '  shows the output'
is "$(session '[p["name"] for p in d["passes"]], len({p["pid"] for p in d["passes"]})')" \
	"(['gil', 'stacks'], 1)" '  makes both recordings of one execution'
ok '  with probes' test "$(count gil take_gil_ret)" -gt 40
ok '  and stacks' test "$(count stacks sched_switch)" -gt 40

exits 3 'no uprobes' record --no-gil-detect script.py
is "$(session '[p["name"] for p in d["passes"]]')" "['stacks']" \
	'  gives the stacks alone'

exits 3 'counters' record -e page-faults -e cpu-clock/period=1000000/ script.py
like "$(events gil)" 'cpu-clock/period=1000000/ .*page-faults' '  are recorded with the GIL'

# The two runs differ.
cat >differs.py <<'EOF'
import os, sys
if __name__ == "__main__":
    again = os.path.exists("marker")
    open("marker", "w").close()
    sys.exit(7 if again else 0)
EOF
exits 0 'a program that does not do the same twice' record --probes preload --state-detect differs.py
like "$(cat err)" 'ended differently, with status 0 and then 7' '  is told of'
is "$(session '[n["code"] for n in d["notes"] if n["code"] != "stolen"], [p["exit_status"] for p in d["passes"]]')" \
	"(['exit-status'], [0, 7])" '  in the session too'

# The default command uses a temporary session.
# A folder that cannot be made anew.
mkdir real && ln -s real linked && touch real/session.json
exits 3 'a link to a folder with a session' "$GILTRACER" -q -o linked.html --keep linked --python-trace none script.py
ok '  which is replaced' "$GILTRACER" report -o linked.html real
is "$(stat -c %a real)" 700 '  and private'

exits 3 'record and report' by_library -q -o report.html --json - --python-trace none script.py
like "$(head -c 200 report.html)" '<!doctype html>|<!DOCTYPE html>' '  writes the report'
is "$(sed 1d out >report.json && json report.json 'd["schema"], len(d["threads"])')" '(1, 3)' \
	"  and the document after the program's own output"
is "$(grep -v '^aside$' err)" '' '  quietly'
exits 3 'a session that is kept' "$GILTRACER" -q -o kept.html --keep kept --python-trace none script.py
is "$(ls kept)" 'gil.codes
gil.perf.data
session.json' '  is there'
ok '  to be reported again' "$GILTRACER" report -o again.html kept

leaves_nothing
done_testing
