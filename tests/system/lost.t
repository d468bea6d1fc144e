#!/bin/sh
# SPDX-License-Identifier: MIT
# In recordings that lose records, the affected time is unknown, both in the document and in the table, and
# is in no other percentage; the report says how to avoid losses.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root perf uprobes python3.11
python=$(private_python "$scratch/own" "$(cpython 3.11)")
REAL_PERF=$(command -v perf)
export REAL_PERF
PATH=$top_srcdir/tests/fake/small:$PATH

# lossy NAME PAGES OPTION… -- PROGRAM…: record and report, at most three times, until records are lost.
lossy() {
	name=$1
	SMALL_PERF_PAGES=$2
	export SMALL_PERF_PAGES
	shift 2
	for _ in 1 2 3; do
		"$GILTRACER" --python "$python" --python-trace none -o "$name.html" \
			--json "$name.json" "$@" 2>"$name.table" || return
		[ "$(json "$name.json" 'sum(p["lost"] for p in d["passes"])')" = 0 ] || return 0
		retried "$name: records are lost" 'none'
	done
}

# knows_what_is_missing NAME WHOLE UNKNOWN: WHOLE is the columns of the table that add up to 100 %, counted
# from the last; UNKNOWN is a thread's unknown time.
knows_what_is_missing() {
	is "$(json "$1.json" 'sum(p["lost"] for p in d["passes"]) > 0')" True "$1: records are lost"
	is "$(json "$1.json" '[t["tid"] for t in d["threads"]
		if sum(t["states"].values()) != t["total_ns"]]')" '[]' "$1: states add up to each life"
	is "$(json "$1.json" "sum($3 for t in d['threads']) > 0")" True "$1: some time is unknown"
	is "$(json "$1.json" "[t['tid'] for t in d['threads'] if $3 > t['total_ns']]")" '[]' \
		"$1: but no more than there is"
	like "$(json "$1.json" '[c["text"] for c in d["caveats"] if c["code"] == "lost-records"]')" \
		'unknown meanwhile; .*larger buffers' "$1: the document says so, and what avoids it"
	like "$(cat "$1.table")" 'note: .*records were lost' "$1: so does the table"
	ok "$1: it is a share of its own, and all add up" awk -v whole="$2" '
		NR > 1 && NF {
			n = split(whole, column, " ")
			sum = 0
			for (i = 1; i <= n; i++)
				sum += $(NF - column[i])
			if (sum && (sum < 99.7 || sum > 100.3)) bad = 1
			rows++
		}
		END { exit bad || !rows }' "$1.rows"
	like "$(cat "$1.html")" '"kind":"lost"' "$1: the page has where"
}

# Four threads that only release the GIL.
ok 'a GIL pass that loses records' lossy gil 1 "$top_srcdir/share/examples/churn.py" 4 5000
# The columns of the cost of tracing are removed: they are parts of the others, and appear only if large.
awk '/ no gil% /, /^$/ { if (/ no gil% /) costs = /probes%/ + /calls%/
		for (i = costs; i; i--) sub(/ *[^ ]+$/, ""); print }' \
	gil.table >gil.rows
knows_what_is_missing gil '6 5 4 3 2' 't["unknown_ns"]'
consistent gil.json gil
is "$(json gil.json '[c["code"] for c in d["caveats"] if c["code"] in ("acquires-without-request",
	"releases-without-hold")]')" '[]' 'gil: no half of a turn is left over'

# Each sleep copies a page or more of stack, at full speed.
ok 'a stacks pass that loses records' lossy stacks 4 --no-gil-detect \
	"$top_srcdir/tests/system/states.py" ping stat
awk '/ running% /, /^$/' stacks.table >stacks.rows
knows_what_is_missing stacks '5 4 3 2 1 0' 't["states"]["unknown_ns"]'

leaves_nothing
done_testing
