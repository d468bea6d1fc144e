# SPDX-License-Identifier: MIT
"""Well-behaved threads: zlib and hashlib release the GIL while they work on large buffers, so
both run at the same time and hardly ever hold it.

    giltracer native.py [SECONDS]
"""
import hashlib
import sys
import threading
import time
import zlib

DATA = bytes(range(256)) * 16384  # 4 MiB


def compress(until):
    while time.monotonic() < until:
        zlib.compress(DATA, 6)


def digest(until):
    while time.monotonic() < until:
        hashlib.sha256(DATA).digest()


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=compress, args=(until,), name="zlib"),
        threading.Thread(target=digest, args=(until,), name="hashlib"),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
