# SPDX-License-Identifier: MIT
"""A program for subinterpreters.t, whose calls are known: those of functions whose names begin with si_.

    subinterpreters.py calls KIND     three threads, each with an interpreter, in which a thread starts
    subinterpreters.py many KIND      two threads that make 20 interpreters each, one after another
    subinterpreters.py left KIND      an interpreter that was made before recording, and outlives the program
    subinterpreters.py fork KIND      a forked child, which makes an interpreter of its own
    subinterpreters.py profile KIND   an interpreter in which the program has a profile function
    subinterpreters.py early          runs in the interpreter that sitecustomize has made

KIND: "own", interpreters that each have a GIL of their own, or "shared".
"""
import os
import sys
import threading

if sys.version_info >= (3, 13):
    import _interpreters as module
else:
    import _xxsubinterpreters as module

CODE = """
import threading
def si_inner(n):
    divmod(n, 1)
def si_outer():
    for i in range(3):
        si_inner(i)
def si_raises():
    raise ValueError
def si_caught():
    try:
        si_raises()
    except ValueError:
        pass
def si_generator():
    yield 1
    yield 2
def si_threaded():
    si_inner(4)
def si_starts():
    for _ in range(2):
        thread = threading.Thread(target=si_threaded)
        thread.start()
        thread.join()
si_outer()
si_caught()
list(si_generator())
si_starts()
"""

UNCAUGHT = """
def si_uncaught():
    raise KeyError
si_uncaught()
"""

PROFILED = """
import sys
def si_before():
    pass
def si_after():
    pass
def mine(frame, event, arg):
    seen.append(event)
seen = []
si_before()
sys.setprofile(mine)
si_after()
print(sys.getprofile() is mine, flush=True)
sys.setprofile(None)
print([event for event in seen if not event.startswith("c_")][:2], flush=True)
"""


def create(kind):
    if sys.version_info >= (3, 13):
        return module.create("isolated" if kind == "own" else "legacy")
    if sys.version_info >= (3, 9):
        return module.create(isolated=kind == "own")
    return module.create()


def run(interpreter, code):
    """Whether it raised an exception."""
    try:
        return module.run_string(interpreter, code) is not None
    except Exception:
        return True


def si_use(kind):
    interpreter = create(kind)
    run(interpreter, CODE)
    # In one piece: other threads print, too.
    os.write(1, b"%d\n" % run(interpreter, UNCAUGHT))
    module.destroy(interpreter)


def in_threads(target, arguments):
    threads = [threading.Thread(target=target, args=args) for args in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def si_each(kind, first):
    for number in range(first, first + 20):
        interpreter = create(kind)
        run(interpreter, "def si_of_%d(): pass\nsi_of_%d()" % (number, number))
        module.destroy(interpreter)


def si_parent(kind):
    interpreter = create(kind)
    run(interpreter, "def si_in_parent(): pass\nsi_in_parent()")
    module.destroy(interpreter)


def si_child(kind):
    interpreter = create(kind)
    run(interpreter, "def si_in_child(): pass\nsi_in_child()")
    module.destroy(interpreter)


def fork(kind):
    """While there is another interpreter, no CPython can."""
    si_parent(kind)
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        si_child(kind)
        os._exit(5)
    print(os.WEXITSTATUS(os.waitpid(pid, 0)[1]))
    si_parent(kind)


def profile(kind):
    """In a thread: before 3.12, its calls are missing from there on."""
    interpreter = create(kind)
    in_threads(run, [(interpreter, PROFILED)])
    module.destroy(interpreter)


if len(sys.argv) > 1 and sys.argv[1] == "left":
    before = create(sys.argv[2])
    run(before, "def si_left(): pass\nsi_left()")

if __name__ == "__main__":
    if sys.argv[1] == "calls":
        in_threads(si_use, [sys.argv[2:]] * 3)
    elif sys.argv[1] == "many":
        in_threads(si_each, [(sys.argv[2], 0), (sys.argv[2], 20)])
    elif sys.argv[1] == "left":
        run(before, "si_left()\nsi_left()")
    elif sys.argv[1] == "fork":
        fork(sys.argv[2])
    elif sys.argv[1] == "profile":
        profile(sys.argv[2])
    else:
        print(run(sys.early_interpreter, "def si_early(): pass\nsi_early()"))
