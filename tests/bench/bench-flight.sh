#!/bin/sh
# SPDX-License-Identifier: MIT
# The flight recorder in a loop that does nothing but release and take the GIL: its cost in CPU time, with its
# folder in memory and on the disk, alternating with the plain program, medians of the pairs; and whether a
# hundred million events take more memory and room than a million.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"

# Prints ns of CPU time per turn, of which each is four events, and the KiB of memory then and after MANY more.
cat >turns.py <<'PYTHON'
import os
import sys
import threading
import time

def turn(count):
    start = time.process_time()
    for _ in range(count):
        os.read(zero, 1)
    return (time.process_time() - start) / count * 1e9

def memory():
    with open('/proc/self/status') as status:
        return next(line.split()[1] for line in status if line.startswith('VmHWM'))

if __name__ == '__main__':
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    zero = os.open('/dev/zero', os.O_RDONLY)
    ns = turn(300000)
    before = memory()
    if len(sys.argv) > 1:
        turn(int(sys.argv[1]))
    print(ns, before, memory())
PYTHON

# The sessions are in memory and, for the second, in this folder.
memory=$(mktemp -d /dev/shm/giltracer-bench.XXXXXX)
trap 'rm -rf "$memory"' EXIT

# flight FOLDER PYTHON TIME [TURNS]
flight() {
	folder=$1/session
	python=$2
	window=$3
	shift 3
	rm -rf "$folder"
	"$GILTRACER" record -q --flight "$window" --max-size 16 --python "$python" -o "$folder" turns.py "$@"
}

for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 /usr/bin/python3; do
	[ -x "$python" ] || continue
	version=$("$python" -c 'import platform; print(platform.python_version())')
	: >pairs
	for _ in 1 2 3 4 5 6 7; do
		echo "$("$python" turns.py) $(flight "$memory" "$python" 50ms) $(flight . "$python" 50ms)" >>pairs
	done
	ratio=$(awk '{ print $4 / $1 }' pairs | sort -n | sed -n 4p)
	python3 "$top_srcdir/tests/bench/compare.py" "flight, in memory, $version" '<=1.20' "$ratio"
	ratio=$(awk '{ print $7 / $1 }' pairs | sort -n | sed -n 4p)
	python3 "$top_srcdir/tests/bench/compare.py" "flight, on the disk, $version" '<=1.20' "$ratio"
done

flight . "$python" 5m "${FLIGHT_TURNS:-25000000}" >grown
ratio=$(awk '{ print $3 / $2 }' grown)
python3 "$top_srcdir/tests/bench/compare.py" 'flight, memory after 100 M events / 1 M' '<=1.05' "$ratio"
ratio=$(find session/gil.preload -printf '%k\n' | awk '{ kib += $1 } END { print kib / 1024 / 16 }')
python3 "$top_srcdir/tests/bench/compare.py" 'flight, room for them / --max-size' '<=1.10' "$ratio"
