#!/bin/sh
# SPDX-License-Identifier: MIT
# One execution, recorded by uprobes and by the preloaded library at once: both tell the same.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need perf uprobes

cat >mixed.py <<'END'
import threading, time, zlib

def spin(seconds):
    end = time.time() + seconds
    while time.time() < end:
        pass

def hog():
    for i in range(3):
        sum(range(3000000))

def release():
    data = b'x' * 1000000
    for i in range(20):
        zlib.compress(data)

def nap():
    for i in range(50):
        time.sleep(0.005)

if __name__ == '__main__':
    threads = [threading.Thread(target=spin, args=(0.4,), name='spin-%d' % i) for i in range(2)]
    threads += [threading.Thread(target=f, name=f.__name__) for f in (hog, release, nap)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
END

# What differs of each thread: how often it held the GIL, and more than a point of its life, which begins
# for perf when it is made, for the library when it first wants the GIL. Where a build has copies of
# drop_gil, uprobes do not see all switch waits.
cat >compare.py <<'END'
import json

uprobes, preload = (json.load(open(name)) for name in ('uprobes.json', 'preload.json'))
other = {t['tid']: t for t in uprobes['threads']}

def differ(t, u, what):
    return abs(what(t) - what(u)) > u['total_ns'] / 100

def hold(thread):
    return thread['hold_ns']

def wait(thread):
    return thread['wait_ns'] - thread['switch_wait_ns']

for t in preload['threads']:
    u = other.pop(t['tid'])
    what = []
    if t['holds'] != u['holds']:
        what.append('%d holds, not %d' % (t['holds'], u['holds']))
    for name, value in ('holds', hold), ('waits', wait):
        if differ(t, u, value):
            what.append('%s %.3f ms, not %.3f' % (name, value(t) / 1e6, value(u) / 1e6))
    if what:
        print(t['name'], *what)
for t in other.values():
    print(t['name'], 'is missing')
END

cpythons >pythons
while read -r version python <&3; do
	rm -rf both preload
	ok "$version: recorded by both" "$GILTRACER" record -q --probes both --python "$python" \
		--python-trace none -o both mixed.py
	cp -r both preload
	python3 -c 'import json
d = json.load(open("preload/session.json"))
d["passes"][0].update(perf_data=None, code_objects=None)
json.dump(d, open("preload/session.json", "w"))'
	for engine in uprobes preload; do
		folder=$engine
		[ $engine = uprobes ] && folder=both
		ok "$version: report of $engine" "$GILTRACER" report -q --json $engine.json \
			-o $engine.html $folder
	done
	is "$(python3 compare.py)" '' "$version: holds, and the shares of holding and waiting, agree"
done 3<pythons

leaves_nothing
done_testing
