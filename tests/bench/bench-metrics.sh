#!/bin/sh
# SPDX-License-Identifier: MIT
# The cost of counting for the counted program: CPU time of a loop that does nothing but release and
# take the GIL, alternating with the plain program; medians of the pairs. Then the cost of a scrape
# of 50 processes of 64 threads: its duration for the scraper, and the size of the answer.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"

compare() {
	python3 "$top_srcdir/tests/bench/compare.py" "$@"
}

cat >turns.py <<'PYTHON'
import os
import time

if __name__ == '__main__':
    zero = os.open('/dev/zero', os.O_RDONLY)
    start = time.process_time()
    for _ in range(300000):
        os.read(zero, 1)
    print((time.process_time() - start) / 300000 * 1e9)
PYTHON

for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 /usr/bin/python3; do
	[ -x "$python" ] || continue
	: >pairs
	for _ in 1 2 3 4 5 6 7 8 9 10 11; do
		echo "$("$python" turns.py) $("$GILTRACER" --metrics :0 -q --python "$python" turns.py)" \
			>>pairs
	done
	compare "counting, $("$python" -c 'import platform
print(platform.python_version())')" '<=1.10' "$(awk '{ print $2 / $1 }' pairs | sort -n | sed -n 6p)"
done

cat >many.py <<'PYTHON'
import os
import sys
import threading

over = threading.Event()


def works():
    while not over.wait(1):
        pass


def threads():
    return [threading.Thread(target=works) for _ in range(63)]


hold_open, alive = os.pipe()
for _ in range(49):
    if os.fork() == 0:
        os.close(alive)
        for thread in threads():
            thread.start()
        os.read(hold_open, 1)
        os._exit(0)
mine = threads()
for thread in mine:
    thread.start()
print('ready', flush=True)
sys.stdin.read()
over.set()
os.close(alive)
for thread in mine:
    thread.join()
PYTHON
cat >scrape.py <<'PYTHON'
import gzip
import http.client
import re
import statistics
import sys
import time
import urllib.parse

host = urllib.parse.urlsplit(sys.argv[1]).netloc


def scrape():
    time.sleep(0.01)  # what is asked for again within 2 ms is answered as before
    start = time.perf_counter()
    connection = http.client.HTTPConnection(host)
    connection.request('GET', '/metrics', headers={
        'Accept-Encoding': 'gzip', 'Accept': 'application/openmetrics-text;version=1.0.0'})
    body = connection.getresponse().read()
    return time.perf_counter() - start, body


def threads(body):
    text = gzip.decompress(body).decode()
    return sum(map(int, re.findall(r'^giltracer_threads{.*} (\d+)$', text, re.M)))


while threads(scrape()[1]) < 50 * 64:
    pass
taken = [scrape() for _ in range(30)]
print(statistics.median(t for t, _ in taken) * 1e3 / 20, len(taken[-1][1]) / 65536)
PYTHON
rm -f in out err
mkfifo in out err
"$GILTRACER" --metrics :0 many.py <in >out 2>err 3>&- &
exec 3>in 4<out 5<err
read -r _ _ url <&5
read -r _ <&4
python3 scrape.py "$url" >scraped
exec 3>&-
wait $!
read -r time size <scraped
compare 'scrape, 50 processes of 64 threads / 20 ms' '<=1' "$time"
compare 'scrape, its bytes / 64 KiB' '<=1' "$size"
