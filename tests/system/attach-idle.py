# SPDX-License-Identifier: MIT
"""Programs for attach-idle.t that sleep until the FIFO GO is opened for writing.

    attach-idle.py KIND READY GO    READY is a FIFO that is opened right before

    deadlock    two threads that wait for each other for ever
    parent      a process that waits for its child, two of whose threads work
    gil         a thread that keeps the GIL in its sleep, and one that waits for the GIL
"""
import ctypes
import os
import sys
import threading
import time


def announce(ready):
    open(ready, 'w').close()


def deadlock(ready, go):
    locks, both = (threading.Lock(), threading.Lock()), threading.Barrier(2)

    def lock(first, second):
        with first:
            both.wait()
            with second:
                pass

    for name, order in ('one', locks), ('two', locks[::-1]):
        threading.Thread(target=lock, args=order, name=name, daemon=True).start()
    announce(ready)
    open(go).close()


def parent(ready, go):
    if os.fork():
        os.wait()
        return
    stop = []

    def spin():
        while not stop:
            pass

    for i in range(2):
        threading.Thread(target=spin, name='request-%d' % i).start()
    announce(ready)
    open(go).close()
    stop.append(True)


def gil(ready, go):
    stop, started = [], threading.Event()

    def spin():
        started.set()
        while not stop:
            time.sleep(0)  # the switch interval may be 1000 s already: let go for the other one

    libc = ctypes.PyDLL(None)  # its calls keep the GIL
    thread = threading.Thread(target=spin, name='waits')
    thread.start()
    started.wait()
    announce(ready)
    sys.setswitchinterval(1000)  # longer than any recording: who waits for the GIL does not wake
    libc.close(libc.open(os.fsencode(go), os.O_RDONLY))
    stop.append(True)
    sys.setswitchinterval(0.001)
    thread.join()


{'deadlock': deadlock, 'parent': parent, 'gil': gil}[sys.argv[1]](*sys.argv[2:])
sys.stdout.flush()
os._exit(0)
