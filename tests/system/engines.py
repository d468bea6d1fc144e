# SPDX-License-Identifier: MIT
"""engines.py [DEFECT]: compare one execution that both engines recorded.

Reads uprobes.events, preload.events (of giltracer dump), uprobes.json and preload.json, and prints
where they differ. With a DEFECT, one is put into preload.events and preload.json first.

A thread may be stopped between the two looks at the clock, by the scheduler, an interrupt or the
hypervisor, for any time. So no single distance is judged, but

- both have the same events of each thread in the same order
- one event lies within the other engine's next ones as the code has them: in take_gil, the entry's
  probe, the library's request, the library's acquire, the return's probe; then drop_gil's entry and
  the library's release
- half of the distances are at most NEAR_NS, and nine of ten where the thread stayed on its CPU
- a thread's sums of holds and waits, in both reports, differ by the distances and nothing else
"""
import collections
import json
import sys

NEAR_NS = 20000
# The library's clock is related to perf's by pairs of stamps; that is exact to a microsecond or two.
CLOCK_NS = 5000

# Which engine's stamp comes first: the probe's at the entry of a function, the library's before its
# return.
LIBRARY_IS_LATER = {'request': 1, 'acquire': -1, 'release': 1}


def read(path):
    """For each thread: its GIL events, and the times at which it left its CPU."""
    events = collections.defaultdict(list)
    left = collections.defaultdict(list)
    for line in open(path):
        word = line.split()
        if line[0] in '\t#' or len(word) < 4:
            continue
        seconds, ns = word[0].split('.')
        at, tid, what = int(seconds) * 10**9 + int(ns), int(word[1].split('/')[1]), word[3]
        if what in LIBRARY_IS_LATER:
            events[tid].append((what, at))
        elif what == 'switch-out':
            left[tid].append(at)
    return events, left


def longest(preload):
    """The thread with the most events, except the first thread."""
    return max(list(preload)[1:], key=lambda tid: len(preload[tid]))


def shift(events, index, by):
    what, at = events[index]
    events[index] = what, at + by


def put_in(defect, preload, report):
    tid = longest(preload)
    events = preload[tid]
    i = next(i for i in range(len(events) // 2, len(events)) if events[i][0] == 'release')
    if defect == 'missing':
        del events[i - 1:i + 1]
    elif defect == 'twice':
        events.insert(i, events[i])
    elif defect == 'swapped':
        events[i - 1], events[i] = events[i], events[i - 1]
    elif defect == 'early':
        shift(events, i, -50000)
    elif defect == 'late':
        shift(events, i, events[i + 1][1] - events[i][1] + 50000)
    elif defect == 'all-late':
        for i, event in enumerate(events):
            if event[0] == 'release':
                shift(events, i, min(30000, (events[i + 1][1] - event[1]) // 2)
                      if i + 1 < len(events) else 30000)
    elif defect == 'unheld':
        next(t for t in report if t['tid'] == tid)['hold_ns'] -= 30000
    else:
        sys.exit('no such defect: ' + defect)


def same_part(probed, library):
    """The library's events from the first one that is probed: it recorded the start, too. However long
    the thread was stopped, it is the next one of its kind, or the last one if the library is earlier."""
    what, at = probed[0]
    later = LIBRARY_IS_LATER[what]
    own = [i for i, event in enumerate(library)
           if event[0] == what and (event[1] - at) * later >= -CLOCK_NS]
    start = own[0 if later > 0 else -1] if own else 0
    return library[start:start + len(probed)]


def stayed(left, a, b):
    return not any(min(a, b) <= at <= max(a, b) for at in left)


def judge_order(probed, library):
    for i, ((what, u), (_, p)) in enumerate(zip(probed, library)):
        if (p - u) * LIBRARY_IS_LATER[what] < -CLOCK_NS:
            yield '%s %d: %d ns in the wrong order' % (what, i, p - u)
        if i + 1 < len(probed) and max(u, p) > min(probed[i + 1][1], library[i + 1][1]) + CLOCK_NS:
            yield '%s %d: after the next event' % (what, i)


def quantile(values, q):
    return sorted(values)[int(len(values) * q)] if values else 0


def judge_distances(pairs, left):
    """pairs: thread, event, time stamps of both engines."""
    for kind in LIBRARY_IS_LATER:
        of_kind = [(tid, u, p) for tid, what, u, p in pairs if what == kind]
        every = [abs(p - u) for _, u, p in of_kind]
        on_cpu = [abs(p - u) for tid, u, p in of_kind if stayed(left[tid], u, p)]
        for values, q in (every, 0.5), (on_cpu, 0.9):
            if quantile(values, q) > NEAR_NS:
                yield '%ss: %d %% of %d are up to %d ns apart' % (kind, q * 100, len(values),
                                                                  quantile(values, q))


def waits(thread):
    # Those while nobody else held the GIL are in the JSON, but not part of wait_ns.
    return thread['wait_ns'] - thread['switch_wait_ns'] + thread['free_wait_ns']


def judge_sums(probed, library, uprobes, preload):
    apart = collections.Counter()
    for (what, u), (_, p) in zip(probed, library):
        apart[what] += p - u
    for name, got, want in (
            ('holds', preload['hold_ns'] - uprobes['hold_ns'],
             apart['release'] - apart['acquire']),
            ('waits', waits(preload) - waits(uprobes), apart['acquire'] - apart['request'])):
        if abs(got - want) > CLOCK_NS:
            yield '%s of the reports differ by %d ns, of the events by %d' % (name, got, want)


def judge_thread(tid, probed, whole, uprobes, preload):
    library = same_part(probed, whole) if probed else []
    if [what for what, _ in probed] != [what for what, _ in library]:
        yield 'other events, or another order'
        return
    yield from judge_order(probed, library)
    # The recording of perf began and ended while the first thread held the GIL.
    if uprobes['main']:
        return
    if len(whole) != len(probed):
        yield '%d events, not %d' % (len(whole), len(probed))
    if uprobes['holds'] != preload['holds']:
        yield '%d holds, not %d' % (preload['holds'], uprobes['holds'])
    yield from judge_sums(probed, library, uprobes, preload)


def main():
    probed, left = read('uprobes.events')
    library, _ = read('preload.events')
    reports = [json.load(open(name))['threads'] for name in ('uprobes.json', 'preload.json')]
    # The library began when Python did: a thread may have ended before perf began.
    begin = min(events[0][1] for events in probed.values())
    library = {tid: events for tid, events in library.items() if events[-1][1] >= begin}
    if len(sys.argv) > 1:
        put_in(sys.argv[1], library, reports[1])
    uprobes, preload = ({t['tid']: t for t in threads} for threads in reports)
    found = ['threads differ: %s, %s' % (sorted(uprobes), sorted(preload))] \
        if not (set(uprobes) == set(preload) == set(probed) == set(library)) else []
    pairs = []
    for tid in set(uprobes) & set(preload) & set(probed) & set(library):
        found += ['%s: %s' % (uprobes[tid]['name'], text) for text in
                  judge_thread(tid, probed[tid], library[tid], uprobes[tid], preload[tid])]
        pairs += [(tid, what, u, p) for (what, u), (_, p) in
                  zip(probed[tid], same_part(probed[tid], library[tid]))]
    found += judge_distances(pairs, left)
    print('\n'.join(found))
    sys.exit(bool(found))


main()
