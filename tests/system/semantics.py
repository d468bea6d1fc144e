# SPDX-License-Identifier: MIT
"""Write the programs of semantics.t into the current folder. Each prints what it can see of how it
was started, or ends in one of the ways in which programs end."""
import os
import zipfile

PROGRAMS = {}


def program(name, text):
    PROGRAMS[name] = text.lstrip('\n')


program('basic.py', '''
"""Documented."""
import sys
print(sys.argv, __name__, __file__, sys.path[0], sys.flags, __spec__, __package__, __cached__)
print(sorted(globals()), type(__loader__).__name__, __loader__.path, __doc__)
print(getattr(sys, 'orig_argv', [0])[1:], sys.modules['__main__'].__dict__ is globals())
print(sorted(set(sys.modules) - {'_ast', 'atexit', 'time'}))
if __name__ == "__main__":
    print("body")
''')
SEES = '''
import faulthandler, inspect, logging, os, sys, threading, traceback, warnings
warnings.simplefilter("always")
def stack(frame):
    while frame:
        print(" ", frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno)
        frame = frame.f_back
def look(what):
    print(what, len(inspect.stack()))
    stack(sys._getframe(1))
    traceback.print_stack()
    faulthandler.dump_traceback(sys.stderr, False)
    for level in range(1, 9):
        warnings.warn("level %d" % level, stacklevel=level)
    logging.warning("logged", stack_info=True)
    stack(sys._current_frames()[threading.get_ident()])
    try:
        sys._getframe(50)
    except ValueError as e:
        stack(e.__traceback__.tb_frame)
def watched():
    events = []
    def trace(frame, event, arg):
        depth, at = 0, frame
        while at:
            depth, at = depth + 1, at.f_back
        events.append((event, depth))
        return trace
    sys.settrace(trace)
    (lambda: 1)()
    sys.settrace(None)
    print(events)
def later():
    yield look("a generator")
look("at import")
if __name__ == "__main__":
    look("in the body")
    next(later())
    watched()
    thread = threading.Thread(target=look, args=("in a thread",))
    thread.start()
    thread.join()
    sys.stdout.flush()
    if not os.fork():
        look("in a child")
        sys.exit(3)
    print(os.wait()[1])
    import atexit
    atexit.register(look, "at the end")
    sys.excepthook = lambda kind, value, tb: (print(kind.__name__), stack(tb.tb_frame))
    int("x")
'''
program('sees.py', SEES)
program('sees/__init__.py', 'import inspect\nprint(len(inspect.stack()))\n')
program('sees/__main__.py', SEES)
program('sees/other.py', SEES)
program('exit7.py', 'import sys; sys.exit(7)\n')
program('exit-message.py', 'import sys; sys.exit("message")\n')
program('exit-none.py', 'import sys; sys.exit(None)\n')
program('exit-list.py', 'import sys; sys.exit([1, 2])\n')
program('exit-raise.py', 'raise SystemExit\n')
program('exit-os.py', 'import os\nif __name__ == "__main__":\n    os._exit(9)\n')
program('traceback.py', '''
def g(x):
    return 1 / x
def main():
    try:
        g(0)
    except ZeroDivisionError as e:
        raise ValueError("again") from e
main()
''')
program('traceback-guard.py', 'if __name__ == "__main__":\n    int("x")\n')
program('traceback-first.py', 'nonsense\n')
program('syntax.py', 'def f(:\n    pass\n')
program('indent.py', 'print("a")\nx = 1\n  y = 2\n')
program('keyboard.py', 'raise KeyboardInterrupt\n')
program('sigterm.py', '''
import os, signal
if __name__ == "__main__":
    os.kill(os.getpid(), signal.SIGTERM)
''')
program('sigkill.py', 'import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n')
program('sigusr2.py', 'import os, signal\nos.kill(os.getpid(), signal.SIGUSR2)\n')
program('atexit-order.py', '''
import atexit, threading
atexit.register(print, "first registered")
atexit.register(print, "second registered")
go = threading.Event()
def outlive():
    go.wait()
    threading.main_thread().join()
    print("thread ends")
def main():
    threading.Thread(target=outlive).start()
    go.set()
    print("main ends")
main()
''')
program('processes.py', '''
import multiprocessing, os
class Thing:
    def __init__(self, n):
        self.n = n
def work(thing):
    return thing.n * 2, type(thing).__module__
def put(queue, thing):
    queue.put((thing, os.path.basename(__file__)))
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            print(method, pool.map(work, [Thing(i) for i in range(4)]))
        queue = context.SimpleQueue()
        process = context.Process(target=put, args=(queue, Thing(3)))
        process.start()
        thing, name = queue.get()
        process.join()
        print(thing.n, name, process.exitcode)
''')
program('surroundings.py', '''
import inspect, os, pickle, signal, subprocess, sys
class A:
    pass
def f():
    pass
if __name__ == "__main__":
    print(pickle.dumps(A()), pickle.loads(pickle.dumps(f)) is f, inspect.getsource(f))
    print(os.pipe(), sorted(os.environ.items()))
    print(subprocess.check_output(["ls", "/proc/self/fd"], close_fds=False))
    print([signal.getsignal(n) for n in range(1, 32)])
    print(signal.pthread_sigmask(signal.SIG_BLOCK, []), os.getpgid(0) == os.getpgid(os.getppid()))
''')
program('stdin.py', 'import sys\nfor line in sys.stdin:\n    print(line.strip().upper())\n')
program('excepthook.py', '''
import sys, traceback
def hook(kind, value, tb):
    print("hook", kind, value, [frame.name for frame in traceback.extract_tb(tb)])
    print(sys.last_value is value, sys.last_traceback is tb)
sys.excepthook = hook
def boom():
    raise RuntimeError("x")
boom()
''')
program('threads.py', '''
import sys, threading, traceback, warnings
print(sys.excepthook is sys.__excepthook__, threading.current_thread().name)
def fails():
    raise ValueError("in a thread")
thread = threading.Thread(target=fails, name="T")
thread.start()
thread.join()
warnings.warn("careful")
try:
    raise KeyError
except KeyError:
    print(traceback.format_exc().splitlines()[-1])
''')
program('warns.py', 'print("\\d", 1 is 1)\n')
program('fork.py', '''
import os, sys
def main():
    print("before", flush=True)
    child = os.fork()
    if child == 0:
        print("child", flush=True)
        sys.exit(4)
    print(os.waitpid(child, 0)[1], flush=True)
main()
''')
program('exec.py', '''
import os, sys
if __name__ == "__main__":
    os.execv(sys.executable, [sys.executable, "-c",
             "import os; print(sorted(os.listdir('/proc/self/fd'))); raise SystemExit(5)"])
''')
program('close-all.py', '''
import os
if __name__ == "__main__":
    os.closerange(3, 2000)
    with open("written", "w") as f:
        f.write("mine")
    os.closerange(3, 2000)
    fds = [os.open("written", os.O_RDWR) for _ in range(3)]
    print(fds, os.read(fds[0], 9))
''')
program('latin.py', '# -*- coding: latin-1 -*-\nprint(ascii("\xe9"))\n')
program('future.py', '''
"""Module doc"""
from __future__ import generator_stop
x: int = 3
print(__doc__, __annotations__ if "__annotations__" in globals() else None)
if __name__ == "__main__":
    y: str = ""
    print(sorted(globals()))
''')
program('module.py', 'import sys\nprint(__name__, sys.argv, sys.path[0])\nassert 0, "in a module"\n')
program('package/__init__.py', 'print("init", __name__)\n')
program('package/__main__.py', '''
import sys
from . import other
print(__name__, __package__, __spec__.name, sys.argv, sys.path[0], sorted(globals()))
def main():
    other.fail()
if __name__ == "__main__":
    main()
''')
program('package/other.py', 'def fail():\n    raise OSError("deep")\n')
program('folder/__main__.py', '''
import sys
print(__name__, __spec__ and __spec__.name, sys.argv, sys.path[0], __file__, __package__)
import helper
helper.fails()
''')
program('folder/helper.py', 'def fails():\n    raise ValueError("helper")\n')
program('shadow/script.py', 'import glob, json\nprint(glob.__file__, json.__file__)\n')
program('shadow/glob.py', '')
program('shadow/json.py', '')

for path, source in PROGRAMS.items():
    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    with open(path, 'w', encoding='latin-1') as out:
        out.write(source)
os.symlink('../basic.py', 'shadow/link.py')
with zipfile.ZipFile('app.zip', 'w') as app:
    app.write('folder/__main__.py', '__main__.py')
    app.write('folder/helper.py', 'helper.py')
