#!/bin/sh
# SPDX-License-Identifier: MIT
# The page of totals, read while a program runs, has consistent numbers at any moment, and no number
# decreases, for all readers.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

library=$top_builddir/giltracer/preload/libgiltracer-preload.so
watch=$top_builddir/tests/system/totals-watch
[ -x "$watch" ] || {
	echo "1..0 # SKIP needs totals-watch: make check builds it"
	exit 0
}

# counted PYTHON: start it; its process id is in the file pid, and its input is open as descriptor 3.
counted() {
	rm -rf fifo out.fifo totals && mkdir totals && mkfifo fifo out.fifo
	LD_PRELOAD=$library GILTRACER_TOTALS=$scratch/totals "$1" -W ignore "$top_srcdir/tests/system/totals.py" \
		<fifo >out.fifo 3>&- &
	program=$!
	exec 3>fifo
	read -r pid <out.fifo
}

# Threads wait for a lock when their interpreter ends, which frees their frames, and until it has ended.
cat >ends.py <<'END'
import threading
import time

lock, begun = threading.Lock(), threading.Semaphore(0)


def takes():
    for i in range(100):
        lock.acquire(timeout=0.001)
    begun.release()
    while True:
        lock.acquire(timeout=0.01)


class Ends:
    def __init__(self):
        self.itself = self

    def __del__(self, now=time.monotonic):
        until = now() + 0.3
        while now() < until:
            pass


lock.acquire()
for i in range(4):
    threading.Thread(target=takes, daemon=True).start()
for i in range(4):
    begun.acquire()
Ends()
END

every_cpython pythons
while read -r version python <&4; do
	counted "$python"
	ok "$version: 3,000 readings are possible, and none shrinks" "$watch" "$pid" 3000
	like "$(tail -n 1 out)" '^reads 3000 torn [0-9]* .*threads [0-9]* .*wrong 0$' \
		"$version: nothing is impossible"
	is "$(find totals -name "$pid.*.totals" | wc -l)" 1 "$version: one page"
	exec 3>&-
	wait "$program"
	is "$?" 0 "$version: the program ends as ever"
	[ "$(find totals -name '*.totals' | wc -l)" -gt 1 ]
	is "$?" 0 "$version: forked children have pages of their own"
	rm -rf totals && mkdir totals
	ok "$version: a program ends while threads wait for a lock" env PYTHONMALLOC=debug LD_PRELOAD="$library" \
		GILTRACER_TOTALS="$scratch/totals" "$python" ends.py
done 4<pythons

exits 2 'no process' "$watch" 4194305 1
like "$(cat err)" 'process 4194305: there is no such process' 'is said'
exits 2 'a process that is not Python' "$watch" $$ 1
like "$(cat err)" "process $$: .* is not CPython" 'is said, too'

leaves_nothing
done_testing
