#!/bin/sh
# SPDX-License-Identifier: MIT
# The offsets that lead to Python frames are those of each interpreter's own headers.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need cc

include_of() {
	"$1" -c 'import sysconfig; print(sysconfig.get_paths()["include"])'
}

defined() {
	sed -n '/^frame:/,/^[^ ]/p' "$top_srcdir/probes/$1.yaml" | grep '^ '
}

from_headers() {
	tap_include=$(include_of "$2") || return 1
	cc -w -I"$tap_include" -I"$tap_include/internal" -o offsets \
		"$top_srcdir/tests/system/frame-offsets.c" && ./offsets
}

cpythons >interpreters
while read -r version python; do
	if [ ! -r "$(include_of "$python")/Python.h" ]; then
		skip "$python has no headers (its -dev package)" "$version: offsets of frames"
		continue
	fi
	is "$(from_headers "$version" "$python")" "$(defined "$version")" \
		"$version, $python: offsets of frames"
done <interpreters
done_testing
