#!/bin/sh
# SPDX-License-Identifier: MIT
# The page shows data that only some recordings have: states, wakers, stacks, counters, lost records,
# two GILs, hogs.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/data.mjs"
