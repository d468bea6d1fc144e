#!/bin/sh
# SPDX-License-Identifier: MIT
# The cost of 10,000 hosts with giltracer --metrics for a Prometheus: one host is real, 25 and 100
# similar ones are simulated for a real Prometheus, and the difference per host is multiplied by
# 10,000. This answers how large the server must be. Takes five minutes; needs prometheus
# (tests/system/prometheus.sh FOLDER).
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"
PATH=$top_builddir/prometheus:$PATH
command -v prometheus >/dev/null || {
	echo '    fleet: not measured: prometheus is missing (tests/system/prometheus.sh FOLDER)'
	exit 0
}

cat >host.py <<'PYTHON'
import os
import sys
import threading

over = threading.Event()


def works():
    while not over.wait(0.02):
        sum(range(20000))


def serve():
    names = ['pool-%d' % i for i in range(8)] + ['heartbeat', 'logger']
    for name in names:
        threading.Thread(target=works, name=name, daemon=True).start()


hold_open, alive = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        os.close(alive)
        serve()
        os.read(hold_open, 1)
        os._exit(0)
serve()
print('ready', flush=True)
sys.stdin.read()
over.set()
PYTHON
rm -f in out err
mkfifo in out err
"$GILTRACER" --metrics 127.0.0.1:0 host.py <in >out 2>err 3>&- &
exec 3>in 4<out 5<err
read -r _ _ url <&5
read -r _ <&4
python3 "$top_srcdir/tests/bench/fleet.py" "$url"
exec 3>&-
wait $!
