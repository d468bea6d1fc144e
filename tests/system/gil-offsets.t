#!/bin/sh
# SPDX-License-Identifier: MIT
# The offsets from a thread state to its GIL are those of each interpreter's own headers, both in the
# definition and as found in the interpreter's machine code.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need cc

from_headers() {
	# shellcheck disable=SC2086 # words
	cc -w $1 -o offsets "$top_srcdir/tests/system/gil-offsets.c" && ./offsets
}

# The definition's first entry is that of take_gil.
defined() {
	sed -n 's/^    gil: "\(.*\)"$/\1/p' "$top_srcdir/probes/$1.yaml" | head -n 1
}

from_code() {
	"$GILTRACER" probes --python "$1" --json | python3 -c 'import json, sys
fetch = [p["fetch"] for p in json.load(sys.stdin)["probes"] if p["event"] == "take_gil"][0]
print(fetch.split(" ")[0])'
}

# Reading headers is quick, so the test uses all interpreters.
export GILTRACER_TEST_ALL=1
every_cpython interpreters
while read -r version python; do
	grep -q '^gil: per-interpreter' "$top_srcdir/probes/$version.yaml" || continue
	if ! flags=$(include_flags "$python"); then
		skip "$python has no headers (its -dev package)" "$version: offsets of the GIL"
		continue
	fi
	want=$(from_headers "$flags")
	is "$(defined "$version")" "$want" "$version, $python: the definition has the header's offsets"
	case $(uname -m) in
	x86_64) want=$(echo "gil=$want:u64" | sed 's/arg1/%di/') ;;
	aarch64) want=$(echo "gil=$want:u64" | sed 's/arg1/%x0/') ;;
	esac
	is "$(from_code "$python")" "$want" "$version, $python: and so has the probe"
done <interpreters
ok 'there were interpreters' test -s interpreters
done_testing
