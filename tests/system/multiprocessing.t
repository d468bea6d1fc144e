#!/bin/sh
# SPDX-License-Identifier: MIT
# Processes that the program starts are recorded, and do not delay the end.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes

cat >pools.py <<'EOF'
import multiprocessing, os, sys, threading, time
def work(n):
    threads = [threading.Thread(target=sum, args=(range(200000),)) for _ in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
    return os.getpid()
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    processes = [context.Process(target=work, args=(i,)) for i in range(2)]
    for p in processes: p.start()
    print(" ".join(str(p.pid) for p in processes))
    for p in processes: p.join()
    print(" ".join(str(p.exitcode) for p in processes))
EOF

# By the library; by uprobes, children.t has them all.
for method in fork spawn forkserver; do
	ok "$method" by_library record -q -o session --python-trace none pools.py $method
	is "$(sed -n 2p out)" '0 0' '  children end well'
	pids=$(sed -n '1s/ /, /p' out)
	ok '  and are reported' "$GILTRACER" report -q --json got.json -o got.html session
	if [ $method = forkserver ]; then
		: # Its children are the server's, whose pid is not ours to know.
		ok '  processes are recorded' test "$(json got.json 'len({t["pid"] for t in d["threads"]
			if t["holds"]})')" -ge 3
	else
		is "$(json got.json "{$pids} - {t['pid'] for t in d['threads'] if t['holds']}")" 'set()' \
			'  each child is recorded'
	fi
done

# giltracer must not wait for a daemon that continues to run.
mkfifo stays
cat >daemon.py <<'EOF'
import os
if __name__ == "__main__":
    if os.fork() == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        open("stays").read()
        os._exit(0)
    print("parent")
EOF
ok 'a daemon is not waited for' "$GILTRACER" record -q -o session --python-trace none daemon.py
is "$(cat out)" parent '  by the parent that ends'
# The daemon waits for this writer, then ends.
ok '  and ends when it is told to' timeout 60 sh -c 'echo end >stays'

leaves_nothing
done_testing
