# SPDX-License-Identifier: MIT
"""The worst case for a tracer: threads that do nothing but release the GIL and take it again.

    giltracer churn.py [THREADS [TURNS]]
"""
import os
import sys
import threading


def churn(fd, turns):
    for _ in range(turns):
        os.read(fd, 1)  # releases the GIL and takes it again


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    fd = os.open("/dev/zero", os.O_RDONLY)
    threads = [
        threading.Thread(target=churn, args=(fd, turns), name="churn-%d" % (i + 1))
        for i in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(fd)


if __name__ == "__main__":
    main()
