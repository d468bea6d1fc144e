#!/bin/sh
# SPDX-License-Identifier: MIT
# The cost of uprobes for the traced program, a loop that does nothing but release and take the GIL: recorded
# with 1, 2 and 4 frames, against none; and with each of the probes alone, by perf.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"

if [ "$(id -u)" -ne 0 ] || ! command -v perf >/dev/null; then
	echo '# bench-frames: needs root and perf'
	exit 0
fi
cat >turns.py <<'END'
import os
import time


def turns(fd, n):
    read = os.read
    start = time.perf_counter()
    for _ in range(n):
        read(fd, 1)
    return (time.perf_counter() - start) / n * 1e9


if __name__ == '__main__':
    fd = os.open('/dev/zero', os.O_RDONLY)
    turns(fd, 5000)
    print(min(turns(fd, 20000) for _ in range(5)))
END
python3 turns.py >turns.bare
for _ in 1 2 3 4 5; do
	for frames in 0 1 2 4; do
		"$GILTRACER" record -q --probes uprobes --python-trace none --python python3 --frames $frames -o session turns.py \
			>>turns.$frames
		rm -rf session
	done
done
median() {
	sort -n "$1" | sed -n 3p
}
echo "  bare_ns_per_turn $(cat turns.bare) 1"
for frames in 0 1 2 4; do
	awk -v f=$frames -v ns="$(median turns.$frames)" -v none="$(median turns.0)" \
		'BEGIN { printf "  frames_%d_ns_per_turn %.0f %.3f\n", f, ns, ns / none }'
done
python3 "$top_srcdir/tests/bench/compare.py" 'uprobes, 2 frames, worst loop' '<=9' \
	"$(awk -v ns="$(median turns.2)" -v bare="$(cat turns.bare)" 'BEGIN { print ns / bare }')"

# While something is recorded, its probes are in the kernel.
cat >wait.py <<'END'
import sys

if __name__ == '__main__':
    print('ready', flush=True)
    sys.stdin.read()
END
mkfifo ready go
"$GILTRACER" record -q --probes uprobes --python-trace none --python python3 -o session wait.py <go >ready &
exec 8>go
read -r _ <ready
events=$(cd /sys/kernel/tracing/events && echo giltracer_*/*gil*)
for event in $events; do
	event=$(echo "$event" | tr / :)
	perf record -q -N -B -o perf.data -e "$event" python3 turns.py >turns.one 2>/dev/null || continue
	awk -v event="${event#*:}" -v bare="$(cat turns.bare)" \
		'{ printf "  probe_%s_ns_per_turn %.0f more\n", event, $1 - bare }' turns.one
done
exec 8>&-
wait
