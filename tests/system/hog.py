# SPDX-License-Identifier: MIT
"""Until its input ends: "hog" has a thread that keeps the GIL and one that waits for it, "innocent" one that
only uses it, "hogs" are two processes. Each prints its process number."""
import os
import sys
import threading

over = threading.Event()


def waits():
    while not over.wait(0.001):
        pass


def hogs():
    while not over.is_set():
        sum(range(2000000))


def turns():
    while not over.is_set():
        for _ in range(1000):
            pass


if sys.argv[1] == 'hogs':
    os.fork()
work = {'hog': (hogs, waits), 'hogs': (hogs, waits), 'innocent': (turns,)}[sys.argv[1]]
threads = [threading.Thread(target=f, name=f.__name__ + '-1') for f in work]
print(os.getpid(), flush=True)
for thread in threads:
    thread.start()
sys.stdin.read()
over.set()
for thread in threads:
    thread.join()
