# SPDX-License-Identifier: MIT
"""Python calls, as giltracer dump --calls prints them, or in VizTracer's JSON, without times: thread by
thread, in the order in which these began, a line for each call, indented by its depth.

    python3 calls.py FILE [WORD]     only those with WORD in the function's name or file
"""
import json
import re
import sys

LINE = re.compile(r'(\d+)/(\d+) ([\d.]+) (\d+) (\d+)( open)? "(.*)"$')


def dumped(path):
    threads = {}
    with open(path) as f:
        for line in f:
            pid, tid, start, _, depth, is_open, name = LINE.match(line).groups()
            threads.setdefault((pid, tid), []).append(
                (float(start), int(depth), name + (' open' if is_open else '')))
    return threads


def of_viztracer(path):
    """A call is inside the calls that began before it and end after it."""
    threads = {}
    with open(path) as f:
        for event in json.load(f)['traceEvents']:
            if event['ph'] == 'X':
                threads.setdefault((event['pid'], event['tid']), []).append(
                    (event['ts'], -event['dur'], event['name']))
    for key, calls in threads.items():
        ends, with_depth = [], []
        for start, minus, name in sorted(calls):
            while ends and ends[-1] <= start:
                ends.pop()
            with_depth.append((start, len(ends), name))
            ends.append(start - minus)
        threads[key] = with_depth
    return threads


def main(path, word):
    threads = of_viztracer(path) if path.endswith('.json') else dumped(path)
    shown = {key: list(only(calls, word)) for key, calls in threads.items()}
    first = {key: threads[key][0][0] for key, lines in shown.items() if lines}
    for number, key in enumerate(sorted(first, key=first.get)):
        print('thread', number)
        for line in shown[key]:
            print(line)


def only(calls, word):
    """The calls whose name contains the word; the depth counts only these."""
    around = []
    for _, depth, name in calls:
        while around and around[-1] >= depth:
            around.pop()
        if word in name:
            yield '  ' * len(around) + re.sub(r' \(.*?\)( open)?$', r'\1', name)
            around.append(depth)


main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else '')
