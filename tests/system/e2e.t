#!/bin/sh
# SPDX-License-Identifier: MIT
# The whole road on every CPython that is here: programs whose truth is known by construction.
#
# A busy machine disturbs such programs: another tracer that places probes in the same interpreter
# stops a thread that holds the GIL for 100 ms and more. So a measurement that is off is made again,
# twice; what has to hold of any recording has to hold of each.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes
examples=$top_srcdir/share/examples

# measure POINT COUNT WRONG PYTHON SCRIPT SECONDS: COUNT workers are seen, and those of which WRONG
# is true, an expression over hold, wait and no_gil in percent, are none.
measure() {
	point=$1
	count=$2
	wrong=$3
	shift 3
	for attempt in 1 2 3; do
		ok "$point: is traced" "$GILTRACER" -q --python "$1" --python-trace none \
			--json got.json -o got.html "$examples/$2" "$3" || return
		consistent got.json "$point"
		is "$(json got.json 'len(workers())')" "$count" "$point: all threads are seen"
		got=$(json got.json "[(hold, wait, no_gil) for hold, wait, no_gil in
			([round(share(t, what), 1) for what in ('hold', 'wait', 'no_gil')]
			for t in workers()) if $wrong]")
		[ "$got" != '[]' ] || break
		diag "attempt $attempt: $got"
	done
	is "$got" '[]' "$point: not so: $wrong"
	is "$(json got.json 'sum(p["releases_inferred"] for p in d["passes"])')" 0 \
		"$point: a probe saw every release"
}

cpythons >pythons
ok 'there is a CPython' test -s pythons
while read -r version python; do
	v="$version ($python)"

	measure "$v spinners" 2 'abs(hold - 50) > 5 or abs(wait - 50) > 5' "$python" spinners.py 1.5
	is "$(json got.json 'd["python"]["version"].rsplit(".", 1)[0]')" "$version" \
		"$v: the version is right"
	like "$(head -c 200 got.html)" '^<!DOCTYPE html>' "$v: the report is a page"

	if "$python" -c 'import _hashlib' 2>/dev/null; then
		measure "$v native" 2 'hold > 5 or no_gil < 90' "$python" native.py 0.5
	else
		skip 'its hashlib is not the one of OpenSSL, and keeps the GIL' "$v native"
	fi

	measure "$v waiters" 3 'no_gil < 90' "$python" waiters.py 0.5
done <pythons

leaves_nothing
done_testing
