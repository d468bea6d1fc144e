# SPDX-License-Identifier: MIT
"""A server in which an item waits in an asyncio.Queue for a second now and then, although putting and
getting take microseconds: the event loop is busy with a function that is not a coroutine.

    late_queue.py [SECONDS]

Run it, and look at it from another terminal:

    giltracer -p PID --sample 200 --duration 3
"""
import asyncio
import sys
import threading
import time


def rebuild_index(seconds=1.0):
    """This should run in a thread or, even better, in another process."""
    end = time.monotonic() + seconds
    words = 0
    while time.monotonic() < end:
        words += len('the quick brown fox jumps over the lazy dog'.split())
    return words


async def maintain():
    while True:
        await asyncio.sleep(0.5)
        rebuild_index()


async def consume(queue):
    while True:
        put_at = await queue.get()
        late = time.monotonic() - put_at
        if late > 0.5:
            print('an item lay in the queue for %.1f s' % late, flush=True)


def feed(loop, queue):
    """Runs in another thread, which receives the requests."""
    while not loop.is_closed():
        try:
            loop.call_soon_threadsafe(queue.put_nowait, time.monotonic())
        except RuntimeError:  # the loop has just been closed
            return
        time.sleep(0.02)


async def serve(seconds):
    queue = asyncio.Queue()
    tasks = [asyncio.ensure_future(consume(queue)), asyncio.ensure_future(maintain())]
    loop = asyncio.get_event_loop()
    threading.Thread(target=feed, args=(loop, queue), name='feeder', daemon=True).start()
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()


if __name__ == '__main__':
    loop = asyncio.new_event_loop()
    loop.run_until_complete(serve(float(sys.argv[1]) if len(sys.argv) > 1 else 60))
    loop.close()
