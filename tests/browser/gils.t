#!/bin/sh
# SPDX-License-Identifier: MIT
# Several GILs, each with its holders and waiters.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/gils.mjs"
