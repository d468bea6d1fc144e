# SPDX-License-Identifier: MIT
"""Threads that spin, one that keeps the GIL when it is asked for it, one that releases it to compress, and
one that naps."""
import threading, time, zlib

def spin(seconds):
    end = time.time() + seconds
    while time.time() < end:
        pass

def hog():
    for i in range(3):
        sum(range(3000000))

def release():
    data = b'x' * 1000000
    for i in range(20):
        zlib.compress(data)

def nap():
    for i in range(50):
        time.sleep(0.005)

if __name__ == '__main__':
    threads = [threading.Thread(target=spin, args=(0.4,), name='spin-%d' % i) for i in range(2)]
    threads += [threading.Thread(target=f, name=f.__name__) for f in (hog, release, nap)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
