#!/bin/sh
# SPDX-License-Identifier: MIT
# From recording to report with every CPython on this machine, for programs whose shares are known by
# construction.
#
# A busy machine disturbs such programs: another tracer that places probes in the same interpreter
# stops a thread that holds the GIL for 100 ms and more. So the test runs alone, and a wrong result
# is measured up to two more times; the invariants must hold for each recording.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes
program=$top_srcdir/tests/system/e2e.py

# measure POINT PYTHON: record, at most three times, until each example has the right shares.
measure() {
	left='spinners native waiters'
	for _ in 1 2 3; do
		ok "$1: is traced" undisturbed "$GILTRACER" -q --python "$2" --python-trace none --json got.json \
			-o got.html "$program" run "$top_srcdir/share/examples" || return
		consistent got.json "$1"
		is "$(json got.json 'sorted(t["name"] for t in workers())')" "['event', 'hashlib', "`
			`"'reader', 'sleeper', 'spinner-1', 'spinner-2', 'zlib']" "$1: all threads are seen"
		# shellcheck disable=SC2086 # words
		left=$(python3 "$program" wrong got.json $left) || left='cannot tell'
		[ -n "$left" ] || break
		retried "$1" "$left"
	done
	is "$left" '' "$1: spinners share it, the others run without it"
	is "$(json got.json 'sum(p["releases_inferred"] for p in d["passes"])')" 0 \
		"$1: a probe saw every release"
	is "$(json got.json 'd["python"]["version"].rsplit(".", 1)[0]')" "$version" \
		"$1: the version is right"
	like "$(head -c 200 got.html)" '^<!DOCTYPE html>' "$1: the report is a page"
}

cpythons >pythons
ok 'there is a CPython' test -s pythons
while read -r version python; do
	HASHLIB=frees
	# One that is not OpenSSL's.
	"$python" -c 'import _hashlib' 2>/dev/null || HASHLIB=keeps
	export HASHLIB
	measure "$version ($python)" "$python"
done <pythons

leaves_nothing
done_testing
