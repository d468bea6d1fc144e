#!/bin/sh
# SPDX-License-Identifier: MIT
# The helpers of all other system tests: a failure is reported as a failure, and a skip with its reason.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

# script TEXT: run it as a separate test; sets $status, and $text to its output.
script() {
	printf '%s\n' '. "$top_srcdir/tests/system/lib.sh"' "$@" >inner.t
	text=$(env GILTRACER_TEST_DURATIONS= top_srcdir="$top_srcdir" top_builddir="$top_builddir" sh ./inner.t 2>&1)
	status=$?
}

script 'ok "works" true' 'is a a "same"' 'like abc "^a.c$" "matches"' 'done_testing'
is $status 0 'a test that passes exits with 0'
is "$text" "$(printf 'ok 1 - works\nok 2 - same\nok 3 - matches\n1..3')" 'and prints its plan last'

for point in 'ok "x" false' 'is a b "x"' 'like abc "^b" "x"' 'unlike abc b "x"' \
	'exits 3 "x" true' 'fail "x"'; do
	script "$point" 'done_testing'
	is $status 1 "a failed point fails the test: $point"
	like "$text" '^not ok 1 - x$' "and says so: $point"
done

script 'exits 3 "x" sh -c "exit 3"' 'unlike abc "^b" "x"' 'done_testing'
is $status 0 'exits takes exactly the status'

script 'need no-such-program' 'pass "reached"' 'done_testing'
is "$status $text" '0 1..0 # SKIP needs no-such-program: apt-get install no-such-program' \
	'need skips the whole test and says what to do'
script 'want no-such-program "a part" || pass "the rest"' 'done_testing'
is "$status $text" '0 ok 1 - a part # SKIP needs no-such-program: apt-get install no-such-program
ok 2 - the rest
1..2' 'want skips one point'
GILTRACER_TEST_REQUIRE='perf no-such-program'
export GILTRACER_TEST_REQUIRE
script 'need no-such-program' 'pass "reached"' 'done_testing'
is $status 1 'and fails it where that was promised'
like "$text" '^not ok 1 - needs no-such-program' 'naming what is missing'
script 'want no-such-program "a part"' 'done_testing'
is $status 1 'and so does want'

script 'echo "$scratch"' 'pwd' 'at_exit "echo left >&2"' 'exit 3'
is $status 3 'the exit status survives the clean-up'
like "$text" '^left$' 'at_exit commands run'
is "$(printf '%s\n' "$text" | sed -n 2p)" "$(printf '%s\n' "$text" | sed -n 1p)" \
	'a test runs in its scratch folder'
ok 'the scratch folder is gone' test ! -e "$(printf '%s\n' "$text" | sed -n 1p)"

script 'touch "$TMPDIR/x"' 'leaves_nothing' 'done_testing'
like "$text" '^not ok 1 - no temporary file is left' 'a temporary file left is found'
mkfifo ready
script 'tap_patience=0; sh -c "echo >../../ready; exec cat ../../ready" & read x <../../ready' \
	'leaves_nothing' 'kill $!; wait; done_testing'
like "$text" '^not ok 2 - no process is left' 'a process left is found'
script 'sh -c "echo >../../ready; exec cat ../../ready" & read x <../../ready' \
	'echo >../../ready; leaves_nothing' 'done_testing'
is $status 0 'one that ends meanwhile is none'
script 'leaves_nothing' 'done_testing'
is $status 0 'where nothing is left, nothing is found'

# By hand in a build folder, a unit test finds its files as well.
ok 'a unit test by hand' sh -c 'cd "$0" && env -u top_srcdir tests/unit/test-phrases' "$top_builddir"

leaves_nothing
done_testing
