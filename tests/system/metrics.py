# SPDX-License-Identifier: MIT
"""metrics.py URL EXPRESSION [ACCEPT]: scrapes, and prints what the Python expression over the samples is:
value(NAME, label=value…) is the sum of those that match, groups(NAME, LABEL) are the values of a label, text the whole, headers those of the answer."""
import gzip
import re
import sys
import urllib.request

request = urllib.request.Request(sys.argv[1], headers={
    'Accept': sys.argv[3] if len(sys.argv) > 3 else 'application/openmetrics-text',
    'Accept-Encoding': 'gzip'})
with urllib.request.urlopen(request, timeout=30) as answer:
    headers = answer.headers
    data = answer.read()
text = (gzip.decompress(data) if headers['Content-Encoding'] == 'gzip' else data).decode()

LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
samples = []
for line in text.splitlines():
    match = re.match(r'(\w+)(?:\{(.*?)\})? ([0-9.e+-]+)(?: #.*)?$', line)
    if match:
        samples.append((match[1], dict(LABEL.findall(match[2] or '')), float(match[3])))
    elif not line.startswith('# '):
        sys.exit('no sample: ' + line)


def value(sample, **labels):
    return sum(v for name, has, v in samples
               if name == sample and all(has.get(k) == str(w) for k, w in labels.items()))


def groups(sample, label):
    return {has[label] for name, has, _ in samples if name == sample}


print(eval('(%s)' % sys.argv[2]))
