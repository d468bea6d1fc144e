#!/bin/sh
# SPDX-License-Identifier: MIT
# Threads have the names that the program gave them, including those that ended long before the program.
# The program cannot see how the names are read.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes

cat >named.py <<'EOF'
import sys
import threading

seen = []


def profile(frame, event, arg):
    seen.append((event, frame.f_code.co_name))


def work():
    pass


def fail():
    raise ValueError('one of the threads')


def run(name, target):
    thread = threading.Thread(target=target, name=name)
    thread.start()
    thread.join()


if __name__ == "__main__":
    run('early', work)
    run('failing', fail)
    threading.setprofile(profile)
    run('profiled', work)
    print(seen[:6])
    code = getattr(threading.Thread, '_set_native_id', threading.Thread._set_ident).__code__
    if hasattr(code, 'co_qualname'):
        print(code.co_qualname, code.co_filename, code.co_firstlineno)
    print([getattr(one, '__name__', type(one).__name__) for one in sys.meta_path],
          sorted(vars(threading.__loader__)))
EOF
# This program has no guard, so tracing starts before it imports threading.
sed 's/^if __name__ == .*/if True:/' named.py >unguarded.py

mkdir own
echo 'import threading' >own/own.py
echo 'raise KeyError("a module of the same name")' >own/threading.py

cpythons >pythons
ok 'there is a CPython' test -s pythons
# How names are read is not the engine's: each has one of the programs.
while read -r version python <&3; do
	for program in named unguarded; do
		[ $program = named ] && by=$GILTRACER || by=by_library
		"$python" "$program.py" >plain.out 2>plain.err
		"$by" -q --python "$python" --python-trace none -o got.html --json got.json "$program.py" \
			>ours.out 2>ours.err
		is "$(cat ours.out)" "$(cat plain.out)" "$version, $program: a profiler sees the same"
		is "$(cat ours.err)" "$(cat plain.err)" "$version, $program: tracebacks are the same"
		is "$(python3 -c 'import json
print(*sorted(t["name"] for t in json.load(open("got.json"))["threads"]))')" \
			'MainThread early failing profiled' "$version, $program: threads have their names"
	done
	"$python" own/own.py 2>plain.err
	by_library -q --python "$python" --python-trace none -o got.html own/own.py 2>ours.err
	is "$(cat ours.err)" "$(cat plain.err)" "$version: a threading of the program's own fails as without us"
done 3<pythons

# Forked children record the names as their threads start, since they may end at any time. Before 3.7,
# this is not possible.
cat >forks.py <<'EOF'
import os
import threading


def work():
    pass


def run(name):
    thread = threading.Thread(target=work, name=name)
    thread.start()
    thread.join()


def child(depth):
    run('child %d' % depth)
    if depth < 2:
        fork(depth + 1)
    run('end of %d' % depth)


def fork(depth):
    pid = os.fork()
    if not pid:
        os.chdir('/')
        child(depth)
        os._exit(0)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    fork(1)
    pid = os.fork()
    if not pid:
        os.closerange(3, 4096)
        run('closed')
        os._exit(0)
    os.waitpid(pid, 0)
    pid = os.fork()
    if not pid:
        os.execlp('true', 'true')
    os.waitpid(pid, 0)
    run('parent')
EOF
while read -r version python <&3; do
	[ "$version" != 3.6 ] || continue
	rm -rf session
	ok "$version: a program that forks" "$GILTRACER" record -q --python "$python" \
		--python-trace none -o session forks.py
	"$GILTRACER" report -q -o got.html --json got.json session
	is "$(python3 -c 'import json
d = json.load(open("got.json"))
print(*sorted(t["name"] for t in d["threads"] if t["name"] not in ("python3", "python")), sep=", ")')" \
		'MainThread, MainThread, MainThread, MainThread, child 1, child 2, closed, end of 1, end of 2, parent, true' \
		"$version: threads of children have theirs"
	is "$(ls session)" "$(printf '%s\n' gil.codes gil.perf.data session.json)" \
		"$version: and nothing else is left of it"
done 3<pythons

# Processes that are started afresh do not run giltracer's part of the program: the library reads the names.
cat >afresh.py <<'EOF'
import multiprocessing
import os
import subprocess
import sys
import threading


def run(tag):
    thread = threading.Thread(target=int, name='%s 1' % tag)
    thread.start()
    thread.join()


def main():
    for method in 'spawn', 'forkserver':
        process = multiprocessing.get_context(method).Process(target=run, args=(method,))
        process.start()
        process.join()
    subprocess.check_call([sys.executable, '-c', 'import afresh; afresh.run("subprocess")'],
                          env=dict(os.environ, PYTHONPATH=os.getcwd()))
    run('own')


if __name__ == '__main__':
    main()
EOF
while read -r version python <&3; do
	ok "$version: a program that starts others" by_library -q --python "$python" --python-trace none -o got.html \
		--json got.json afresh.py
	is "$(json got.json 'sorted(t["name"] for t in d["threads"] if not t["main"])')" \
		"['forkserver 1', 'own 1', 'spawn 1', 'subprocess 1']" '  their threads have names'
	is "$(json got.json 'sum(t["name"] == "MainThread" for t in d["threads"])')" 4 '  main threads, too'
done 3<pythons

# A signal that the program does not handle ends it at once.
cat >killed.py <<'EOF'
import os
import signal
import threading
import time


def work():
    time.sleep(0.05)


if __name__ == "__main__":
    threads = [threading.Thread(target=work, name='worker %d' % i) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)
EOF
while read -r version python <&3; do
	by_library -q --python "$python" --python-trace none -o got.html --json got.json killed.py
	is "$(json got.json 'sorted(t["name"] for t in d["threads"] if not t["main"])')" \
		"['worker 0', 'worker 1', 'worker 2']" "$version: killed by a signal, they have their names"
done 3<pythons

leaves_nothing
done_testing
