#!/bin/sh
# SPDX-License-Identifier: MIT
# Threads are called what the program calls them, also those that ended long before it, and the
# program sees nothing of how that is known.
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
EOF

cpythons >pythons
ok 'there is a CPython' test -s pythons
while read -r version python <&3; do
	"$python" named.py >plain.out 2>plain.err
	"$GILTRACER" -q --python "$python" --python-trace none -o got.html --json got.json \
		named.py >ours.out 2>ours.err
	is "$(cat ours.out)" "$(cat plain.out)" "$version: a profiler sees the same"
	is "$(cat ours.err)" "$(cat plain.err)" "$version: tracebacks are the same"
	is "$(python3 -c 'import json
print(*sorted(t["name"] for t in json.load(open("got.json"))["threads"]))')" \
		'MainThread early failing profiled' "$version: threads have their names"
done 3<pythons

leaves_nothing
done_testing
