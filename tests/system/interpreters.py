# SPDX-License-Identifier: MIT
"""What versions.t runs on every interpreter: threads whose truth is known.

Prints a line "PHASE NAME PID TID COUNT" for each thread, COUNT being how often it let the GIL go
by its own call. Runs on Python 3.6 to 3.15.
"""
import os
import sys
import threading
import time

SPIN = """
import os, time
tid = os.readlink("/proc/thread-self").split("/")[-1]
os.write(%d, b"x")
until = float(os.read(%d, 32))
while time.monotonic() < until:
    for _ in range(1000):
        pass
os.write(1, ("%s - %%d %%s 0\\n" %% (os.getpid(), tid)).encode())
"""


def say(phase, name, count=0):
    tid = os.readlink("/proc/thread-self").split("/")[-1]
    os.write(1, ("%s %s %d %s %d\n" % (phase, name, os.getpid(), tid, count)).encode())


def spin(phase, until):
    while time.monotonic() < until:
        for _ in range(1000):
            pass
    say(phase, "spin")


def repeat(phase, name, call, times):
    for _ in range(times):
        call()
    say(phase, name, times)


def together(*calls, before=None):
    threads = [threading.Thread(target=call[0], args=call[1:]) for call in calls]
    for thread in threads:
        thread.start()
    if before:
        before()
    for thread in threads:
        thread.join()


def mix(seconds):
    """The counts do not depend on the duration."""
    until = time.monotonic() + seconds
    together((spin, "mix", until), (spin, "mix", until),
             (repeat, "mix", "sleep", lambda: time.sleep(0), 40),
             (repeat, "mix", "stat", lambda: os.stat("/"), 40))


def create_interpreters(own):
    """Create two interpreters and threads that run code in them; own: each has its own GIL (3.12)."""
    if sys.version_info >= (3, 13):
        import _interpreters as module
        ids = [module.create("isolated" if own else "legacy") for _ in range(2)]
    else:
        import _xxsubinterpreters as module
        flag = {"isolated": own} if sys.version_info >= (3, 9) else {}
        ids = [module.create(**flag) for _ in range(2)]
    return ids, module.run_string, module.destroy


def interpreters(phase, seconds):
    try:
        ids, run, destroy = create_interpreters(phase == "own")
    except ImportError:
        return
    ready, go = os.pipe(), os.pipe()

    def begin():
        """Wait until both exist: the time until then is not measured."""
        for _ in ids:
            os.read(ready[0], 1)
        os.write(go[1], b"%-32r" % (time.monotonic() + seconds) * len(ids))

    code = SPIN % (ready[1], go[0], phase)
    together(*[(run, i, code) for i in ids], before=begin)
    for i in ids:
        destroy(i)


def fork(seconds):
    child = os.fork()
    if child == 0:
        until = time.monotonic() + seconds
        together((spin, "fork", until), (spin, "fork", until))
        os._exit(0)
    os.waitpid(child, 0)


def main():
    until = time.monotonic() + 1
    together((spin, "spinners", until), (spin, "spinners", until))
    mix(0.5)
    interpreters("shared", 0.3)
    if sys.version_info >= (3, 12):
        interpreters("own", 0.3)
    fork(0.4)


if __name__ == "__main__":
    main()
