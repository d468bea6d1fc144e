#!/bin/sh
# SPDX-License-Identifier: MIT
# Native stacks of one recording of threads that pass semaphores to each other: unwound, named and printed
# by giltracer, with inlined functions, and by perf script, without them.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"

if [ "$(id -u)" -ne 0 ] || ! command -v perf >/dev/null; then
	echo '# bench-stacks: needs root and perf'
	exit 0
fi
cat >pingpong.py <<'END'
import threading

a, b = threading.Semaphore(1), threading.Semaphore(0)


def ping(mine, other):
    for _ in range(60000):
        mine.acquire()
        other.release()


threads = [threading.Thread(target=ping, args=p) for p in ((a, b), (b, a))]
for t in threads:
    t.start()
for t in threads:
    t.join()
END
perf record -q -o stacks.perf.data -k CLOCK_MONOTONIC --switch-events --buildid-mmap -m 1024 \
	-e 'sched:sched_switch/call-graph=dwarf,stack-size=4096/' -- python3 pingpong.py >perf.out 2>&1

bench=$top_builddir/tests/bench/bench-stacks
if [ ! -x "$bench" ]; then
	echo "# bench-stacks: no $bench; make check TESTS= builds it"
	exit 0
fi
# Read once, to count the stacks, and so that both programs find the files in the page cache.
stacks=$("$bench" stacks.perf.data | cut -d ' ' -f 1)
script='perf script --no-inline -F tid,time,ip,sym,dso -i stacks.perf.data 2>perf.err'
python3 "$top_srcdir/tests/bench/compare.py" 'stacks, unwound and named' 5 7 \
	"$script" "$bench stacks.perf.data" | tee row
python3 "$top_srcdir/tests/bench/compare.py" 'stacks, printed as well' 1 7 \
	"$script" "$GILTRACER dump -s stacks.perf.data"
awk -v n="$stacks" '{ print "  stacks", n, 1
	print "  stacks_per_second", n / $(NF - 4), "1/s" }' row
rm -f stacks.perf.data
