# SPDX-License-Identifier: MIT
"""Reads what giltracer export wrote, strictly, and compares it with the JSON document.

    exports.py FORMAT FILE DOCUMENT

prints "ok", or what is wrong.
"""
import collections
import csv
import io
import json
import sys

ROW_GIL, ROW_CPU, ROW_OWNERS = 1 << 22, 2 << 22, 3 << 22


def check(condition, *what):
    if not condition:
        sys.exit("wrong: " + " ".join(map(str, what)))


def nested(slices, row):
    """slices of one row, (start, end): none crosses another."""
    stack = []
    for start, end in sorted(slices, key=lambda s: (s[0], -s[1])):
        while stack and stack[-1] <= start:
            stack.pop()
        check(not stack or end <= stack[-1], "slices of", row, "cross")
        stack.append(end)


def same_sums(sums, document):
    """sums: (tid, state) -> ns"""
    for t in document["threads"]:
        tid = t["tid"]
        check(sums[tid, "holds the GIL"] == t["hold_ns"], tid, "holds", sums, t["hold_ns"])
        wait = sums[tid, "waits for the GIL"] + sums[tid, "released on request, awaits the switch"]
        check(wait == t["wait_ns"], tid, "waits", wait, t["wait_ns"])
        check(sums[tid, "takes a free GIL"] == t["free_wait_ns"], tid, "free waits")
        running = t["states"]["running_ns"]
        check(sums[tid, "running"] == running, tid, "runs", sums[tid, "running"], running)


def check_chrome(path, document):
    text = open(path, "rb").read().decode("utf-8")
    events = json.loads(text, parse_float=lambda f: int(f.replace(".", "")))["traceEvents"]
    rows, sums, flows = collections.defaultdict(list), collections.Counter(), {}
    for e in events:
        if e["ph"] == "X":
            rows[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"], e["name"]))
            if ROW_GIL <= e["tid"] < ROW_OWNERS:
                sums[e["tid"] % ROW_GIL, e["name"]] += e["dur"]
        elif e["ph"] in "sf":
            flows.setdefault(e["id"], []).append(e)
    for row, slices in rows.items():
        nested([s[:2] for s in slices], row)
    same_sums(sums, document)
    for start, end in flows.values():
        at = [s for s in rows[end["pid"], end["tid"]] if s[0] <= end["ts"] < s[1]]
        check([s[2] for s in at] == ["holds the GIL"], "a flow leads to", at)
        check(start["tid"] != end["tid"] and start["ts"] == end["ts"], "flow", start, end)
    named = {e["tid"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    check({tid for _, tid in rows} <= named, "a row has no name")
    check(flows, "no flows")


def check_perfetto(path, document):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    trace = protos.Trace()
    trace.ParseFromString(open(path, "rb").read())
    kinds = protos.TrackEvent
    tracks, names, open_slices = {}, {}, collections.defaultdict(list)
    sums, flows, events = collections.Counter(), {}, []
    for packet in trace.packet:
        check(not packet.ListFields() == [], "an empty packet")
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        for name in packet.interned_data.event_names:
            check(name.iid not in names, "a name is interned twice")
            names[name.iid] = name.name
        if packet.HasField("track_event"):
            check(packet.track_event.track_uuid in tracks, "an event has no track")
            check(packet.track_event.name_iid in names or not packet.track_event.name_iid, "no name")
            events.append(packet)
    for packet in sorted(events, key=lambda p: p.timestamp):  # stable, as the trace processor
        event, at = packet.track_event, packet.timestamp
        track = tracks[event.track_uuid]
        stack = open_slices[event.track_uuid]
        if event.type == kinds.TYPE_SLICE_BEGIN:
            stack.append((at, names[event.name_iid]))
        elif event.type == kinds.TYPE_SLICE_END:
            start, name = stack.pop()
            if track.parent_uuid and track.name in ("GIL", "CPU"):
                sums[tracks[track.parent_uuid].thread.tid, name] += at - start
        for flow in event.flow_ids:
            flows.setdefault(flow, []).append((event.type, [s[1] for s in stack]))
    check(not any(open_slices.values()), "slices without an end")
    same_sums(sums, document)
    for begin, end in flows.values():
        check(begin == (kinds.TYPE_SLICE_BEGIN, ["waits for the GIL"]), "a flow begins at", begin)
        check(end == (kinds.TYPE_INSTANT, ["holds the GIL"]), "a flow ends at", end)
    check(flows, "no flows")


def same_states(sums, t):
    """sums: state -> ns of one thread of the document"""
    check(sums["holds the GIL"] == t["hold_ns"], t["tid"], "holds", sums, t["hold_ns"])
    wait = sums["waits for the GIL"] + sums["released on request, awaits the switch"]
    check(wait == t["wait_ns"], t["tid"], "waits", wait, t["wait_ns"])


def check_speedscope(path, document):
    profile = json.loads(open(path, "rb").read().decode("utf-8"))
    frames = profile["shared"]["frames"]
    check(len(profile["profiles"]) == len(document["threads"]), "as many profiles as threads")
    for p, t in zip(profile["profiles"], document["threads"]):
        stack, at, sums = [], 0, collections.Counter()
        check(p["type"] == "evented" and p["unit"] == "nanoseconds", p["type"], p["unit"])
        for e in p["events"]:
            check(at <= e["at"] <= p["endValue"], "time goes back")
            at = e["at"]
            if e["type"] == "O":
                stack.append((e["frame"], at))
            else:
                frame, start = stack.pop()
                check(e["type"] == "C" and frame == e["frame"], "closes another frame")
                sums[frames[frame]["name"]] += at - start
        check(not stack, "open frames at the end")
        same_states(sums, t)


def check_firefox(path, document):
    text = open(path, "rb").read().decode("utf-8")
    profile = json.loads(text, parse_float=lambda f: int(f.replace(".", "")))
    check(profile["meta"]["preprocessedProfileVersion"] == 47, "version")
    check(len(profile["threads"]) == len(document["threads"]), "as many as threads")
    categories = len(profile["meta"]["categories"])
    for p, t in zip(profile["threads"], document["threads"]):
        for name in ("samples", "stackTable", "frameTable", "funcTable", "markers",
                     "resourceTable", "nativeSymbols"):
            for key, column in p[name].items():
                check(not isinstance(column, list) or len(column) == p[name]["length"], name, key)
        stacks, functions, strings = p["stackTable"], p["funcTable"], p["stringArray"]
        names = [strings[functions["name"][f]] for f in p["frameTable"]["func"]]
        check(all(isinstance(strings[f], str) for f in functions["fileName"]), "files")
        for i, prefix in enumerate(stacks["prefix"]):
            check(prefix is None or prefix < i, "a stack before its prefix")
        check(all(c < categories for c in stacks["category"] + p["markers"]["category"]), "category")
        check(p["samples"]["time"] == sorted(p["samples"]["time"]), "time goes back")
        sums = collections.Counter()
        for stack, weight in zip(p["samples"]["stack"], p["samples"]["weight"]):
            sums[names[stacks["frame"][stack]]] += weight
        same_states(sums, t)
        sums.clear()
        markers = p["markers"]
        for name, start, end in zip(markers["name"], markers["startTime"], markers["endTime"]):
            sums[strings[name]] += end - start
        same_states(sums, t)
        check(isinstance(p["pid"], str), "pid")


def check_csv(path, document):
    text = open(path, "rb").read().decode("utf-8")
    rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    sums = collections.Counter()
    for row in rows:
        check(None not in row and None not in row.values(), "cells", row)
        check(not row["thread"][:1] in "=+-@", "a formula")
        sums[int(row["tid"]), row["state"]] += int(row["duration_ns"])
    same_sums(sums, document)


def check_pprof(path, document):
    """path: what `go tool pprof -raw` printed."""
    sums, lines = collections.Counter(), open(path, encoding="utf-8").read().split("\n")
    types = lines[lines.index("Samples:") + 1].split()
    check(types == ["wait_caused/nanoseconds[dflt]", "hold/nanoseconds", "wait/nanoseconds"], types)
    for line in lines[lines.index("Samples:") + 2:lines.index("Locations")]:
        values, colon, _ = line.partition(": ")
        if colon and values.replace(" ", "").isdigit():
            for kind, value in zip(types, values.split()):
                sums[kind] += int(value)
    for which, want in (
        ("wait_caused/nanoseconds[dflt]",
         sum(b["wait_ns"] for b in document["blame"] if b["holder_tid"])),
        ("hold/nanoseconds", sum(t["hold_ns"] for t in document["threads"])),
        ("wait/nanoseconds", sum(t["wait_ns"] for t in document["threads"])),
    ):
        check(sums[which] == want, which, sums[which], want)


if __name__ == "__main__":
    which, path, document = sys.argv[1:]
    globals()["check_" + which](path, json.load(open(document)))
    print("ok")
