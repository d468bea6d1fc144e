# SPDX-License-Identifier: MIT
"""Threads that release and take the GIL all the time, and count how often, until a while after giltracer has
written a message.

    turns.py THREADS MESSAGES COUNTS [fork|spawn]

and likewise in a child process, which begins after the message. MESSAGES is giltracer's stderr, empty at first; COUNTS gets one line "PID TID HOLDS" for each thread. No thread is
made to switch, so each hold ends with one of the calls that are counted.
"""
import _thread
import os
import sys

AFTER = 20000
MOST = 2000000


def work(messages, counts, done):
    r, w = os.pipe()
    holds, after = 2, 0  # the first, and that which os.pipe ended
    while after < AFTER and holds < MOST:
        for _ in range(50):
            os.write(w, b'x')
            os.read(r, 1)
        holds += 101
        if after or os.stat(messages).st_size:
            after += 50
            holds -= after > 50
    tid = int(os.readlink('/proc/thread-self').rsplit('/', 1)[1])
    os.write(counts, b'%d %d %d\n' % (os.getpid(), tid, holds + 2))
    done.release()


def run(threads, messages, path):
    counts = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    locks = [_thread.allocate_lock() for _ in range(threads)]
    for lock in locks:
        lock.acquire()
        _thread.start_new_thread(work, (messages, counts, lock))
    for lock in locks:
        lock.acquire()


def main(threads, messages, path, child=None):
    sys.setswitchinterval(1000)
    run(int(threads), messages, path)
    if child == 'fork' and os.fork() == 0:
        run(int(threads), messages, path)
        os._exit(0)
    elif child == 'spawn':
        os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, __file__, threads, messages, path])
    if child:
        os.wait()


if __name__ == '__main__':
    main(*sys.argv[1:])
