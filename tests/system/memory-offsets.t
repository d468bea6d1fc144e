#!/bin/sh
# SPDX-License-Identifier: MIT
# The offsets that lead to threads, GIL and code objects are those of each interpreter's own headers.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need cc

defined() {
	sed -n '/^memory:/,/^[^ ]/p' "$top_srcdir/probes/$1.yaml" | grep '^ '
}

from_headers() {
	# shellcheck disable=SC2086 # words
	cc -w $1 -o offsets "$top_srcdir/tests/system/memory-offsets.c" && ./offsets
}

every_cpython interpreters
while read -r version python; do
	if ! flags=$(include_flags "$python"); then
		skip "$python has no headers (its -dev package)" "$version: offsets in memory"
		continue
	fi
	is "$(from_headers "$flags")" "$(defined "$version")" \
		"$version, $python: offsets in memory"
done <interpreters
done_testing
