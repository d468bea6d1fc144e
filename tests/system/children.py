# SPDX-License-Identifier: MIT
"""Programs with other processes and odd threads, for children.t.

    children.py fork|spawn|forkserver|subprocess|scripts|exec|again|early|daemons
    children.py other PYTHON

Prints a line "WHAT PID TID" for each thread to be found in the report.
"""
import multiprocessing
import os
import subprocess
import sys
import threading
import time


def say(what):
    os.write(1, ("%s %d %s\n" % (what, os.getpid(), os.readlink("/proc/thread-self").split("/")[-1]))
             .encode())


def spin_for_both(begun):
    """For 0.3 s with another thread that does, however long it takes to start one while perf
    records."""
    begun.append(time.monotonic())
    while len(begun) < 2 or time.monotonic() < begun[1] + 0.3:
        for _ in range(1000):
            pass
    say("spin")


def spin_by_two():
    begun = []
    threads = [threading.Thread(target=spin_for_both, args=(begun,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def processes(method):
    context = multiprocessing.get_context(method)
    children = [context.Process(target=spin_by_two) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()


def python_child():
    subprocess.check_call([sys.executable, os.path.abspath(__file__), "child"])


def scripts():
    """Each child is first a shell, which starts other programs before it becomes Python."""
    for _ in range(6):
        subprocess.check_call(["sh", "-c", 'dirname "$(readlink -f "$0")"; exec "$@"', "sh",
                               sys.executable, os.path.abspath(__file__), "sleeps"],
                              stdout=sys.stderr)


def sleeps():
    # Before 3.7 there is no GIL without a second thread.
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    for _ in range(50):
        time.sleep(0)


def other_child():
    child = os.fork()
    if child == 0:
        say("other")
        os.execv("/bin/sh", ["sh", "-c", "exit 0"])
    os.waitpid(child, 0)


def again():
    """Execute the same program again in the same process."""
    spin_by_two()
    os.execv(sys.executable, [sys.executable, os.path.abspath(__file__), "child"])


def other_python():
    """Start a child of another Python, then execute that Python in this process."""
    spin_by_two()
    command = [sys.argv[2], os.path.abspath(__file__), "sleeps"]
    subprocess.check_call(command)
    os.execv(command[0], command)


def early():
    """A thread that exists before tracing begins, with --entry work."""
    go = threading.Event()
    begun = []
    thread = threading.Thread(target=lambda: (go.wait(), spin_for_both(begun)))
    thread.start()
    work(go, begun)
    thread.join()


def work(go, begun):
    go.set()
    spin_for_both(begun)


def daemons():
    """Threads that request the GIL after the interpreter has ended never get it."""
    begun = []
    for _ in range(3):
        threading.Thread(target=forever, args=(begun,), daemon=True).start()
    while len(begun) < 3:
        time.sleep(0.001)
    time.sleep(0.1)


def forever(begun):
    say("daemon")
    begun.append(True)
    while True:
        pass


def main():
    what = sys.argv[1]
    if what in ("fork", "spawn", "forkserver"):
        processes(what)
    elif what == "child":
        spin_by_two()
    else:
        {"subprocess": python_child, "exec": other_child, "scripts": scripts,
         "sleeps": sleeps, "early": early, "again": again, "other": other_python, "daemons": daemons}[what]()
    say("main")


if __name__ == "__main__":
    main()
