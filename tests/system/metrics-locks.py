# SPDX-License-Identifier: MIT
# Threads that wait for a lock, in several lines, and idle ones. What the former measured themselves is written to the
# file in the argument; then a line is written to descriptor 9, and one of descriptor 8 ends the program.
import json
import os
import queue
import sys
import threading
import time

LINES = 9


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


def until_asleep(tids, count):
    times = 0
    while times < 20:
        time.sleep(0.001)
        times = times + 1 if len(tids) == count and all(map(sleeps, tids)) else 0


def takes_in(line):
    """A function that takes the lock in this line."""
    space = {'lock': lock}
    exec(compile('\n' * (line - 2) + 'def takes():\n    with lock: pass\n', 'lines.py', 'exec'), space)
    return space['takes']


def wait(takes, tids):
    was_awake, began = awake(), time.monotonic()
    tids.append(tid())
    takes()
    took.append((time.monotonic() - began) * 1e9)
    slept.append(took[-1] - (awake() - was_awake))


def idle():
    while items.get() is not None:
        pass


if __name__ == '__main__':
    # No thread has to release the GIL while it has a lock of Python's library: nobody waits but for this one.
    sys.setswitchinterval(1000)
    lock, items, took, slept = threading.Lock(), queue.Queue(), [], []
    idler = threading.Thread(target=idle, name='idle-1')
    idler.start()
    for line in range(10, 10 + LINES):
        takes, tids = takes_in(line), []
        threads = [threading.Thread(target=wait, args=(takes, tids), name='worker-%d' % i) for i in range(2)]
        with lock:
            for thread in threads:
                thread.start()
            until_asleep(tids, 2)
        for thread in threads:
            thread.join()
        items.put(line)
    items.put(None)
    idler.join()
    with open(sys.argv[1], 'w') as out:
        json.dump({'pid': os.getpid(), 'took': sum(took), 'slept': sum(slept)}, out)
    os.write(9, b'ready\n')
    os.read(8, 1)
