# SPDX-License-Identifier: MIT
"""Programs with a fixed amount of work for threads: without-gil.py NAME [serial]. Prints how long the work took, in
seconds; with the word serial, one thread does all of it."""
import concurrent.futures
import _sha2
import json
import queue
import sys
import threading
import time

SERIAL = sys.argv[2:] == ['serial']


def compute(n):
    x = 0
    for i in range(n):
        x += i * i % 7
    return x


def run(*functions):
    """In threads of their own, or one after the other."""
    if SERIAL:
        for function in functions:
            function()
        return
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def each(function, items, threads=4):
    if SERIAL:
        return [function(item) for item in items]
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def computing():
    run(*[lambda: compute(6000000)] * 2)


def pipeline():
    """One thread makes items, two take them."""
    items = queue.Queue(8)

    def make():
        for _ in range(60):
            compute(60000)
            items.put(60000)
        items.put(None)
        items.put(None)

    def take():
        while (n := items.get()) is not None:
            compute(n)

    if SERIAL:
        items = queue.Queue()
    run(make, take, take)


def locked():
    """Half of the work is done with a lock."""
    lock = threading.Lock()

    def work():
        for _ in range(30):
            compute(90000)
            with lock:
                compute(90000)

    run(work, work)


def parsing():
    """C code that keeps the GIL."""
    text = json.dumps([{'id': i, 'name': 'name %d' % i, 'tags': ['a', 'b', str(i)]} for i in range(2000)])
    each(lambda _: len(json.loads(text)), range(300))


def hashing():
    """C code that releases the GIL, and Python."""
    data = b'x' * 4000000

    def work():
        for _ in range(30):
            _sha2.sha256(data).digest()
            compute(60000)

    run(work, work)


def stages():
    """A serial part, a parallel part, and a serial part."""
    compute(3000000)
    each(compute, [750000] * 8)
    compute(1500000)


if __name__ == '__main__':
    began = time.perf_counter()
    {'computing': computing, 'pipeline': pipeline, 'locked': locked, 'parsing': parsing,
     'hashing': hashing, 'stages': stages}[sys.argv[1]]()
    print(time.perf_counter() - began)
