#!/bin/sh
# SPDX-License-Identifier: MIT
# Lines of instructions: what we read from the tables is what each interpreter says itself.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

lines=$top_builddir/tests/system/pycode-lines

compare() {
	"$1" -B "$top_srcdir/tests/system/pycode.py" "$top_srcdir/share/python" "$scratch" &&
		"$lines" list <ask >got &&
		[ "$(grep -ac ' [1-9]' want)" -gt 500 ] &&
		cmp want got
}

# Reading headers takes no time: all of them.
export GILTRACER_TEST_ALL=1
every_cpython interpreters
while read -r version python; do
	ok "$version, $python: the line of every instruction" compare "$python"
	ok "$version, $python: a name that is not ASCII" grep -aq '^na..ve ' got
done <interpreters
done_testing
