# SPDX-License-Identifier: MIT
"""An asyncio loop that wants to tick every 5 ms: loops.py alone, beside nothing, or loops.py
beside, a thread that keeps the GIL. Prints its thread's and the other's tid, and by how many ns its
ticks were late in sum, as JSON."""
import asyncio
import json
import os
import sys
import threading
import time

TICKS = 60
KEEPERS = []


def tid():
    return int(os.readlink('/proc/thread-self').rsplit('/', 1)[1])


def keeper(stop):
    KEEPERS.append(tid())
    while not stop.is_set():
        pow(3, 400000)
        time.sleep(0.0001)


async def ticker(late):
    for _ in range(TICKS):
        due = time.monotonic() + 0.005
        await asyncio.sleep(0.005)
        late.append(time.monotonic() - due)


def main(kind):
    late, stop = [], threading.Event()
    thread = threading.Thread(target=keeper, args=(stop,))
    if kind == 'beside':
        thread.start()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(ticker(late))
    loop.close()
    stop.set()
    if kind == 'beside':
        thread.join()
    print(json.dumps({'loop': tid(), 'keepers': KEEPERS, 'late': int(sum(late) * 1e9)}))


if __name__ == '__main__':
    main(sys.argv[1])
