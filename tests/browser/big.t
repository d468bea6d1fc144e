#!/bin/sh
# SPDX-License-Identifier: MIT
# A page of a million events from the real writer is small enough, completely read, and exact to the
# nanosecond.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
GILTRACER_DATADIR=$top_builddir/share
[ -e "$GILTRACER_DATADIR/report/page.html" ] || GILTRACER_DATADIR=$top_srcdir/share
export GILTRACER_DATADIR
"$top_builddir/tests/bench/synth" -j page.json 1000000 page.html || exit 99
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/big.mjs" "$PWD/page.html" "$PWD/page.json"
