#!/bin/sh
# SPDX-License-Identifier: MIT
# Reading code: folded library frames, callers and callees, links of the flame graph.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/code.mjs"
