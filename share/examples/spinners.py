# SPDX-License-Identifier: MIT
"""Two threads of pure Python. Only one can run at a time, so each holds the GIL half of the time.

    giltracer spinners.py [SECONDS]
"""
import sys
import threading
import time


def spin(until):
    turns = 0
    while time.monotonic() < until:
        for _ in range(1000):
            turns += 1
    return turns


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=spin, args=(until,), name="spinner-%d" % i) for i in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
