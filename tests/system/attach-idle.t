#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer -p of a program that is idle, hung or stopped, or computes in one thread: the report says so, and
# threads that sleep throughout are asleep without the GIL, not unknown.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/attach.sh"
need root perf uprobes

# settled PID: wait until no thread of the process has had a CPU for 100 ms.
settled() {
	python3 - "$1" <<'EOF'
import glob, sys, time
def look():
    return {f: open(f).read() for f in glob.glob('/proc/%s/task/*/schedstat' % sys.argv[1])}
last, since = look(), time.monotonic()
while time.monotonic() - since < 0.1:
    now = look()
    if now != last:
        last, since = now, time.monotonic()
EOF
}

# idle KIND PYTHON: the program's number in $pid.
idle() {
	begun "$2" "$top_srcdir/tests/system/attach-idle.py" ready go "$1"
	settled "$pid"
}

record() {
	exits 0 "$@" -p "$pid" --duration 1 --json out.json -o out.html
}

# verdict KIND PATTERN NAME
verdict() {
	is "$(json out.json 'd["verdict"]["kind"]')" "$1" "$3: the verdict"
	like "$(json out.json 'd["verdict"]["headline"]')" "$2" '  in words'
	like "$(json out.json 'd["verdict"]["advice"]')" 'giltracer stacks -p PID' '  and the next step'
	consistent out.json "$3"
}

# without NAME THREAD…: all threads, which are these, were without the GIL throughout.
without() {
	name=$1
	shift
	is "$(json out.json '" ".join("%s %d %d" % (t["name"], t["no_gil_ns"] == t["total_ns"], t["unknown_ns"])
		for t in sorted(d["threads"], key=lambda t: t["name"]))')" \
		"$(printf '%s 1 0\n' "$@" | paste -sd ' ')" "$name: all threads were without the GIL"
}

is_idle='^No thread took or released the GIL in ([0-9.]+ ms|1\.[0-9]* s): the program was idle'
is_held='^No thread took or released the GIL in 1\.[0-9]* s: thread MainThread held it throughout'
is_stopped='^No thread took or released the GIL in ([0-9.]+ ms|1\.[0-9]* s): the program was stopped'
cpythons | grep -v '^[^ ]*t ' >interpreters
while read -r version python <&3; do
	idle deadlock "$python"
	record "$version: a deadlock" "$GILTRACER"
	verdict idle "$is_idle" "$version"
	if [ "$version" = 3.6 ]; then # whose GIL cannot be read from outside
		is "$(json out.json '[t["unknown_ns"] == t["total_ns"] for t in d["threads"]]')" \
			'[True, True, True]' "$version: whether they held the GIL is unknown"
		finish "$version"
		continue
	fi
	without "$version" MainThread one two
	unlike "$(cat err)" 'probes do not match' '  and no probe is doubted'
	like "$(cat out)" '^thread [0-9]+ (one|two): .*sleeping' '  and standard output has the stacks'
	record "$version: with states" "$GILTRACER" --state-detect
	verdict idle "$is_idle" "$version, states"
	is "$(json out.json '[t["states"]["sleeping_ns"] == t["total_ns"] for t in d["threads"]]')" \
		'[True, True, True]' '  all threads were asleep'
	record "$version: only samples" "$GILTRACER" --probes none
	verdict idle "$is_idle" "$version, samples"
	kill -STOP $pid
	settled $pid
	record "$version: a program that is stopped" "$GILTRACER"
	verdict idle "$is_stopped" "$version"
	kill -CONT $pid
	finish "$version"

	# It loads the library in the main thread, which does nothing else. The second time, that waits for its
	# lock in the library.
	idle joined "$python"
	for round in first second; do
		record "$version: the library, the $round time" "$GILTRACER" --probes preload
		verdict idle "$is_idle" "$version, the library"
		without "$version, the library" MainThread end one two
	done
	finish "$version, the library"

	idle gil "$python"
	record "$version: who sleeps with the GIL, and who sleeps for it" "$GILTRACER"
	verdict held "$is_held" "$version"
	is "$(json out.json '[(t["name"], t["hold_ns"] == t["total_ns"], t["unknown_ns"] == t["total_ns"])
		for t in sorted(d["threads"], key=lambda t: t["name"])]')" \
		"[('MainThread', True, False), ('waits', False, True)]" '  are not without it'
	finish "$version"

	begun "$python" "$top_srcdir/tests/system/attach-idle.py" ready go alone
	record "$version: a thread that computes alone" "$GILTRACER"
	verdict held "$is_held" "$version"
	is "$(json out.json '[t["hold_ns"] == t["total_ns"] for t in d["threads"]]')" '[True]' '  had the GIL'
	unlike "$(cat err)" 'probes do not match' '  and no probe is doubted'
	kill -USR1 "$pid"
	finish "$version"

	idle parent "$python"
	record "$version: a parent that waits for its child" "$GILTRACER"
	is "$(json out.json '[(t["no_gil_ns"] == t["total_ns"], t["unknown_ns"])
		for t in d["threads"] if t["main"]]')" '[(True, 0), (True, 0)]' \
		'  both main threads were without the GIL'
	ok '  and the others used it' test "$(json out.json \
		'sum(t["holds"] > 0 for t in d["threads"] if t["name"].startswith("request-"))')" = 2
	consistent out.json "$version, parent"
	finish "$version"
done 3<interpreters
leaves_nothing
done_testing
