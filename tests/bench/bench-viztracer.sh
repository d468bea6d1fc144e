#!/bin/sh
# SPDX-License-Identifier: MIT
# Reading 1.2 million VizTracer calls: a row on how many times faster that is than Python's json.load
# of the same file, and "NAME VALUE UNIT" lines, with the memory it takes next to the file's size.
# GILTRACER_BENCH_CALLS makes it another number, GILTRACER_BENCH_VIZTRACER names a file instead.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER_BENCH_CALLS:=1200000}"
: "${GILTRACER_BENCH_VIZTRACER:=}"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/giltracer-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' HUP INT TERM

bench=$top_builddir/tests/bench/bench-viztracer
if [ ! -x "$bench" ] || ! command -v python3 >/dev/null; then
	echo "# viztracer: needs python3 and $bench (make check TESTS= builds it)"
	exit 0
fi
file=$GILTRACER_BENCH_VIZTRACER
if [ -z "$file" ]; then
	file=$scratch/trace.json
	python3 "$top_srcdir/tests/bench/make-viztracer.py" "$GILTRACER_BENCH_CALLS" >"$file"
fi

python3 "$top_srcdir/tests/bench/compare.py" 'VizTracer JSON / json.load' 8 3 \
	"python3 -c 'import json; json.load(open(\"$file\", \"rb\"))'" "'$bench' '$file'"
for _ in 1 2 3; do
	"$bench" "$file"
done | sort -t ' ' -k 1,1 -k 2,2n | awk '!seen[$1]++' >"$scratch/values"
python3 "$top_srcdir/tests/bench/compare.py" 'VizTracer JSON, peak RSS / file' '<=1.5' \
	"$(awk '{ v[$1] = $2 } END { print v["viztracer-peak"] / v["viztracer-file"] }' \
		"$scratch/values")"
sed 's/^/  /' "$scratch/values"
