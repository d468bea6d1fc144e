#!/bin/sh
# SPDX-License-Identifier: MIT
# The numbers of the page are those of the JSON in it, and the first screen has the main result.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/facts.mjs"
