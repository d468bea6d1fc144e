#!/bin/sh
# SPDX-License-Identifier: MIT
# Reading a recording of a million GIL events: a row on how many times faster reading, ordering and
# decoding it is than `perf script --ns --no-inline` printing it to /dev/null; the whole report is
# another row. Then "NAME VALUE UNIT" lines: reading alone, with ordering, with decoding.
# GILTRACER_BENCH_PERF_DATA names a recording to use instead of making one.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"
: "${GILTRACER_BENCH_PERF_DATA:=}"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/giltracer-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' HUP INT TERM

bench=$top_builddir/tests/bench/bench-from-perf
if [ ! -x "$bench" ]; then
	echo "# perfdata: no $bench; make check TESTS= builds it"
	exit 0
fi
file=$GILTRACER_BENCH_PERF_DATA
if [ -z "$file" ]; then
	if ! "$GILTRACER" record -q --python-trace none -o "$scratch/session" \
		"$top_srcdir/share/examples/churn.py" 4 70000 >/dev/null 2>"$scratch/err"; then
		echo "# perfdata: cannot record: $(head -n 1 "$scratch/err")"
		exit 0
	fi
	file=$scratch/session/gil.perf.data
fi

if command -v perf >/dev/null; then
	python3 "$top_srcdir/tests/bench/compare.py" 'events / perf script' 20 5 \
		"perf script --ns --no-inline -i '$file' >/dev/null" "'$bench' -1 '$file'"
fi
"$bench" "$file" | sed 's/^/  /'
