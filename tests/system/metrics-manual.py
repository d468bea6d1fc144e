# SPDX-License-Identifier: MIT
"""metrics-manual.py TOP_SRCDIR SERVED: fails unless the families in giltracer/metrics/families.def are those
of the OpenMetrics text SERVED and those of the manual, with the same types and words."""
import re
import sys

top, served = sys.argv[1:]
with open(top + '/giltracer/metrics/families.def') as file:
    listed = re.findall(r'FAMILY\(\w+, "(\w+)", "(\w+)", (?:"\w+"|NULL),\s*"(.*?)"\)', file.read(), re.S)
with open(top + '/share/giltracer.1') as file:
    section = file.read().split('\n.Sh METRICS\n')[1].split('\n.Sh ')[0]
with open(served) as file:
    text = file.read()

entries = re.findall(r'^\.It Li (giltracer_\w+) Pq (\w+)\n((?:[^.].*\n)+)', section, re.M)
manual = [(name, kind, ' '.join(words.split())) for name, kind, words in entries]
expected = [(name + {'counter': '_total', 'info': '_info'}.get(kind, ''), kind, words)
            for name, kind, words in listed]
if [e[:2] for e in manual] != [e[:2] for e in expected]:
    sys.exit('the manual has %s, the list %s' % (manual, expected))
for (name, _, words), (_, _, wanted) in zip(manual, expected):
    if not words.startswith(wanted):
        sys.exit('the manual says of %s: %s' % (name, words))
types = re.findall(r'^# TYPE (\w+) (\w+)$', text, re.M)
if types != [(name, kind) for name, kind, _ in listed]:
    sys.exit('what is served is not what is listed: %s' % types)
helps = re.findall(r'^# HELP (\w+) (.*)$', text, re.M)
if helps != [(name, words) for name, _, words in listed]:
    sys.exit('what is served is not described as in the list: %s' % helps)
