# SPDX-License-Identifier: MIT
# Programs whose chains of waits are known: each wait is measured by the thread that waits, with the thread that
# ends it. One line of JSON for each wait, to the descriptor in the argument.
import atexit
import concurrent.futures
import json
import logging
import os
import queue
import sys
import threading
import time
import warnings

HELD = 0.01
out = os.fdopen(int(sys.argv[1]), 'w')


def now():
    """CLOCK_MONOTONIC, as giltracer dump prints it."""
    if hasattr(time, 'monotonic_ns'):
        return time.monotonic_ns()
    return int(time.monotonic() * 1e9)


def tid():
    return int(os.readlink('/proc/thread-self').rpartition('/')[2])


def awake():
    """For how long the thread has been on a CPU, or runnable without one."""
    with open('/proc/thread-self/schedstat') as schedstat:
        runnable = int(schedstat.read().split()[1])
    return runnable + int(time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) * 1e9)


def sleeps(of):
    with open('/proc/self/task/%d/stat' % of) as stat:
        return stat.read().rpartition(')')[2].split()[0] == 'S'


def until(condition):
    while not condition():
        time.sleep(0.0005)


def until_asleep(of, times=3):
    """Until the thread has been seen asleep some times."""
    seen = 0
    while seen < times:
        time.sleep(0.0005)
        seen = seen + 1 if sleeps(of) else 0


class Wait:
    """A wait that is measured. waker: the thread that ends it; None: a time-out; mutex: the address of the PyMutex that
    is waited for, if it is known"""

    def __init__(self, name, mutex=None):
        self.name, self.tid, self.waker, self.mutex = name, 0, None, mutex

    def measure(self, wait, *args, **named):
        self.begin()
        wait(*args, **named)
        self.end()

    def begin(self):
        self.awake = awake()
        self.tid = tid()
        self.began = now()

    def end(self):
        ended = now()
        out.write(json.dumps({'name': self.name, 'pid': os.getpid(), 'tid': self.tid, 'waker': self.waker,
                              'began': self.began, 'ended': ended, 'awake': awake() - self.awake,
                              'mutex': self.mutex}) + '\n')
        out.flush()

    def begun(self):
        """Called by the waker: the thread waits."""
        self.waker = tid()
        until(lambda: self.tid)
        until_asleep(self.tid)
        time.sleep(HELD)


def pair(name, wait, wake, before=None, of=None):
    """A thread waits, and the main one wakes it. of: the lock, which contains a PyMutex from 3.14 on"""
    w = Wait(name, id(of) + 16 if of and sys.version_info >= (3, 14) else None)
    if before:
        before()
    thread = threading.Thread(target=w.measure, args=(wait,), name=name)
    thread.start()
    w.begun()
    wake()
    thread.join()


def lock():
    one = threading.Lock()
    pair('Lock', one.acquire, one.release, one.acquire, one)


def rlock():
    one = threading.RLock()

    def twice():
        one.acquire()
        one.acquire()

    def undo():
        one.release()
        one.release()
    pair('RLock, taken twice', one.acquire, undo, twice, one)


def semaphore():
    one = threading.Semaphore(1)
    pair('Semaphore', one.acquire, one.release, one.acquire)


def event():
    one = threading.Event()
    pair('Event', one.wait, one.set)


def bounded_queue():
    one = queue.Queue(1)
    pair('Queue.get', one.get, lambda: one.put(1))
    one.put(1)
    pair('Queue.put of a full queue', lambda: one.put(2), one.get)


def barrier():
    one = threading.Barrier(2)
    pair('Barrier', one.wait, one.wait)


def condition():
    one, go = threading.Condition(), []

    def waits():
        with one:
            one.wait_for(lambda: go)

    def notifies():
        with one:
            go.append(True)
            one.notify_all()
    pair('Condition.wait_for', waits, notifies)


def time_outs():
    one = threading.Condition()

    def waits():
        with one:
            for _ in range(3):
                one.wait_for(lambda: False, HELD)
    Wait('Condition.wait_for with time-outs').measure(waits)
    held = threading.Lock()
    held.acquire()
    Wait('Lock.acquire with a time-out').measure(held.acquire, timeout=HELD)


def nested():
    """a is held by a thread that waits for b, which the main thread has."""
    a, b = threading.Lock(), threading.Lock()
    outer, inner = Wait('the outer lock'), Wait('the inner lock')

    def holds():
        a.acquire()
        inner.measure(b.acquire)
        outer.waker = tid()
        until_asleep(outer.tid)
        time.sleep(HELD)
        a.release()

    b.acquire()
    first = threading.Thread(target=holds)
    first.start()
    until(lambda: inner.tid)
    until_asleep(inner.tid)
    second = threading.Thread(target=outer.measure, args=(a.acquire,))
    second.start()
    until(lambda: outer.tid)
    until_asleep(outer.tid)
    inner.begun()
    b.release()
    first.join()
    second.join()


class Slow(logging.Handler):
    """Writes when it is told to."""

    def __init__(self):
        super().__init__()
        self.waiting = Wait('the lock of a logging handler')
        self.writes, self.done = [], False

    def emit(self, record):
        self.writes.append(tid())
        if len(self.writes) == 1:
            self.waiting.begun()


def log():
    logger, handler = logging.getLogger('bank'), Slow()
    logger.propagate = False
    logger.addHandler(handler)
    first = threading.Thread(target=logger.error, args=('one',))
    first.start()
    until(lambda: handler.writes)
    second = threading.Thread(target=handler.waiting.measure, args=(logger.error, 'two'))
    second.start()
    first.join()
    second.join()


def imports():
    w = Wait('an import')

    def in_module():
        started.append(True)
        w.begun()

    def imports_it():
        import bank_module  # noqa: F401
    started = []
    sys.path.insert(0, os.getcwd())
    with open('bank_module.py', 'w') as module:
        module.write('import __main__\n__main__.in_module()\n')
    sys.modules['__main__'].in_module = in_module
    first = threading.Thread(target=imports_it)
    first.start()
    until(lambda: started)
    second = threading.Thread(target=w.measure, args=(imports_it,))
    second.start()
    first.join()
    second.join()


def fork():
    """The child waits for a lock that a thread of the parent has."""
    one = threading.Lock()
    one.acquire()
    child = os.fork()
    if not child:
        Wait('a lock that was held at a fork').measure(one.acquire, timeout=HELD)
        os._exit(0)
    os.waitpid(child, 0)
    pair('the same lock in the parent', one.acquire, one.release)


def pool():
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        w = Wait('Future.result')
        w.measure(executor.submit(w.begun).result)


def join():
    w = Wait('Thread.join')
    thread = threading.Thread(target=w.begun)
    thread.start()
    w.measure(thread.join)


def at_exit():
    """The interpreter waits for the last thread before it ends."""
    w = Wait('the end of the interpreter')

    atexit.register(w.end)
    threading.Thread(target=w.begun).start()
    w.begin()


warnings.simplefilter('ignore')  # about a fork of a process that has threads
if __name__ == '__main__':
    for case in (lock, rlock, semaphore, event, bounded_queue, barrier, condition, time_outs, nested, log, imports,
                 fork, pool, join, at_exit):
        case()
