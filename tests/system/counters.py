# SPDX-License-Identifier: MIT
"""counters.py FILE: one thread touches memory, one naps; FILE gets what the kernel counted of each
while it ran: {tid: [page faults, context switches]} (getrusage)."""
import json
import mmap
import resource
import sys
import threading
import time


def touch():
    for _ in range(20):
        memory = mmap.mmap(-1, 100 * mmap.PAGESIZE)
        for page in range(100):
            memory[page * mmap.PAGESIZE] = 1
        memory.close()


def nap():
    for _ in range(200):
        time.sleep(0.001)


def main():
    counts = {}

    def thread(function):
        function()
        usage = resource.getrusage(resource.RUSAGE_THREAD)
        counts[threading.get_native_id()] = [usage.ru_minflt + usage.ru_majflt,
                                             usage.ru_nvcsw + usage.ru_nivcsw]

    threads = [threading.Thread(target=thread, args=(f,)) for f in (touch, nap)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    with open(sys.argv[1], "w") as f:
        json.dump(counts, f)


if __name__ == "__main__":
    main()
