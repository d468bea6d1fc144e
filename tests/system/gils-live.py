# SPDX-License-Identifier: MIT
"""For gils.t: look at gils.py, which runs as PID with the interpreters A and B.

    gils-live.py stacks GILTRACER PID A B    with giltracer stacks, until each GIL had a holder for
                                             which a thread waited
    gils-live.py samples FILE A B            at what giltracer --sample wrote as --json
    gils-live.py top FILE A B                at what giltracer top wrote as --json
    gils-live.py free FILE A B               at the time in it for which the GIL was free

Prints what is wrong; nothing is right. OWN in the environment: there is a GIL per interpreter.
"""
import json
import os
import subprocess
import sys
import time

own = "OWN" in os.environ
ids = [int(n) for n in sys.argv[-2:]]
SPINNERS = {n: ["run %d" % n, "spin %d" % n] for n in ids}
SPINNERS[0] = ["spin 0"]
SLEEPERS = {"sleep %d" % n: n for n in ids}
HOME = {name: n for n, names in SPINNERS.items() for name in names}
HOME.update(SLEEPERS, MainThread=0)


def gil_of(name):
    return HOME[name] if own else 0


def check_threads(threads):
    """Each thread once, under its own GIL. Before 3.11 it is not known which thread runs in an
    interpreter that another one made."""
    threads = [t for t in threads if t["tid"]]
    names = sorted(t["name"] for t in threads)
    if names != sorted(HOME):
        yield "threads are %r" % names
        return
    if len({t["tid"] for t in threads}) != len(threads):
        yield "a thread is there twice: %r" % threads
    for t in threads:
        if t["gil_of"] != gil_of(t["name"]):
            yield "%s has the GIL of interpreter %r" % (t["name"], t["gil_of"])


def check_stack(t):
    functions = [f["function"] for f in t["frames"]]
    n = HOME[t["name"]]
    if t["name"] in SLEEPERS and functions[:1] != ["sleep_%d" % n]:
        yield "%s is in %r" % (t["name"], functions)
    if own and t["name"] == "run %d" % n and not t["torn"]:
        inner = ["inside", "spin_%d" % n] if functions[0] == "inside" else ["spin_%d" % n]
        if functions[:len(inner) + 2] != inner + ["<module>", "run"]:
            yield "%s is in %r" % (t["name"], functions)


def check_snapshot(threads):
    holders = [t for t in threads if t["gil"] == "holds"]
    by_tid = {t["tid"]: t for t in threads}
    yield from check_threads(threads)
    if len({t["gil_of"] for t in holders}) != len(holders):
        yield "a GIL has two holders: %r" % holders
    for t in threads:
        if not t["tid"]:
            if own:
                yield "it is not known which thread this is: %r" % t
            continue
        yield from check_stack(t)
        if t["gil"] and t["name"] not in sum(SPINNERS.values(), []):
            yield "%s, which sleeps, %s" % (t["name"], t["gil"])
        if t["holder_tid"] and by_tid[t["holder_tid"]]["gil_of"] != t["gil_of"]:
            yield "%s waits for %r" % (t["name"], by_tid[t["holder_tid"]])


def look(giltracer, pid):
    out = subprocess.run([giltracer, "stacks", "-p", pid, "--json"], stdout=subprocess.PIPE,
                         check=True).stdout
    return json.loads(out.decode("utf-8"))["threads"]


def is_asleep(pid, t):
    """Threads that stay in a system call without the GIL: the main thread in read(2), the sleepers in another."""
    read, futex = ("63", "98") if os.uname().machine == "aarch64" else ("0", "202")
    with open("/proc/%s/task/%d/syscall" % (pid, t["tid"])) as f:
        call = f.read().split()[0]
    return call == read if t["name"] == "MainThread" else call not in ("running", read, futex)


def stacks(giltracer, pid):
    """A waiter wakes up every 5 ms, and may be sampled at that moment."""
    sleepers = [t for t in look(giltracer, pid) if t["name"] in SLEEPERS or t["name"] == "MainThread"]
    while not all(is_asleep(pid, t) for t in sleepers):
        os.sched_yield()
    wanted = set(ids if own else [0])
    deadline = time.monotonic() + 120
    while wanted and time.monotonic() < deadline:
        threads = look(giltracer, pid)
        yield from check_snapshot(threads)
        wanted -= {t["gil_of"] for t in threads if t["gil"] == "waits" and (t["holder_tid"] or not own)}
    if wanted:
        yield "nobody is seen waiting for the GIL of interpreter %r" % wanted


def samples(path):
    with open(path) as f:
        found = json.load(f)["samples"]
    held = {g["gil_of"]: g["held"] for g in found["gils"]}
    yield from check_threads(found["threads"])
    if sorted(held) != [0] + sorted(ids) or not all(0 < n <= found["count"] for n in held.values()):
        yield "GILs were held in %r of %d samples" % (held, found["count"])
    if not max(held.values()) <= found["held"] <= found["count"]:
        yield "any GIL was held in %d of %d samples" % (found["held"], found["count"])
    for n, names in SPINNERS.items():
        if sum(t["holds"] for t in found["threads"] if t["name"] in names) != held.get(n):
            yield "interpreter %d: %r" % (n, found["threads"])


def top(path):
    with open(path) as f:
        found = json.loads(f.readline())
    yield from check_threads(found["threads"])
    for t in found["threads"]:
        if sum(t[k] for k in ("has_percent", "waits_percent", "runnable_percent",
                              "asleep_percent")) > 100.01:
            yield "%s does two things at a time: %r" % (t["name"], t)
    for n, names in SPINNERS.items():
        has = sum(t["has_percent"] for t in found["threads"] if t["name"] in names)
        if not 0 < has < 100.01:
            yield "the GIL of interpreter %d is held for %r %%" % (n, has)
    yield from check_free(found)


def check_free(found):
    held = {n: sum(t["has_percent"] for t in found["threads"] if t["gil_of"] == n) for n in SPINNERS}
    if abs(100 - max(held.values()) - found["free_percent"]) > 0.01:
        yield "GILs are held for %r, the one that is held longest is free for %r" % (
            held, found["free_percent"])


def free(path):
    """Whose GIL a thread uses is known from samples."""
    with open(path) as f:
        found = [json.loads(line) for line in f]
    if not all(d["exact"] for d in found):
        yield "times are not exact"
    yield from check_free([d for d in found if d["samples"]][0])


wrong = list({"stacks": stacks, "samples": samples, "top": top, "free": free}[sys.argv[1]](*sys.argv[2:-2]))
print("\n".join(wrong[:5]), end="")
