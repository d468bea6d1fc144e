#!/bin/sh
# SPDX-License-Identifier: MIT
# States of threads agree with the kernel's own accounting, and sleeps for the GIL are the same
# by uprobes and by stacks, with and without symbols.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes python3.11

program=$top_srcdir/tests/system/states.py
python=$(cpython 3.11)

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

# compare FOLDER: how far off running and runnable are. 1 % of the life, and 10 µs for each
# time slice: what perf does, stack dumps included, between the kernel's clock and its own record.
compare() {
	python3 - "$1.json" "$1.stat" <<'END'
import json
import sys

threads = {t["tid"]: t for t in json.load(open(sys.argv[1]))["threads"]}
bad = 0
for tid, want in json.load(open(sys.argv[2])).items():
    t = threads[int(tid)]
    states = t["states"]
    if sum(states.values()) != t["total_ns"]:
        print(tid, "states do not add up")
        bad = 1
    for state, ns in zip(("running_ns", "runnable_ns"), want):
        off = abs(states[state] - ns)
        share = 100 * off / t["total_ns"]
        print(tid, state, ns, "in", want[2], "slices: off by %.2f %% of its life" % share)
        bad |= off > 0.01 * t["total_ns"] + 1e4 * want[2]
sys.exit(bad)
END
}

for kind in sleep spin io starved mix; do
	ok "$kind: stacks are recorded" record stacks $kind --no-gil-detect
	ok "$kind: and reported" report stacks
	is "$(json stacks.json '[p["lost"] for p in d["passes"]]')" '[0]' "$kind: nothing is lost"
	ok "$kind: within 1 % of schedstat" compare stacks
	sed 's/^/# /' out
done
# About 20,000 switches a second. Once in three times: others may keep the CPUs from perf.
for _ in 1 2 3; do
	ok 'ping-pong: stacks are recorded' record stacks ping --no-gil-detect
	ok 'ping-pong: and reported' report stacks
	[ "$(json stacks.json 'sum(p["lost"] for p in d["passes"])')" != 0 ] || break
done
diag "$(json stacks.json '"%d events in %.2f s" % (d["passes"][0]["events"],
	max(t["total_ns"] for t in d["threads"]) / 1e9)')"
is "$(json stacks.json '[p["lost"] for p in d["passes"]]')" '[0]' 'ping-pong: nothing is lost'
is "$("$GILTRACER" dump -s stacks/stacks.perf.data | grep -c ' truncated$')" 0 \
	'ping-pong: no stack is cut'

ok 'mix: the GIL and stacks are recorded in one run' record both mix --one-run
ok 'mix: and reported' report both
ok 'mix: the GIL pass is within 1 % of schedstat' compare both

# Of one execution of two spinners: as the GIL pass has it, and as the stacks pass has it.
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

# agree NAME: the recording in the folder spin
agree() {
	ok "$1: the GIL pass" alone spin gil gil
	ok "$1: the stacks pass" alone spin stacks stacks
	diag "sleeping for the GIL, percent: uprobes $(gil_sleep gil), stacks $(gil_sleep stacks)"
	ok "$1: sleeps for the GIL agree within 5 points" python3 -c 'import sys
a, b = (eval(arg) for arg in sys.argv[1:])
sys.exit(len(a) < 2 or len(a) != len(b) or any(abs(x - y) > 5 for x, y in zip(a, b)))' \
		"$(gil_sleep gil)" "$(gil_sleep stacks)"
	ok "$1: and there are some" [ "$(gil_sleep stacks)" != '[0, 0]' ]
}

ok 'two spinners are recorded' record spin spin --one-run
agree 'spin'

# Debian's python3 has no .symtab; its debug files are hidden for this one process.
python=/usr/bin/python3
if [ -x "$python" ] && ! readelf -S "$(readlink -f "$python")" | grep -q '\.symtab'; then
	mkdir -p /usr/lib/debug
	# A copy has probes of its own: nobody else's recording has them in use.
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
	ok 'two spinners without symbols are recorded' record_hidden
	agree 'without symbols'
else
	skip 'needs an interpreter without .symtab, as Debian has it' 'without symbols'
fi

done_testing
