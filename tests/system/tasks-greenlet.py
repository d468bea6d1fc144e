# SPDX-License-Identifier: MIT
"""Two greenlets that take turns: one computes for 4 times 20 ms, the other one for 4 times 5 ms."""
import sys
import time

from greenlet import greenlet


def spin(ms):
    end = time.perf_counter() + ms / 1000
    while time.perf_counter() < end:
        pass


def burn_a():
    spin(20)
    b.switch()


def burn_b():
    spin(5)
    a.switch()


def outer_a():
    for _ in range(4):
        burn_a()


def outer_b():
    for _ in range(4):
        burn_b()


def main():
    a.switch()


a, b = greenlet(outer_a), greenlet(outer_b)
if __name__ == '__main__':
    main()
    print(sys.version_info[:2])
