#!/bin/sh
# SPDX-License-Identifier: MIT
# The page, the JSON document and the terminal's table of one recording agree.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes chromium node playwright
# The first interpreter whose probes are not in use at the moment.
recorded=
for python in $(cpythons | awk '$1 ~ /^3\.1[0-3]$/ { print $2 }'); do
	"$GILTRACER" --state-detect --python "$python" -o page.html --json page.json \
		"$top_srcdir/share/examples/hog.py" 0.5 2>table && recorded=$python && break
	sed 's/^/# /' table
done
if [ -z "$recorded" ]; then
	echo 'not ok 1 - the example is recorded'
	echo 1..1
	exit 1
fi
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/real.mjs" \
	"$PWD/page.html" "$PWD/page.json" "$PWD/table"
