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

every_cpython pythons
while read -r version python <&3; do
	for _ in 1 2 3; do
		ok "$version: records" by_library -q --python "$python" --python-trace none --json waits.json \
			-o waits.html "$top_srcdir/tests/system/lock-waits.py" measured.json
		wrong=$(python3 judge.py waits.json measured.json)
		[ "$wrong" != '[]' ] || break
		retried "$version: waits for locks are those that the program measures" "$wrong"
	done
	is "$wrong" '[]' "$version: waits for locks are those that the program measures"
	is "$(json waits.json '[c["code"] for c in d["caveats"] if c["code"] in ("broken-identity", "two-holders")]')" \
		'[]' "$version: the states of each thread add up"
done 3<pythons

leaves_nothing
done_testing
