#!/bin/sh
# SPDX-License-Identifier: MIT
# VizTracer's trace has the same threads and the same clock as perf's recording, and nothing of giltracer;
# missing parts are reported.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes viztracer
python=$(viztracer_python)

cat >script.py <<'EOF'
import os, sys, threading, time
def leaf(i):
    return i
def work():
    print("thread", threading.get_native_id() if hasattr(threading, "get_native_id") else 0)
    for i in range(1000):
        leaf(i)
if __name__ == "__main__":
    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
        t.join()
    if sys.argv[1:] == ["die"]:
        os._exit(5)
    if sys.argv[1:] == ["fork"]:
        if os.fork() == 0:
            work()
            sys.exit(0)
        os.wait()
EOF

record() {
	"$GILTRACER" record -o session --python-trace viztracer --python "$python" "$@"
}
cheaply() {
	by_library record -o session --python-trace viztracer --python "$python" "$@"
}

# trace EXPRESSION: evaluate it over t, the events that have a time; p, the pass; out, the threads' ids.
trace() {
	json session/session.json '(lambda p, t, out: '"$1"')(d["passes"][0],
		[e for e in __import__("json").load(open("session/gil.viztracer.json"))["traceEvents"]
			if "ts" in e],
		{int(l.split()[1]) for l in open("out") if l.startswith("thread ")})'
}

note() {
	json session/session.json 'd["passes"][0]["python_trace_note"]'
}

ok 'VizTracer where it is there' record script.py
is "$(json session/session.json 'd["passes"][0]["python_trace"], d["options"]["python_trace"]')" \
	"('gil.viztracer.json', 'viztracer')" '  is in the session'
is "$(note)" None '  complete'
is "$(trace 'sum(e["name"].startswith("leaf ") for e in t)')" 2000 '  every call is in it'
is "$(trace '{e["tid"] for e in t if e["name"].startswith("leaf ")} == out')" True \
	"  by the kernel's thread ids"
is "$(trace 'p["start_ns"] < min(e["ts"] for e in t) * 1000 and
	max(e["ts"] + e.get("dur", 0) for e in t) * 1000 < p["stop_ns"]')" True \
	"  on perf's clock, between start and stop"
is "$(trace '[e["name"] for e in t if "share/python" in e["name"]]')" '[]' \
	'  without anything of ours'

# Real greenlets would need a package; how VizTracer traces them is not tested here.
mkdir green && : >green/gevent.py
echo 'import gevent' >green/main.py
ok 'greenlets' cheaply green/main.py
like "$(note)" 'VizTracer stops at the first switch between greenlets' '  are noted'

ok 'too many calls' cheaply --python-trace-entries 1000 script.py
like "$(note)" 'kept the last 1000 Python calls' '  are said to be missing'
exits 5 'os._exit' cheaply script.py die
like "$(note)" 'could not save its trace' '  leaves no trace, and says so'
is "$(json session/session.json 'd["passes"][0]["python_trace"]')" None '  in the session'
ok 'a fork' cheaply script.py fork
like "$(note)" 'traced the first process only' '  is not in it, and that is said'
is "$(trace 'len({e["pid"] for e in t})')" 1 '  nor its calls'

ok 'none' record --python-trace none script.py
is "$(ls session)" 'gil.codes
gil.perf.data
session.json' '  leaves no trace'

# An interpreter without VizTracer: the same one, in which it is hidden.
mkdir blind && echo 'raise ImportError("blind")' >blind/viztracer.py
PYTHONPATH=$scratch/blind
export PYTHONPATH
exits 125 'VizTracer wanted and not there' record script.py
like "$(cat err)" 'error: record: .* has no VizTracer: .* -m pip install viztracer' '  is an error'

# If the system's packages manage an interpreter, pip installs into virtual environments only (PEP 668).
managed='an interpreter that packages manage wants a virtual environment'
stdlib=$(/usr/bin/python3 -c 'import os; print(os.path.dirname(os.__file__))' || :)
if [ -e "$stdlib/EXTERNALLY-MANAGED" ]; then
	exits 125 'VizTracer wanted of such an interpreter' \
		"$GILTRACER" --python /usr/bin/python3 --python-trace viztracer -o report.html script.py
	like "$(cat err)" '/usr/bin/python3 -m venv venv && venv/bin/pip install viztracer' "$managed"
else
	skip 'needs a /usr/bin/python3 that packages manage' 'VizTracer wanted of such an interpreter'
	skip 'needs a /usr/bin/python3 that packages manage' "$managed"
fi

leaves_nothing
done_testing
