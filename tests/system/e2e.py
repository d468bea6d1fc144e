# SPDX-License-Identifier: MIT
"""What giltracer's examples do, one after another, and whether a report has it; see e2e.t.

    e2e.py run FOLDER           the examples in that folder
    e2e.py wrong JSON EXAMPLE... print those of these examples that are not as they must be; why, on
                                stderr. HASHLIB=keeps: an hashlib that does not let go of the GIL
"""
import json
import os
import sys

EXAMPLES = {"spinners": ("spinner-1", "spinner-2"), "native": ("zlib", "hashlib"),
            "waiters": ("sleeper", "reader", "event")}

if sys.argv[1] == "run":
    sys.path.insert(0, sys.argv[2])
    import native
    import spinners
    import waiters


def run():
    for example, seconds in ((spinners, 1.2), (native, 0.4), (waiters, 0.4)):
        sys.argv[1] = str(seconds)
        example.main()


def share(thread, what):
    return 100 * thread[what + "_ns"] / max(1, thread["total_ns"])


def wrong(document, name):
    """The threads of an example with hold, wait and no GIL, in percent, that are not right. Spinners
    have it half of the time and wait for it the other half; the others run without it, unless
    hashlib keeps it: then that one has it, and the other waits for it between its calls. But while
    one of them, or the main thread, was runnable without a CPU, it may have held the GIL and made
    the others wait."""
    threads = {t["name"]: t for t in document["threads"] if t["name"] in EXAMPLES[name]}
    life = max(t["total_ns"] for t in threads.values())
    line = sum(t["states"]["runnable_ns"] for t in document["threads"]
               if t["main"] or t["name"] in threads)
    near = 5 + 100 * line / life
    keeps = name == "native" and os.environ.get("HASHLIB") == "keeps"
    for thread in threads.values():
        hold, wait, no_gil = [share(thread, what) for what in ("hold", "wait", "no_gil")]
        if name == "spinners":
            good = abs(hold - 50) <= near and abs(wait - 50) <= near
        elif keeps:
            good = hold >= 95 - near if thread["name"] == "hashlib" else hold <= near
        else:
            good = no_gil >= 95 - near and (hold <= near or name == "waiters")
        if not good:
            yield "%s %.1f/%.1f/%.1f within %.1f" % (thread["name"], hold, wait, no_gil, near)


def main():
    with open(sys.argv[2]) as f:
        document = json.load(f)
    for name in sys.argv[3:]:
        why = list(wrong(document, name))
        if why:
            print(name)
            sys.stderr.write("# %s\n" % "; ".join(why))


if __name__ == "__main__":
    run() if sys.argv[1] == "run" else main()
