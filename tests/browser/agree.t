#!/bin/sh
# SPDX-License-Identifier: MIT
# What the page says of one thing in several places agrees, and what it leaves out is counted.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
. "$top_srcdir/tests/browser/reports.sh"
reports=
if has perf && has root; then
	reports=$(real_reports)
fi
# shellcheck disable=SC2086 # paths without spaces
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/agree.mjs" $reports
