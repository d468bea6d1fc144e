#!/bin/sh
# SPDX-License-Identifier: MIT
# Processes that the program starts are in the recording, and hold up nothing.
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

record() {
	"$GILTRACER" record -q -o session --python-trace none "$@"
}

for method in fork spawn forkserver; do
	ok "$method" record pools.py $method
	is "$(sed -n 2p out)" '0 0' '  children end well'
	perf script -i session/gil.perf.data -F pid,event 2>/dev/null | grep take_gil >events
	if [ $method = forkserver ]; then
		: # Its children are the server's, whose pid is not ours to know.
		ok '  processes are recorded' test "$(awk '{print $1}' events | sort -u | wc -l)" -ge 3
	else
		# shellcheck disable=SC2013 # words are what they are
		for pid in $(sed -n 1p out); do
			ok "  a child is recorded" grep -q "^ *$pid " events
		done
	fi
done

# A daemon that goes on must not be waited for.
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
ok 'a daemon is not waited for' record daemon.py
is "$(cat out)" parent '  by the parent that ends'
# It waits for this writer; then it ends.
ok '  and ends when it is told to' timeout 60 sh -c 'echo end >stays'

leaves_nothing
done_testing
