#!/bin/sh
# SPDX-License-Identifier: MIT
# Where uprobes would cost a program too much, the library takes over in the same run: no turn of the GIL is
# lost or doubled, and one line tells it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes

program=$top_srcdir/tests/system/turns.py

# turns PYTHON OPTION… -- ARG…: of a recording in session, whose facts are in got.json: for each thread that
# counted its holds, how many more there are in the recording.
turns() {
	python=$1
	shift
	options=
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	rm -rf session counts
	: >said
	# shellcheck disable=SC2086 # words
	"$GILTRACER" record --python "$python" $options -o session "$program" "$@" 2>said || cat said >&2
	"$GILTRACER" report -q --json got.json -o got.html session || return
	json got.json "[sorted(next(t['holds'] for t in d['threads'] if t['pid'] == p and t['tid'] == i) - n
		for p, i, n in (map(int, line.split()) for line in open('counts'))),
		[c['code'] for c in d['caveats'] if c['code'] in ('acquires-without-request',
		'requests-without-acquire', 'releases-without-hold', 'inferred-releases', 'lost-records')]]"
}

handovers() {
	grep -c 'the library recorded the GIL instead of uprobes' said
}

engine() {
	json session/session.json "[bool(d['passes'][0][key]) for key in ('perf_data', 'preload', 'handover_ns')]"
}

every_cpython pythons
for version in 3.8 3.11; do
	! python=$(cpython $version) || echo "$version $python" >>pythons
done
all_uv_pythons >>pythons
sort -u pythons >each
while read -r version python <&3; do
	is "$(turns "$python" -- 3 said counts)" '[[0, 0, 0], []]' "$version: each turn is one hold"
	is "$(handovers) $(engine)" '1 [True, True, True]' "$version: the library took over, as one line tells"
	consistent got.json "$version"
done 3<each

python=$(cpython 3.11)
is "$(turns "$python" -- 1 said counts)" '[[0], []]' 'one thread'
cost=$(json got.json 'sum(t["probe_cost_ns"] for t in d["threads"])')
sed -i 's/"uprobes_end_ns": *[0-9]*/"uprobes_end_ns": 0/' session/session.json
"$GILTRACER" report -q --json got.json -o got.html session
is "$(json got.json "0 < sum(t['probe_cost_ns'] for t in d['threads']) <= $cost")" True \
	'where it is not known when the uprobes were removed, turns after the hand-over did not cost that'
is "$(turns "$python" --state-detect --one-run -- 3 said counts)" '[[0, 0, 0], []]' 'with states'
is "$(json got.json 'all(t["states"]["unknown_ns"] * 100 <= t["total_ns"] for t in d["threads"])')" True \
	'the states of threads are known throughout'
is "$(turns "$python" --python-trace none -- 3 said counts)" '[[0, 0, 0], []]' 'without Python calls'
is "$(handovers)" 1 'the library took over without them'
for kind in fork spawn; do
	is "$(turns "$python" -- 2 said counts $kind)" '[[0, 0, 0, 0], []]' "$kind: a child process"
	is "$(handovers)" 1 "$kind: one line"
done

is "$(turns "$python" --probes uprobes -- 2 pythons counts)" '[[0, 0], []]' 'uprobes throughout'
is "$(handovers) $(engine)" '0 [True, False, False]' '--probes uprobes keeps uprobes whatever they cost'

cat >cleared.py <<'END'
import os
import subprocess
import sys

if __name__ == '__main__':
    with subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE, env={}) as child:
        for _ in range(50000):
            os.stat('.')
        child.communicate(b'\n')
END
program=cleared.py
turns "$python" -- >out
is "$(handovers) $(engine)" '0 [True, False, False]' 'a child without the library keeps uprobes, which record it'

cat >slow.py <<'END'
import os

def spin():
    for _ in range(20):
        sum(range(1000000))
        os.getloadavg()
        os.stat('.')

if __name__ == '__main__':
    spin()
END
program=slow.py
turns "$python" -- >out
is "$(handovers) $(engine)" '0 [True, False, False]' 'a program with few turns keeps uprobes'
exits 1 'nothing of the recording that stood by is left' test -e session/gil.switches.perf.data

leaves_nothing
done_testing
