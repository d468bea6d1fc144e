#!/bin/sh
# SPDX-License-Identifier: MIT
# What is drawn is what happened: pixels of each lane against the times, at many zooms.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/lanes.mjs"
