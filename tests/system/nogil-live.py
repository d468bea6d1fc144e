# SPDX-License-Identifier: MIT
"""For nogil-live.t: threads of a free-threaded interpreter that compute, wait for a lock, and come and go.

    nogil-live.py READY GO    READY is a FIFO that gets the thread ids of computer, waiter and sleeper; the
                              program ends when GO has a line
"""
import os
import sys
import threading

FUTEX = '98' if os.uname().machine == 'aarch64' else '202'
lock = threading.Lock()
stop = False


def compute(depth):
    if depth:
        compute(depth - 1)  # the call
    while not stop:
        sum(range(100))


def wait(reached):
    reached.append(True)
    with lock:  # the wait
        pass


def sleep(event):
    event.wait()


def sleeps(tid):
    with open('/proc/self/task/%d/syscall' % tid) as call:
        return call.read().split()[0] == FUTEX


def churn():
    def short(depth):
        return short(depth - 1) if depth else 0

    while not stop:
        thread = threading.Thread(target=short, args=(50,), name='short')
        thread.start()
        thread.join()


def main(ready, go):
    global stop
    event, reached, ids = threading.Event(), [], {}
    started = threading.Barrier(4)

    def run(function, *args):
        ids[threading.current_thread().name] = threading.get_native_id()
        started.wait()
        function(*args)

    threads = [threading.Thread(target=run, args=args, name=name) for name, args in (
        ('computer', (compute, 3)), ('waiter', (wait, reached)), ('sleeper', (sleep, event)))]
    threads.append(threading.Thread(target=churn, name='churn'))
    with lock:
        for thread in threads:
            thread.start()
        started.wait()
        while not (event._cond._waiters and reached and sleeps(ids['sleeper']) and sleeps(ids['waiter'])):
            os.sched_yield()
        with open(ready, 'w') as out:
            print(ids['computer'], ids['waiter'], ids['sleeper'], file=out)
        with open(go) as line:
            line.readline()
    stop = True
    event.set()
    for thread in threads:
        thread.join()


if __name__ == '__main__':
    main(*sys.argv[1:])
