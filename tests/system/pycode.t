#!/bin/sh
# SPDX-License-Identifier: MIT
# The lines of instructions that giltracer reads from the tables are those that each interpreter reports.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

lines=$top_builddir/tests/system/pycode-lines

compare() {
	"$1" -B "$top_srcdir/tests/system/pycode.py" "$top_srcdir/share/python" "$scratch" &&
		"$lines" list <ask >got &&
		[ "$(grep -ac ' [1-9]' want)" -gt 500 ] &&
		cmp want got
}

# The test is quick, so it uses all interpreters.
export GILTRACER_TEST_ALL=1
every_cpython interpreters
while read -r version python; do
	ok "$version, $python: the line of every instruction" compare "$python"
	ok "$version, $python: a name that is not ASCII" grep -aq '^na..ve ' got
done <interpreters
done_testing
