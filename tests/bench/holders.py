# SPDX-License-Identifier: MIT
"""Of samples, for bench-sample.sh.

holders.py right SAMPLES EVENTS   prints the share of the samples that name the holder of the GIL, or that
                                  there is none, as the exact record of the same execution has it at that
                                  moment; EVENTS: what giltracer dump -e printed of it
holders.py first SAMPLES NS       prints the seconds from NS, CLOCK_MONOTONIC, to the first sample
"""
import bisect
import re
import struct
import sys


class Reader:
    """giltracer/trace/samples.h"""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.at = 24
        (self.now_ns,) = struct.unpack_from("<Q", self.data, 16)
        self.tids, self.gil = [], {}

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def sample(self):
        self.now_ns += self.number()
        for _ in range(self.number()):
            thread, how, _ = self.number(), self.number(), self.number()
            self.gil[self.tids[thread]] = how & 3 if not how & 8 else 0
        return self.now_ns, [tid for tid, gil in self.gil.items() if gil == 1]

    def samples(self):
        skipped = {"F": 4, "A": 2, "G": 2, "M": 1}
        while self.at < len(self.data):
            kind = chr(self.data[self.at])
            self.at += 1
            if kind == "S":
                yield self.sample()
            elif kind == "N":
                length = self.number()
                self.at += length
            elif kind == "T":
                self.tids.append([self.number(), self.number(), self.number()][1])
            elif kind == "E":
                return
            else:
                for _ in range(skipped[kind]):
                    self.number()


def read_holders(path):
    """When the GIL got another holder, and whom; None: it was released."""
    times, holders = [], []
    with open(path) as events:
        for line in events:
            match = re.match(r"(\d+)\.(\d{9}) \d+/(\d+) \S+ (acquire|release)\b", line)
            if match:
                times.append(int(match[1] + match[2]))
                holders.append(int(match[3]) if match[4] == "acquire" else None)
    return times, holders


def right(samples, events):
    times, holders = read_holders(events)
    count = same = 0
    for time, named in Reader(samples).samples():
        at = bisect.bisect_right(times, time) - 1
        if 0 <= at < len(times) - 1:
            count += 1
            same += named == ([] if holders[at] is None else [holders[at]])
    print("# samples compared with the exact record: %d" % count, file=sys.stderr)
    print(same / count)


def first(samples, began):
    print((next(Reader(samples).samples())[0] - int(began)) / 1e9)


{"right": right, "first": first}[sys.argv[1]](*sys.argv[2:])
