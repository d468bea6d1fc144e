#!/bin/sh
# SPDX-License-Identifier: MIT
# The page opens in Firefox as well: everything is read, drawn and can be used, and the console is empty.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need firefox node playwright
NODE_PATH=$(playwright_path) FIREFOX=$(command -v firefox-esr || command -v firefox) \
	node "$top_srcdir/tests/browser/firefox.mjs"
