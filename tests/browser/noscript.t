#!/bin/sh
# SPDX-License-Identifier: MIT
# Without JavaScript, the page has verdict and tables; printed, it is not empty.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/noscript.mjs"
