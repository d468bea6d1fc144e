# SPDX-License-Identifier: MIT
"""Compare estimates of report --without-gil with measured times: see bench-without-gil.sh.
without-gil-errors.py GILTRACER PYTHON FREE_THREADED_PYTHON RUNS"""
import json
import os
import statistics
import subprocess
import sys
import time

PROGRAMS = ['computing', 'pipeline', 'locked', 'parsing', 'hashing', 'stages']
BUSY = 'x = 0\nfor i in range(4000000): x += i * i % 7'
HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, 'without-gil.py')
giltracer, gil, free, runs = sys.argv[1:4] + [int(sys.argv[4])]


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()


def busy(count):
    began = time.monotonic()
    processes = [subprocess.Popen([gil, '-S', '-c', BUSY]) for _ in range(count)]
    if any(p.wait() for p in processes):
        sys.exit('a busy process failed')
    return time.monotonic() - began


def together():
    """How many CPUs two are worth."""
    return max(1, min(2, 2 * busy(1) / busy(2)))


def estimate(factor, cpus):
    out = output(giltracer, 'report', '-q', 'session', '-o', '/dev/null', '--json', '-',
                 '--without-gil', '%.3f' % cpus, '--without-gil-cost', '%.3f' % factor)
    d = json.loads(out)['without_gil']
    return d['runs'][0]['expected_ns'] / 1e9, d['replayed_ns'] / d['recorded_ns'], d['reproduced']


def error(expected, measured):
    return max(expected / measured, measured / expected)


def measure(name):
    own, default, factors, replays = [], [], [], []
    for _ in range(runs):
        factor = float(output(free, PROGRAM, name, 'serial')) / float(output(gil, PROGRAM, name, 'serial'))
        cpus = together()
        output(giltracer, 'record', '-q', '--probes', 'preload', '--python-trace', 'none', '--python', gil,
               '-o', 'session', PROGRAM, name)
        measured = float(output(free, PROGRAM, name))
        expected, replayed, reproduced = estimate(factor, cpus)
        own.append((expected, measured, cpus))
        default.append((estimate(1.2, cpus)[0], measured))
        factors.append(factor)
        replays.append((replayed, reproduced))
        subprocess.run(['rm', '-rf', 'session'], check=True)
    ratio = statistics.median(e / m for e, m, _ in own)
    subprocess.run([sys.executable, os.path.join(HERE, 'compare.py'), 'without the GIL, ' + name, '<=1.15',
                    '%f' % error(ratio, 1)], check=True)
    print('  estimated %.2f s, took %.2f s on CPUs worth %.2f; 1 thread takes %.2f times as long; with 1.2, '
          'the error is %.2f; with the GIL, the replay takes %.3f of the recording (%d of %d reproduced)' % (
              statistics.median(e for e, _, _ in own), statistics.median(m for _, m, _ in own),
              statistics.median(c for _, _, c in own), statistics.median(factors),
              error(statistics.median(e / m for e, m in default), 1),
              statistics.median(r for r, _ in replays), sum(ok for _, ok in replays), runs), flush=True)


for program in PROGRAMS:
    measure(program)
