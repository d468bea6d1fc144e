#!/bin/sh
# SPDX-License-Identifier: MIT
# States, counters and losses of real recordings: the page agrees with the document.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root perf uprobes python3.11 chromium node playwright
python=$(private_python "$scratch/own" "$(cpython 3.11)")
program=$top_srcdir/tests/system/states.py
REAL_PERF=$(command -v perf)
export REAL_PERF

trace() {
	name=$1
	shift
	"$GILTRACER" record -q --state-detect --python "$python" --python-trace none -o "$name" \
		"$@" "$program" mix stat &&
		"$GILTRACER" report -q "$name" -o "$name.html" --json "$name.json" && return
	echo "not ok 1 - $name is recorded"
	echo 1..1
	exit 1
}

# Other programs may keep perf off the CPUs.
for _ in 1 2 3; do
	rm -rf whole
	trace whole -e page-faults
	[ "$(json whole.json 'sum(p["lost"] for p in d["passes"])')" != 0 ] || break
	retried 'a whole recording' 'records were lost'
done
"$GILTRACER" report -q whole -o /dev/null --export folded=whole.on-gil \
	--export folded-waits=whole.off-gil --export folded-off-cpu=whole.off-cpu
PATH=$top_srcdir/tests/fake/small:$PATH SMALL_PERF_PAGES=1 trace lossy --one-run
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/states.mjs" "$PWD/whole" "$PWD/lossy"
