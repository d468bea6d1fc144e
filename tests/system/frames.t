#!/bin/sh
# SPDX-License-Identifier: MIT
# From the Python frames that probes fetch, the function and its caller are named, with their lines, in
# every kind of code. No name is wrong, and giltracer's own functions are not shown.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes
program=$top_srcdir/tests/system/frames.py

# Three frames, since from 3.12 on, a frame of the interpreter is in between if C calls Python.
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
