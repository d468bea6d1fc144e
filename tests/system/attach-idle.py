# SPDX-License-Identifier: MIT
"""Programs for attach-idle.t that sleep until the FIFO GO is closed.

    attach-idle.py READY GO KIND    READY is a FIFO that gets a line right before

    deadlock    two threads that wait for each other for ever
    joined      the same, while the main thread waits for their end
    parent      a process that waits for its child, two of whose threads work
    alone       one thread that computes until SIGUSR1
    gil         a thread that keeps the GIL in its sleep, and one that waits for the GIL
"""
import ctypes
import os
import signal
import sys
import threading
import time


def announce(ready):
    print(file=open(ready, 'w'), flush=True)


def lock_up():
    """Both threads are about to wait."""
    locks, both = (threading.Lock(), threading.Lock()), threading.Barrier(2)

    def lock(first, second):
        with first:
            both.wait()
            with second:
                pass

    for name, order in ('one', locks), ('two', locks[::-1]):
        threading.Thread(target=lock, args=order, name=name, daemon=True).start()


def deadlock(ready, go):
    lock_up()
    announce(ready)
    open(go).read()


def joined(ready, go):
    def end():
        announce(ready)
        open(go).read()
        os._exit(0)

    lock_up()
    threading.Thread(target=end, name='end', daemon=True).start()
    for thread in threading.enumerate()[1:]:
        thread.join()


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
    open(go).read()
    stop.append(True)


def alone(ready, _):
    stop = []
    signal.signal(signal.SIGUSR1, lambda *_: stop.append(True))
    announce(ready)
    while not stop:
        pass


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
    libc.read(os.open(go, os.O_RDONLY), ctypes.create_string_buffer(1), 1)
    stop.append(True)
    sys.setswitchinterval(0.001)
    thread.join()


{'deadlock': deadlock, 'joined': joined, 'parent': parent, 'alone': alone, 'gil': gil}[sys.argv[3]](*sys.argv[1:3])
sys.stdout.flush()
os._exit(0)
