# SPDX-License-Identifier: MIT
"""states.py KIND FILE: threads that sleep, spin, write, starve or do all of that; FILE gets what the
kernel says of each: {tid: [running ns, runnable ns, time slices]} (/proc/PID/task/TID/schedstat).
The threads are asleep from then until tracing stops."""
import hashlib
import json
import os
import sys
import tempfile
import threading
import time

KIND, FILE = sys.argv[1:]


def spin():
    end = time.monotonic() + 1
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


def hasher():
    data = bytes(1 << 22)
    for _ in range(25):
        hashlib.sha256(data).digest()


PAIR = threading.Semaphore(1), threading.Semaphore(0)


def pause():
    """About 20,000 switches a second, however fast the machine is."""
    end = time.perf_counter_ns() + 40000
    while time.perf_counter_ns() < end:
        pass


def ping():
    for _ in range(20000):
        PAIR[0].acquire()
        pause()
        PAIR[1].release()


def pong():
    for _ in range(20000):
        PAIR[1].acquire()
        pause()
        PAIR[0].release()


KINDS = {
    "ping": [ping, pong],
    "sleep": [sleeper] * 3,
    "spin": [spin] * 2,
    "io": [writer] * 2,
    "starved": [hasher] * (3 * os.cpu_count()),
    "mix": [spin, sleeper, writer, hasher],
}


def main():
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
    stats = {}
    for tid in tids:
        path = "/proc/self/task/%d/schedstat" % tid
        # Asleep: its last running is accounted for.
        while open("/proc/self/task/%d/stat" % tid).read().rsplit(")", 1)[1].split()[0] != "S":
            os.sched_yield()
        stats[tid] = [int(n) for n in open(path).read().split()]
    with open(FILE, "w") as f:
        json.dump(stats, f)


if __name__ == "__main__":
    main()
