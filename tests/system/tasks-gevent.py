# SPDX-License-Identifier: MIT
"""Greenlets of gevent, one of which keeps the hub from running for 200 ms."""
import time

import gevent


def handler(i):
    gevent.sleep(0.01 * i)
    end = time.perf_counter() + (0.2 if i == 3 else 0)
    while time.perf_counter() < end:
        pass


def ping():
    for _ in range(5):
        gevent.sleep(0.01)


if __name__ == '__main__':
    gevent.joinall([gevent.spawn(handler, i) for i in range(5)] + [gevent.spawn(ping)])
