#!/bin/sh
# SPDX-License-Identifier: MIT
# What the page says of one thing in several places agrees, and what it leaves out is counted.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
. "$top_srcdir/tests/browser/reports.sh"
reports=
if has perf && has root; then
	reports=$(real_reports)
fi
# A thread that waits for a lock while another one sleeps.
cat >locked.py <<'END'
import threading, time
lock = threading.Lock()
def work():
    for _ in range(3):
        with lock:
            time.sleep(0.02)
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads:
    t.start()
for t in threads:
    t.join()
END
python=$(cpythons | awk 'NR == 1 { print $2 }')
if by_library -q --python "$python" --python-trace none -o locked.html locked.py >said 2>&1; then
	reports="$reports $PWD/locked.html"
else
	sed 's/^/# /' said
fi
# shellcheck disable=SC2086 # paths without spaces
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/agree.mjs" $reports
