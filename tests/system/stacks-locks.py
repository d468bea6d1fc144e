# SPDX-License-Identifier: MIT
# Two threads that wait for each other, one that waits for the lock of one of them under another name, and one that
# waits for an RLock. When all of them sleep, their numbers are in the file tids, and a line is written to descriptor
# 9; one of descriptor 8 ends the program.
import json
import os
import threading
import time


class Cache:
    def __init__(self):
        self._lock, self.again = threading.Lock(), threading.RLock()

    def get(self):
        with self._lock:
            both.wait()
            with other:
                pass

    def keep(self):
        with self.again:
            has.set()
            asleep.wait()

    def want(self):
        has.wait()
        with self.again:
            pass


def second():
    with other:
        both.wait()
        with cache._lock:
            pass


def third(lock):
    until(lambda: sleeps('get') and sleeps('second'))
    lock.acquire()


def sleeps(name):
    """Whether the thread sleeps in its last line."""
    for thread in threads:
        if thread.name == name:
            return name in tids and waits(tids[name])


def waits(tid, times=5):
    for _ in range(times):
        time.sleep(0.001)
        with open('/proc/self/task/%d/stat' % tid) as stat:
            if stat.read().rpartition(')')[2].split()[0] != 'S':
                return False
    return both.n_waiting == 0


def until(condition):
    while not condition():
        time.sleep(0.001)


def run(function, *args):
    name = threading.current_thread().name
    tids[name] = int(os.readlink('/proc/thread-self').rpartition('/')[2])
    function(*args)


if __name__ == '__main__':
    cache, other, both = Cache(), threading.Lock(), threading.Barrier(2)
    has, asleep, tids = threading.Event(), threading.Event(), {}
    threads = [threading.Thread(target=run, args=args, name=args[0].__name__, daemon=True)
               for args in ((cache.get,), (second,), (third, other), (cache.keep,), (cache.want,))]
    for thread in threads:
        thread.start()
    until(lambda: len(tids) == 5 and has.is_set() and all(waits(tid) for tid in tids.values()))
    # The third one has seen the others asleep, and sleeps for a lock now.
    until(lambda: all(waits(tid, 20) for tid in tids.values()))
    with open('tids', 'w') as out:
        json.dump(tids, out)
    os.write(9, b'ready\n')
    os.read(8, 1)
    os._exit(0)
