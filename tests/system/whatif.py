# SPDX-License-Identifier: MIT
"""Fixed work beside calls that keep the GIL, or, with the word free, let go of it: whatif.py KIND
[free]. Kinds: work (one thread computes), nap (it sleeps), two (two compute), mix (one computes, and
so does one in Python)."""
import sys
import threading
import time

import switchable

FREE = sys.argv[2:] == ['free']
gate = threading.Event()  # starting a thread may take long while it is traced


def victim():
    for _ in range(120):
        time.sleep(0.001)
        sum(range(3000))


def cruncher():
    x = 0
    for i in range(2500000):
        x += i * i % 7


def worker():
    for _ in range(12):
        switchable.work(20, FREE)
        time.sleep(0.002)


def napper():
    for _ in range(12):
        switchable.nap(20, FREE)
        time.sleep(0.002)


def gated(function):
    gate.wait()
    function()


def main(kind):
    functions = {'work': [worker], 'nap': [napper], 'two': [worker, worker],
                 'mix': [worker, cruncher]}[kind]
    threads = [threading.Thread(target=gated, args=(f,)) for f in [victim, victim] + functions]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()


if __name__ == '__main__':
    main(sys.argv[1])
