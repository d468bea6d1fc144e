# SPDX-License-Identifier: MIT
"""Write the programs of behaviour.t into the current folder: each does something that a tracer could
disturb, with processes, signals, descriptors, limits or its own end."""
PROGRAMS = {}

PROGRAMS['futures.py'] = '''
import concurrent.futures, multiprocessing, sys
def work(n):
    return n * n
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        kw = {"mp_context": multiprocessing.get_context(method)} if sys.version_info >= (3, 7) else {}
        with concurrent.futures.ProcessPoolExecutor(2, **kw) as pool:
            print(method, list(pool.map(work, range(5))))
            try:
                pool.submit(int, "x").result()
            except ValueError as e:
                print(e)
'''
PROGRAMS['exec-other.py'] = '''
import os
if __name__ == "__main__":
    os.execv("/bin/sh", ["sh", "-c", "echo other; ls /proc/self/fd | wc -l; exit 6"])
'''
PROGRAMS['thread-exit.py'] = '''
import sys, threading, os
def leaves():
    sys.exit(5)
def main():
    t = threading.Thread(target=leaves)
    t.start()
    t.join()
    print("goes on")
main()
'''
PROGRAMS['thread-os-exit.py'] = '''
import os, threading, time
def leaves():
    os.write(1, b"thread\\n")
    os._exit(5)
if __name__ == "__main__":
    t = threading.Thread(target=leaves)
    t.start()
    while True: time.sleep(0.01)
'''
PROGRAMS['abort.py'] = '''
import os
if __name__ == "__main__":
    print("before", flush=True)
    os.abort()
'''
PROGRAMS['segfault.py'] = '''
import ctypes
if __name__ == "__main__":
    ctypes.string_at(0)
'''
PROGRAMS['handlers.py'] = '''
import os, signal, time
got = []
for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD, signal.SIGPIPE, signal.SIGWINCH):
    signal.signal(n, lambda n, f: got.append(n))
def main():
    for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE):
        os.kill(os.getpid(), n)
        time.sleep(0.01)
    print(sorted(int(n) for n in got))
main()
'''
PROGRAMS['interrupts-itself.py'] = '''
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
def main():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
main()
'''
PROGRAMS['terminal.py'] = '''
import os, pty, sys
if __name__ == "__main__":
    pid, fd = pty.fork()
    if pid == 0:
        print(os.isatty(0), os.getsid(0) == os.getpid(), flush=True)
        os.execvp("sh", ["sh", "-c", "read x; echo got $x; exit 3"])
    text = b""
    # Else the terminal may echo what is typed before the child prints.
    while b"\\n" not in text:
        text += os.read(fd, 100)
    os.write(fd, b"hello\\n")
    for _ in range(2):  # see tests/system/terminal.py
        try:
            while True:
                text += os.read(fd, 100)
        except OSError:
            pass
    print(text, os.waitpid(pid, 0)[1] >> 8)
'''
PROGRAMS['daemonize.py'] = '''
import os, sys, time
if __name__ == "__main__":
    r, w = os.pipe()
    if os.fork():
        os.close(w)
        os.wait()
        print("daemon said", os.read(r, 100))
        sys.exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    os.umask(0)
    os.write(w, b"%d" % (os.getppid() != 0))
    sys.exit(0)
'''
PROGRAMS['setsid.py'] = '''
import os
if __name__ == "__main__":
    try:
        os.setsid()
        print("session")
    except OSError as e:
        print(e.errno)
    print(os.getpgrp() == os.getpid())
'''
PROGRAMS['another-user.py'] = '''
import os, threading
def main():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    t = threading.Thread(target=lambda: print(os.getuid()))
    t.start()
    t.join()
    os.chdir("/")
    try:
        open("/root/.x")
    except OSError as e:
        print(type(e).__name__)
main()
'''
PROGRAMS['chroot.py'] = '''
import os
def main():
    os.makedirs("jail", exist_ok=True)
    os.chroot("jail"); os.chdir("/")
    print(os.listdir("/"))
main()
'''
PROGRAMS['folder-gone.py'] = '''
import os
def main():
    os.makedirs("gone", exist_ok=True); os.chdir("gone"); os.rmdir("../gone")
    try:
        os.getcwd()
    except OSError as e:
        print(e)
main()
'''
PROGRAMS['daemon-threads.py'] = '''
import threading, time, atexit
def spin():
    while True: pass
def main():
    for _ in range(3): threading.Thread(target=spin, daemon=True).start()
    atexit.register(print, "at exit")
    time.sleep(0.05)
    print("main ends")
main()
'''
PROGRAMS['close-early.py'] = '''
import os
os.closerange(3, 4096)
fd = os.open("/dev/null", os.O_RDONLY)
print(fd)
if __name__ == "__main__":
    import threading
    t = threading.Thread(target=print, args=("t",)); t.start(); t.join()
'''
PROGRAMS['close-std.py'] = '''
import os, sys
if __name__ == "__main__":
    print("x", flush=True)
    for n in range(3): os.close(n)
'''
PROGRAMS['nofile.py'] = '''
import resource, os
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
if __name__ == "__main__":
    fds = []
    try:
        while True: fds.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as e:
        print(len(fds), fds[-1], e.errno)
'''
PROGRAMS['fsize.py'] = '''
import resource, signal
if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    try:
        with open("big", "w") as f: f.write("x" * 100)
    except OSError as e:
        print(e.errno)
'''
PROGRAMS['settrace.py'] = '''
import sys, threading
n = []
def trace(frame, event, arg):
    n.append(frame.f_code.co_name)
    return None
def f(): pass
def main():
    sys.settrace(trace)
    threading.settrace(trace)
    f()
    t = threading.Thread(target=f)
    t.start()
    t.join()
    sys.settrace(None)
    print(n.count("f"), sys.gettrace())
main()
'''
PROGRAMS['children.py'] = '''
import os, subprocess, sys
if __name__ == "__main__":
    print(subprocess.run([sys.executable, "-c", "import sys, os; print(sys.argv, sorted(os.listdir('/proc/self/fd')))"], stdout=subprocess.PIPE).stdout)
    print(subprocess.call("exit 3", shell=True), subprocess.call(["sh", "-c", "kill -9 $$"]))
    p = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    print(p.communicate(b"abc"))
    if sys.version_info >= (3, 8):
        pid = os.posix_spawn("/bin/true", ["true"], os.environ)
        print(os.waitpid(pid, 0)[1])
    try:
        print(os.wait())
    except ChildProcessError as e:
        print("no child", e.errno)
'''
PROGRAMS['manager.py'] = '''
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.Manager() as m:
        d = m.dict()
        d["a"] = 1
        print(dict(d), len(multiprocessing.active_children()))
    print(multiprocessing.active_children())
'''
PROGRAMS['asyncio-child.py'] = '''
import asyncio, sys
async def go():
    p = await asyncio.create_subprocess_exec("sh", "-c", "echo hi; exit 4", stdout=asyncio.subprocess.PIPE)
    out, _ = await p.communicate()
    print(out, p.returncode)
if __name__ == "__main__":
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(go())
    loop.close()
'''
PROGRAMS['fork-exit.py'] = '''
import os, sys, atexit
atexit.register(lambda: os.write(1, b"atexit %d\\n" % (os.getpid() == me)))
me = os.getpid()
def main():
    pid = os.fork()
    if pid == 0:
        raise ValueError("child")
    print(os.waitpid(pid, 0)[1] >> 8)
    sys.exit(9)
main()
'''
PROGRAMS['dumpable.py'] = '''
import ctypes, threading
def main():
    print(ctypes.CDLL(None).prctl(4, 0, 0, 0, 0))
    t = threading.Thread(target=print, args=("t",)); t.start(); t.join()
main()
'''
PROGRAMS['stopped.py'] = '''
import os, signal, subprocess, sys
def main():
    # A helper continues us after we stop.
    p = subprocess.Popen(["sh", "-c", "until grep -q 'State:.T' /proc/%d/status; do :; done; kill -CONT %d" % (os.getpid(), os.getpid())])
    os.kill(os.getpid(), signal.SIGSTOP)
    print("continued", p.wait())
main()
'''

for path, source in PROGRAMS.items():
    with open(path, 'w') as out:
        out.write(source.lstrip())
