#!/bin/sh
# SPDX-License-Identifier: MIT
# The trees of the flame graph have all the time of a million calls. Needs no browser.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need node
mkdir modules
cp "$top_srcdir"/share/report/*.js modules/
echo '{"type": "module"}' >modules/package.json
cp "$top_srcdir/tests/browser/trees.mjs" modules/
node modules/trees.mjs
