# SPDX-License-Identifier: MIT
# Threads that wait for locks, and threads that wait for signals. Each measures its own waits; the sums
# are printed, with the thread that ended the waits. Nothing here depends on how long anything takes.
import json
import os
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

HELD = 0.02
measured = {}


def sleeps(tid):
    """Whether the thread of this process sleeps."""
    with open('/proc/self/task/%d/stat' % tid) as stat:
        return stat.read().rpartition(')')[2].split()[0] == 'S'


def tid():
    return int(os.readlink('/proc/thread-self').rpartition('/')[2])


class Case:
    """A holder lets a waiter begin to wait, and keeps it waiting for HELD."""

    def __init__(self, name, acquire, release, free=None, times=3):
        self.name, self.acquire, self.release, self.times = name, acquire, release, times
        self.free = free or release
        self.turn, self.ready, self.tid = threading.Event(), threading.Event(), 0

    def hold(self):
        for _ in range(self.times):
            self.acquire()
            self.turn.set()
            self.ready.wait()
            self.ready.clear()
            while not sleeps(self.tid):
                time.sleep(0.0005)
            time.sleep(HELD)
            self.release()
            while self.turn.is_set():
                time.sleep(0.0005)

    def wait(self):
        self.tid, waited = tid(), 0
        for _ in range(self.times):
            self.turn.wait()
            self.ready.set()
            began = time.perf_counter_ns() if hasattr(time, 'perf_counter_ns') else time.perf_counter() * 1e9
            self.acquire()
            waited += (time.perf_counter_ns() if hasattr(time, 'perf_counter_ns') else time.perf_counter() * 1e9) - began
            self.free()
            self.turn.clear()
        measured[self.name] = waited

    def run(self):
        threads = [threading.Thread(target=self.hold, name=self.name + '-holds'),
                   threading.Thread(target=self.wait, name=self.name + '-waits')]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def twice(lock):
    lock.acquire()
    lock.acquire()


def undo_twice(lock):
    lock.release()
    lock.release()


def locks():
    lock, rlock, nested = threading.Lock(), threading.RLock(), threading.RLock()
    semaphore, condition = threading.Semaphore(1), threading.Condition()
    outer, inner = threading.Lock(), threading.Lock()
    Case('lock', lock.acquire, lock.release).run()
    Case('rlock', rlock.acquire, rlock.release).run()
    Case('nested', lambda: twice(nested), lambda: undo_twice(nested)).run()
    Case('semaphore', semaphore.acquire, semaphore.release).run()
    Case('condition', condition.acquire, condition.release).run()
    Case('timed', lambda: lock.acquire(timeout=9), lock.release).run()
    Case('two', lambda: (outer.acquire(), inner.acquire()),
         lambda: (inner.release(), outer.release())).run()


def consume(q):
    while q.get() is not None:
        pass


def signals():
    """Idle threads: none of their time is a wait for a lock."""
    q, simple, event, condition = queue.Queue(2), queue.Queue(), threading.Event(), threading.Condition()
    if hasattr(queue, 'SimpleQueue'):
        simple = queue.SimpleQueue()

    def notified():
        with condition:
            condition.wait()

    threads = [threading.Thread(target=consume, args=(q,), name='idle-queue'),
               threading.Thread(target=consume, args=(simple,), name='idle-simple'),
               threading.Thread(target=event.wait, name='idle-event'),
               threading.Thread(target=event.wait, args=(9,), name='idle-timed'),
               threading.Thread(target=notified, name='idle-condition')]
    for thread in threads:
        thread.start()
    time.sleep(HELD)
    for i in range(3):
        q.put(i)
        simple.put(i)
        time.sleep(HELD)
    q.put(None)
    simple.put(None)
    event.set()
    with condition:
        condition.notify()
    for thread in threads:
        thread.join()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: time.sleep(HELD), range(4)))


def time_outs():
    """Waits that no release ends."""
    lock = threading.Lock()
    lock.acquire()

    def impatient():
        for _ in range(3):
            lock.acquire(timeout=HELD)
    thread = threading.Thread(target=impatient, name='impatient')
    thread.start()
    thread.join()


if __name__ == '__main__':
    locks()
    signals()
    time_outs()
    with open(sys.argv[1], 'w') as out:
        json.dump(measured, out)
