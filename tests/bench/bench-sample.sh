#!/bin/sh
# SPDX-License-Identifier: MIT
# The cost per sample of reading all stacks of 16 threads, 20 deep, at 1,000 Hz, against py-spy,
# which is installed into a virtual environment; target: half of it. The time until the first
# sample; target: 0.3 s from giltracer's start. The share of samples that name the same holder of
# the GIL as the exact record of the same execution; target: 98 %.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"

cat >deep.py <<'END'
import sys
import threading
import time


def deeper(n, work):
    return deeper(n - 1, work) if n else work()


def spin():
    while not over.is_set():
        pass


over = threading.Event()
works = [spin] * 2 + [over.wait] * 14
threads = [threading.Thread(target=deeper, args=(16, work)) for work in works]
for thread in threads:
    thread.start()
print(flush=True)
sys.stdin.read()
over.set()
END
mkfifo go ready
python3 deep.py <go >ready &
pid=$!
exec 3>go
read -r _ <ready
"$GILTRACER" -v -p $pid --probes none --sample 1000 --duration 5 -o page.html 2>said
ours=$(sed -n 's/.*debug: \([0-9]*\) samples, \([0-9]*\) missed, \([0-9.]*\) s of.*/\1 \2 \3/p' said)
if python3 -m venv venv && venv/bin/pip install -q py-spy 2>err; then
	# py-spy continues until it has the number of samples for the rate; when interrupted, it writes
	# the samples that it has.
	/usr/bin/env bash -c 'TIMEFORMAT="%U %S"; time "$@"' - timeout -s INT 20 venv/bin/py-spy record --nonblocking \
		-p $pid -r 1000 -d 5 -t --idle -f raw -o raw >/dev/null 2>said || :
fi
if [ -s raw ]; then
	cpu=$(tail -n 1 said)
	# A line for each thread and stack, with the number of samples; there are 17 threads.
	ratio=$(awk -v cpu="$cpu" -v ours="$ours" '{ n += $NF / 17 } END {
		split(cpu, s, " "); split(ours, o, " ")
		printf "# CPU time per sample: %.0f us, py-spy %.0f us\n", o[3] / o[1] * 1e6, \
			(s[1] + s[2]) / n * 1e6 >"/dev/stderr"
		printf "# samples: %d of %d, py-spy %d\n", o[1], o[1] + o[2], n >"/dev/stderr"
		print (s[1] + s[2]) / n / (o[3] / o[1])
	}' raw)
	python3 "$top_srcdir/tests/bench/compare.py" 'sample of 16 stacks, 20 deep, py-spy' 2 "$ratio"
else
	echo '# bench-sample: no samples of py-spy'
fi
holders() {
	python3 "$top_srcdir/tests/bench/holders.py" "$@"
}
began=$(python3 -c 'import time; print(time.monotonic_ns())')
"$GILTRACER" -q -p $pid --probes none --sample 1000 --duration 1 --keep attached -o page.html
python3 "$top_srcdir/tests/bench/compare.py" 'seconds to the first sample of -p' '<=0.3' \
	"$(holders first attached/stacks.samples "$began")"
exec 3>&-
wait $pid

cat >spin.py <<'END'
import threading
import time


def spin(end):
    while time.monotonic() < end:
        pass


def main():
    end = time.monotonic() + 3
    threads = [threading.Thread(target=spin, args=(end,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == '__main__':
    main()
END
"$GILTRACER" -q --probes preload --sample 1000 --python-trace none --keep both -o page.html spin.py
"$GILTRACER" dump -e both/gil.preload >events
python3 "$top_srcdir/tests/bench/compare.py" 'samples that name the holder / exact' 0.98 \
	"$(holders right both/gil.samples events)"
