#!/bin/sh
# SPDX-License-Identifier: MIT
# Tasks of trio, and of asyncio on uvloop, recorded by the library: each one's life, what it waited for, who
# made it and woke it. On uvloop it is not known when most of them became ready. Greenlets have stacks of their
# own, and the longest step of a loop is known.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need trio uvloop greenlet gevent

engine=preload
# record VERSION PYTHON PROGRAM [ARG…]: a session, with the options in $options, and its reports.
options=
record() {
	loops=$tap_pythons/event-loops/$1
	python=$2
	program=$top_srcdir/tests/system/$3
	shift 3
	rm -rf session
	# shellcheck disable=SC2086 # options
	PYTHONPATH=$loops "$GILTRACER" record -q --probes $engine --python-trace native $options \
		--python "$python" -o session "$program" "$@" >out 2>err
	"$GILTRACER" report --json report.json -o report.html session >out 2>text
}

# groups: of the report, without trio's own: tasks, done, raised and steps, where they wait, who woke and made
# them.
groups() {
	json report.json '"\n".join(sorted("%s %s: %d %d %d %d, at %s, by %s, of %s" % (
		g["loop"], next(t["function"] for t in d["tasks"]["list"] if t["group"] == i).split()[0],
		g["tasks"], g["done"], g["raised"], g["steps"], *[
			" ".join(sorted(str(row[what]).split()[0].split(".")[-1] for row in g[key])) or "-" for key, what in
			(("waits", "line"), ("woken_by", "function"), ("created_by", "function"))])
		for i, g in enumerate(d["tasks"]["groups"]) if not g["name"].startswith(("<init>", "<Trio"))))'
}
# group FUNCTION KEY: what the report has of the tasks that run it.
group() {
	json report.json 'd["tasks"]["groups"][next(t["group"] for t in d["tasks"]["list"]
		if t["function"].startswith("'"$1"' "))]'"$2"
}
add_up() {
	is "$(json report.json 'all(t["running_ns"] + t["waiting_ns"] + t["late_ns"] + t["unknown_ns"] ==
		t["life_ns"] for t in d["tasks"]["list"] + d["tasks"]["groups"])')" True '  the parts of their lives add up'
}

cat >trio <<'END_OF_TRIO'
trio consume: 1 1 0 2, at 30, by main put, of main
trio expires: 1 1 0 2, at 36, by main, of main
trio fails: 1 1 1 1, at -, by main, of main
trio main: 1 1 0 5, at 54 61 66 68, by consume fails init waits yields, of init
trio waits: 1 1 0 2, at 16, by main, of main
trio yields: 1 1 0 4, at 25, by main yields, of main
END_OF_TRIO
cat >uvloop <<'END_OF_UVLOOP'
uvloop consume: 1 1 0 2, at 30, by main, of main
uvloop fails: 1 1 1 1, at -, by main, of main
uvloop main: 1 1 0 4, at 56 60 62, by -, of -
uvloop waits: 1 1 0 2, at 17, by main, of main
uvloop yields: 1 1 0 4, at 26, by main yields, of main
END_OF_UVLOOP

# is_late TASK PLACE NAME: what the finding says of the late task.
is_late() {
	like "$(json report.json '" ".join(f["text"] for f in d["findings"] if f["kind"] == "task")')" \
		"Task $1: thread MainThread.* spent [0-9.]* m?s of that in block .$2.\\." "$3"
}

every_cpython pythons
while read -r version python <&3; do
	record "$version" "$python" tasks-trio.py
	case $version in
	3.[6-9]) sed 's/at 54 61 66 68/at 55 66 68 69/' trio ;; # a nursery is left at the block's last line
	*) cat trio ;;
	esac >wanted
	is "$(groups)" "$(cat wanted)" "$version: trio: how many tasks, their steps, where they wait, who woke and made them"
	is "$(json report.json 'sorted(g["name"] for g in d["tasks"]["groups"] if g["name"][0] == "<" and g["named"])')" \
		"['</script>consumer-*\\x1b', '<TrioToken.run_sync_soon task>', '<init>']" '  their names'
	is "$(json report.json '[[t["function"].split()[0].split(".")[-1] for t in d["tasks"]["list"]
		if t["created_by"] and t["created_by"]["task"] == main["task"]]
		for main in d["tasks"]["list"] if main["function"].startswith("main ")]')" \
		"[['fails', 'waits', 'yields', 'consume', 'expires']]" '  which task created them, and in which order'
	add_up
	is "$(json report.json 'sum(g["unknown_ns"] for g in d["tasks"]["groups"])')" 0 '  nothing is unknown'
	is "$(group expires '["longest_late"]["inferred"]')" True '  one is late since its deadline passed'
	is "$(group expires '["longest_late"]["ns"] > 38e7')" True '    and not since the loop saw that'
	is_late '</script>consumer-7.* was ready for [0-9.]* m?s before it ran, as inferred.*' tasks-trio.py:43 \
		'  an item lay in a channel: the verdict names the task, the thread of the loop, and what kept it'
	agrees out report.json report.html "$version, trio"
	like "$(cat out)" '^  main \(tasks-trio.py:52\) *trio ' '  the table says whose tasks they are'

	[ "$version" != 3.6 ] || continue # its asyncio does not show C code the current task
	record "$version" "$python" tasks-uvloop.py
	is "$(groups)" "$(cat uvloop)" \
		"$version: uvloop: how many tasks, their steps, where they wait, who woke and made them"
	add_up
	is "$(group consume '["waiting_ns"]')" 0 '  what waits may be late'
	is "$(group consume '["unknown_ns"] >= 4e8')" True '    which is unknown'
	is "$(group yields '["unknown_ns"]')" 0 '  one that lets others run is late from then on'
	is "$(json report.json '[t["late_ns"] - (t["first_run_ns"] - t["from_ns"]) for t in d["tasks"]["list"]
		if not t["function"].startswith("yields ")]')" '[0, 0, 0, 0]' '  the others are late only before they first run'
	like "$(cat out)" 'it is not known whether tasks waited or were late: uvloop' '  the table says so'

	record "$version" "$python" tasks-uvloop.py --created
	is_late 'created .* was ready for [0-9.]* m?s before it ran' tasks-uvloop.py:41 \
		'  the verdict names one that was created while its thread was busy'
done 3<pythons

# spins MS...: the stacks of the calls of spin, and whether the sums of their times reach so many ms.
spins() {
	"$GILTRACER" export --format folded session >stacks
	python3 -c "import sys
sums = {}
for line in open('stacks'):
    stack, ns = line.rsplit(' ', 1)
    names = ';'.join(frame.split()[0] for frame in stack.split(';')[1:])
    if names.endswith(';spin'):
        sums[names] = sums.get(names, 0) + int(ns) / 1e6
print([(names, sums[names] >= float(ms)) for names, ms in zip(sorted(sums), sys.argv[1:])])" "$@" 0 0 0
}
greenlets() {
	record "$version" "$python" tasks-greenlet.py
	is "$(spins 80 20)" "[('outer_a;burn_a;spin', True), ('outer_b;burn_b;spin', True)]" \
		"$version: greenlets: each one has callers and time of its own"
	is "$(group outer_a '["steps"]')$(group outer_b '["steps"]')" 54 '  how often each one ran'
	add_up
	is "$(json report.json '[c for c in d["caveats"] if "outlast" in c["text"]]')" '[]' '  no call outlasts its caller'
	case $version in 3.[6-9]) return ;; esac
	record "$version" "$python" tasks-gevent.py
	is "$(group handler '["longest_step"]["ns"] >= 2e8')" True "$version: gevent: the longest step is known"
	like "$(json report.json '" ".join(f["text"] for f in d["findings"] if f["kind"] == "task")')" \
		'A step of task handler .tasks-gevent.py:8. ran for [0-9.]* m?s without a break.* in handler' \
		'  the finding names the greenlet that kept its hub from running'
	is "$(json report.json '[g["tasks"] for g in d["tasks"]["groups"] if g["name"].startswith("ping ")]')" '[1]' \
		'  each greenlet is a task'
}
while read -r version python <&3; do
	greenlets
done 3<pythons

# One step of a task keeps the loop of uvloop from running.
cat >blocks.py <<'END'
import asyncio
import time

import uvloop


def handle(i):
    end = time.perf_counter() + (0.2 if i == 3 else 0)
    while time.perf_counter() < end:
        pass


async def request(i):
    await asyncio.sleep(0.01 * i)
    handle(i)


async def main():
    await asyncio.gather(*[request(i) for i in range(6)])


if __name__ == '__main__':
    uvloop.install()
    asyncio.new_event_loop().run_until_complete(main())
END
blocks() {
	loops=$tap_pythons/event-loops/$version
	PYTHONPATH=$loops "$GILTRACER" -q --probes "$engine" --python "$python" --json report.json -o report.html \
		blocks.py >out 2>err
	is "$(group request '["longest_step"]["ns"] >= 19e7')" True "$version, $engine: uvloop: the longest step is known"
	like "$(json report.json '" ".join(f["text"] for f in d["findings"] if f["kind"] == "task")')" \
		'A step of task request .blocks.py:13. ran for [0-9.]* m?s without a break.* in handle .blocks.py:7.' \
		'  the finding names the task and the function'
}
grep -v '^3\.[6-9] ' pythons | sed -n 1p >one
while read -r version python <&3; do
	blocks
	if want uprobes 'tasks while uprobes record the GIL'; then
		engine=uprobes
		blocks
		greenlets
		engine=preload
	fi
done 3<one

# Only what is recorded differs.
options=--trace-c-calls
grep -v '^3\.[6-9] ' pythons | sed -n '1p;$p' >two
while read -r version python <&3; do
	record "$version" "$python" tasks-trio.py
	is "$(groups)" "$(cat trio)" "$version: the same of trio, with calls of functions in C"
	record "$version" "$python" tasks-uvloop.py
	is "$(groups)" "$(cat uvloop)" "$version: the same on uvloop"
done 3<two

leaves_nothing
done_testing
