#!/bin/sh
# SPDX-License-Identifier: MIT
# Tasks of event loops on the page: in a recording in which an item stays in a queue, and in synthetic ones.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
if ! by_library -q --python-trace native -o page.html --json page.json \
	"$top_srcdir/share/examples/late_queue.py" 0.7 >out 2>err; then
	cat err
	echo 'not ok 1 - a recording'
	echo 1..1
	exit 1
fi
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/tasks.mjs" "$PWD/page.html" "$PWD/page.json"
