#!/bin/sh
# SPDX-License-Identifier: MIT
# One span explained: its causes, the hand-over, the card.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/explain.mjs"
