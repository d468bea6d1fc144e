#!/bin/sh
# SPDX-License-Identifier: MIT
# Tasks of event loops on the page: in a recording in which an item stays in a queue, and in synthetic ones.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
if ! by_library -q --python-trace native -o page.html --json page.json \
	"$top_srcdir/share/examples/late_queue.py" 0.7 >out 2>err; then
	cat err
	echo 'not ok 1 - a recording'
	echo 1..1
	exit 1
fi
cat >requests.py <<'END'
import asyncio, time
async def query(seconds): await asyncio.sleep(seconds)
async def handle(i):
    slow = i in (7, 23)
    await query(0.1 if slow else 0.001)
    if not slow: await asyncio.sleep(0.01)
def pause(i):
    if i == 4000: time.sleep(0.5)
async def main():
    for i in range(4020): pause(i)
    await asyncio.gather(*[asyncio.create_task(handle(i), name="request-%d" % i) for i in range(40)])
    await asyncio.gather(*[asyncio.create_task(query(0.002 * i), name="job-%d" % i) for i in range(15)])
asyncio.run(main())
END
by_library -q --python-trace native -o requests.html --json requests.json requests.py || exit 99
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/tasks.mjs" "$PWD/page.html" "$PWD/page.json" \
	"$PWD/requests.html" "$PWD/requests.json"
