#!/bin/sh
# SPDX-License-Identifier: MIT
# The cost of recording locks: CPU time of programs that take a lock which nobody else wants, hand two locks
# to each other, pass items through a queue, and, without a GIL, change one dict in four threads, recorded by
# the library alone, alternating with the plain program; medians of the ratios. The same with ddtrace's lock
# profiler, if GILTRACER_BENCH_DDTRACE is a Python that has it: it records 1 % of the acquires unless it is
# told otherwise. Then --locks all against --locks python, with a program that locks mutexes of C code: those
# of SQLite.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"

cat >locks.py <<'PYTHON'
import queue
import sys
import threading
import time


def uncontended():
    lock = threading.Lock()
    for _ in range(1000000):
        with lock:
            pass


def hands(mine, yours):
    for _ in range(20000):
        mine.acquire()
        yours.release()


def ping_pong():
    ping, pong = threading.Lock(), threading.Lock()
    pong.acquire()
    thread = threading.Thread(target=hands, args=(pong, ping))
    thread.start()
    hands(ping, pong)
    thread.join()


def takes(items):
    while items.get() is not None:
        pass


def items():
    items = queue.Queue(1000)
    thread = threading.Thread(target=takes, args=(items,))
    thread.start()
    for i in range(200000):
        items.put(i)
    items.put(None)
    thread.join()


def sqlite():
    import sqlite3
    connection = sqlite3.connect(':memory:')
    for _ in range(50000):
        connection.execute('SELECT 1').fetchone()


cache = {}


def changes():
    for i in range(200000):
        cache[i % 100] = i


def shared_dict():
    threads = [threading.Thread(target=changes) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == '__main__':
    start = time.process_time()
    {'uncontended': uncontended, 'ping-pong': ping_pong, 'queue': items, 'dict': shared_dict,
     'sqlite': sqlite}[sys.argv[1]]()
    print(time.process_time() - start)
PYTHON

# Without perf, which records thread states where it is permitted.
mkdir -p bare
for tool in sh env python3; do
	ln -sf "$(command -v "$tool")" bare/
done
recorded() {
	env PATH="$PWD/bare" "$GILTRACER" record -q --probes preload --python-trace none --python "$1" \
		--locks "${3:-python}" -o session locks.py "$2"
	rm -rf session
}
all_recorded() {
	recorded "$1" "$2" all
}
plain() {
	"$1" locks.py "$2"
}
profiled() {
	env DD_PROFILING_ENABLED=1 DD_PROFILING_STACK_ENABLED=0 DD_PROFILING_MEMORY_ENABLED=0 \
		DD_TRACE_ENABLED=0 DD_INSTRUMENTATION_TELEMETRY_ENABLED=0 DD_PROFILING_OUTPUT_PPROF=locks.pprof \
		"$(dirname "$1")/ddtrace-run" "$1" locks.py "$2" 2>/dev/null
}
# ratio COMMAND PYTHON PROGRAM [BASE]
ratio() {
	: >pairs
	for _ in 1 2 3 4 5; do
		echo "$("${4:-plain}" "$2" "$3") $("$1" "$2" "$3")" >>pairs
	done
	awk '{ print $2 / $1 }' pairs | sort -n | sed -n 3p
}

free=${GILTRACER_TEST_PYTHONS:-$top_builddir/pythons}/free-threaded/bin/python3
for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 /usr/bin/python3 "$free" \
	${GILTRACER_BENCH_DDTRACE:+"$GILTRACER_BENCH_DDTRACE"}; do
	[ -x "$python" ] || continue
	version=$("$python" -c 'import platform; print(platform.python_version())')
	rows='uncontended <=1.03,ping-pong <=1.25,queue <=1.10'
	[ "$python" != "$free" ] || version=${version}t rows='uncontended <=1.03,dict <=1.15'
	echo "$rows" | tr , '\n' | while read -r row; do
		program=${row% *}
		python3 "$top_srcdir/tests/bench/compare.py" "locks, $program, $version" "${row#* }" \
			"$(ratio recorded "$python" "$program")"
		[ "$python" = "${GILTRACER_BENCH_DDTRACE:-}" ] || continue
		echo "  locks, $program, $version, by ddtrace: $(ratio profiled "$python" "$program")"
	done
	[ "$python" != "$free" ] || continue
	python3 "$top_srcdir/tests/bench/compare.py" "locks, all / python, SQLite, $version" '<=1.03' \
		"$(ratio all_recorded "$python" sqlite recorded)"
done
