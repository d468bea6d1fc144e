# SPDX-License-Identifier: MIT
# Keeps the GIL in one operation whose function has returned when the interpreter looks at the release
# request: culprits.py KIND
import gc
import json
import os
import re
import subprocess
import sys
import threading
import time

BIG = [0] * 8_000_000
done = False


def is_known(x):
    return x in BIG  # operator


def audit(x):
    pass


def handle(x):
    known = is_known(x)
    audit(known)
    return known


def operator():
    for _ in range(8):
        handle(-1)


def parse(text):
    return json.loads(text)  # library


def library():
    gc.disable()
    text = '[%s]' % ','.join(['[1, 2, 3, 4]'] * 300_000)
    for _ in range(6):
        parse(text)


def handles(text, out):
    for _ in range(200):
        parse(text)
        os.write(out, b'done')


def handlers():
    gc.disable()
    text = '[%s]' % ','.join(['[1, 2, 3, 4]'] * 1_000)
    with open(os.devnull, 'wb') as out:
        threads = [threading.Thread(target=handles, args=(text, out.fileno()), name='handler-%d' % i) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def fill():
    keep = list(zip(range(1_500_000)))


def ends():
    gc.disable()
    for _ in range(6):  # so often proves it, also where a hypervisor takes time
        worker = threading.Thread(target=fill, name='worker')
        worker.start()
        worker.join()


def collect():
    for _ in range(12):
        gc.collect()


EMAIL = re.compile(r'^([a-z0-9]+\.?)+@example\.com$')


def backtracks():
    for _ in range(3):
        EMAIL.match('a' * 21 + '!')


def spin():
    x = 0
    for _ in range(100):
        for j in range(20_000):
            x += j
        os.stat('/')


# Programs of low priority have the CPUs whenever a thread of ours lets go of one.
def starved():
    command = ['nice', '-n', '19', sys.executable, '-S', '-c', 'while True: pass']
    others = [subprocess.Popen(command) for _ in range(2 * os.cpu_count())]
    try:
        threads = [threading.Thread(target=spin, name='spin-%d' % i) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for other in others:
            other.kill()
            other.wait()


def heartbeat():
    while not done:
        time.sleep(0.005)


if __name__ == '__main__':
    keep = [[] for _ in range(1_000_000 if sys.argv[1] == 'collect' else 0)]
    thread = threading.Thread(target=heartbeat, name='heartbeat')
    thread.start()
    globals()[sys.argv[1]]()
    done = True
    thread.join()
