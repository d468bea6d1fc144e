#!/bin/sh
# SPDX-License-Identifier: MIT
# The offsets that lead to Python frames are those of each interpreter's own headers.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need cc

defined() {
	sed -n '/^frame:/,/^[^ ]/p' "$top_srcdir/probes/$1.yaml" | grep '^ '
}

from_headers() {
	# shellcheck disable=SC2086 # words
	cc -w $1 -o offsets "$top_srcdir/tests/system/frame-offsets.c" && ./offsets
}

# Reading headers is quick, so the test uses all interpreters.
export GILTRACER_TEST_ALL=1
every_cpython interpreters
while read -r version python; do
	if ! flags=$(include_flags "$python"); then
		skip "$python has no headers (its -dev package)" "$version: offsets of frames"
		continue
	fi
	is "$(from_headers "$flags")" "$(defined "$version")" \
		"$version, $python: offsets of frames"
done <interpreters
done_testing
