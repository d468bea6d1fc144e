#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests that run at the same time cannot tell their probes apart. When they have all ended, no probe is
# left.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root uprobes

if [ "${GILTRACER_TEST_ALONE:-}" != 1 ]; then
	echo '1..0 # SKIP others may use giltracer: GILTRACER_TEST_ALONE=1'
	exit 0
fi
run "$GILTRACER" check
like "$(cat out)" '^(ok|note|missing) +perf ' 'check looks'
is "$(grep -E "^note +(stray|others') probes" out)" '' 'and finds no probe that was left'

leaves_nothing
done_testing
