# SPDX-License-Identifier: MIT
"""unprivileged.py run: a program with one culprit.
unprivileged.py: where root's report (root.json, root.html) and a user's (user.json, user.html) differ.

What cannot be the same of two executions is left out: times, ids and the order of what is equal.
"""
import json
import os
import re
import sys
import threading
import time


def crunch():
    return sum(range(8000000))


def work():
    time.sleep(0.05)  # the main thread waits for this one then, not for the GIL
    for _ in range(4):
        crunch()


def poll(done):
    while not done:
        time.sleep(0.002)


def run():
    done = []
    poller = threading.Thread(target=poll, args=(done,), name='poller')
    worker = threading.Thread(target=work, name='worker')
    poller.start()
    worker.start()
    worker.join()
    done.append(True)
    poller.join()


def structure(value):
    """Keys of all objects, and what types of elements lists have."""
    if isinstance(value, dict):
        return {key: structure(v) for key, v in value.items()}
    if isinstance(value, list):
        return structure(value[0]) if value else None
    return None


def merged(a, b):
    """Two structures of which either may lack what an empty list has, or what is null."""
    if a is None or b is None:
        return True
    return a.keys() == b.keys() and all(merged(a[key], b[key]) for key in a)


def place(function):
    return function['function'], os.path.basename(function['file']), function['line']


def culprits(report):
    """What a reader is told: of which kind the trouble is, and whose fault."""
    names = {t['tid']: t['name'] for t in report['threads']}
    held = [b for b in report['blame'] if b['holder_tid']]
    worst = max(held, key=lambda b: b['wait_ns'])
    return {
        'verdict': report['verdict']['kind'],
        'threads': sorted(names.values()),
        'GILs': len(report['gils']),
        'blame': (names[worst['waiter_tid']], names[worst['holder_tid']]),
        'kept by': [place(h) for h in report['hogs'][:1]],
        'called by': [h['caller'] and place(h['caller']) for h in report['hogs'][:1]],
        'held until': [place(f) for f in report['functions'][:1]],
        'unknown': [t['name'] for t in report['threads'] if t['unknown_ns'] > t['total_ns'] / 50],
    }


def page(path):
    """The parts of a page: elements that have a name, and documents in it."""
    text = open(path).read()
    return sorted(set(re.findall(r'<[a-z]+ [^>]*\bid="?([-\w]+)', text)))


def main():
    if sys.argv[1:] == ['run']:
        return run()
    root, user = (json.load(open(name)) for name in ('root.json', 'user.json'))
    if not merged(structure(root), structure(user)):
        print('the documents have other keys')
    if culprits(root) != culprits(user):
        print('root: %s\nuser: %s' % (culprits(root), culprits(user)))
    if page('root.html') != page('user.html'):
        print('parts of one page only: %s' % sorted(set(page('root.html')) ^ set(page('user.html'))))


if __name__ == '__main__':
    main()
