#!/bin/sh
# SPDX-License-Identifier: MIT
# picture.sh FILE: the report of share/examples/hog.py as Chromium shows it, a PNG: what README.md has.
# Needs root. `make picture` runs it.
set -eu
picture=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
cp "$top_srcdir/share/examples/hog.py" "$folder"
(cd "$folder" && "$GILTRACER" -q --python-trace none -o report.html hog.py)
"$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,1080 \
	--virtual-time-budget=20000 --screenshot="$picture" "file://$folder/report.html" >/dev/null 2>&1
test -s "$picture"
