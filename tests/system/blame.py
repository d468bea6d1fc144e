# SPDX-License-Identifier: MIT
"""Programs whose guilty thread and function are known: blame.py KIND runs one of them, and prints
what it knows as JSON: tids of the culprits, and how long each hold of theirs was, if they measured.

Victims wake up every millisecond and want the GIL for a moment."""
import json
import os
import re
import sys
import threading
import time

VICTIMS = 3


def tid():
    return int(os.readlink('/proc/thread-self').rsplit('/', 1)[1])


def victim(go, stop):
    go.wait()
    while not stop.is_set():
        time.sleep(0.001)


def kept_by_pow(measured):
    for _ in range(12):
        pow(3, 500000)
        time.sleep(0.001)


def kept_by_re(measured):
    for _ in range(12):
        re.match('(a+)+$', 'a' * 20 + 'b')
        time.sleep(0.001)


def slow_key(x):
    y = x
    for _ in range(300):
        y = y * 3 % 1000003
    return y


def kept_by_sorted(measured):
    for _ in range(4):
        sorted(range(3000), key=slow_key)


DOCUMENT = '[%s]' % ','.join(['{"a": [1, 2, 3], "b": "c"}'] * 40000)


def kept_by_json(measured):
    for _ in range(6):
        json.loads(DOCUMENT)
        time.sleep(0.001)


def kept_asleep(measured):
    import keeps
    for _ in range(10):
        measured.append(keeps.sleep(20))
        time.sleep(0.001)


def kept_busy(measured):
    import keeps
    for _ in range(10):
        measured.append(keeps.spin(20))
        time.sleep(0.001)


def spin(stop):
    n = 0
    while not stop.is_set():
        for i in range(1000):
            n += i


def convoy():
    """Make short calls that release the GIL and get it back an interval later, with a spinner running."""
    stop = threading.Event()
    culprits = []

    def spinner():
        culprits.append(tid())
        spin(stop)

    thread = threading.Thread(target=spinner)
    thread.start()
    for _ in range(80):
        time.sleep(0.0001)
    stop.set()
    thread.join()
    print(json.dumps({'culprits': culprits, 'victim': tid()}))


def work(function, go, culprits, measured):
    culprits.append(tid())
    go.wait()
    function(measured)


def main(kind):
    if kind == 'convoy':
        convoy()
        return
    culprits, measured = [], []
    functions = {'crowd': [kept_by_pow, kept_by_re]}.get(kind) or [globals()['kept_' + kind]]
    # When all are there: who starts a thread keeps the GIL in clone, on a busy machine for long.
    go, stop = threading.Event(), threading.Event()
    victims = [threading.Thread(target=victim, args=(go, stop))
               for _ in range(8 if kind == 'crowd' else VICTIMS)]
    hogs = [threading.Thread(target=work, args=(one, go, culprits, measured))
            for one in functions]
    for thread in victims + hogs:
        thread.start()
    go.set()
    for thread in hogs:
        thread.join()
    stop.set()
    for thread in victims:
        thread.join()
    print(json.dumps({'culprits': culprits, 'measured': measured}))


if __name__ == '__main__':
    main(sys.argv[1])
