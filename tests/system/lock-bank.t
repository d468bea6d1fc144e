#!/bin/sh
# SPDX-License-Identifier: MIT
# Waits whose chains are known: each lasts as long as the thread measures, to 50 µs, and ends by the thread that
# ended it. The program measures until it has the GIL again and has returned to its own code; of that, the thread knows
# for how long it was awake. From 3.14 on, a thread waits in CPython's parking lot, whose layout the library finds out
# at start-up: the lock that is recorded is the one in the object.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

cat >judge.py <<'END'
import json
import re
import sys

NEAR = 50000
measured = [json.loads(line) for line in open(sys.argv[1])]
events = {}
wakes = []
for line in open(sys.argv[2]):
    found = re.match(r'(\d+)\.(\d{9}) (\d+)/(\d+) cpu=\S+ (\w+)(?: address=(\S+))?', line)
    if not found:
        continue
    s, ns, pid, tid, event, address = found.groups()
    event = int(s) * 10**9 + int(ns), event, address, int(pid)
    events.setdefault(int(tid), []).append(event)
    if event[1] == 'unpark':
        wakes.append((event[0], int(tid), address, int(pid)))


def waits_of(w):
    """The waits of the thread meanwhile, for locks and for the GIL."""
    parked = asked = None
    for at, event, address, _ in events.get(w['tid'], []):
        if not w['began'] - 1000 <= at <= w['ended'] + 1000:
            continue
        if event == 'park':
            parked = at, address
        elif event == 'parked' and parked:
            yield 'lock', parked[0], at, parked[1]
            parked = None
        elif event == 'request':
            asked = at
        elif event == 'acquire' and asked:
            yield 'gil', asked, at, None
            asked = None


def problems():
    names = [w['name'] for w in measured]
    if len(names) != 19 or len(set(names)) != 19:
        yield 'measured', names
    for w in measured:
        waits = list(waits_of(w))
        locks = [each for each in waits if each[0] == 'lock']
        recorded = sum(end - start for _, start, end, _ in locks)
        gil = sum(end - start for kind, start, end, _ in waits if kind == 'gil')
        took = w['ended'] - w['began']
        if not locks:
            yield w['name'], 'no wait is recorded'
            continue
        if not took - w['awake'] - gil - NEAR * len(locks) <= recorded <= took + 1000:
            yield w['name'], 'took', took, 'recorded', recorded, 'GIL', gil, 'awake', w['awake']
        # The longest of them: what was waited for. The others are for locks that are held for moments.
        _, start, end, address = max(locks, key=lambda each: each[2] - each[1])
        by = [tid for at, tid, of, pid in wakes if start <= at <= end and of == address and pid == w['pid']]
        if (by[-1] if by else None) != w['waker']:
            yield w['name'], 'woken by', by, 'and not', w['waker']
        if w['mutex'] and int(address, 16) != w['mutex']:
            yield w['name'], 'for', address, 'and not', hex(w['mutex'])


print(list(problems()))
END

cat >arrows.py <<'END'
# The arrows of Perfetto's format lead from each waker to the thread that it woke.
import collections
import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

measured = [json.loads(line) for line in open(sys.argv[1])]
trace = protos.Trace()
trace.ParseFromString(open(sys.argv[2], 'rb').read())
tracks, flows = {}, collections.defaultdict(list)
for packet in trace.packet:
    if packet.HasField('track_descriptor'):
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor
    for flow in packet.track_event.flow_ids:
        track = tracks[packet.track_event.track_uuid]
        flows[flow].append((packet.timestamp, tracks[track.parent_uuid].thread.tid))
missing = [w['name'] for w in measured if w['waker'] and not any(
    [tid for _, tid in flow] == [w['waker'], w['tid']] and
    w['began'] <= flow[0][0] <= flow[1][0] <= w['ended'] for flow in flows.values())]
print(len(flows) > 10, missing)
END

every_cpython pythons
while read -r version python <&3; do
	for _ in 1 2 3; do
		rm -rf session measured
		ok "$version: records" by_library record -q --python "$python" --python-trace none -o session \
			"$top_srcdir/tests/system/lock-bank.py" 7 7>measured
		"$GILTRACER" dump -e session/gil.preload >events
		wrong=$(python3 judge.py measured events)
		[ "$wrong" != '[]' ] || break
		retried "$version: each wait lasts as long as measured, and ends by its waker" "$wrong"
	done
	is "$wrong" '[]' "$version: each wait lasts as long as measured, and ends by its waker"
	grep -q '^#define HAVE_PROTOBUF_C 1' "$top_builddir/config.h" || continue
	if want perfetto "$version: Perfetto's arrows"; then
		"$GILTRACER" export -q -f perfetto -o arrows session
		is "$("$tap_venv/bin/python" arrows.py measured arrows)" 'True []' \
			"$version: Perfetto's arrows lead from each waker to the thread that it woke"
	fi
done 3<pythons

leaves_nothing
done_testing
