# SPDX-License-Identifier: MIT
"""A hog among workers: one thread computes a huge power in one C call, which never releases the
GIL, while three others only have to handle a small request now and then.

    giltracer --state-detect hog.py [SECONDS]
"""
import sys
import threading
import time


def keep_the_gil(until):
    while time.monotonic() < until:
        pow(7, 400000)  # tens of milliseconds of C code with the GIL held
        time.sleep(0.005)


def handle_requests(until):
    handled = 0
    while time.monotonic() < until:
        time.sleep(0.001)
        handled += sum(range(200))
    return handled


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=keep_the_gil, args=(until,), name="hog")]
    for i in (1, 2, 3):
        threads.append(threading.Thread(target=handle_requests, args=(until,), name="worker-%d" % i))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
