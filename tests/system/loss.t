#!/bin/sh
# SPDX-License-Identifier: MIT
# No record is lost of four threads that do nothing but release and take the GIL, and no hold is missing:
# each thread takes it once per turn. If other programs keep perf off the CPUs, records may be lost; then
# the program is recorded up to two more times.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes
turns=20000

for _ in 1 2 3; do
	ok 'churn is traced' "$GILTRACER" -q --python-trace none --json churn.json \
		"$top_srcdir/share/examples/churn.py" 4 $turns
	consistent churn.json churn
	lost=$(json churn.json '[p["lost"] for p in d["passes"]]')
	[ "$lost" != '[0]' ] || break
	retried 'no record is lost' "$lost"
done
is "$lost" '[0]' 'no record is lost'
is "$(json churn.json 'len(workers())')" 4 'four threads are seen'
is "$(json churn.json "[t['holds'] for t in workers()
	if not $turns <= t['holds'] < $turns * 1.02]")" \
	'[]' 'every turn of each is there'
is "$(json churn.json 'sum(t["unknown_ns"] for t in workers())')" 0 'no time is unknown'

leaves_nothing
done_testing
