#!/bin/sh
# SPDX-License-Identifier: MIT
# The first screen shows findings, and where programs sleep that do not wait for the GIL.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/first.mjs"
