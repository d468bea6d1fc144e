# SPDX-License-Identifier: MIT
"""Writes the code objects of this process (codes.py) to LIST, which instructions to look up to ASK,
and what the interpreter itself says of them to WANT."""
import dis
import sys

sys.path.insert(0, sys.argv[1])
import codes
sys.path.pop(0)
import argparse
import ast
import collections
import json.decoder
import inspect
import tokenize


def naïve(x):
    """Lines that go forward and back, and a name that is not ASCII."""
    for i in range(
            3):
        x = [y
             for y in (x,
                       i)]
    try:
        return (x if x
                else
                1)
    finally:
        del x


def lines_of(code):
    """The line of each code unit; 0 for none."""
    units = len(code.co_code) // 2
    lines = [0] * units
    if sys.version_info >= (3, 10):
        for start, end, line in code.co_lines():
            for i in range(start // 2, min(end // 2, units)):
                lines[i] = line or 0
        return lines
    starts = dict(dis.findlinestarts(code))
    line = code.co_firstlineno
    for i in range(units):
        line = starts.get(2 * i, line)
        lines[i] = line
    return lines


def main(folder):
    kept = list(codes.reachable_codes(sys._current_frames().values()))
    with open(folder + '/list', 'wb') as f:
        f.write(codes.listed())
    base = codes.CODE.__basicsize__ if sys.version_info >= (3, 11) else 0
    step = 1 if sys.version_info[:2] == (3, 10) else 2
    with open(folder + '/ask', 'w') as ask, open(folder + '/want', 'wb') as want:
        for code in kept:
            lines = lines_of(code)
            first = id(code) + base if base else 0
            ask.write('%d %d %d %d %d\n' % (id(code), max(code.co_firstlineno, 0), first,
                                            len(lines), step))
            name = getattr(code, 'co_qualname', code.co_name)
            want.write(' '.join([name] + [str(one) for one in lines]).encode() + b'\n')


main(sys.argv[2])
