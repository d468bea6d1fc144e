# SPDX-License-Identifier: MIT
"""Tasks of trio: one that fails, one that lets others run, and two that become ready while main keeps
the loop's thread: an item is put into a memory channel, and a deadline passes. Whatever the order in
which trio runs tasks, each is woken by the same ones."""
import threading
import time

import trio


async def fails():
    raise ValueError


async def leaf(event):
    await event.wait()


async def waits(event):
    await leaf(event)


async def yields(done):
    for _ in range(3):
        await trio.lowlevel.cancel_shielded_checkpoint()
    done.set()


async def consume(channel, done):
    await channel.receive()
    done.set()


async def expires(scope):
    with scope:
        await trio.sleep_forever()


def put(token, channel):
    token.run_sync_soon(channel.send_nowait, 1)


def block(thread, scope):
    began = time.monotonic()
    _ = thread.start(), thread.join()
    scope.deadline = trio.current_time() + 0.01
    end = time.monotonic() + 3 * (time.monotonic() - began) + 0.4
    while time.monotonic() < end:
        list(range(50000))


async def main():
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails)
    except Exception:
        pass
    last, yielded, consumed = trio.Event(), trio.Event(), trio.Event()
    send, receive = trio.open_memory_channel(1)
    token, scope = trio.lowlevel.current_trio_token(), trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waits, last)
        nursery.start_soon(yields, yielded)
        nursery.start_soon(consume, receive, consumed, name='</script>consumer-7\x1b')
        nursery.start_soon(expires, scope)
        await yielded.wait()
        block(threading.Thread(target=put, args=(token, send)), scope)
        await consumed.wait()
        last.set()


if __name__ == '__main__':
    trio.run(main)
