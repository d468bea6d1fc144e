#!/bin/sh
# SPDX-License-Identifier: MIT
# -p with the number that users know: that of a wrapper of Python, of a server's parent, of a process that C
# code forked.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes

mkfifo ready
cat >spin.py <<'EOF'
import ctypes
import os
import sys
import threading


def spin():
    while True:
        for _ in range(10000):
            pass


def spin_by_two():
    threads = [threading.Thread(target=spin, name='request-%d' % i, daemon=True) for i in range(2)]
    for thread in threads:
        thread.start()
    with open('ready', 'w') as ready:
        ready.write('%d %d\n' % (os.getpid(), os.getppid()))
    if sys.argv[1] != 'c':
        threads[0].join()
    spin()


if __name__ == '__main__':
    if sys.argv[1] == 'fork' and os.fork():
        os.wait()
    elif sys.argv[1] == 'c' and ctypes.PyDLL(None).fork():
        os.wait()
    else:
        spin_by_two()
EOF

# started COMMAND…: child and parent are the numbers of the Python that spins and of its parent.
started() {
	"$@" &
	read -r child parent <ready
}
ended() {
	kill -KILL "$child" || :
	wait
}

# recorded OPTION…: got.json is of this recording, or missing.
recorded() {
	rm -f got.json
	"$GILTRACER" -q --duration 1 --json got.json -o got.html "$@"
}

# named NAME: the threads of the recorded child are its three.
named() {
	is "$(json got.json "sorted(t['name'] for t in d['threads'] if t['pid'] == $child)")" \
		"['MainThread', 'request-0', 'request-1']" "$1" ||
		diag "$(json got.json "[(t['name'], t['tid'], t['holds'], t['total_ns'], t['unknown_ns']) for t in d['threads']]")"
}

python=$(cpythons | sed -n '1s/^[^ ]* //p')
started sh -c "'$python' spin.py plain; true"
ok 'stacks of a shell in front of Python' "$GILTRACER" stacks -p "$parent"
like "$(cat out)" "^process $child: " '  are those of its child'
like "$(cat err)" "process $parent is not CPython: using process $child, its descendant" '  which a line says'
ok 'top' "$GILTRACER" top -p "$parent" -n 1 --json
is "$(json out 'd["pid"]')" "$child" '  of its child'
ok 'a recording' recorded -p "$parent"
named '  of its child'
ok 'a recording by the library' recorded -p "$parent" --probes preload
named '  of its child, too'
ended

started sh -c "'$python' spin.py plain & '$python' -c 'import time; time.sleep(1000)' & wait"
exits 125 'a shell with two of them' "$GILTRACER" stacks -p "$parent"
like "$(cat err)" "process $parent is not CPython, but several of its descendants are: give one of.* $child" \
	'  is told which'
xargs kill <"/proc/$parent/task/$parent/children"
wait

every_cpython interpreters
while read -r version python <&3; do
	started "$python" spin.py fork
	recorded -p "$parent" || :
	named "$version: threads of a server's child have names"
	is "$(json got.json "{(f['file'] or '').rsplit('/', 1)[-1] for f in d['functions'] if f['function'] == 'spin'}")" \
		"{'spin.py'}" "$version: its functions have files"
	if [ "$version" != 3.6 ]; then # which cannot load the library
		recorded -p "$parent" --probes preload || :
		named "$version: also by the library"
	fi
	ended

	started "$python" spin.py c
	"$GILTRACER" stacks -p "$child" --json >out
	is "$(json out "sorted(t['name'] for t in d['threads'])")" "['MainThread', 'request-0', 'request-1']" \
		"$version: a process that C code forked"
	is "$(json out "[t['tid'] for t in d['threads'] if t['name'] == 'MainThread']")" "[$child]" '  its main thread, too'
	for engine in uprobes preload; do
		[ "$version $engine" != '3.6 preload' ] || continue # which cannot load the library
		recorded -p "$child" --probes $engine || :
		is "$(json got.json "sorted(t['name'] for t in d['threads'] if t['holds'])")" \
			"['MainThread', 'request-0', 'request-1']" "  recorded by $engine, each thread has its name"
	done
	ended
done 3<interpreters

leaves_nothing
done_testing
