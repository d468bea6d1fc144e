# SPDX-License-Identifier: MIT
"""For live.t: look at live.py, which runs as PID, with giltracer stacks, as often as COUNT.

    stacks-live.py GILTRACER PID HOG VICTIM SLEEPER COUNT    prints what is wrong; nothing is right
"""
import json
import subprocess
import sys
import time

giltracer, pid, hog, victim, sleeper, count = sys.argv[1], *map(int, sys.argv[2:])
LINES = {'keep': 18, 'hög': 32, 'victim': (36, 37)}
NAMES = {hog: 'hög 1', victim: 'V' * 63, sleeper: 'sleeper', pid: 'MainThread'}


def in_call(tid, name, number):
    with open('/proc/%d/task/%d/syscall' % (pid, tid)) as f:
        return f.read().split()[0] == str(number)


def wait_until_kept():
    """Wait until the hog is in read(2) of its FIFO: from then on, it holds the GIL."""
    deadline = time.monotonic() + 60
    while not in_call(hog, 'read', 0):
        if time.monotonic() > deadline:
            sys.exit('the hog does not come to its call')


def line_is(frame, name):
    lines = LINES.get(name, frame['line'])
    return frame['line'] in (lines if isinstance(lines, tuple) else (lines,))


def check(threads, gil_known, wrong):
    by_tid = {t['tid']: t for t in threads}
    names = {tid: [f['function'].split('.')[-1] for f in by_tid[tid]['frames']]
             for tid in (hog, victim, sleeper)}
    if gil_known and (threads[0]['tid'] != hog or threads[0]['gil'] != 'holds'):
        wrong.append('the first thread is %r' % threads[0])
    if names[hog][:2] != ['keep', 'hög'] or names[victim][:1] != ['victim']:
        wrong.append('stacks are %r' % names)
    if names[sleeper][:3] != ['wait', 'wait', 'sleeper']:
        wrong.append('the sleeper is in %r' % names[sleeper])
    for tid in (hog, victim):
        for frame in by_tid[tid]['frames'][:2 if tid == hog else 1]:
            if not line_is(frame, frame['function']) or not frame['file'].endswith('live.py'):
                wrong.append('frame is %r' % frame)
    if by_tid[victim]['gil'] == 'waits' and by_tid[victim]['holder_tid'] != hog:
        wrong.append('the victim waits for %r' % by_tid[victim]['holder_tid'])
    if {tid: by_tid[tid]['name'] for tid in NAMES} != NAMES:
        wrong.append('names are %r' % {tid: by_tid[tid]['name'] for tid in NAMES})
    if by_tid[sleeper]['gil'] or any(t['torn'] for t in threads):
        wrong.append('impossible: %r' % threads)
    return by_tid[victim]['gil'] == 'waits'


wait_until_kept()
wrong, waits = [], 0
deadline = time.monotonic() + 60
# It wakes up every 5 ms to ask for the GIL, and may be seen then.
while count > 0 or (not waits and time.monotonic() < deadline):
    count -= 1
    out = subprocess.run([giltracer, 'stacks', '-p', str(pid), '--json'],
                         stdout=subprocess.PIPE, check=True).stdout
    document = json.loads(out.decode('utf-8'))
    waits += check(document['threads'], document['gil_known'], wrong)
    if not document['gil_known']:
        waits = 1
if not waits:
    wrong.append('the victim is never seen waiting')
print('\n'.join(wrong[:5]), end='')
