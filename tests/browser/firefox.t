#!/bin/sh
# SPDX-License-Identifier: MIT
# The page also works in Firefox: everything is read, drawn and usable, and the console is empty.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/browser/reports.sh"
need firefox node playwright axe
reports=$(real_reports)
# shellcheck disable=SC2086 # words
NODE_PATH=$(playwright_path) FIREFOX=$(command -v firefox-esr || command -v firefox) \
	node "$top_srcdir/tests/browser/firefox.mjs" $reports
