# SPDX-License-Identifier: MIT
"""A program for gils.t: in the main interpreter and in two others, threads that spin and one that
sleeps. From 3.12 on, each of the others has a GIL of its own. Before that a thread is not asked for the
GIL by those of other interpreters, so all release it now and then.

    gils.py READY GO [REST]   READY is a FIFO that gets the numbers of the two others when all threads
                              are where they stay, GO one whose end ends the program; REST: for so many
                              seconds, those that spin sleep after each turn
"""
import os
import sys
import threading
import time

CODE = """
import os, threading, time
def inside():
    os.write(%(inside)d, b"x")
    os.read(%(begin)d, 1)
def spin_%(n)d():
    inside()
    while True:
        for _ in range(10000):
            pass
        %(release)s
def sleep_%(n)d():
    inside()
    time.sleep(3600)
threading.Thread(target=spin_%(n)d, name="spin %(n)d").start()
threading.Thread(target=sleep_%(n)d, name="sleep %(n)d").start()
spin_%(n)d()
"""


REST = float(sys.argv[3]) if len(sys.argv) > 3 else 0
RELEASE = "None" if sys.version_info >= (3, 12) and not REST else "time.sleep(%g)" % REST


def create():
    """In the main thread: before 3.13, what is made here has its numbers."""
    if sys.version_info >= (3, 13):
        import _interpreters as module
        return module.run_string, [module.create("isolated") for _ in range(2)]
    import _xxsubinterpreters as module
    isolated = {"isolated": sys.version_info >= (3, 12)} if sys.version_info >= (3, 9) else {}
    return module.run_string, [module.create(**isolated) for _ in range(2)]


def run(run_string, interpreter, number, inside, begin):
    run_string(interpreter, CODE % {"inside": inside, "begin": begin, "n": number,
                                     "release": RELEASE})


def spin_main(inside, begin):
    os.write(inside, b"x")
    os.read(begin, 1)
    while True:
        for _ in range(10000):
            pass
        if sys.version_info < (3, 12) or REST:
            time.sleep(REST)


def main(ready, go):
    inside, begin = os.pipe(), os.pipe()
    run_string, interpreters = create()
    ids = [int(interpreter) for interpreter in interpreters]
    for interpreter, n in zip(interpreters, ids):
        threading.Thread(target=run, args=(run_string, interpreter, n, inside[1], begin[0]),
                         name="run %d" % n).start()
    threading.Thread(target=spin_main, args=(inside[1], begin[0]), name="spin 0").start()
    # Nobody spins while the others still import what they need.
    for _ in range(3 * len(ids) + 1):
        os.read(inside[0], 1)
    os.write(begin[1], b"x" * (3 * len(ids) + 1))
    with open(ready, "w") as out:
        out.write("%d %d\n" % tuple(ids))
    with open(go) as end:
        end.read()
    os._exit(0)


main(*sys.argv[1:3])
