# SPDX-License-Identifier: MIT
"""Threads of a free-threaded interpreter block each other, and print for how long they did."""
import gc
import itertools
import json
import sys
import threading
import time

lock = threading.Lock()
shared = list(range(30))
waited = {}
running = True


def is_asleep(thread):
    if not thread.native_id:
        return False
    with open('/proc/self/task/%d/stat' % thread.native_id) as f:
        return f.read().rsplit(')', 1)[1].split()[0] == 'S'


def start(thread, asleep=False):
    thread.start()
    while asleep and not is_asleep(thread):
        time.sleep(0.001)


def spin(ms):
    end = time.perf_counter_ns() + ms * 1000000
    while time.perf_counter_ns() < end:
        pass


def wait(hold_ms):
    began = time.perf_counter_ns()
    lock.acquire()
    waited[threading.current_thread().name] = time.perf_counter_ns() - began
    spin(hold_ms)
    lock.release()


def locks():
    """The second waiting thread does not first try to get the lock: it sleeps for all of its wait."""
    first = threading.Thread(target=wait, args=(50,), name='first')
    second = threading.Thread(target=wait, args=(0,), name='second')
    lock.acquire()
    start(first, asleep=True)
    start(second, asleep=True)
    spin(100)
    lock.release()
    first.join()
    second.join()


def slow(x):
    spin(30)
    return x


def sort(started):
    started.set()
    shared.sort(key=slow)


def append(started):
    started.wait()
    spin(20)
    began = time.perf_counter_ns()
    shared.append(1)  # the line that waits
    waited['append'] = time.perf_counter_ns() - began


def objects():
    started = threading.Event()
    threads = [threading.Thread(target=sort, args=(started,), name='sort'),
               threading.Thread(target=append, args=(started,), name='append')]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Held:
    """An object is locked in C code that calls Python, until threads sleep for it, and 60 ms longer."""

    def __init__(self):
        self.begun = self.over = False

    def hold(self, x=None):
        self.begun = True
        while not self.over:
            pass
        spin(60)
        return x

    def keys(self):
        self.hold()
        return ()

    def asleep(self, name, call, *args):
        """A thread that calls that, and sleeps now; it measures for how long it waits."""
        calls = []

        def wait():
            while not self.begun:
                time.sleep(0.0001)
            began = time.perf_counter_ns()
            calls.append(began)
            call(*args)  # the one that waits
            waited[name] = time.perf_counter_ns() - began

        thread = threading.Thread(target=wait, name=name)
        thread.start()
        seen = 0
        while seen < 5:
            time.sleep(0.001)
            seen = seen + 1 if calls and is_asleep(thread) else 0
        return thread


def together(*threads):
    for thread in threads:
        thread.join()


def dicts():
    """A dict that asks a mapping for its keys is locked meanwhile."""
    held = Held()
    cache = {}
    holder = threading.Thread(target=cache.update, args=(held,), name='update')
    holder.start()
    waiter = held.asleep('set', cache.__setitem__, 'key', 1)
    held.over = True
    together(holder, waiter)


def nested():
    """A call that needs two objects has one of them while it waits for the other one."""
    held = Held()
    outer, inner = sorted(([1], [1]), key=id)
    holder = threading.Thread(target=inner.sort, kwargs={'key': held.hold}, name='sort')
    holder.start()
    both = held.asleep('extend', outer.extend, inner)
    third = held.asleep('append', outer.append, 1)
    held.over = True
    together(holder, both, third)


class Counter:
    def __init__(self):
        self.lock = threading.Lock()  # the lock
        self.value = 0

    def add(self):
        with self.lock:
            self.value += 1


def counter():
    held = Held()
    held.begun = True
    count = Counter()
    count.lock.acquire()
    threads = [held.asleep(name, count.add) for name in ('first', 'second')]
    spin(60)
    count.lock.release()
    together(*threads)


def sort_in_crowd(barrier):
    """One thread after the other; the others wait, but for the time for which they have no CPU."""
    own = [0]

    def delay():
        with open('/proc/thread-self/schedstat') as schedstat:
            return int(schedstat.read().split()[1])

    def key(x):
        began = time.perf_counter_ns()
        spin(4)
        own[0] += time.perf_counter_ns() - began
        return x

    barrier.wait()
    delayed = delay()
    began = time.perf_counter_ns()
    shared.sort(key=key)
    waited[threading.current_thread().name] = time.perf_counter_ns() - began - own[0]
    waited['delay of ' + threading.current_thread().name] = delay() - delayed


def crowd():
    del shared[10:]
    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=sort_in_crowd, args=(barrier,), name='sort-%d' % i)
               for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def compute(steps):
    while running:
        steps[0] += 1


def world():
    """Each collection stops running threads; a thread that gets no CPU in between stays stopped."""
    global running
    gc.disable()  # else it also comes by itself
    keep = [[i] for i in range(200000)]
    over = threading.Event()
    counts = [0], [0]
    threads = [threading.Thread(target=compute, name='compute-1', args=(counts[0],)),
               threading.Thread(target=compute, name='compute-2', args=(counts[1],)),
               threading.Thread(target=over.wait, name='idle')]
    for thread in threads:
        start(thread, asleep=thread.name == 'idle')
    waited['collect'] = 0
    for _ in range(5):
        for steps in counts:
            before = steps[0]
            while steps[0] == before:
                time.sleep(0.0001)
        began = time.perf_counter_ns()
        gc.collect()
        waited['collect'] += time.perf_counter_ns() - began
    running = False
    over.set()
    for thread in threads:
        thread.join()
    del keep


def straggle(started):
    """Each call holds up a stop until it has ended. It looks at the clock, in C, from its beginning to its end."""
    waited['calls'] = []
    started.set()
    while running:
        ticks = list(itertools.islice(iter(time.perf_counter_ns, None), 0, 1000000, 1000))  # the call
        waited['calls'].append((ticks[0], ticks[-1]))


def stop():
    global running
    started = threading.Event()
    thread = threading.Thread(target=straggle, args=(started,), name='straggler')
    thread.start()
    started.wait()
    waited['collections'] = []
    for _ in range(5):
        calls = len(waited['calls'])
        while len(waited['calls']) == calls:
            time.sleep(0.0001)
        began = time.perf_counter_ns()
        gc.collect()
        waited['collections'].append((began, time.perf_counter_ns()))
    running = False
    thread.join()


def compute_at_once(barrier):
    barrier.wait()
    spin(300)


def gil():
    """Two threads that compute; with "late", the import that turns the GIL on comes meanwhile."""
    barrier = threading.Barrier(3)
    threads = [threading.Thread(target=compute_at_once, args=(barrier,), name='spin-%d' % i)
               for i in (1, 2)]
    for thread in threads:
        thread.start()
    barrier.wait()
    if sys.argv[2:] == ['modern']:
        import modern
    if sys.argv[2:] == ['late']:
        import old_extension  # the import, late
        import other
    for thread in threads:
        thread.join()


if sys.argv[2:] == ['early']:
    import old_extension  # the import, early
    import other

if __name__ == '__main__':
    {'locks': locks, 'objects': objects, 'crowd': crowd, 'dicts': dicts,
     'nested': nested, 'counter': counter, 'world': world, 'stop': stop, 'gil': gil}[sys.argv[1]]()
    print(json.dumps(waited))
