# SPDX-License-Identifier: MIT
"""For nogil-live.t: a free-threaded program whose threads wait for a dict's lock and for collections.

    nogil-join.py READY GO [works]    READY is a FIFO that gets a line; the program ends when GO has a line.
                                      Until then, the main thread waits, or works
"""
import gc
import sys
import threading

cache = {}
stop = False


def work():
    while not stop:
        for i in range(1000):
            cache[i % 100] = i  # the line


def collect(tick):
    while not tick.wait(0.02):
        gc.collect()  # the collection


def read(go):
    global stop
    with open(go) as line:
        line.readline()
    stop = True


def main(ready, go, works=None):
    tick = threading.Event()
    threads = [threading.Thread(target=work, name='worker-%d' % i) for i in range(4)]
    threads.append(threading.Thread(target=collect, args=(tick,), name='collector'))
    for thread in threads:
        thread.start()
    reader = threading.Thread(target=read, args=(go,), name='reader')
    reader.start()
    with open(ready, 'w') as out:
        print('ready', file=out)
    if works:
        work()
    reader.join()  # a wait from which the main thread can be woken
    tick.set()
    for thread in threads:
        thread.join()


if __name__ == '__main__':
    main(*sys.argv[1:])
