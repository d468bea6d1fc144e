#!/bin/sh
# SPDX-License-Identifier: MIT
# The cost of recording Python calls: CPU time of a loop that calls a small function, against the
# plain program (3.12 and later), against a profile function in C that does nothing (before), and
# against VizTracer. The runs alternate; the ratios are medians of the pairs. Then the time from a
# program's last line to the end of giltracer.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"
compare=$top_srcdir/tests/bench/compare.py

cat >calls.py <<'PYTHON'
import sys
import time


def leaf(i):
    return i


def run(n):
    for i in range(n):
        leaf(i)


def measure(n):
    start = time.process_time()
    run(n)
    return (time.process_time() - start) / n * 1e9


if __name__ == '__main__':
    if sys.argv[1:]:
        import ctypes
        nothing = ctypes.CDLL(sys.argv[1]).nothing
        ctypes.pythonapi.PyEval_SetProfile(nothing, None)
    run(1000)
    print(sorted(measure(200000) for _ in range(5))[2])
PYTHON

cat >loop.py <<'PYTHON'
import time


def run(n):
    x = 0
    numbers = {'a': 1}
    for i in range(n):
        x = (x * 3 + i + numbers['a']) % 1000


def measure(n):
    start = time.process_time()
    run(n)
    return (time.process_time() - start) / n * 1e9


if __name__ == '__main__':
    print(sorted(measure(500000) for _ in range(5))[2])
PYTHON

cat >last.py <<'PYTHON'
import time


def leaf(i):
    return i


if __name__ == '__main__':
    for number in range(2400000):
        leaf(number)
    print(time.monotonic())
PYTHON

recorded() {
	"$GILTRACER" record -q --probes preload --python-trace "$1" --python "$2" -o session "${3:-calls.py}"
	rm -rf session
}

# ratio BASELINE OURS: the median of ours / baseline of commands that print nanoseconds.
ratio() {
	: >pairs
	for _ in 1 2 3 4 5 6 7; do
		echo "$($1) $($2)" >>pairs
	done
	awk '{ print $2 / $1 }' pairs | sort -n | sed -n 4p
}

echo 'int nothing(void *a, void *b, int c, void *d) { return a == b && c && !d ? 0 : 0; }' >nothing.c
${CC:-cc} -O2 -shared -fPIC -o nothing.so nothing.c

for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 /usr/bin/python3 \
	"${GILTRACER_TEST_VIZTRACER:-$top_builddir/venv/bin/python}"; do
	[ -x "$python" ] || continue
	version=$("$python" -c 'import platform; print(platform.python_version())')
	case $version in
	3.[6-9].* | 3.1[01].*)
		python3 "$compare" "calls / idle profile function, $version" '<=1.25' \
			"$(ratio "$python calls.py $PWD/nothing.so" "recorded native $python")"
		;;
	*)
		python3 "$compare" "calls / plain program, $version" '<=2.2' \
			"$(ratio "$python calls.py" "recorded native $python")"
		;;
	esac
	python3 "$compare" "loop / plain program, $version" '<=1.05' \
		"$(ratio "$python loop.py" "recorded native $python loop.py")"
	! "$python" -c 'import viztracer' 2>/dev/null ||
		python3 "$compare" "calls / VizTracer, $version" '<=1' \
			"$(ratio "recorded viztracer $python" "recorded native $python")"
done

for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[123].*/bin/python3; do
	[ -x "$python" ] || continue
	: >seconds
	for _ in 1 2 3; do
		last=$("$GILTRACER" -q --probes preload --python "$python" -o report.html last.py)
		python3 -c 'import sys, time; print(time.monotonic() - float(sys.argv[1]))' "$last" >>seconds
	done
	python3 "$compare" "seconds to a report of 2.4 M calls, $("$python" -c 'import platform
print(platform.python_version())')" '<=1' "$(sort -n seconds | sed -n 2p)"
done
