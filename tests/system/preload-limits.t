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
	json got.json '[c["count"] > 0 for c in d["caveats"] if c["code"] == "unwritten-records"]'
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
# What the library allocates before CPython has chosen its allocators is not freed by them.
for version in 3.9 3.11 3.12 3.13; do
	if python=$(cpython $version); then
		recorded "$version: calls are recorded, or not, with such an allocator" "$python" threads.py
	else
		skip "needs python$version: $(how_to_get python$version)" "$version: calls"
	fi
done
# The GIL names the state of an interpreter that has been freed, until it is released.
cat >ends.py <<'END'
import threading

import _xxsubinterpreters as interpreters

first, second = threading.Lock(), threading.Lock()
interpreter = interpreters.create()
interpreters.run_string(interpreter, 'import time; time.sleep(0.001)')
interpreters.destroy(interpreter)
with first:
    with second:
        pass
print('done')
END
for version in 3.8 3.10 3.11; do
	if python=$(cpython $version); then
		recorded "$version: nested locks after the end of an interpreter" "$python" ends.py
	else
		skip "needs python$version: $(how_to_get python$version)" "$version: locks after an interpreter"
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

# Of a program that becomes another user, the library has opened its folder before.
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
	is "$(lost)" '[]' '  all is recorded'
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

# The library records from the start of Python on, so its limit may be reached before tracing begins.
cat >early.py <<'END'
import os, threading

def churn():
    zero = os.open('/dev/zero', os.O_RDONLY)
    for i in range(60000):
        os.read(zero, 1)

threads = [threading.Thread(target=churn) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if __name__ == '__main__':
    print('done')
END
recorded 'a recording that is large enough before the program begins' "$python" --python-trace none --max-size 1 \
	early.py
like "$(cat err)" 'ended after 0.0 s.*reached 1 MiB' '  is said to have ended at once'

# The file with the threads' names cannot be written: no descriptor stays open.
cat >names.py <<'END'
import os, resource, threading

if __name__ == '__main__':
    before = len(os.listdir('/proc/self/fd'))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    for _ in range(20):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    print('done' if len(os.listdir('/proc/self/fd')) == before else 'descriptors are open')
END
recorded "threads' names that cannot be written" "$python" --python-trace none names.py

leaves_nothing
done_testing
