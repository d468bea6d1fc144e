#!/bin/sh
# SPDX-License-Identifier: MIT
# Many threads, forks that are killed, interpreters with a GIL of their own and signals, all at once:
# the preloaded library loses nothing, and the model's identities hold.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

cat >stress.py <<'END'
import os
import signal
import sys
import threading
import time

try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        interpreters = None


def work():
    zero = os.open('/dev/zero', os.O_RDONLY)
    for i in range(200):
        os.read(zero, 1)
    os.close(zero)


def fork():
    for i in range(20):
        pid = os.fork()
        if not pid:
            for _ in range(100):
                os.stat('/')
            if i % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(0)
        os.waitpid(pid, 0)


def interpret():
    for i in range(10 if interpreters else 0):
        one = interpreters.create()
        interpreters.run_string(one, 'import os\nfor i in range(100): os.stat("/")')
        interpreters.destroy(one)


def handler(*_):
    pass


if __name__ == '__main__':
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    end = time.monotonic() + float(sys.argv[1])
    while True:
        threads = [threading.Thread(target=fork)]
        threads += [threading.Thread(target=work) for _ in range(200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        interpret()
        if time.monotonic() >= end:
            break
    signal.setitimer(signal.ITIMER_REAL, 0)
    print('ended')
END

# One round, or as many as fit into the time.
seconds=${GILTRACER_TEST_LONG:-0}
every_cpython pythons
while read -r version python <&3; do
	if ! timeout $((30 + seconds)) "$python" -W ignore stress.py "$seconds" >plain 2>&1; then
		skip 'it does not do this without giltracer either' "$version: the program"
		continue
	fi
	run no_perf timeout $((120 + 10 * seconds)) "$GILTRACER" --probes preload --python "$python" \
		--python-trace none --json stress.json -o stress.html stress.py "$seconds"
	is "$status $(tail -n 1 out)" '0 ended' "$version: it ends as ever"
	is "$(json stress.json 'sum(p["lost"] for p in d["passes"])')" 0 "$version: nothing is lost"
	is "$(json stress.json '[c["code"] for c in d["caveats"] if c["code"] in
		("two-holders", "broken-identity", "unordered-events", "releases-without-hold")]')" '[]' \
		"$version: never two holders, and all times add up"
	is "$(json stress.json 'sum(t["holds"] >= 200 for t in d["threads"]) >= 200')" True \
		"$version: each of 200 threads took the GIL 200 times"
done 3<pythons

leaves_nothing
done_testing
