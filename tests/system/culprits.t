#!/bin/sh
# SPDX-License-Identifier: MIT
# The function and the line that kept the GIL are named, not those that ran when it was released.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes
program=$top_srcdir/tests/system/culprits.py

line_of() {
	grep -n "# $1\$" "$program" | cut -d: -f1
}

# attempt POINT WANT EXPRESSION ARG...: record at most three times until the expression is WANT: the host
# may stop a CPU, and nobody is accused then.
attempt() {
	point=$1 want=$2 expression=$3
	shift 3
	for _ in 1 2 3; do
		rm -f got.json
		undisturbed "$GILTRACER" -q -o got.html --json got.json "$@" >out 2>&1
		got=$(json got.json "$expression" 2>&1)
		[ "$got" != "$want" ] || break
		retried "$point" "$got"
	done
	is "$got" "$want" "$point"
}

# culprit ENGINE PYTHON VERSION KIND FUNCTION: all of the overdue holds, and nothing else, are FUNCTION's.
culprit() {
	attempt "$3, $1: $4 is charged to $5" "[('$5', $(line_of "$4"), False)]" '[(h["function"], h["line"], h["inferred"])
		for h in d["hogs"] if not (h["file"] or "").endswith("threading.py")]' \
		--probes "$1" --python "$2" "$program" "$4"
}

# inferred PYTHON VERSION: without the library, nobody looks at the holder when it is asked, so nobody is
# accused for certain, least of all the function that had just begun.
inferred() {
	attempt "$2: what is only known from the end of the hold is marked as inferred" '(True, [])' \
		'(bool(d["hogs"]), [h for h in d["hogs"] if not h["inferred"] or h["function"] == "audit"])' \
		--probes uprobes --python-trace none --python "$1" "$program" operator
}

every_cpython interpreters
for v in 3.10 3.11 3.12; do
	if python=$(cpython $v); then
		echo "$v $python"
	fi
done >>interpreters
while read -r version python; do
	for engine in preload uprobes; do
		culprit $engine "$python" "$version" operator is_known
	done
	[ "${version#3.}" -lt 10 ] || inferred "$python" "$version"
	[ "$version" != 3.6 ] || continue
	# A function in a library is told with the caller in the program's own file.
	for engine in preload uprobes; do
		attempt "$version, $engine: raw_decode is called by parse" "[('raw_decode', 'parse', $(line_of library))]" \
			'[(h["function"].split(".")[-1], *map((h["user"] or {}).get, ("function", "line"))) for h in d["hogs"]
			if h["wait_caused_ns"] == max(h["wait_caused_ns"] for h in d["hogs"])]' \
			--probes $engine --python "$python" "$program" library
		like "$(cat got.html)" 'raw_decode [(]decoder.py:[0-9]*[)].*, called by parse [(]culprits.py:' \
			'and the report says so'
	done
done <interpreters

leaves_nothing
done_testing
