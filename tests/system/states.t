#!/bin/sh
# SPDX-License-Identifier: MIT
# States of threads agree with the kernel's own accounting, and sleeps for the GIL are the same
# by uprobes and by stacks, with and without symbols.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root perf uprobes python3.11

program=$top_srcdir/tests/system/states.py
python=$(private_python "$scratch/own" "$(cpython 3.11)")

# record FOLDER KIND OPTION…
record() {
	rm -rf "$1"
	folder=$1
	kind=$2
	shift 2
	"$GILTRACER" record -q --state-detect --python-trace none --python "$python" "$@" \
		-o "$folder" "$program" "$kind" "$folder.stat"
}

report() {
	"$GILTRACER" report -q "$1" -o /dev/null --json "$1.json" >/dev/null
}

# compare FOLDER: compare running and runnable with the kernel's numbers. They may differ by 1 % of the
# thread's life and 30 µs for each time slice, which is perf's own work; it matters only for slices of
# about 50 µs. giltracer counts a thread as runnable from sched_waking on. The kernel counts from the
# moment at which the waker has queued the thread. That is after the wake-up is recorded and, if the
# thread is still switching out, after its stack is dumped (measured: 1 to 24 µs a slice). giltracer
# counts a thread as running from sched_switch on, the kernel from a moment before it (0 to 7 µs; 10 if
# the kernel does not report the switch, see model/cpu.c).
# Where the kernel counts differently, see model/cpu.c, the difference is allowed for: time that a
# hypervisor stole while a thread ran, and the sleep during which a thread was moved to another CPU.
# So is the time that an idle CPU takes to wake up, which is long if a hypervisor has to schedule it: for
# the kernel, a thread that is woken there is runnable only when the CPU runs again. Time that may hide
# behind unreported wake-ups is also allowed for.
compare() {
	"$GILTRACER" dump -e "$1"/*.wakeups.perf.data >events &&
		"$GILTRACER" dump -e "$1/stacks.perf.data" >switched || return
	python3 - "$1.json" "$1.stat" events switched <<'END'
import collections
import heapq
import json
import sys

doc = json.load(open(sys.argv[1]))
threads = {t["tid"]: t for t in doc["threads"]}
stat = json.load(open(sys.argv[2]))
stolen = stat.pop("stolen")
assert stat

# For each thread: the time asleep since it was moved. If it wakes up on another CPU and no move was
# reported, it was moved at an unknown time during that sleep.
moved = collections.Counter()
perhaps = collections.Counter()
asleep = {}
where = {}
woken = {}
idle = collections.Counter()  # from the wake-up on until an idle CPU had the thread


def events(name, kinds):
    for line in open(name):
        words = line.split()
        if words[0] != "#" and words[3] in kinds:
            yield int(words[0].replace(".", "")), words


for ns, words in heapq.merge(events(sys.argv[3], ("sched-out", "move", "waking")),
                             events(sys.argv[4], ("switch-in",))):
    what = dict(w.split("=") for w in words[2:] if "=" in w)
    if words[3] == "switch-in":
        tid = words[1].split("/")[1]
        idle[tid] += ns - woken.pop(tid, ns)
    elif words[3] == "sched-out":
        since = woken.pop(what["next"], ns)
        if words[1] == "0/0":
            idle[what["next"]] += ns - since
        if words[-1] != "preempt":
            asleep[words[1].split("/")[1]] = [ns, None]
        asleep.pop(what["next"], None)
        where[what["next"]] = what["cpu"]
    elif words[3] == "move":
        sleep = asleep.get(what["moved"])
        if sleep and not sleep[1]:
            sleep[1] = ns
        where[what["moved"]] = what["to"]
    elif words[3] == "waking":
        tid = what["woken"]
        woken.setdefault(tid, ns)
        since, move = asleep.pop(tid, (None, None))
        if move:
            moved[tid] += ns - move
        elif since and where.get(tid) != what["on"]:
            perhaps[tid] += ns - since
        where[tid] = what["on"]

bad = 0
for tid, want in stat.items():
    t = threads[int(tid)]
    states = t["states"]
    if sum(states.values()) != t["total_ns"]:
        print(tid, "states do not add up")
        bad = 1
    near = 0.01 * t["total_ns"] + 3e4 * want[2]
    run, line = (states[s + "_ns"] - ns for s, ns in zip(("running", "runnable"), want))
    line += moved[tid]
    unseen = t["unseen_runnable_ns"] + perhaps[tid]
    print(tid, "in", want[2], "slices, off by: running %+.2f %%, runnable %+.2f %%" % (
        100 * run / t["total_ns"], 100 * line / t["total_ns"]),
        "(moved asleep %d ns, stolen %d ns, unseen %d ns, idle %d ns)" % (
            moved[tid], stolen, unseen, idle[tid]))
    if not -near <= run <= near + stolen or not -near - unseen <= line <= near + stolen + idle[tid]:
        print(tid, "lives %d ns, may be off by %d ns" % (t["total_ns"], near))
        bad = 1
sys.exit(bad)
END
}

# switches FOLDER: each switch that compare has just dumped is voluntary if the kernel counts it as
# such. The last one or two come after the program has read the kernel's counts.
switches() {
	python3 - switched "$1.stat" <<'END'
import collections
import json
import sys

got = collections.Counter()
for line in open(sys.argv[1]):
    words = line.split()
    if words[0] != "#" and words[3] == "switch-out":
        got[words[1].split("/")[1], words[-1] == "preempt"] += 1
stat = json.load(open(sys.argv[2]))
del stat["stolen"]
bad = not stat
for tid, want in stat.items():
    for preempted, n in zip((False, True), want[3:5]):
        have = got[tid, preempted]
        print(tid, "preempted" if preempted else "voluntary", "the kernel:", n, "giltracer:", have)
        bad |= not n <= have <= n + 3
sys.exit(bad)
END
}

# in_line FOLDER: all of the time spent runnable is charged to a thread or program.
in_line() {
	json "$1.json" '[t["tid"] for t in d["threads"] if t["states"]["runnable_ns"] !=
		sum(s["runnable_ns"] for s in d["starvation"] if s["tid"] == t["tid"])]'
}

# of_all STATE: the share of the workers' lives in percent; in_own_time STATE: the share of their lives
# without the runnable time, which depends on other programs.
of_all() {
	json stacks.json "round(100 * sum(t['states']['$1_ns'] for t in workers()) /
		sum(t['total_ns'] for t in workers()))"
}
in_own_time() {
	json stacks.json "round(100 * sum(t['states']['$1_ns'] for t in workers()) /
		sum(t['total_ns'] - t['states']['runnable_ns'] for t in workers()))"
}

# measured POINT FOLDER KIND OPTION…: make at most three recordings, until one agrees with schedstat and
# has lost nothing. A hypervisor that stops an idle CPU delays wake-ups there, which neither giltracer nor
# the kernel counts correctly; and other programs may keep perf off the CPUs.
measured() {
	point=$1
	shift
	for _ in 1 2 3; do
		ok "$point: recorded" record "$@"
		ok "$point: and reported" report "$1"
		run compare "$1"
		agrees=$status
		sed 's/^/# /' out err
		lost=$(json "$1.json" 'sum(p["lost"] for p in d["passes"])')
		unseen=$(json "$1.json" '[c["code"] for c in d["caveats"] if c["code"] == "unseen-wakeups"]')
		[ "$agrees $lost ${no_unseen:-$unseen}" != "0 0 $unseen" ] || break
		retried "$point: within 1 % of schedstat" "lost: $lost, unseen: $unseen"
	done
	is "$lost" 0 "$point: nothing is lost"
	is "$agrees" 0 "$point: within 1 % of schedstat"
}

# Unless the kernel does not report some switches, see model/cpu.c.
no_unseen='[]'
for kind in sleep spin io disk talk starved mix; do
	measured "$kind" stacks $kind --no-gil-detect
	ok "$kind: as many switches as in status" switches stacks
	is "$(in_line stacks)" '[]' "$kind: time in line is charged to who had the CPU"
	case $kind in
	sleep) ok "$kind: they sleep" [ "$(in_own_time sleeping)" -ge 50 ] ;;
	io) ok "$kind: they are in the disk" [ "$(in_own_time uninterruptible)" -ge 5 ] ;;
	disk) diag "in the disk: $(of_all uninterruptible) %" ;;
	starved)
		ok "$kind: they are in line longer than they run" \
			[ "$(of_all runnable)" -gt "$(of_all running)" ]
		is "$(json stacks.json 'sum(s["by_tid"] is not None for s in d["starvation"]) > 5')" True \
			"$kind: for each other"
		;;
	esac
	is "$unseen" "$no_unseen" "$kind: wake-ups were recorded"
done
no_unseen=
# About 20,000 switches a second.
measured ping-pong stacks ping --no-gil-detect
diag "$(json stacks.json '"%d events in %.2f s" % (d["passes"][0]["events"],
	max(t["total_ns"] for t in d["threads"]) / 1e9)')"
is "$("$GILTRACER" dump -s stacks/stacks.perf.data | grep -c ' truncated$')" 0 \
	'ping-pong: no stack is cut'

# The same at full speed, together with a program that uses a CPU all the time.
sh -c 'while :; do :; done' &
busy=$!
at_exit kill $busy '2>/dev/null'
measured 'at full speed' stacks race --no-gil-detect
kill $busy
diag "$(json stacks.json '"%d events in %.2f s" % (d["passes"][0]["events"],
	max(t["total_ns"] for t in d["threads"]) / 1e9)')"

# If tracepoints are not permitted, only context switches show which threads run; the time in which a
# woken thread is runnable is not recorded.
alone=$scratch/alone
mkdir -m 777 "$alone"
for_all_users
cp "$program" "$alone"
user_python=/usr/bin/python3
as_nobody() {
	(cd "$alone" && TMPDIR=$alone && export TMPDIR && nobody "$@")
}
default_settings
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -eq 2 ] && as_nobody "$user_python" -c ''; then
	for kind in starved sleep; do
		for _ in 1 2 3; do
			ok "switches alone, $kind: an ordinary user records" as_nobody "$GILTRACER" record -q \
				--state-detect --no-gil-detect --python-trace none --python "$user_python" -o $kind \
				states.py $kind stat
			ok "switches alone, $kind: and reports" as_nobody "$GILTRACER" report $kind -o $kind.html \
				--json $kind.json
			like "$(cat err out)" 'note: tracepoints are not permitted' "switches alone, $kind: what is missing is said"
			run python3 -c 'import json, sys
doc, stat = (json.load(open(f)) for f in sys.argv[1:])
stolen = stat.pop("stolen")
assert stat
for t in doc["threads"]:
    want = stat.pop(str(t["tid"]), None)
    if want:
        near = 0.01 * t["total_ns"] + 3e4 * want[2]
        assert sum(t["states"].values()) == t["total_ns"]
        assert -near <= t["states"]["running_ns"] - want[0] <= near + stolen, (t, want)
        assert t["states"]["runnable_ns"] - want[1] <= near + stolen, (t, want)
assert not stat, stat' "$alone/$kind.json" "$alone/stat"
			[ $status -ne 0 ] || break
			retried "switches alone, $kind" "$(cat err)"
		done
		is "$status" 0 "switches alone, $kind: running is within 1 % of schedstat"
	done
	like "$(cat "$alone/sleep.html")" 'data-kind="gil-unknown"' 'and the page does not guess about the GIL'
else
	skip 'needs kernel.perf_event_paranoid=2 and a /usr/bin/python3' 'switches alone'
fi
as_found

measured 'mix, the GIL and stacks in one run' both mix --one-run

# One execution of two spinners: the waits of the GIL pass and the GIL sleeps of the stacks pass agree.
alone() {
	rm -rf "$2"
	cp -r "$1" "$2"
	python3 - "$2/session.json" "$3" <<'END'
import json
import sys

session = json.load(open(sys.argv[1]))
session["passes"] = [p for p in session["passes"] if p["name"] == sys.argv[2]]
json.dump(session, open(sys.argv[1], "w"))
END
	report "$2"
}

gil_sleep() {
	json "$1.json" '[round(100 * t["states"]["gil_sleep_ns"] / t["total_ns"])
		for t in sorted(workers(), key=lambda t: t["tid"])]'
}

near() {
	python3 -c 'import sys
a, b = (eval(arg) for arg in sys.argv[1:])
sys.exit(len(a) < 2 or len(a) != len(b) or any(abs(x - y) > 5 for x, y in zip(a, b)))' "$@"
}

# agree NAME COMMAND…: the command makes a recording in the folder spin, again if records are lost.
agree() {
	point=$1
	shift
	for _ in 1 2 3; do
		ok "$point: two spinners are recorded" "$@"
		ok "$point: the GIL pass" alone spin gil gil
		ok "$point: the stacks pass" alone spin stacks stacks
		diag "sleeping for the GIL, percent: uprobes $(gil_sleep gil), stacks $(gil_sleep stacks)"
		[ "$(json gil.json 'd["passes"][0]["lost"]') $(json stacks.json \
			'd["passes"][0]["lost"]')" != '0 0' ] || break
		retried "$point: sleeps for the GIL agree" 'records were lost'
	done
	ok "$point: sleeps for the GIL agree within 5 points" near "$(gil_sleep gil)" \
		"$(gil_sleep stacks)"
	ok "$point: and there are some" [ "$(gil_sleep stacks)" != '[0, 0]' ]
}

agree 'spin' record spin spin --one-run

# 3.8 has two copies of take_gil: the eval loop and PyEval_RestoreThread call different ones.
if from=$(cpython 3.8); then
	python=$(private_python "$scratch/clones" "$from")
	agree 'clones' record spin spin --one-run
else
	skip "needs python3.8: $(how_to_get python3.8)" 'clones'
fi

# Debian's python3 has no .symtab; its debug files are hidden from this process only.
python=/usr/bin/python3
if [ -x "$python" ] && ! readelf -S "$(readlink -f "$python")" | grep -q '\.symtab'; then
	mkdir -p /usr/lib/debug
	# A copy has its own probes, which no other recording uses.
	cp "$(readlink -f "$python")" "$scratch/python3"
	python=$scratch/python3
	PYTHONHOME=/usr
	export PYTHONHOME
	hidden() {
		unshare -m sh -c 'mount -t tmpfs none /usr/lib/debug && exec "$@"' sh "$@"
	}
	record_hidden() {
		rm -rf spin
		hidden "$GILTRACER" record -q --state-detect --python-trace none --python "$python" --one-run \
			-o spin "$program" spin spin.stat
	}
	report() {
		hidden "$GILTRACER" report -q "$1" -o /dev/null --json "$1.json" >/dev/null
	}
	agree 'without symbols' record_hidden
else
	skip 'needs an interpreter without .symtab, as Debian has it' 'without symbols'
fi

done_testing
