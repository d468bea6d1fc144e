# SPDX-License-Identifier: MIT
"""Threads that release and take the GIL at all rates, end, and are followed by others, and children
that fork; until standard input ends. Prints its number when all of them run."""
import os
import sys
import threading

zero = os.open('/dev/zero', os.O_RDONLY)
ended = threading.Event()
running = threading.Barrier(5)


def reads():
    running.wait()
    while not ended.is_set():
        os.read(zero, 1)


def spins():
    running.wait()
    while not ended.is_set():
        sum(range(100000))


def starts():
    running.wait()
    while not ended.is_set():
        threads = [threading.Thread(target=sum, args=(range(2000),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pid = os.fork()
        if not pid:
            os.read(zero, 1)
            os._exit(0)
        os.waitpid(pid, 0)


if __name__ == '__main__':
    threads = [threading.Thread(target=f) for f in (reads, reads, spins, starts)]
    for thread in threads:
        thread.start()
    running.wait()
    print(os.getpid(), flush=True)
    sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join()
