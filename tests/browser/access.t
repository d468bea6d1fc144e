#!/bin/sh
# SPDX-License-Identifier: MIT
# The page works with a keyboard, a screen reader, large type, or high contrast.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/browser/reports.sh"
need chromium node playwright axe
reports=$(real_reports)
# shellcheck disable=SC2086 # words
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/access.mjs" $reports
