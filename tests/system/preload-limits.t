#!/bin/sh
# SPDX-License-Identifier: MIT
# The preloaded library in programs that check or limit what is done inside of them: with a debugging
# allocator, in a debug build, with a limit for the size of files, as another user. They run as without
# it, and what it could not record is said.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

cat >threads.py <<'END'
import threading, time

def work():
    for _ in range(50):
        time.sleep(0.0001)
        sum(range(2000))

if __name__ == '__main__':
    for _ in range(10):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print('done')
END

# recorded POINT PYTHON PROGRAM [ARG...]: the program ends as it would alone; its report is got.json.
recorded() {
	point=$1
	python=$2
	shift 2
	ok "$point" by_library --python "$python" --json got.json -o got.html "$@"
	is "$(sed 1q out)" 'done' '  it ends as ever'
}
lost() {
	json got.json '[c["count"] > 0 for c in d["caveats"] if c["code"] == "lost-records"]'
}

# A thread that ends has freed its state before it releases the GIL for the last time, before 3.9.
export PYTHONMALLOC=debug
for version in 3.7 3.8; do
	if python=$(cpython $version); then
		recorded "$version: threads end, with an allocator that overwrites what is freed" \
			"$python" --python-trace none threads.py
	else
		skip "needs python$version: $(how_to_get python$version)" "$version: threads end"
	fi
done
unset PYTHONMALLOC

# It ends if a thread sets another one's profile function.
if want python3-dbg 'a debug build'; then
	recorded 'a debug build with threads' "$(command -v python3-dbg)" --python-trace native threads.py
	like "$(cat err)" 'a debug build of Python does not permit it' '  why its calls are not recorded is said'
fi

# A process that exceeds its limit for the size of files gets a signal.
cat >limits.py <<'END'
import resource, signal, subprocess, sys, threading, time

def work():
    for _ in range(60000):
        time.sleep(0)

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

if __name__ == '__main__':
    if sys.argv[1] == 'child':
        subprocess.run([sys.executable, '-c', 'print(1)'], stdout=subprocess.DEVNULL, check=True,
                       preexec_fn=lambda: limit(0))
    else:
        signal.signal(signal.SIGXFSZ, lambda *_: print('a signal'))
        limit(400000)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print('done')
END
python=$(cpythons | sed -n '1s/^[^ ]* //p')
recorded 'a child that may write nothing' "$python" --python-trace none limits.py child
is "$(lost)" '[True]' '  it is said that something is missing'
recorded 'a program that may write only small files' "$python" --python-trace none limits.py itself
is "$(lost)" '[True]' '  it is said that something is missing'

# Of a program that becomes another user, the library can make no more files.
cat >user.py <<'END'
import os, threading, time

def work():
    for _ in range(2000):
        time.sleep(0)

if __name__ == '__main__':
    os.setuid(65534)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print('done')
END
if [ "$(id -u)" = 0 ]; then
	recorded 'a program that becomes another user' "$python" --python-trace none user.py
	is "$(lost)" '[True]' '  it is said that something is missing'
else
	skip 'needs root' 'a program that becomes another user'
fi

# The library remembers some 12,000 functions; those beyond are not described again at each release.
cat >many.py <<'END'
import time

def made(n):
    space = {'sleep': time.sleep}
    exec(compile('def f%d():\n    sleep(0)\n' % n, 'made.py', 'exec'), space)
    return space['f%d' % n]

if __name__ == '__main__':
    functions = [made(n) for n in range(14000)]
    for function in functions:
        function()
    for _ in range(20000):
        functions[-1]()
    print('done')
END
recorded 'a program of 14,000 functions' "$python" --python-trace none --keep many many.py
log=$(cat many/gil.preload/*.log | wc -c)
ok "  its log has no function twice ($log bytes)" test "$log" -lt 4000000

leaves_nothing
done_testing
