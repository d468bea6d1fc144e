#!/bin/sh
# SPDX-License-Identifier: MIT
# Waits for locks are counted by thread and line, as long as the threads measure; waits for signals are not.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need microhttpd
XDG_RUNTIME_DIR=$TMPDIR
export XDG_RUNTIME_DIR

cat >judge.py <<'END'
import json
import re
import sys

measured = json.load(open('measured.json'))
lines, waits, gil = {}, 0, 0
for line in open('served'):
    found = re.match(r'giltracer_(lock|gil)_wait_seconds_total\{pid="\d+",thread="(.*?)"'
                     r'(?:,line="(.*?)")?\} (\S+)$', line)
    # In a free-threaded build, a thread may wait before its name is known.
    if found and found.group(2) in ('worker-*', 'python*'):
        ns = float(found.group(4)) * 1e9
        if found.group(1) == 'gil':
            gil += ns
        else:
            lines[found.group(3)] = lines.get(found.group(3), 0) + ns
            waits += ns
    elif found and found.group(1) == 'lock' and found.group(2).startswith('idle'):
        print(line)
# Those of the last lines, which are "other", are counted, too. A thread may sleep in the kernel for other reasons.
names = ['other'] + ['takes (lines.py:%d)' % n for n in range(10, 17)]
print(sorted(lines) == names and min(lines.values()) > 2e7 or lines,
      0.9 * (measured['slept'] - gil) <= waits <= measured['took'] + 1000 or (measured, waits, gil))
END

every_cpython pythons
has free-threaded && echo "3.13t $(free_threaded_python)" >>pythons
while read -r version python <&3; do
	begun "$GILTRACER" --metrics 127.0.0.1:0 --python "$python" "$top_srcdir/tests/system/metrics-locks.py" measured.json
	ok "$version: metrics" "$GILTRACER" metrics -p "$(json measured.json 'd["pid"]')"
	cp out served
	is "$("$tap_python" judge.py)" 'True True' "$version: waits by line, as measured, and none of an idle thread"
	unharmed "$version"
done 3<pythons

leaves_nothing
done_testing
