# SPDX-License-Identifier: MIT
"""What terminal, page and JSON say of each finding is the same, and its numbers are those of the document's lists:
findings.py TERMINAL JSON PAGE prints what differs."""
import html
import json
import re
import sys

SHOWN = 6  # in the terminal
UNITS = {'µs': 1e3, 'ms': 1e6, 's': 1e9}
GIL = 'call', 'function', 'thread', 'hand-off', 'no-cpu'


def time(ns):
    return '%.2f s' % (ns / 1e9) if ns >= 1e9 else '%.1f ms' % (ns / 1e6) if ns >= 1e6 else '%.1f µs' % (ns / 1e3)


def cost(f):
    share = '%.1f %%' % f['percent']
    if not f['cost_ns']:
        return share
    return '%s (%s%s)' % (time(f['cost_ns']), share, '' if f['certainty'] == 'exact' else ', inferred')


def lines(f, number):
    yield '  %d. %s: %s. %s' % (number, f['title'], cost(f), f['text'])
    if f['advice']:
        yield '     What helps: ' + f['advice']


def places(page):
    """The texts of the page's list."""
    for item in re.findall(r'<li\b.*?</li>', re.search(r'<ol class="findings">(.*?)</ol>', page, re.S)[1], re.S):
        yield ' '.join(html.unescape(re.sub('<[^>]*>', ' ', item)).replace('\u00a0', ' ').split())


def differ(terminal, document, page):
    findings = document['findings']
    for number, f in enumerate(findings[:SHOWN], 1):
        for line in lines(f, number):
            if line not in terminal:
                yield 'terminal', line
    listed = list(places(page)) if findings else []
    if len(listed) != len(findings):
        yield 'page', len(listed), 'of', len(findings)
    for f, item in zip(findings, listed):
        for text in f['title'], f['text'], f['advice'] or '', *cost(f).split(' (')[:1]:
            if ' '.join(text.split()) not in item:
                yield 'page', text, item


def contradict(d):
    """Sums of other lists of the document."""
    waited = sum(b['wait_ns'] for b in d['blame'])
    locked = sum(t['lock_wait_ns'] or 0 for t in d['threads'])
    longest = max(t['longest_hold_ns'] for t in d['threads'])
    for kinds, all_ns in ((GIL, waited), (('lock',), locked)):
        of_all = sum(f['cost_ns'] for f in d['findings'] if f['kind'] in kinds)
        if of_all > all_ns:
            yield kinds, 'cost', of_all, 'of', all_ns
    for f in d['findings']:
        for share, number, unit in re.findall(r'([\d.]+) % of all waiting for the GIL \(([\d.]+) (µs|ms|s)\)', f['text']):
            ns = float(number) * UNITS[unit]
            slack = 0.06 + 100 * (0.06 if unit != 's' else 0.006) * UNITS[unit] / waited
            if abs(float(share) - 100 * ns / waited) > slack:
                yield f['title'], share, '% are not', number, unit, 'of', waited
            if f['kind'] != 'call' and time(f['cost_ns']) != '%s %s' % (number, unit):
                yield f['title'], number, unit, 'is not', f['cost_ns']
        for number, unit in re.findall(r'for up to ([\d.]+) (µs|ms|s) at a time', f['text']):
            if float(number) * UNITS[unit] > longest + 0.06 * UNITS[unit]:
                yield f['title'], number, unit, 'is longer than', longest
        saves = ['' if ns is None else time(ns) for ns in [f['would_save_ns']]]
        if saves != (re.findall('That would save about (.*?) of waiting', f['advice'] or '') or ['']):
            yield f['title'], 'would save', *saves, f['advice']
        for place in f['places']:
            if place['cost_ns'] > f['cost_ns']:
                yield f['title'], 'place', place


def main(terminal, document, page):
    with open(terminal, encoding='utf-8') as f:
        terminal = f.read().split('\n')
    with open(document, encoding='utf-8') as f:
        document = json.load(f)
    with open(page, encoding='utf-8') as f:
        page = f.read()
    payload = json.loads(re.search(r'<script type="application/json" id="gt-report">(.*?)</script>', page, re.S)[1])
    if payload != document:
        print('the page has another document')
    for difference in *differ(terminal, document, page), *contradict(document):
        print(*difference)
    print(len(document['findings']), 'findings')


main(*sys.argv[1:])
