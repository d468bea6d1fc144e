# SPDX-License-Identifier: MIT
"""Judges a recording of blame.py, which printed the truth: blame-judge.py RULE DOCUMENT TRUTH ARG... prints "right",
or the numbers that are wrong.

guilty FUNCTION...              the culprits, and these functions, are blamed for 95 % of the waiting
convoy FUNCTION...              the same, and the victim has one pattern, a convoy
measured FUNCTION LINE ASLEEP   the only hog is as long as it measured itself, and asleep for that share"""
import json
import sys


def guilty(document, truth, *functions):
    waits = [b for b in document['blame'] if b['holder_tid']]  # the handover is nobody's
    waited = sum(b['wait_ns'] for b in waits)
    by_culprits = sum(b['wait_ns'] for b in waits if b['holder_tid'] in truth['culprits'])
    caused = sum(f['wait_caused_ns'] for f in document['functions'])
    by_functions = sum(f['wait_caused_ns'] for f in document['functions'] if f['function'] in functions)
    # While another thread was runnable without a CPU, it may have held the GIL and made all others wait.
    without_cpu = sum(t['states']['runnable_ns'] for t in document['threads'] if t['tid'] not in truth['culprits'])
    excused = (len(document['threads']) - 1) * without_cpu
    right = waited and caused and by_culprits >= 0.95 * waited - excused and by_functions >= 0.95 * caused - excused
    return 'right' if right else (by_culprits, waited, by_functions, caused, excused, document['patterns'])


def convoy(document, truth, *functions):
    codes = [p['code'] for p in document['patterns'] if p['tid'] == truth['victim']]
    return guilty(document, truth, *functions) if codes == ['convoy'] else document['patterns']


def measured(document, truth, function, line, asleep):
    hogs = [h for h in document['hogs'] if h['function'] == function]
    held, count = sum(truth['measured']), len(truth['measured'])
    if len(hogs) != 1 or hogs[0]['line'] != int(line):
        return hogs, truth
    hog = hogs[0]
    # Calls that had no CPU for most of their time are not accused.
    if (hog['held_off_cpu_ns'] - hog['held_asleep_ns']) * 5 < hog['hold_ns']:
        right = hog['holds'] == count and abs(hog['hold_ns'] / held - 1) <= 0.02
    else:
        right = 0 < hog['holds'] <= count and hog['hold_ns'] <= 1.02 * held
    right = right and abs(hog['held_asleep_ns'] / held - float(asleep)) <= 0.05
    return 'right' if right else (hogs, truth)


rule, documents, args = globals()[sys.argv[1]], sys.argv[2:4], sys.argv[4:]
print(rule(*(json.load(open(name)) for name in documents), *args))
