# SPDX-License-Identifier: MIT
"""What giltracer sees of one interpreter, and the table of all; see versions.t.

    versions.py measure NAME PYTHON FACTS   record interpreters.py; say what is not as it must be
    versions.py compare FACTS FACTS         symbols and stripped: the same points, the same numbers
    versions.py table FACTS...              print the table
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GILTRACER = os.environ.get("GILTRACER", "giltracer")
ATTEMPTS = 6  # a busy machine disturbs what a program does
LOCKS = ("two-holders", "broken-identity", "unordered", "releases-without-hold")


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True)
    if done.returncode:
        sys.exit("%s: %s" % (" ".join(command), done.stderr.strip()))
    return done.stdout


def record(python):
    """The threads of interpreters.py, each with its phase, name and count, and the document."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "report.json")
        out = run(GILTRACER, "-q", "--python", python, "--python-trace", "none", "--json", file,
                  "-o", os.path.join(folder, "report.html"), os.path.join(HERE, "interpreters.py"))
        with open(file) as f:
            document = json.load(f)
    by_id = {(t["pid"], t["tid"]): t for t in document["threads"]}
    threads = []
    for line in out.splitlines():
        phase, name, pid, tid, count = line.split()
        thread = by_id.get((int(pid), int(tid)))
        if not thread:
            sys.exit("thread %s of %s, %s, is not in the report" % (tid, phase, name))
        handover = sum(b["wait_ns"] for b in document["blame"]
                       if b["waiter_tid"] == int(tid) and b["holder_tid"] is None)
        threads.append(dict(thread, phase=phase, role=name, count=int(count),
                            handover_ns=handover))
    return threads, document


def share(thread, what):
    return 100 * thread[what + "_ns"] / max(1, thread["total_ns"])


def of(threads, phase, role=None):
    return [t for t in threads if t["phase"] == phase and role in (None, t["role"])]


def shares(threads, phase, role, what):
    return [round(share(t, what), 1) for t in of(threads, phase, role)]


def broken(document):
    """What has to hold of any recording, however busy the machine."""
    for t in document["threads"]:
        if t["total_ns"] != t["hold_ns"] + t["wait_ns"] + t["no_gil_ns"] + t["unknown_ns"]:
            yield "thread %d does not add up" % t["tid"]
    if sum(t["hold_ns"] for t in document["threads"]) != sum(g["held_ns"] for g in document["gils"]):
        yield "the holds are not the time that GILs were held"
    for c in document["caveats"]:
        if c["code"] in LOCKS:
            yield "%s, %d times" % (c["code"], c["count"])


def overlap(threads, phase):
    """How much of the time both threads held their GIL: about 0 if it is one, 1 if it is two."""
    both = of(threads, phase)
    if len(both) < 2:
        return None
    return sum(t["hold_ns"] for t in both) / max(t["total_ns"] for t in both)


def occupied(threads, phase, what):
    """hold: how much of the time one of the spinners held the GIL, or was to get it next; known: how
    much of their lives they held it or waited for it."""
    spinners = of(threads, phase, "spin")
    hold, wait, total = [sum(t[k] for t in spinners) for k in ("hold_ns", "wait_ns", "total_ns")]
    if what == "known":
        return (hold + wait) / total
    handover = max(t["handover_ns"] + t["switch_wait_ns"] for t in spinners)
    return min(1, (hold + handover) / max(t["total_ns"] for t in spinners))


def disturbed(threads, version):
    """What is wrong, or may have been the machine's doing: of what kind, and how it is."""
    if min(occupied(threads, "mix", "hold"), occupied(threads, "mix", "known")) < 0.98:
        yield "mix", "two spinners leave the GIL free, or neither have it nor wait for it"
    split = [shares(threads, p, "spin", w) for p in ("spinners", "fork") for w in ("hold", "wait")]
    for name, values in zip(("hold", "wait", "hold in the child", "wait in the child"), split):
        tolerance = 15 if "child" in name else 5
        if len(values) != 2 or any(abs(v - 50) > tolerance for v in values):
            yield name, "spinners %s %s %%" % (name, values)
    for t in of(threads, "mix"):
        # A thread waits once to begin, and once or twice to end.
        if t["count"] and not t["count"] <= t["holds"] <= t["count"] + 5:
            yield "counts", "%s let go %d times, %d holds" % (t["role"], t["count"], t["holds"])
    shared, own = overlap(threads, "shared"), overlap(threads, "own")
    if version >= (3, 8) and (shared is None or shared > 1.05):
        yield "shared", "interpreters with one GIL hold it %s times" % shared
    if version >= (3, 12) and (own is None or own < 1.3):
        yield "own", "interpreters with a GIL of their own hold it %s times" % own
    if version >= (3, 12) and any(share(t, "wait") > 10 for t in of(threads, "own")):
        yield "apart", "interpreters with a GIL of their own wait for each other"


def lock(fetch):
    """How a probe reads which GIL it is; a constant may be any."""
    gil = (fetch or "").split(" ")[0]
    return "constant" if gil.startswith("gil=\\") else gil


def found(probes):
    take = [p for p in probes["probes"] if p["event"].startswith("take_gil")]
    drop = [p for p in probes["probes"] if p["event"].startswith("drop_gil")
            and not p["event"].startswith("drop_gil_ret")]
    return {"take": take[0]["kind"], "sure": all(p["sure"] for p in probes["probes"]),
            "drop": "+".join(sorted({p["kind"] for p in drop}, reverse=True)), "drops": len(drop),
            "points": sorted([p["offset"], p["return"], lock(p["fetch"])]
                             for p in probes["probes"])}


def mixed(threads):
    counted = [t for t in of(threads, "mix") if t["count"]]
    return {"holds": [t["holds"] for t in counted], "waits": [t["waits"] for t in counted],
            "hold": occupied(threads, "mix", "hold"), "known": occupied(threads, "mix", "known")}


def measure(name, python, file):
    probes = json.loads(run(GILTRACER, "probes", "--json", "--python", python))
    version = tuple(int(n) for n in probes["version"].split("."))
    left = None
    for attempt in range(ATTEMPTS):
        threads, document = record(python)
        wrong = list(broken(document))
        if wrong:
            break
        # What held once is not giltracer's fault.
        now = dict(disturbed(threads, version))
        good = mixed(threads) if "mix" not in now else None
        mix = good or (mix if left is not None else mixed(threads))
        if "hold" not in now or left is None:
            split = shares(threads, "spinners", "spin", "hold")
        left = {kind: text for kind, text in now.items() if left is None or kind in left}
        if not left:
            break
        print("attempt %d: %s" % (attempt + 1, "; ".join(now.values())))
    if wrong:
        sys.exit("; ".join(wrong))
    wrong = list(left.values())
    gil = document["passes"][0]
    child = {t["pid"] for t in of(threads, "fork")}
    facts = {"name": name, "python": python, "version": probes["version"], "found": found(probes),
             "known": probes["releases_known"],
             "probed": gil["releases_probed"], "inferred": gil["releases_inferred"],
             "split": split, "mix": mix,
             "shared": overlap(threads, "shared"), "own": overlap(threads, "own"),
             "gils": len(document["gils"]),
             "fork": len(child) == 1 and any(g["pid"] in child for g in document["gils"])}
    if not facts["fork"]:
        wrong.append("the child has no GIL of its own")
    with open(file, "w") as f:
        json.dump(facts, f)
    sys.exit("; ".join(wrong) if wrong else 0)


def compare(a, b):
    wrong = []
    if a["found"]["points"] != b["found"]["points"]:
        wrong.append("not the same points: %s, %s" % (a["found"]["points"], b["found"]["points"]))
    for what in ("holds", "waits"):
        x, y = sum(a["mix"][what]), sum(b["mix"][what])
        if abs(x - y) > 0.02 * max(x, y) + 1:  # a forced switch more or less is the program's
            wrong.append("%d and %d %s" % (x, y, what))
    for what in ("hold", "known"):
        if abs(a["mix"][what] - b["mix"][what]) > 0.02:
            wrong.append("%s %.3f and %.3f" % (what, a["mix"][what], b["mix"][what]))
    sys.exit("; ".join(wrong) if wrong else 0)


def interpreters(facts, kind):
    if facts[kind] is None:
        return "-"
    if kind == "own":
        return "apart"
    # Until 3.12, a thread cannot ask one of another interpreter for the GIL: it waits to the end.
    return "one"


def row(f):
    how = f["found"]
    return (f["name"], f["version"], how["take"], "%s %d" % (how["drop"], how["drops"]),
            "yes" if how["sure"] else "no", "all" if f["known"] else "some",
            "%d/%d" % (f["probed"], f["inferred"]), "/".join("%.0f" % s for s in sorted(f["split"])),
            interpreters(f, "shared"), interpreters(f, "own"), "yes" if f["fork"] else "no",
            f["python"])


def table(facts):
    head = ("interpreter", "version", "take_gil", "drop_gil", "sure", "releases", "probed/inferred",
            "split", "shared GIL", "own GIL", "fork", "path")
    rows = [head] + [row(f) for f in facts]
    widths = [max(len(r[i]) for r in rows) for i in range(len(head))]
    for r in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(r, widths)).rstrip())


def load(path):
    with open(path) as f:
        return json.load(f)


def main():
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "measure":
        measure(*arguments)
    elif command == "compare":
        compare(load(arguments[0]), load(arguments[1]))
    else:
        table([load(path) for path in arguments])


if __name__ == "__main__":
    main()
