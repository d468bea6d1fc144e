#!/bin/sh
# SPDX-License-Identifier: MIT
# Folded stacks of real recordings: a strict reader accepts every line, whatever the names of threads and
# functions, and the sums are those of the document.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root perf uprobes python3.11
program=$top_srcdir/tests/system/folded.py
python=$(private_python "$scratch/own" "$(cpython 3.11)")

# strict FILE: read it as flamegraph.pl and inferno do, without control characters. Prints the sum.
strict() {
	python3 - "$1" <<'END'
import re
import sys
import unicodedata

total, seen = 0, set()
for line in open(sys.argv[1], "rb").read().decode("utf-8").split("\n")[:-1]:
    match = re.fullmatch(r"([^;]+(?:;[^;]+)+) ([1-9][0-9]*)", line)
    if not match or any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") for c in line):
        sys.exit("not a folded stack: %r" % line)
    if match[1] in seen:
        sys.exit("twice: %r" % line)
    seen.add(match[1])
    total += int(match[2])
print(total)
END
}

# sums NAME FILE EXPRESSION: the sum of the file is that of the expression over the same report's
# document.
sums() {
	ok "$1: each line is one" strict "$2"
	is "$(cat out)" "$(json doc.json "$3")" "$1: their sum is the document's"
}

ok 'the GIL is recorded' "$GILTRACER" record -q --python "$python" --python-trace none -o gil "$program"
ok 'and reported' "$GILTRACER" report -q gil -o /dev/null --json doc.json --export folded=on \
	--export folded-waits=off
sums 'on-gil' on 'sum(t["hold_ns"] for t in d["threads"])'
sums 'off-gil' off 'sum(t["wait_ns"] for t in d["threads"])'
is "$(cut -d ';' -f 1 off | sort -u | grep -c 'a:b 1')" 1 'a separator in a name is none'

ok 'stacks are recorded' "$GILTRACER" record -q --no-gil-detect --python "$python" \
	--python-trace none -o stacks "$program"
ok 'and reported' "$GILTRACER" report -q stacks -o /dev/null --json doc.json --export folded-off-cpu=off
sums 'off-cpu' off 'sum(t["total_ns"] - t["states"]["running_ns"] - t["states"]["unknown_ns"]
	for t in d["threads"])'
like "$(cat off)" ';take_gil[^;]*;[^;]*pthread_cond_(timed)?wait|;take_gil[^;]*;.*futex' \
	'off-cpu: sleeps for the GIL are below take_gil'
like "$(cat off)" 'nanosleep' 'off-cpu: others below what they called'

if traced=$(viztracer_python); then
	ok 'with the calls of Python' by_library record -q --python "$traced" -o calls "$program"
	ok 'and reported' "$GILTRACER" report -q calls -o /dev/null --json doc.json --export folded=on \
		--export folded-waits=off
	sums 'on-gil by calls' on 'sum(t["hold_ns"] for t in d["threads"])'
	sums 'off-gil by calls' off 'sum(t["wait_ns"] for t in d["threads"])'
	ok 'on-gil by calls: a hostile function is there' grep -q ';x:y 3?' on
else
	skip "needs viztracer: $(how_to_get viztracer)" 'by calls of Python'
fi

ok 'with the calls that the library records' by_library record -q --python "$(cpython 3.11)" -o native "$program"
ok 'and exported' "$GILTRACER" export -q -f folded native -o on
like "$(cat on)" ';[^;]* \(threading\.py:[0-9]+\)[; ]' 'a file of the library is named without its folder'
like "$(cat on)" "spin \($program:[0-9]+\)|\? \($program:[0-9]+\)" 'a file of the program with it'

leaves_nothing
done_testing
