# SPDX-License-Identifier: MIT
"""Print one row of `make bench`.

compare.py [--cpu] NAME TARGET RUNS BASELINE OURS: run two shell commands in turns. The ratio is the
median over the runs of baseline / ours, each pair measured one after the other, so that a machine that
is busy for a while does not bend it. The memory is the peak of ours alone. With --cpu there is another
row on the time of the CPUs, user and system, which hardly depends on what else the machine does.

compare.py NAME TARGET RATIO: a ratio that was measured otherwise.

TARGET is the ratio that is asked for; a prefix of "<=" asks for at most it (an overhead). Rows are added
to the file that GILTRACER_BENCH_TABLE names, if it does.
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
    return seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def row(name, target, ratio, baseline="-", ours="-", memory="-"):
    wanted = float(target.lstrip("<="))
    met = ratio <= wanted if target.startswith("<=") else ratio >= wanted
    line = "%-38s %10s %10s %9.*f %9s %-6s %9s" % (
        name,
        baseline,
        ours,
        1 if ratio >= 3 else 2,
        ratio,
        target,
        "met" if met else "MISSED",
        memory,
    )
    print(line, flush=True)
    table = os.environ.get("GILTRACER_BENCH_TABLE")
    if table:
        with open(table, "a", encoding="utf-8") as f:
            f.write(line + "\n")


def compared(name, target, pairs, what):
    row(
        name,
        target,
        statistics.median(a[what] / b[what] for a, b in pairs),
        "%.2f" % statistics.median(a[what] for a, b in pairs),
        "%.3f" % statistics.median(b[what] for a, b in pairs),
        "%.0f" % max(b[1] for a, b in pairs),
    )


def main():
    args = sys.argv[1:]
    cpu = args[0] == "--cpu"
    if cpu:
        del args[0]
    if len(args) == 3:
        row(args[0], args[1], float(args[2]))
        return
    name, target, runs, baseline, ours = args
    pairs = [(run(baseline), run(ours)) for _ in range(int(runs))]
    compared(name, target, pairs, 0)
    if cpu:
        compared(name + ", CPU", target, pairs, 2)


if __name__ == "__main__":
    main()
