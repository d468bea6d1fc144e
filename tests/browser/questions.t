#!/bin/sh
# SPDX-License-Identifier: MIT
# The buttons below the verdict lead to answers; calls of a function are divided by cause, all of
# them; and the replay without a GIL is the document's.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
cat >program.py <<'END'
import threading, time
MODULUS = (1 << 2003) - 1
lock = threading.Lock()
def crunch(n):
    return pow(3, (1 << 1500) + n, MODULUS)
def serve(i):
    with lock:
        time.sleep(0.001)
    return crunch(0) if i % 10 == 0 else sum(range(2000))
def worker():
    for i in range(30):
        serve(i)
threads = [threading.Thread(target=worker, name="worker-%d" % i) for i in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
END
python=$(cpythons | awk '$1 ~ /^3\.1[1-3]$/ { print $2; exit }')
by_library -q --python "$python" -o page.html program.py >said 2>&1 || sed 's/^/# /' said
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/questions.mjs" "$PWD/page.html"
