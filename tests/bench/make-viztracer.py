#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make-viztracer.py CALLS: on stdout, a trace as VizTracer writes it (dump_raw), of four threads
whose calls nest at random, each written when it returns. The same bytes every time."""
import random
import sys


def functions(rnd):
    parts = 'run read write parse token load handle item key value node tree main step'.split()
    files = ['/usr/lib/python3.11/%s.py' % f for f in
             'json/decoder asyncio/base_events threading socket selectors logging/__init__'.split()]
    files += ['/home/user/project/src/application/%s.py' % f for f in parts]
    for _ in range(800):
        name = '_'.join(rnd.sample(parts, rnd.randint(1, 2)))
        if rnd.random() < 0.3:
            yield 'builtins.' + name
        elif rnd.random() < 0.4:
            yield '%s.%s (%s:%d)' % (rnd.choice(parts).title(), name, rnd.choice(files),
                                     rnd.randint(1, 2000))
        else:
            yield '%s (%s:%d)' % (name, rnd.choice(files), rnd.randint(1, 2000))


def main():
    calls = int(sys.argv[1])
    rnd = random.Random(1)
    names = list(functions(rnd))
    pid, out = 31683, []
    now = 2470536638034
    stacks = [[] for _ in range(4)]
    write = sys.stdout.write
    write('{"traceEvents":[{"ph":"M","pid":%d,"tid":%d,"name":"process_name",'
          '"args":{"name":"MainProcess"}}' % (pid, pid))
    for i in range(4):
        write(',{"ph":"M","pid":%d,"tid":%d,"name":"thread_name","args":{"name":"worker-%d"}}'
              % (pid, pid + i, i))
    thread = left = 0
    while calls:
        if not left:
            thread, left = rnd.randrange(4), rnd.randint(50, 5000)
        left -= 1
        stack = stacks[thread]
        now += rnd.randint(40, 900)
        if len(stack) < 3 or (len(stack) < 40 and rnd.random() < 0.5):
            stack.append((now, rnd.choice(names)))
            continue
        start, name = stack.pop()
        dur = now - start
        out.append(',{"pid":%d,"tid":%d,"ts":%d.%03d,"ph":"X","cat":"fee","dur":%d.%03d,"name":"%s"}'
                   % (pid, pid + thread, start // 1000, start % 1000, dur // 1000, dur % 1000, name))
        calls -= 1
        if len(out) == 10000:
            write(''.join(out))
            out = []
    write(''.join(out) + '], "viztracer_metadata": {"overflow":false}}')


main()
