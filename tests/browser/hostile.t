#!/bin/sh
# SPDX-License-Identifier: MIT
# Names of threads and functions are hostile text: nothing executes, nothing breaks.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/hostile.mjs"
