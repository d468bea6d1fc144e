#!/bin/sh
# SPDX-License-Identifier: MIT
# Keyboard, mouse, search, links, exports.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/use.mjs"
