#!/bin/sh
# SPDX-License-Identifier: MIT
# The Python frames that probes fetch: in every kind of code, the function and its caller are named,
# with their lines; no name is one that no function has, and giltracer's own are not shown.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes
program=$top_srcdir/tests/system/frames.py

# Three frames: from 3.12 on, one of the interpreter's own is between where C calls Python.
frames() {
	rm -rf session
	"$GILTRACER" record -q --python "$1" --python-trace none --frames 3 -o session "$program" \
		>truth &&
		"$GILTRACER" dump -s session/gil.perf.data >dumped &&
		python3 "$program" compare truth dumped
}

every_cpython interpreters
ok 'there is a CPython' test -s interpreters
while read -r version python; do
	ok "$version ($python): functions and callers" frames "$python"
done <interpreters

leaves_nothing
done_testing
