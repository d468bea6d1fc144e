#!/bin/sh
# SPDX-License-Identifier: MIT
# The stacks that waited and those that held the GIL have all the waiting, and choose each other; a
# page of two recordings shows both, and what changed.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright
# Two threads wait for each other's work, and for one that keeps the GIL as long as it is told.
cat >program.py <<'END'
import sys, threading, time
MODULUS = (1 << 2003) - 1
lock = threading.Lock()
def keep():
    with lock:
        time.sleep(0.001)
        return pow(3, 1 << int(sys.argv[1]), MODULUS)
def search(n):
    return sum(i * i for i in range(n))
def work():
    for _ in range(30):
        search(20000)
def loop():
    for _ in range(12):
        keep()
threads = [threading.Thread(target=t, name=t.__name__) for t in (work, loop, loop)]
for t in threads:
    t.start()
for t in threads:
    t.join()
END
python=$(cpythons | awk 'NR == 1 { print $2 }')
# recorded NAME ARG…: NAME.html, and the session NAME
recorded() {
	recorded_name=$1
	shift
	by_library -q --python "$python" --keep "$recorded_name" -o "$recorded_name.html" \
		program.py "$@" >said 2>&1 || sed 's/^/# /' said
}
recorded before 2000
recorded after 20
"$GILTRACER" diff -q -o change.html --json change.json before after >said 2>&1 || sed 's/^/# /' said
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) \
	node "$top_srcdir/tests/browser/meeting.mjs" "$PWD/before.html" "$PWD/change.html" "$PWD/change.json"
