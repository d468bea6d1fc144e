#!/bin/sh
# SPDX-License-Identifier: MIT
# The cost of the preloaded library for the traced program: CPU time of a loop that does nothing but
# release and take the GIL, without frames and with two, alternating with the plain program; medians of
# the pairs.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"

cat >turns.py <<'PYTHON'
import os
import threading
import time

if __name__ == '__main__':
    # CPython 3.6 has no GIL before the first thread.
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    zero = os.open('/dev/zero', os.O_RDONLY)
    start = time.process_time()
    for _ in range(300000):
        os.read(zero, 1)
    print((time.process_time() - start) / 300000 * 1e9)
PYTHON

# Without perf, which records thread states where it is permitted.
mkdir -p bare
for tool in sh env python3; do
	ln -sf "$(command -v "$tool")" bare/
done
recorded() {
	env PATH="$PWD/bare" "$GILTRACER" record -q --probes preload --python-trace none --python "$1" --frames "$2" \
		-o session "$3"
	rm -rf session
}

pythons=${GILTRACER_TEST_PYTHONS:-$top_builddir/pythons}
for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 /usr/bin/python3 \
	"$pythons"/debian/usr/bin/python3.1[4-9] "$pythons"/uv/*/bin/python3.*[0-9]; do
	[ -x "$python" ] || continue
	for frames in 0 2; do
		: >pairs
		for _ in 1 2 3 4 5 6 7; do
			echo "$("$python" turns.py) $(recorded "$python" "$frames" turns.py)" >>pairs
		done
		ratio=$(awk '{ print $2 / $1 }' pairs | sort -n | sed -n 4p)
		target='<=1.10'
		[ "$frames" = 0 ] || target='<=1.20'
		python3 "$top_srcdir/tests/bench/compare.py" \
			"preload, $frames frames, $("$python" -c 'import platform, sys
print(platform.python_version() + (" of uv" if "/uv/" in sys.executable else ""))')" "$target" "$ratio"
	done
done
