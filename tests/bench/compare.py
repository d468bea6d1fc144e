# SPDX-License-Identifier: MIT
"""Print one row of `make bench`.

compare.py NAME TARGET RUNS BASELINE OURS: run two shell commands in turns. The ratio is the median
over the runs of baseline / ours, each pair measured one after the other, so that a machine that is
busy for a while does not bend it. The memory is the peak of ours alone.

compare.py NAME TARGET RATIO: a ratio that was measured otherwise.

TARGET is the ratio that is asked for; a prefix of "<=" asks for at most it (an overhead). The name of
a row that misses its target is added to the file that GILTRACER_BENCH_MISSED names, if it does.
"""
import os
import statistics
import subprocess
import sys
import time


def run(command):
    began = time.monotonic()
    process = subprocess.Popen(["sh", "-c", command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit("compare.py: exit status %d: %s" % (process.returncode, command))
    return seconds, usage.ru_maxrss / 1024


def row(name, target, ratio, baseline="-", ours="-", memory="-"):
    wanted = float(target.lstrip("<="))
    met = ratio <= wanted if target.startswith("<=") else ratio >= wanted
    print(
        "%-38s %10s %10s %9.*f %9s %-6s %9s"
        % (name, baseline, ours, 1 if ratio >= 3 else 2, ratio, target, "met" if met else "MISSED", memory)
    )
    missed = os.environ.get("GILTRACER_BENCH_MISSED")
    if missed and not met:
        with open(missed, "a", encoding="utf-8") as f:
            f.write(name + "\n")


def main():
    if len(sys.argv) == 4:
        row(sys.argv[1], sys.argv[2], float(sys.argv[3]))
        return
    name, target, runs, baseline, ours = sys.argv[1:]
    pairs = [(run(baseline), run(ours)) for _ in range(int(runs))]
    row(
        name,
        target,
        statistics.median(a[0] / b[0] for a, b in pairs),
        "%.2f" % statistics.median(a[0] for a, b in pairs),
        "%.3f" % statistics.median(b[0] for a, b in pairs),
        "%.0f" % max(b[1] for a, b in pairs),
    )


if __name__ == "__main__":
    main()
