# SPDX-License-Identifier: MIT
"""Threads that sleep, compute, hash, write and sort: native stacks of many kinds."""
import hashlib
import json
import os
import sys
import tempfile
import threading
import time

ROUNDS = int(sys.argv[1])


def spin():
    total = 0
    for i in range(ROUNDS * 3000):
        total += i * i


def recurse(n):
    if n == 0:
        time.sleep(0.0001)
        return 0
    return 1 + recurse(n - 1)


def sleeper():
    for i in range(ROUNDS):
        recurse(i % 20)


def hasher():
    data = bytes(1 << 20)
    for _ in range(ROUNDS // 8):
        hashlib.sha256(data).digest()


def writer():
    with tempfile.TemporaryFile() as f:
        for _ in range(ROUNDS):
            f.write(b"x" * 4096)
            f.flush()
            os.fsync(f.fileno())


def sorter():
    for _ in range(ROUNDS):
        json.dumps(sorted((str(i) for i in range(300)), key=lambda s: (-len(s), s)))


def ping(mine, other):
    for _ in range(ROUNDS * 5):
        mine.acquire()
        other.release()


def main():
    a, b = threading.Semaphore(1), threading.Semaphore(0)
    threads = [threading.Thread(target=f) for f in (spin, sleeper, hasher, writer, sorter)]
    threads += [threading.Thread(target=ping, args=p) for p in ((a, b), (b, a))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


if __name__ == "__main__":
    main()
