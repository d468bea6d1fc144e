#!/bin/sh
# SPDX-License-Identifier: MIT
# Reading a recording of about a million GIL events: "NAME VALUE UNIT" lines, and how many times
# faster that is than `perf script --ns --no-inline` printing the same file to /dev/null. That is
# reading, ordering and making events alone; the whole report is another row.
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
		"$top_srcdir/share/examples/churn.py" 4 60000 >/dev/null 2>"$scratch/err"; then
		echo "# perfdata: cannot record: $(head -n 1 "$scratch/err")"
		exit 0
	fi
	file=$scratch/session/gil.perf.data
fi

# seconds COMMAND…: the best of three.
seconds() {
	for _ in 1 2 3; do
		start=$(date +%s%N)
		"$@" >/dev/null 2>&1
		echo $(($(date +%s%N) - start))
	done | sort -n | awk 'NR == 1 { printf "%.4f", $1 / 1e9 }'
}

"$bench" "$file" >"$scratch/ours"
sed 's/^/  /' "$scratch/ours"
if command -v perf >/dev/null; then
	theirs=$(seconds perf script --ns --no-inline -i "$file")
	echo "  perf_script $theirs s"
	awk -v theirs="$theirs" '$1 == "perfdata_events_total" {
		printf "  perfdata_speedup %.1f x\n", theirs * 1000 / $2 }' "$scratch/ours"
fi
