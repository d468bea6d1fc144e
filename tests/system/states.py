# SPDX-License-Identifier: MIT
"""states.py KIND FILE: threads that sleep, spin, write, starve or do all of that; FILE gets what the
kernel says of each: {tid: [running ns, runnable ns, time slices, voluntary switches, others]}
(/proc/PID/task/TID/schedstat and status), and what a hypervisor took of all CPUs meanwhile, as
"stolen". The threads are asleep from then until tracing stops."""
import hashlib
import json
import mmap
import os
import socket
import sys
import tempfile
import threading
import time

KIND, FILE = sys.argv[1:]


def spin():
    end = time.monotonic() + 0.5
    total = 0
    while time.monotonic() < end:
        for i in range(1000):
            total += i * i


def sleeper():
    for _ in range(150):
        time.sleep(0.005)


def writer():
    with tempfile.TemporaryFile() as f:
        for _ in range(200):
            f.write(b"x" * 16384)
            f.flush()
            os.fsync(f.fileno())


def hasher(times=25):
    data = bytes(1 << 22)
    for _ in range(times):
        hashlib.sha256(data).digest()


PAIR = threading.Semaphore(1), threading.Semaphore(0)


def pause():
    """About 20,000 switches a second, however fast the machine is."""
    end = time.perf_counter_ns() + 40000
    while time.perf_counter_ns() < end:
        pass


def ping():
    for _ in range(8000):
        PAIR[0].acquire()
        pause()
        PAIR[1].release()


def pong():
    for _ in range(8000):
        PAIR[1].acquire()
        pause()
        PAIR[0].release()


def reader():
    """Read from the disk instead of the page cache, if the file system permits it."""
    block = mmap.mmap(-1, 1 << 16)
    with tempfile.NamedTemporaryFile(dir=os.environ.get("STATES_DIR", "/var/tmp")) as f:
        f.write(bytes(1 << 22))
        f.flush()
        os.fsync(f.fileno())
        try:
            fd = os.open(f.name, os.O_RDONLY | os.O_DIRECT)
        except OSError:
            return writer()
        for i in range(300):
            os.preadv(fd, [block], i % 64 << 16)
        os.close(fd)


PIPES = os.pipe(), os.pipe()
SOCKETS = socket.socketpair()


def ask(write, read):
    for _ in range(2000):
        write(b"?")
        read(1)


def answer(write, read):
    for _ in range(2000):
        read(1)
        write(b"!")


def through(pipe_in, pipe_out):
    return lambda data: os.write(pipe_out[1], data), lambda n: os.read(pipe_in[0], n)


def race(take, give):
    """Cause as many switches as possible."""
    for _ in range(25000):
        take.acquire()
        give.release()


KINDS = {
    "race": [lambda: race(*PAIR), lambda: race(*PAIR[::-1])],
    "disk": [reader] * 2,
    "ping": [ping, pong],
    "sleep": [sleeper] * 3,
    "talk": [lambda: ask(*through(*PIPES)), lambda: answer(*through(*PIPES[::-1])),
             lambda: ask(SOCKETS[0].send, SOCKETS[0].recv),
             lambda: answer(SOCKETS[1].send, SOCKETS[1].recv)],
    "spin": [spin] * 2,
    "io": [writer] * 2,
    "starved": [lambda: hasher(40)] * (3 * os.cpu_count()),
    "mix": [spin, sleeper, writer, hasher],
}


def stolen():
    """In ns, by whole ticks."""
    return int(open("/proc/stat").readline().split()[8]) * 1000000000 // os.sysconf("SC_CLK_TCK")


def main():
    before = stolen()
    work = KINDS[KIND]
    ready = threading.Barrier(len(work) + 1)
    never = threading.Event()
    tids = []

    def thread(function):
        function()
        tids.append(threading.get_native_id())
        ready.wait()
        never.wait()

    for function in work:
        threading.Thread(target=thread, args=(function,), daemon=True).start()
    ready.wait()
    stats = {"stolen": 0}
    for tid in tids:
        path = "/proc/self/task/%d/schedstat" % tid
        # Asleep: its last running is accounted for.
        while open("/proc/self/task/%d/stat" % tid).read().rsplit(")", 1)[1].split()[0] != "S":
            os.sched_yield()
        stats[tid] = [int(n) for n in open(path).read().split()]
        for line in open("/proc/self/task/%d/status" % tid):
            if "voluntary_ctxt_switches" in line:
                stats[tid].append(int(line.split()[1]))
    stats["stolen"] = stolen() - before
    with open(FILE, "w") as f:
        json.dump(stats, f)


if __name__ == "__main__":
    main()
