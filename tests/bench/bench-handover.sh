#!/bin/sh
# SPDX-License-Identifier: MIT
# How much longer a program takes that uprobes would make take 15 times as long: three threads that read rows of
# SQLite, which releases the GIL for each. By default, the library takes over. The program's own wall time,
# alternating with the plain program; medians of the pairs. Needs root.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"

cat >rows.py <<'PYTHON'
import json
import sqlite3
import sys
import threading
import time

ROWS = [(json.dumps({'number': i, 'text': 'x' * 50}),) for i in range(5000)]


def request(times):
    db = sqlite3.connect(':memory:')
    db.execute('create table t(row text)')
    db.executemany('insert into t values(?)', ROWS)
    for _ in range(times):
        [json.loads(row) for (row,) in db.execute('select row from t')]


if __name__ == '__main__':
    start = time.monotonic()
    threads = [threading.Thread(target=request, args=(int(sys.argv[1]),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(time.monotonic() - start)
PYTHON

# ratio PYTHON TIMES OPTION…
ratio() {
	python=$1
	times=$2
	shift 2
	: >pairs
	for _ in 1 2 3 4 5 6 7; do
		plain=$("$python" rows.py "$times")
		echo "$plain $("$GILTRACER" record -q "$@" --python "$python" -o session rows.py "$times")" >>pairs
		rm -rf session
	done
	awk '{ print $2 / $1 }' pairs | sort -n | sed -n 4p
}

for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 /usr/bin/python3; do
	"$python" -c 'import sqlite3' 2>/dev/null || continue
	version=$("$python" -c 'import platform
print(platform.python_version())')
	python3 "$top_srcdir/tests/bench/compare.py" "rows, taken over, short, $version" '<=1.70' "$(ratio "$python" 8)"
	python3 "$top_srcdir/tests/bench/compare.py" "rows, taken over, $version" '<=1.70' "$(ratio "$python" 64)"
	python3 "$top_srcdir/tests/bench/compare.py" "rows, library alone, $version" '<=1.70' \
		"$(ratio "$python" 64 --probes preload)"
done
