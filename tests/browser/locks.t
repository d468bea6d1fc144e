#!/bin/sh
# SPDX-License-Identifier: MIT
# The page of an interpreter without a GIL shows what blocks its threads.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes free-threaded chromium node playwright
if ! "$GILTRACER" -q --python "$(free_threaded_python)" -o page.html --json page.json \
	"$top_srcdir/tests/system/nogil.py" locks >said 2>err; then
	cat err
	echo 'not ok 1 - a recording'
	echo 1..1
	exit 1
fi
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/locks.mjs" "$PWD/page.html" "$PWD/page.json"
