# SPDX-License-Identifier: MIT
"""One execution, seen with all of its releases and with some of them hidden; see inferred.t.

    inferred.py PYTHON [DATADIR]    DATADIR: its probe definitions also probe PyEval_SaveThread

What is hidden is inferred, and has to come out the same: as many holds and waits of each thread,
the waits as long, the holds as much longer as the GIL was free, and no more, and each end between the
release and the next thing that proves it. These bounds are computed here, from the events.
"""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GILTRACER = os.environ.get("GILTRACER", "giltracer")
LOCKS = ("two-holders", "broken-identity", "unordered", "releases-without-hold")
TOLERANCE = 0.02

PROGRAM = """
import os, threading, time

def spin(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for _ in range(1000):
            pass

def repeat(call, times):
    for _ in range(times):
        call()

if __name__ == "__main__":
    calls = [(spin, 0.5), (spin, 0.5), (repeat, lambda: time.sleep(0), 40),
             (repeat, lambda: os.stat("/"), 40)]
    threads = [threading.Thread(target=c[0], args=c[1:]) for c in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, **more)
    if done.returncode:
        sys.exit("%s: %s" % (" ".join(command), done.stderr.strip()))
    return done.stdout


def report(session):
    file = session + ".json"
    run(GILTRACER, "report", session, "--json", file, "-o", session + ".html")
    with open(file) as f:
        document = json.load(f)
    return document, {t["tid"]: t for t in document["threads"]}


def hide(session, to, event):
    """The same recording, in which the event has an unknown name."""
    shutil.copytree(session, to)
    file = os.path.join(to, "gil.perf.data")
    with open(file, "rb") as f:
        data = f.read()
    with open(file, "wb") as f:
        f.write(data.replace(event, b"x" + event[1:]))


def events(session):
    """(ns, tid, word, gil) of what concerns the GIL, and ends of threads, in order."""
    for line in run(GILTRACER, "dump", "-e", os.path.join(session, "gil.perf.data")).splitlines():
        words = line.split()
        if len(words) > 3 and words[3] in ("request", "acquire", "release", "save", "exit"):
            seconds, ns = words[0].split(".")
            gil = [w for w in words if w.startswith("gil=")]
            yield (int(seconds) * 10**9 + int(ns), int(words[1].split("/")[1]), words[3],
                   gil[0] if gil else None)


def ends(session):
    """{tid: (ns held, longest)} where each hold ends with its release if that is seen, else as late
    as it can: with the thread's next request, its end, or the next acquire of that GIL by anyone.
    Only holds that begin with an acquire, and end."""
    held = collections.defaultdict(list)
    open_holds, wanted = {}, {}

    def end(tid, now):
        if tid in open_holds:
            held[tid].append(now - open_holds.pop(tid)[0])

    for now, tid, word, gil in events(session):
        if word == "acquire":
            for other in [t for t, (_, g) in open_holds.items() if g == wanted.get(tid)]:
                end(other, now)
            open_holds[tid] = now, wanted.get(tid)
        else:
            end(tid, now)
        if word == "request":
            wanted[tid] = gil
    return held


def invariants(document, name):
    for t in document["threads"]:
        if t["total_ns"] != sum(t[k + "_ns"] for k in ("hold", "wait", "free_wait", "no_gil", "unknown")):
            yield "%s: thread %d does not add up" % (name, t["tid"])
    held = sum(g["held_ns"] for g in document["gils"])
    if sum(t["hold_ns"] for t in document["threads"]) != held:
        yield "%s: the holds are not the time that the GIL was held" % name
    for c in document["caveats"]:
        if c["code"] in LOCKS:
            yield "%s: %s, %d times" % (name, c["code"], c["count"])


def requests(thread):
    """If the release was not recorded, it is not known whether the GIL was free throughout."""
    return dict(thread, waits=thread["waits"] + thread["free_waits"],
                wait_ns=thread["wait_ns"] + thread["free_wait_ns"])


def counts(seen, hidden, main):
    for tid in seen:
        a, b = requests(seen[tid]), requests(hidden[tid])
        for what in ("holds", "waits"):
            # Nobody sees the main thread take the GIL that it has when tracing begins.
            if abs(a[what] - b[what]) > TOLERANCE * a[what] + (tid == main):
                yield "thread %d: %d %s, %d without" % (tid, a[what], what, b[what])
        # What a thread waited in drop_gil, the GIL being free, nobody can know.
        if b["wait_ns"] < a["wait_ns"] - a["switch_wait_ns"] or b["wait_ns"] > a["wait_ns"]:
            yield "thread %d waits %d ns, %d of them in drop_gil, and without %d" % (
                tid, a["wait_ns"], a["switch_wait_ns"], b["wait_ns"])


def bounds(hidden, session, hidden_session, main):
    """The main thread holds the GIL when tracing begins and ends, without an acquire or a release."""
    earliest, latest = ends(session), ends(hidden_session)
    for tid in set(latest) - {main}:
        held = hidden[tid]["hold_ns"]
        if not sum(earliest[tid]) <= held <= sum(latest[tid]):
            yield "thread %d holds %d ns without, and that is between %d and %d" % (
                tid, held, sum(earliest[tid]), sum(latest[tid]))
        if not max(earliest[tid]) <= hidden[tid]["longest_hold_ns"] <= max(latest[tid]):
            yield "thread %d: its longest hold ends too early or too late" % tid


def unwanted(session, main):
    """From a release until somebody wants the GIL, or the thread ends: it may have had it so long."""
    total, waiting, released = 0, set(), None
    for now, tid, word, _ in events(session):
        if released and (word == "request" or word == "exit" and tid == released[1]):
            total += now - released[0]
            released = None
        if word == "request":
            waiting.add(tid)
        elif word == "acquire":
            waiting.discard(tid)
            released = None
        elif word == "release" and not waiting and tid != main:
            released = now, tid
    return total


def times(seen, hidden, free, main):
    """What is more is time in which nobody had the GIL, and somebody wanted it or nobody did. The main
    thread waits for the others, and is thought to hold it until one of them has come to want it."""
    a, b = [sum(t["hold_ns"] for tid, t in threads.items() if tid != main)
            for threads in (seen, hidden)]
    if not a * (1 - TOLERANCE) <= b <= a * (1 + TOLERANCE) + free:
        yield "held for %d ns, %d without, and it was free for %d" % (a, b, free)


def compare(session, hidden_session, expect_probed):
    document, seen = report(session)
    hidden_document, hidden = report(hidden_session)
    one, other = document["passes"][0], hidden_document["passes"][0]
    wrong = list(invariants(document, "all seen")) + list(invariants(hidden_document, "hidden"))
    if one["releases_inferred"] or not other["releases_inferred"]:
        wrong.append("%d and %d inferred" % (one["releases_inferred"], other["releases_inferred"]))
    if bool(other["releases_probed"]) != expect_probed:
        wrong.append("%d are still seen" % other["releases_probed"])
    main = next(t["tid"] for t in document["threads"] if t["main"])
    wrong += counts(seen, hidden, main)
    wrong += bounds(hidden, session, hidden_session, main)
    wrong += times(seen, hidden, sum(g["handover_ns"] for g in document["gils"]) +
                   sum(t["switch_wait_ns"] + t["free_wait_ns"] for t in document["threads"]) +
                   unwanted(session, main), main)
    print("%d holds, %d ns; %d releases inferred, %d ns" % (
        sum(t["holds"] for t in seen.values()), sum(t["hold_ns"] for t in seen.values()),
        other["releases_inferred"], sum(t["hold_ns"] for t in hidden.values())))
    return wrong


def main(python, datadir=None):
    environment = dict(os.environ, **({"GILTRACER_DATADIR": datadir} if datadir else {}))
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "mix.py")
        with open(script, "w") as f:
            f.write(PROGRAM)
        session, hidden = os.path.join(folder, "seen"), os.path.join(folder, "hidden")
        run(GILTRACER, "record", "-q", "-o", session, "--python", python, "--python-trace",
            "none", script, env=environment)
        hide(session, hidden, b"drop_gil")
        sys.exit("\n".join(compare(session, hidden, bool(datadir))) or 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
