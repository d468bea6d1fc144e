# SPDX-License-Identifier: MIT
"""A program for attach.t: one thread's calls keep the GIL for 30 ms each, another one wants it. It
works until the FIFO GO is closed.

    attach.py READY GO    READY is a FIFO that gets a line when both threads are at work
"""
import ctypes
import sys
import threading

libc = ctypes.PyDLL(None)  # its calls keep the GIL


def hog(stop, there):
    there.wait()
    while not stop:
        libc.usleep(30000)


def victim(stop, there):
    there.wait()
    while not stop:
        pass


def main(ready, go):
    stop, there = [], threading.Barrier(3)
    threads = [threading.Thread(target=f, args=(stop, there), name='my ' + f.__name__)
               for f in (hog, victim)]
    for thread in threads:
        thread.start()
    there.wait()
    print(file=open(ready, 'w'))
    with open(go) as f:
        f.read()
    stop.append(True)
    for thread in threads:
        thread.join()


main(*sys.argv[1:])
