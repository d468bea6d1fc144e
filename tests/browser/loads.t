#!/bin/sh
# SPDX-License-Identifier: MIT
# The page opens offline, without errors, and makes no requests.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/loads.mjs"
