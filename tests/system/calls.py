# SPDX-License-Identifier: MIT
"""Python calls, as giltracer dump --calls prints them, without times: thread by thread, in the order in
which these began, a line for each call, indented by its depth.

    python3 calls.py DUMP [WORD]     only those with WORD in the function's name or file
"""
import re
import sys

LINE = re.compile(r'(\d+)/(\d+) ([\d.]+) (\d+) (\d+)( open)? "(.*)"$')


def main(dump, word):
    threads = {}
    with open(dump) as f:
        for line in f:
            pid, tid, start, _, depth, is_open, name = LINE.match(line).groups()
            threads.setdefault((pid, tid), []).append(
                (float(start), int(depth), name + (' open' if is_open else '')))
    shown = {key: list(only(calls, word)) for key, calls in threads.items()}
    first = {key: threads[key][0][0] for key, lines in shown.items() if lines}
    for number, key in enumerate(sorted(first, key=first.get)):
        print('thread', number)
        for line in shown[key]:
            print(line)


def only(calls, word):
    """Those with the word; the depth counts them alone."""
    around = []
    for _, depth, name in calls:
        while around and around[-1] >= depth:
            around.pop()
        if word in name:
            yield '  ' * len(around) + re.sub(r' \(.*?\)( open)?$', r'\1', name)
            around.append(depth)


main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else '')
