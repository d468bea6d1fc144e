#!/bin/sh
# SPDX-License-Identifier: MIT
# Back, links, ranges, fingers, stops of the Tab key.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/moves.mjs"
