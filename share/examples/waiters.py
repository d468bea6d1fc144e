# SPDX-License-Identifier: MIT
"""Threads that wait for something other than the GIL: a timer, a pipe, a lock. Nobody holds the GIL.

    giltracer --state-detect waiters.py [SECONDS]
"""
import os
import sys
import threading
import time


def sleep_often(until):
    while time.monotonic() < until:
        time.sleep(0.01)


def read_pipe(fd):
    while os.read(fd, 1):
        pass


def wait_for_event(event):
    event.wait()


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    until = time.monotonic() + seconds
    done = threading.Event()
    reader, writer = os.pipe()
    threads = [
        threading.Thread(target=sleep_often, args=(until,), name="sleeper"),
        threading.Thread(target=read_pipe, args=(reader,), name="reader"),
        threading.Thread(target=wait_for_event, args=(done,), name="event"),
    ]
    for thread in threads:
        thread.start()
    while time.monotonic() < until:
        os.write(writer, b"x")
        time.sleep(0.02)
    os.close(writer)
    done.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
