# SPDX-License-Identifier: MIT
"""Tasks of asyncio on uvloop: one that fails, one that lets others run, and one that becomes ready
while main keeps the loop's thread; where asked, one that is created just before that."""
import asyncio
import sys
import threading
import time

import uvloop


async def fails():
    raise ValueError


async def leaf(future):
    return await future


async def waits(future):
    return await leaf(future)


async def yields():
    for _ in range(3):
        await asyncio.sleep(0)


async def consume(queue):
    return await queue.get()


async def created():
    pass


def put(loop, queue):
    loop.call_soon_threadsafe(queue.put_nowait, 1)


def block(thread):
    began = time.monotonic()
    _ = thread.start(), thread.join()
    end = time.monotonic() + 3 * (time.monotonic() - began) + 0.4
    while time.monotonic() < end:
        list(range(50000))


async def main(loop):
    future, queue = loop.create_future(), asyncio.Queue()
    tasks = []
    for coroutine in waits(future), fails(), yields(), consume(queue):
        tasks.append(asyncio.ensure_future(coroutine))
    if hasattr(tasks[3], 'set_name'):
        tasks[3].set_name('</script>consumer-7\x1b')
    await asyncio.gather(tasks[1], tasks[2], return_exceptions=True)
    if sys.argv[1:]:
        tasks.append(asyncio.ensure_future(created()))
    block(threading.Thread(target=put, args=(loop, queue)))
    await tasks[3]
    future.set_result(None)
    await tasks[0]


def run():
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(main(loop))


if __name__ == '__main__':
    run()
