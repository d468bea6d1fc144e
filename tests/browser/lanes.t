#!/bin/sh
# SPDX-License-Identifier: MIT
# The pixels of each lane agree with its times, at many zoom levels.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/lanes.mjs"
