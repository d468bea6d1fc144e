#!/bin/sh
# SPDX-License-Identifier: MIT
# What a recording adds to an empty program: rows on the seconds of wall time, and of CPU time including what
# goes on after giltracer has ended, more than the plain interpreter takes. Medians of pairs. With
# GILTRACER_BENCH_RELEASE, the same against that giltracer. Then, of a program that makes a million GIL events:
# the seconds from its last line to the verdict and to the page.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"

PYTHONDONTWRITEBYTECODE=1 python3 - "$top_srcdir/tests/bench" "$GILTRACER" "${GILTRACER_BENCH_RELEASE:-}" \
	"${GILTRACER_BENCH_PYTHON:-/usr/bin/python3}" "$top_srcdir/share/examples/churn.py" <<'EOS'
import ctypes
import os
import statistics
import subprocess
import sys
import threading
import time

bench, giltracer, release, python, churn = sys.argv[1:]
sys.path.insert(0, bench)
import compare

PAIRS = 11
PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(argv):
    """Seconds of wall time until the command ends, and of CPU time until nothing of it is left."""
    began = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall = cpu = 0.0
    while True:
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            break
        cpu += usage.ru_utime + usage.ru_stime
        if pid == process.pid:
            wall = time.monotonic() - began
            process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit("bench-start: exit status %d: %s" % (process.returncode, argv))
    return wall, cpu


def recorded(program, engine):
    return [program, "-q", "--python", python, "--probes", engine, "-o", "start.html", "empty.py"]


def start(engine, name, targets):
    runs = []
    for _ in range(PAIRS):
        runs.append([run([python, "empty.py"]), run(recorded(giltracer, engine))])
        if release:
            runs[-1].append(run(recorded(release, engine)))
    for i, (what, target) in enumerate(targets):
        more = [[r[i] - pair[0][i] for r in pair[1:]] for pair in runs]
        plain = statistics.median(pair[0][i] for pair in runs)
        ours = statistics.median(m[0] for m in more)
        compare.row("start, %s: %s s more" % (name, what), target, ours, "%.3f" % plain,
                    "%.3f" % statistics.median(pair[1][i] for pair in runs))
        if release:
            theirs = statistics.median(m[1] for m in more)
            compare.row("start, %s: %s / last release" % (name, what), "<=1.05", ours / theirs,
                        "%.3f" % theirs, "%.3f" % ours)


def end(engine):
    """Seconds from the program's last line to the first line of the report, and to the page."""
    page = "end.html"
    if os.path.exists(page):
        os.unlink(page)
    process = subprocess.Popen([giltracer, "--python", python, "--python-trace", "none", "--probes", engine,
                                "-o", page, "turns.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    seen = {}

    def watch():
        while not os.path.exists(page) and process.poll() is None:
            time.sleep(0.0005)
        seen["page"] = time.monotonic()

    watcher = threading.Thread(target=watch)
    watcher.start()
    while True:
        line = process.stderr.readline()
        if not line:
            break
        if line.startswith(b"  ") and "verdict" not in seen:
            seen["verdict"] = time.monotonic()
    last = float(process.stdout.read().split()[-1])
    if process.wait():
        sys.exit("bench-start: exit status %d" % process.returncode)
    watcher.join()
    return seen["verdict"] - last, seen["page"] - last


with open("empty.py", "w") as f:
    f.write("pass\n")
with open("turns.py", "w") as f:
    f.write("import runpy, sys, time\nsys.argv[1:] = ['4', '62500']\n"
            "runpy.run_path(%r, run_name='__main__')\nprint(time.monotonic(), flush=True)\n" % churn)
engines = ["preload"]
if os.geteuid() == 0:
    engines.append("uprobes")
NAMES = {"preload": "library", "uprobes": "uprobes"}
TARGETS = {"preload": [("wall", "<=0.15"), ("CPU", "<=0.10")], "uprobes": [("wall", "<=0.45")]}
for engine in engines:
    start(engine, NAMES[engine], TARGETS[engine])
for engine in engines:
    runs = [end(engine) for _ in range(5)]
    for i, (what, target) in enumerate((("verdict", "<=0.10"), ("page", "<=0.30"))):
        compare.row("end, 1 M events, %s: s to the %s" % (NAMES[engine], what), target,
                    statistics.median(r[i] for r in runs))
EOS
