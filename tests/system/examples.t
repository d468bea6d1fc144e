#!/bin/sh
# SPDX-License-Identifier: MIT
# The manual's examples run as printed.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes

cp "$top_srcdir"/share/examples/*.py .
mkdir bin && ln -s "$GILTRACER" bin/giltracer
PATH=$scratch/bin:$PATH

sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/s/^\.Dl giltracer/giltracer/p' \
	"$top_srcdir/share/giltracer.1" >examples
ok 'there are examples' test "$(wc -l <examples)" -ge 5
while read -r example; do
	ok "$example" sh -c "$example"
done <examples
for file in giltracer.html gil.html churn.html; do
	ok "$file was written" test -s $file
done
is "$(json gil.json 'd["schema"]')" 1 'gil.json has the schema'

leaves_nothing
done_testing
