# SPDX-License-Identifier: MIT
"""stacks-compare.py DUMP SCRIPT: compare the stacks of two texts about one recording, frame by frame.

DUMP is what `giltracer dump --stacks` prints, SCRIPT what `perf script --ns --no-inline
-F tid,time,ip,sym,dso` prints. Prints "COUNT WHAT" lines: stacks, same, truncated (the same as far
as the dump of the stack goes, and said to be cut), different, silent (different without a word of
ours that it is incomplete), only-perf, only-ours; then examples of what is different, behind "#".
"""
import collections
import os
import re
import sys

EVENT = re.compile(r"(\d+\.\d{9}) \d+/(\d+) .*\bstack=([1-9]\d*)\b")
FRAME = re.compile(r'\t"(.*)"(?::\d+)? "(.*)"((?: \w+)*)$')
HEAD = re.compile(r"\s*(\d+)\s+(\d+\.\d{9}):\s*$")
LINE = re.compile(r"\s+[0-9a-f]+ (.*) \((.*)\)$")


def plain(name):
    """A symbol without its version, and without the number of an LTO clone: aliases of one place."""
    return re.sub(r"\.lto_priv\.\d+", "", name.split("@")[0])


def ours(path):
    stacks, frames = {}, None
    for line in open(path):
        m = EVENT.match(line)
        if m:
            frames = stacks.setdefault((m[2], m[1]), [])
        m = FRAME.match(line)
        if m and "inlined" not in m[3]:
            words = m[3].split()
            name = "[unknown]" if "unknown" in words else plain(m[1])
            frames.append((name, "" if name == "[unknown]" else m[2], words))
    return stacks


def theirs(name):
    """perf makes up symbols for the stubs of the procedure linkage table, which no file has, or has
    _init reach over them."""
    return "[unknown]" if name.endswith("@plt") or name == "_init" else plain(name)


def perfs(path):
    stacks, frames = {}, None
    for line in open(path):
        m = HEAD.match(line)
        if m:  # perf record may write a sample twice, and perf script prints both
            frames = stacks[m[1], m[2]] = []
        m = LINE.match(line)
        if m:
            name = theirs(m[1])
            frames.append((name, "" if name == "[unknown]" else os.path.basename(m[2])))
    return {k: v for k, v in stacks.items() if v}


def judge(a, b):
    words = a[-1][2] if a else []
    names = [f[:2] for f in a]
    if names == b:
        return "same"
    while b and b[-1][0] == "[unknown]":  # how perf script ends where the dump does
        b = b[:-1]
    if "truncated" in words and (names == b[: len(names)] or names[: len(b)] == b):
        return "truncated"
    return "different" if "broken" in words or "truncated" in words else "silent"


def main():
    a, b = ours(sys.argv[1]), perfs(sys.argv[2])
    counts = collections.Counter(
        {w: 0 for w in ("same", "truncated", "different", "silent", "only-perf", "only-ours")}
    )
    examples = []
    for key in b:
        what = judge(a[key], b[key]) if key in a else "only-perf"
        counts[what] += 1
        if what not in ("same", "truncated", "only-perf"):
            examples.append((what, key, a[key], b[key]))
    counts["only-ours"] = len(a.keys() - b.keys())
    print(len(b), "stacks")
    for what, n in counts.items():
        print(n, what)
    for what, key, x, y in examples[:5]:
        print("#", what, *key)
        for i in range(max(len(x), len(y))):
            left = " ".join([x[i][0], *x[i][2]]) if i < len(x) else "-"
            right = y[i][0] if i < len(y) else "-"
            print("#  ", " " if left.split()[0] == right else "!", left, "|", right)


if __name__ == "__main__":
    main()
