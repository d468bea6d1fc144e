# SPDX-License-Identifier: MIT
"""A program for live.t: one thread keeps the GIL in a C call until it is told to release it, another
one wants it, a third waits for an event.

    live.py READY GO    READY is a FIFO that gets the thread ids of the three, GO one to release the
                        GIL with
"""
import ctypes
import os
import sys
import threading

libc = ctypes.PyDLL(None)  # its calls keep the GIL
GETTID, FUTEX = (178, '98') if os.uname().machine == 'aarch64' else (186, '202')


def keep(fd, buf):
    libc.read(fd, buf, 1)


def sleeps(event, tid):
    """Whether it waits for the event without a timeout. A wait for the GIL has one."""
    with open('/proc/self/task/%d/syscall' % tid) as f:
        call = f.read().split()
    return bool(event._cond._waiters) and call[0] == FUTEX and call[4] == '0x0'


def hög(fd, buf, spins, event, ids):
    # The others are where they are to be seen.
    while not spins or not sleeps(event, ids['sleeper']):
        os.sched_yield()
    keep(fd, buf)


def victim(stop, spins):
    while not stop:
        spins[:] = (1,)


def sleeper(event):
    event.wait()


def main(ready, go):
    fd = os.open(go, os.O_RDWR)
    stop, spins, event, ids = [], [], threading.Event(), {}

    def all_there():
        with open(ready, 'w') as out:
            out.write('%(hog)d %(victim)d %(sleeper)d\n' % ids)

    started = threading.Barrier(3, all_there)

    def run(name, function, *args):
        ids[name] = libc.syscall(GETTID)
        started.wait()
        function(*args)

    threads = [threading.Thread(target=run, args=args) for args in (
        ('hog', hög, fd, ctypes.create_string_buffer(1), spins, event, ids),
        ('victim', victim, stop, spins),
        ('sleeper', sleeper, event))]
    # Attributes of threads are kept in each way that there is.
    threads[0].name = 'hög 1'
    threads[1].name = 'V' * 80
    vars(threads[1])['more'] = 1
    threads[2].name = 'sleeper'
    for i in range(40):
        setattr(threads[2], 'x%d' % i, i)
    for thread in threads:
        thread.start()
    threads[0].join()
    stop.append(True)
    event.set()


main(*sys.argv[1:])
