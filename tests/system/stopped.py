# SPDX-License-Identifier: MIT
"""Two threads that compute and let go of the GIL when they are asked to, in a process that is stopped by
SIGSTOP again and again.

    stopped.py COUNT
"""
import os
import signal
import sys
import threading
import time


def spin(done):
    while not done:
        pass


def wait_ms(ms):
    until = time.monotonic() + ms / 1000
    while time.monotonic() < until:
        pass


def state(pid):
    with open('/proc/%d/stat' % pid) as f:
        return f.read().rsplit(') ', 1)[1][0]


def stop_again_and_again(pid, count):
    for _ in range(count):
        os.kill(pid, signal.SIGSTOP)
        while state(pid) != 'T':
            pass
        wait_ms(12)
        os.kill(pid, signal.SIGCONT)
        wait_ms(23)  # at any moment of a hold


def main(count):
    done = []
    threads = [threading.Thread(target=spin, args=(done,)) for _ in range(2)]
    program = os.getpid()
    child = os.fork()
    if not child:
        stop_again_and_again(program, count)
        os._exit(0)
    for thread in threads:
        thread.start()
    os.waitpid(child, 0)
    done.append(True)
    for thread in threads:
        thread.join()


if __name__ == '__main__':
    main(int(sys.argv[1]))
