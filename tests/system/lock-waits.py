# SPDX-License-Identifier: MIT
# Threads that wait for locks, and threads that wait for signals. Each measures its own waits; the sums
# are printed, with the thread that ended the waits. Nothing here depends on how long anything takes.
import json
import os
import queue
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

HELD = 0.02
measured = {}


def sleeps(tid):
    """Whether the thread of this process sleeps."""
    with open('/proc/self/task/%d/stat' % tid) as stat:
        return stat.read().rpartition(')')[2].split()[0] == 'S'


def tid():
    return int(os.readlink('/proc/thread-self').rpartition('/')[2])


def now():
    return time.perf_counter_ns() if hasattr(time, 'perf_counter_ns') else int(time.perf_counter() * 1e9)


def delay():
    """For how long this thread has been runnable without a CPU."""
    with open('/proc/thread-self/schedstat') as schedstat:
        return int(schedstat.read().split()[1])


def since(began, delayed):
    """How long that is ago, and how much of it this thread was runnable without a CPU."""
    took = now() - began
    return took, delay() - delayed


def until(condition):
    """Waits without a lock: that of an Event would be recorded, too."""
    while not condition():
        time.sleep(0.0005)


def until_asleep(*tids):
    """Waits until all of these threads sleep."""
    for each in tids:
        while not sleeps(each):
            time.sleep(0.0005)


def run(*threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


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
            until(self.ready.is_set)
            self.ready.clear()
            until_asleep(self.tid)
            time.sleep(HELD)
            self.release()
            until(lambda: not self.turn.is_set())

    def wait(self):
        self.tid, waits = tid(), []
        for _ in range(self.times):
            until(self.turn.is_set)
            delayed = delay()
            self.ready.set()
            began = now()
            self.acquire()
            waits.append(since(began, delayed))
            self.free()
            self.turn.clear()
        measured[self.name] = [sum(each) for each in zip(*waits)]

    def run(self):
        run(threading.Thread(target=self.hold, name=self.name + '-holds'),
            threading.Thread(target=self.wait, name=self.name + '-waits'))


def twice(lock):
    lock.acquire()
    lock.acquire()


def undo_twice(lock):
    lock.release()
    lock.release()


def locks():
    lock, rlock, nested = threading.Lock(), threading.RLock(), threading.RLock()
    semaphore, condition = threading.Semaphore(1), threading.Condition()
    bounded = threading.BoundedSemaphore(2)
    bounded.acquire()
    outer, inner = threading.Lock(), threading.Lock()
    Case('lock', lock.acquire, lock.release).run()
    Case('rlock', rlock.acquire, rlock.release).run()
    Case('nested', lambda: twice(nested), lambda: undo_twice(nested)).run()
    Case('semaphore', semaphore.acquire, semaphore.release).run()
    Case('bounded', lambda: bounded.acquire(timeout=9), bounded.release).run()
    Case('condition', condition.acquire, condition.release).run()
    Case('timed', lambda: lock.acquire(timeout=9), lock.release).run()
    Case('two', lambda: (outer.acquire(), inner.acquire()),
         lambda: (inner.release(), outer.release())).run()


def chain():
    """chain-1 waits for chain-2, which waits for chain-3."""
    outer, inner = threading.Lock(), threading.Lock()
    tids, ready = {}, [threading.Event() for _ in range(3)]

    def third():
        with inner:
            ready[0].set()
            until(ready[2].is_set)
            until_asleep(tids[2], tids[1])
            time.sleep(2 * HELD)

    def second():
        until(ready[0].is_set)
        with outer:
            tids[2] = tid()
            delayed = delay()
            ready[1].set()
            began = now()
            with inner:
                measured['chain-2'] = since(began, delayed)

    def first():
        until(ready[1].is_set)
        tids[1] = tid()
        delayed = delay()
        ready[2].set()
        began = now()
        with outer:
            measured['chain-1'] = since(began, delayed)

    run(*[threading.Thread(target=f, name=name)
          for f, name in ((first, 'chain-1'), (second, 'chain-2'), (third, 'chain-3'))])


def notified_all():
    """Threads that were notified wait for the lock of the condition, which the notifying thread has."""
    condition, go, woken, tids = threading.Condition(), [], [], []

    def waits():
        delayed, began = delay(), now()
        with condition:
            first = now() - began
            tids.append(tid())
            condition.wait_for(lambda: go)
            took, delayed = since(woken[0], delayed)
            measured['woken-%d' % tids.index(tid())] = first + took, delayed

    def notifies():
        until(lambda: len(tids) == 3)
        with condition:
            until_asleep(*tids)
            go.append(True)
            woken.append(now())
            condition.notify_all()
            time.sleep(2 * HELD)

    run(threading.Thread(target=notifies, name='notifies'),
        *[threading.Thread(target=waits, name='woken') for i in range(3)])
    measured['woken'] = {each: measured.pop('woken-%d' % i) for i, each in enumerate(tids)}


def crowd():
    """Many threads wait for one lock."""
    lock, tids, waits = threading.Lock(), [], {}

    def one():
        delayed = delay()
        tids.append(tid())
        began = now()
        with lock:
            waits[tid()] = since(began, delayed)

    threads = [threading.Thread(target=one, name='crowd') for _ in range(300)]
    with lock:
        for thread in threads:
            thread.start()
        until(lambda: len(tids) == len(threads))
        until_asleep(*tids)
        time.sleep(2 * HELD)
    for thread in threads:
        thread.join()
    measured['crowd'] = waits


def imports():
    """Two threads import the same module, which takes its time."""
    tids = {}
    sys.path.insert(0, os.getcwd())
    with open('slow_module.py', 'w') as out:
        out.write('import __main__\n__main__.in_module()\n')

    def first():
        import slow_module  # noqa: F401

    def second():
        until(imports_now.is_set)
        delayed = delay()
        tids['second'] = tid()
        began = now()
        import slow_module  # noqa: F401
        measured['import-waits'] = since(began, delayed)

    def in_module():
        imports_now.set()
        until(lambda: 'second' in tids)
        until_asleep(tids['second'])
        time.sleep(2 * HELD)

    imports_now = threading.Event()
    sys.modules['__main__'].in_module = in_module
    run(threading.Thread(target=first, name='import-holds'), threading.Thread(target=second, name='import-waits'))


def forks():
    """A child has a copy of a lock that nobody in it can release."""
    lock, taken, done = threading.Lock(), threading.Event(), threading.Event()

    def holds():
        with lock:
            taken.set()
            done.wait()

    thread = threading.Thread(target=holds, name='fork-holds')
    thread.start()
    taken.wait()
    result, to = os.pipe()
    child = os.fork()
    if not child:
        began, delayed = now(), delay()
        lock.acquire(timeout=2 * HELD)
        os.write(to, b'%d %d' % since(began, delayed))
        os._exit(0)
    os.waitpid(child, 0)
    done.set()
    thread.join()
    measured['child'], measured['child-waits'] = child, [int(ns) for ns in os.read(result, 99).split()]


def consume(q):
    while q.get() is not None:
        pass


class Crowded:
    """The lock of a condition. When a thread that waits releases it, other locks are taken, more than the library
    remembers."""

    def __init__(self):
        self.lock, self.released, self.crowded = threading.Lock(), [], []

    def __getattr__(self, name):
        return getattr(self.lock, name)

    def __enter__(self):
        return self.lock.__enter__()

    def __exit__(self, *exception):
        return self.lock.__exit__(*exception)

    def release(self):
        self.released.append(True)
        until(lambda: self.crowded)
        self.lock.release()

    def take_others(self):
        until(lambda: self.released)
        locks = [threading.Lock() for _ in range(40000)]
        for lock in locks:
            lock.acquire()
        self.crowded.append(True)
        return locks


def signals():
    """Idle threads: they wait for a lock only while a thread that has it, or they themselves, have no CPU."""
    delayed, delays = delay(), []
    q, event, condition = queue.Queue(2), threading.Event(), threading.Condition()
    simple, shared = (getattr(queue, 'SimpleQueue', queue.Queue)() for _ in range(2))

    def notified():
        with condition:
            condition.wait()

    crowd = Crowded()

    def wait_in_crowd():
        condition = threading.Condition(crowd)
        with condition:
            condition.wait(4 * HELD)

    def wait_for():
        other = threading.Condition()
        with other:
            for _ in range(5):
                other.wait_for(lambda: False, HELD / 4)

    def produce():
        for i in range(5):
            full.put(i)

    def thread_of(target, *args, name):
        return threading.Thread(target=lambda: (target(*args), delays.append(delay())), name=name)

    full = queue.Queue(1)
    threads = [thread_of(consume, q, name='idle-queue'),
               thread_of(consume, simple, name='idle-simple'),
               thread_of(event.wait, name='idle-event'),
               thread_of(event.wait, 9, name='idle-timed'),
               thread_of(notified, name='idle-condition'),
               thread_of(wait_for, name='idle-wait-for'),
               thread_of(wait_in_crowd, name='idle-crowded'),
               thread_of(produce, name='idle-producer')]
    # All but one of these wait for a lock that another one has taken.
    threads += [thread_of(consume, shared, name='idle-shared-%d' % i) for i in range(3)]
    for thread in threads:
        thread.start()
    keep = crowd.take_others()
    time.sleep(HELD)
    others = [threading.Lock() for _ in range(100_000)]
    for i in range(3):
        # So many that the library forgets which thread has taken the lock of the shared queue.
        for other in others:
            with other:
                pass
        q.put(i)
        simple.put(i)
        shared.put(i)
        time.sleep(HELD)
    q.put(None)
    simple.put(None)
    for _ in range(3):
        shared.put(None)
    event.set()
    for _ in range(5):
        full.get()
        time.sleep(HELD / 4)
    with condition:
        condition.notify()
    for thread in threads:
        thread.join()
    del keep
    with ThreadPoolExecutor(2, thread_name_prefix='idle-pool') as pool:
        # A thread of the pool may do more than one of these.
        pool_delays = dict(pool.map(lambda _: (time.sleep(HELD), (tid(), delay()))[1], range(4)))
    measured['idle'] = delay() - delayed + sum(delays) + sum(pool_delays.values())


def time_outs():
    """Waits that no release ends."""
    lock = threading.Lock()
    lock.acquire()

    def impatient():
        began, delayed = now(), delay()
        for _ in range(3):
            lock.acquire(timeout=HELD)
        measured['impatient'] = since(began, delayed)
    thread = threading.Thread(target=impatient, name='impatient')
    thread.start()
    thread.join()


def at_exit():
    """The program ends while a daemon thread waits for a lock."""
    tids = []

    def daemon():
        tids.append(tid())
        held_to_the_end.acquire()

    held_to_the_end.acquire()
    threading.Thread(target=daemon, name='daemon', daemon=True).start()
    until(lambda: tids)
    until_asleep(*tids)
    time.sleep(HELD)


held_to_the_end = threading.Lock()
warnings.simplefilter('ignore')  # about a fork of a process that has threads
if __name__ == '__main__':
    locks()
    chain()
    notified_all()
    crowd()
    imports()
    forks()
    signals()
    time_outs()
    at_exit()
    with open(sys.argv[1], 'w') as out:
        json.dump(measured, out)
