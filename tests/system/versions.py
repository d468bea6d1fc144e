# SPDX-License-Identifier: MIT
"""What giltracer sees of one interpreter, and the table of all; see versions.t.

    versions.py measure NAME PYTHON FACTS   record interpreters.py; say what is not as it must be.
                                            "#!WORD" for PYTHON: as a script with that first line
    versions.py compare FACTS FACTS         symbols and stripped: the same points, the same numbers
    versions.py details FACTS...            where the points are, and how sure
    versions.py table FACTS...              print the table as the manual has it
    versions.py manual MANUAL FACTS...      compare the manual's table with it
"""
import json
import os
import re
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


def program(python, folder):
    """interpreters.py and with which options to run it: as a program, if python is its first line."""
    source = os.path.join(HERE, "interpreters.py")
    if not python.startswith("#!"):
        return ["--python", python, source]
    script = os.path.join(folder, "script.py")
    with open(source) as f, open(script, "w") as copy:
        copy.write(python + "\n" + f.read())
    os.chmod(script, 0o755)
    return [script]


def record(python):
    """The threads of interpreters.py, each with its phase, name and count, and the document."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "report.json")
        out = run(GILTRACER, "-q", "--python-trace", "none", "--json", file,
                  "-o", os.path.join(folder, "report.html"), *program(python, folder))
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
        if t["total_ns"] != sum(t[k + "_ns"] for k in ("hold", "wait", "free_wait", "no_gil", "unknown")):
            yield "thread %d does not add up" % t["tid"]
    if sum(t["hold_ns"] for t in document["threads"]) != sum(g["held_ns"] for g in document["gils"]):
        yield "the holds are not the time that GILs were held"
    for c in document["caveats"]:
        if c["code"] in LOCKS:
            yield "%s, %d times" % (c["code"], c["count"])


def line(threads, phase):
    """Part of the phase in which a spinner was runnable without a CPU: it may have held the GIL and
    made the others wait, which does not happen on a machine without other load."""
    spinners = of(threads, phase, "spin")
    return (sum(t["states"]["runnable_ns"] for t in spinners) /
            max([t["total_ns"] for t in spinners] + [1]))


def overlap(threads, phase):
    """How often the time of both threads was held: at most once if the GIL is one."""
    both = of(threads, phase)
    if len(both) < 2:
        return None
    # They hold their own ones as long as they compute, but begin later if the machine is busy.
    time = "hold_ns" if phase == "own" else "total_ns"
    return sum(t["hold_ns"] for t in both) / max(t[time] for t in both)


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
    if min(occupied(threads, "mix", what) for what in ("hold", "known")) < 0.98 - line(threads, "mix"):
        yield "mix", "two spinners leave the GIL free, or neither have it nor wait for it"
    for phase, where, tolerance in (("spinners", "", 5), ("fork", " in the child", 15)):
        tolerance += 100 * line(threads, phase)
        for what in ("hold", "wait"):
            values = shares(threads, phase, "spin", what)
            if len(values) != 2 or any(abs(v - 50) > tolerance for v in values):
                yield what + where, "spinners %s %s %%%s" % (what, values, where)
    for t in of(threads, "mix"):
        # A thread waits once to begin, and once or twice to end; writing its name down is three.
        if t["count"] and not t["count"] <= t["holds"] <= t["count"] + 8:
            yield "counts", "%s let go %d times, %d holds" % (t["role"], t["count"], t["holds"])
    shared, own = overlap(threads, "shared"), overlap(threads, "own")
    if version >= (3, 8) and (shared is None or shared > 1.05):
        yield "shared", "interpreters with one GIL hold it %s times" % shared
    # Asked to, they let go within 5 ms; else not before their 300 ms are over.
    if version >= (3, 8) and 50e6 < longest_shared(threads) < 250e6:
        yield "unasked", "one of the interpreters with one GIL holds it for %d ms" % (
            longest_shared(threads) / 1e6)
    if version >= (3, 12) and (own is None or own < 1.3):
        yield "own", "interpreters with a GIL of their own hold it %s times" % own
    if version >= (3, 12) and any(share(t, "wait") > 10 for t in of(threads, "own")):
        yield "apart", "interpreters with a GIL of their own wait for each other"


def longest_shared(threads):
    return max([t["longest_hold_ns"] for t in of(threads, "shared")] or [0])


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
            "copies": any(not p["function"].startswith("drop_gil") for p in drop),
            "points": sorted([p["offset"], p["return"], lock(p["fetch"])]
                             for p in probes["probes"])}


def mixed(threads):
    counted = [t for t in of(threads, "mix") if t["count"]]
    return {"holds": [t["holds"] for t in counted], "waits": [t["waits"] + t["free_waits"] for t in counted],
            "hold": occupied(threads, "mix", "hold"), "known": occupied(threads, "mix", "known"),
            "line": line(threads, "mix")}


def measure(name, python, file):
    word = python[2:].split()[-1] if python.startswith("#!") else python
    probes = json.loads(run(GILTRACER, "probes", "--json", "--python", word))
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
            split_line = line(threads, "spinners")
        left = {kind: text for kind, text in now.items() if left is None or kind in left}
        if not left:
            break
        print("attempt %d: %s" % (attempt + 1, "; ".join(now.values())))
    if wrong:
        sys.exit("; ".join(wrong))
    wrong = list(left.values())
    gil = document["passes"][0]
    child = {t["pid"] for t in of(threads, "fork")}
    points = found(probes)["points"]
    if any(point in points[:i] for i, point in enumerate(points)):
        wrong.append("a place with two probes: %s" % points)
    facts = {"name": name, "python": python, "version": probes["version"],
             "found": found(probes),
             "known": probes["releases_known"],
             "probed": gil["releases_probed"], "inferred": gil["releases_inferred"],
             "split": split, "split_line": split_line, "mix": mix,
             "shared": overlap(threads, "shared"), "own": overlap(threads, "own"),
             "shared_hold_ns": longest_shared(threads),
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
        if abs(a["mix"][what] - b["mix"][what]) > 0.02 + a["mix"]["line"] + b["mix"]["line"]:
            wrong.append("%s %.3f and %.3f" % (what, a["mix"][what], b["mix"][what]))
    sys.exit("; ".join(wrong) if wrong else 0)


# What versions.t calls them, and what the manual does, in its order.
LABELS = (("shared-debian", "Debian, libpython"), ("stripped-debian", "  the same, stripped"),
          ("shared", "libpython, as built"), ("stripped", "libpython, stripped"),
          ("static", "static"), ("debian", "Debian, static"), ("debug", "Debian, python3-dbg"),
          ("new", "Debian, unpacked"), ("uv", "uv"), ("venv-symlinks", "venv --symlinks"),
          ("venv-copies", "venv --copies"), ("wrapper", "wrapper script"),
          ("script-path", "#!PATH script"), ("script-env", "#!env script"))
ORDER = ("libpython, as built", "libpython, stripped", "static", "Debian, static",
         "Debian, libpython", "  the same, stripped", "Debian, python3-dbg", "Debian, unpacked", "uv",
         "venv --symlinks", "venv --copies", "wrapper script", "#!PATH script", "#!env script")
COLUMNS = ("interpreter", "version", "found", "seen", "inferred", "split", "one", "own", "fork")
SPLIT_TOLERANCE = 5
UNASKED_NS = 150e6  # Half of what one of interpreters.py's holds for that nobody asks to let go.


def label(name):
    return next(text for prefix, text in LABELS if name.startswith(prefix))


def minor(version):
    return tuple(int(n) for n in version.split(".")[:2])


def one(f):
    """Letters are notes below the manual's table."""
    if f["shared"] is None:
        return "a"
    return "c" if f["shared_hold_ns"] >= UNASKED_NS else "yes"


def own(f):
    if f["own"] is not None:
        return "yes"
    return "a" if f["shared"] is None else "b"


def cells(f):
    """What has to be in the manual's row, but for the split."""
    how = f["found"]
    found_by = {"debug": "dbg"}.get(how["take"], how["take"])
    return (found_by + " d" * how["copies"] + " ?" * (not how["sure"]),
            "all" if f["known"] else "some", str(f["inferred"]), one(f), own(f),
            "yes" if f["fork"] else "no")


def measured(facts):
    """{(label, (3, 11)): (cells, split, by how much that may be off)}"""
    return {(label(f["name"]), minor(f["version"])): (
        cells(f), tuple(sorted(f["split"])), SPLIT_TOLERANCE + 100 * f["split_line"]) for f in facts}


def worst(a, b):
    return max(a, b, key=lambda split: max(abs(s - 50) for s in split))


def table(facts):
    """Versions that are alike are one row."""
    rows = []
    known = measured(facts)
    for key in sorted(known, key=lambda k: (ORDER.index(k[0]), k[1])):
        what, split, _ = known[key]
        if rows and rows[-1]["label"] == key[0] and rows[-1]["what"] == what:
            rows[-1].update(last=key[1], split=worst(rows[-1]["split"], split))
        else:
            rows.append({"label": key[0], "first": key[1], "last": key[1], "what": what,
                         "split": split})
    lines = [COLUMNS]
    for i, row in enumerate(rows):
        first, last = ["%d.%d" % row[end]
                       for end in ("first", "last")]
        found_by, seen, inferred, shared, apart, child = row["what"]
        lines.append((row["label"] if not i or rows[i - 1]["label"] != row["label"] else "",
                      first if first == last else first + "-" + last, found_by, seen, inferred,
                      "/".join("%.0f" % s for s in row["split"]), shared, apart, child))
    print_columns(lines)


def print_columns(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def versions_of(text):
    """3.9-3.11 are three; which one has no GIL, the label says, too."""
    first, _, last = text.replace("t", "").partition("-")
    major, low = minor(first)
    return [(major, n) for n in range(low, minor(last or first)[1] + 1)]


def read_manual(path):
    """As measured()."""
    with open(path) as f:
        text = re.search(r"^(interpreter +version .*?)^\.Ed", f.read(), re.M | re.S).group(1)
    head, *lines = text.splitlines()
    starts = [head.index(column) for column in COLUMNS] + [None]
    rows, name = {}, None
    for line in lines:
        row = [line[a:b].rstrip() for a, b in zip(starts, starts[1:])]
        name = row[0] or name
        split = tuple(float(s) for s in row[5].split("/"))
        for version in versions_of(row[1]):
            rows[name, version] = (tuple(row[2:5] + row[6:]), split, SPLIT_TOLERANCE)
    return rows


def manual(path, facts):
    wrong = []
    said, known = read_manual(path), measured(facts)
    for key in sorted(known):
        name = "%s %d.%d" % ((key[0],) + key[1])
        if key not in said:
            wrong.append("%s: not in the manual" % name)
            continue
        if said[key][0] != known[key][0]:
            wrong.append("%s: %s, the manual has %s" % (name, known[key][0], said[key][0]))
        for _, split, tolerance in (said[key], known[key]):
            if any(abs(s - 50) > tolerance for s in split):
                wrong.append("%s: a split of %s" % (name, split))
    for key in sorted(set(said) - set(known)):
        print("not measured here: %s %d.%d" % ((key[0],) + key[1]))
    sys.exit("\n".join(wrong) if wrong else 0)


def details(facts):
    lines = [("interpreter", "version", "take_gil", "drop_gil", "sure", "probed/inferred", "path")]
    for f in facts:
        how = f["found"]
        lines.append((f["name"], f["version"], how["take"], "%s %d" % (how["drop"], how["drops"]),
                      "yes" if how["sure"] else "no", "%d/%d" % (f["probed"], f["inferred"]),
                      f["python"]))
    print_columns(lines)


def load(path):
    with open(path) as f:
        return json.load(f)


def main():
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "measure":
        measure(*arguments)
    elif command == "compare":
        compare(load(arguments[0]), load(arguments[1]))
    elif command == "manual":
        manual(arguments[0], [load(path) for path in arguments[1:]])
    else:
        {"table": table, "details": details}[command]([load(path) for path in arguments])


if __name__ == "__main__":
    main()
