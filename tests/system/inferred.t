#!/bin/sh
# SPDX-License-Identifier: MIT
# Releases without a probe are inferred correctly: four threads that mix sleep(0), os.stat and computing
# are recorded with all releases, and some of these are then hidden from the report.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes

# As in a build with inlined copies: releases by PyEval_SaveThread are recorded, forced ones are not.
mkdir data
cp -r "$top_srcdir/probes" "$top_srcdir/share/python" "$top_srcdir/share/report" data
sed -i '/fallback: true/d' data/probes/*.yaml

versions=0
for version in 3.6 3.8 3.11 3.13; do
	python=$(cpython $version)
	[ -n "$python" ] || continue
	versions=$((versions + 1))
	ok "$version: all releases hidden" python3 "$top_srcdir/tests/system/inferred.py" "$python"
	diag "$(cat out)"
	[ $version = 3.6 ] || [ $version = 3.8 ] && continue
	ok "$version: forced releases hidden" \
		python3 "$top_srcdir/tests/system/inferred.py" "$python" "$scratch/data"
	diag "$(cat out)"
done
[ $versions -ge 3 ] || skip 'apt-get install python3, or pyenv' 'three versions of CPython'

leaves_nothing
done_testing
