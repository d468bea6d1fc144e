#!/bin/sh
# SPDX-License-Identifier: MIT
# Waits for locks of the program are exact, and charged to the thread that releases the lock; threads that
# wait for a signal are idle. The program measures its own waits.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

cat >judge.py <<'END'
import json, sys

document, measured = (json.load(open(name)) for name in sys.argv[1:3])
threads = {t['name']: t for t in document['threads']}
names = {t['tid']: t['name'] for t in document['threads']}
cases = ['lock', 'rlock', 'nested', 'semaphore', 'condition', 'timed', 'two']


def charged(waiter, by):
    return sum(b['wait_ns'] for b in document['lock_blame']
               if names.get(b['waiter_tid']) == waiter and names.get(b['released_by_tid'], b['released_by_tid']) == by)


def wrong():
    if sorted(measured) != sorted(cases):
        yield 'cases', sorted(measured)
    for case in cases:
        t = threads[case + '-waits']
        wait, own = t['lock_wait_ns'], measured[case]
        # What the program measures includes taking the GIL afterwards.
        if not own - t['wait_ns'] - 2e6 <= wait <= own + 1e5:
            yield case, 'waited', own, 'recorded', wait, 'and for the GIL', t['wait_ns']
        # After the release, the waiting thread has to get a CPU.
        by, nobody = charged(case + '-waits', case + '-holds'), charged(case + '-waits', None)
        if by < 0.95 * 6e7 or by + nobody < 0.999 * wait:
            yield case, 'charged', by, 'and to nobody', nobody, 'of', wait
    for name, t in threads.items():
        if name.startswith('idle-') and t['lock_wait_ns'] > 0.1 * t['total_ns']:
            yield name, 'waited', t['lock_wait_ns'], 'of', t['total_ns']
    t = threads['impatient']
    if t['lock_waits'] != 3 or not 6e7 <= t['lock_wait_ns'] <= t['total_ns']:
        yield 'time-outs', t['lock_waits'], t['lock_wait_ns']
    if [b['released_by_tid'] for b in document['lock_blame'] if names[b['waiter_tid']] == 'impatient'] != [0]:
        yield 'time-outs are charged to a thread'


print(list(wrong()))
END

# is_right NAME ARG...: the waits of a recording made with these arguments.
is_right() {
	name=$1
	shift
	for _ in 1 2 3; do
		ok "$name: records" "$@" -q --python "$python" --json waits.json -o waits.html \
			"$top_srcdir/tests/system/lock-waits.py" measured.json
		wrong=$(python3 judge.py waits.json measured.json)
		[ "$wrong" != '[]' ] || break
		retried "$name: waits for locks are those that the program measures" "$wrong"
	done
	is "$wrong" '[]' "$name: waits for locks are those that the program measures"
	is "$(json waits.json '[c["code"] for c in d["caveats"] if c["code"] in ("broken-identity", "two-holders")]')" \
		'[]' "$name: the states of each thread add up"
	is "$(json waits.json 'abs(sum(c["ns"] for c in d["critical_path"]) -
		max(t["total_ns"] for t in d["threads"] if t["main"])) < 1000')" True \
		"$name: the critical path lasts as long as the program"
}

every_cpython pythons
while read -r version python <&3; do
	is_right "$version" by_library --python-trace none
done 3<pythons

# The library is in the program whatever records the GIL.
if want uprobes 'waits for locks while uprobes record the GIL'; then
	while read -r version python <&3; do
		is_right "$version, uprobes" "$GILTRACER" --probes uprobes
	done 3<pythons
fi

# A lock that is held across a sleep, and one that is held while its thread waits for the GIL. The lines
# are those of the programs.
cat >asleep.py <<'END'
import threading
import time


def work():
    for _ in range(10):
        with lock:
            time.sleep(0.01)


if __name__ == '__main__':
    lock = threading.Lock()
    threads = [threading.Thread(target=work, name='worker-%d' % i) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
END
cat >through.py <<'END'
import os
import re
import threading

TEXT = 'a' * 26 + '!'
PATTERN = re.compile('(a|aa)+$')
done = False


def matches():
    for _ in range(3):
        PATTERN.match(TEXT)


def keeps():
    while not done:
        with lock:
            for _ in range(50):
                os.stat('/')


def wants():
    while not done:
        with lock:
            pass


if __name__ == '__main__':
    lock = threading.Lock()
    threads = [threading.Thread(target=f, name=f.__name__) for f in (keeps, wants)]
    for thread in threads:
        thread.start()
    matches()
    done = True
    for thread in threads:
        thread.join()
END

# longest FILE LINE KEY: what was done during most of the waiting in that line, and its function or line.
longest() {
	json "$1" "max(([c['wait_ns'], c['meanwhile'], c['through'], c['at']['$3']] for c in d['lock_chains']
		if c['line'] == $2), default=None)[1:]"
}
while read -r version python <&3; do
	ok "$version: a lock held across a sleep" by_library -q --python "$python" --python-trace none \
		--json asleep.json -o asleep.html asleep.py
	is "$(json asleep.json '[d["verdict"]["kind"]]')" "['lock-bound']" \
		"$version: locks limit the program, not the GIL"
	is "$(longest asleep.json 7 line)" "['without the GIL', False, 8]" \
		"$version: the line of the lock, and that of the sleep"
	is "$(json asleep.json 'sum(c["wait_ns"] for c in d["lock_chains"]) ==
		sum(t["lock_wait_ns"] for t in d["threads"])')" True "$version: chains add up to the waits"
	ok "$version: a lock held during a wait for the GIL" by_library -q --python "$python" \
		--python-trace none --json through.json -o through.html through.py
	is "$(longest through.json 24 line)" "['holds the GIL', True, 12]" \
		"$version: the line that kept the GIL from the thread that had the lock"
done 3<pythons

leaves_nothing
done_testing
