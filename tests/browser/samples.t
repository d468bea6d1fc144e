#!/bin/sh
# SPDX-License-Identifier: MIT
# The page of samples.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
cat >busy.py <<'END'
import threading, time
def spin(end):
    while time.monotonic() < end:
        pass
if __name__ == "__main__":
    end = time.monotonic() + 0.6
    threads = [threading.Thread(target=spin, args=(end,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
END
if ! "$GILTRACER" -q --probes none --sample 500 -o page.html --json page.json busy.py 2>err; then
	cat err
	echo 'not ok 1 - a recording'
	echo 1..1
	exit 1
fi
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/samples.mjs" "$PWD/page.html" "$PWD/page.json"
