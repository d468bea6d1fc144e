# SPDX-License-Identifier: MIT
"""compare.py NAME TARGET RUNS BASELINE OURS: run two shell commands in turns and print one row.

The ratio is the median over the runs of baseline / ours, each pair measured one after the other, so
that a machine that is busy for a while does not bend it. TARGET is the ratio that is asked for; a
prefix of "<=" asks for at most it (an overhead). The memory is the peak of ours alone.
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


def main():
    name, target, runs, baseline, ours = sys.argv[1:]
    pairs = [(run(baseline), run(ours)) for _ in range(int(runs))]
    ratio = statistics.median(a[0] / b[0] for a, b in pairs)
    at_most = target.startswith("<=")
    wanted = float(target.lstrip("<="))
    met = ratio <= wanted if at_most else ratio >= wanted
    print(
        "%-38s %10.2f %10.3f %9.1f %9s %-6s %9.0f"
        % (
            name,
            statistics.median(a[0] for a, b in pairs),
            statistics.median(b[0] for a, b in pairs),
            ratio,
            target,
            "met" if met else "MISSED",
            max(b[1] for a, b in pairs),
        )
    )


if __name__ == "__main__":
    main()
