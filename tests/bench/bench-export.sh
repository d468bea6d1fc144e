#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer export of a recording of a million GIL events, from the session folder to /dev/null: a row for
# each format on how many million events it writes in a second of CPU time, the best of five runs, and one
# on the largest memory against that of a report of the recording. GILTRACER_BENCH_SESSION names a session
# folder to use instead of recording one.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
. "$top_srcdir/tests/bench/recorded.sh"

make_session || exit 0
PYTHONDONTWRITEBYTECODE=1 python3 - "$top_srcdir/tests/bench" "$GILTRACER" "$session" "$scratch" <<'EOS'
import json
import sys

bench, giltracer, session, scratch = sys.argv[1:]
sys.path.insert(0, bench)
import compare

FORMATS = ("perfetto", "chrome", "speedscope", "firefox", "pprof", "folded", "csv")
document = scratch + "/report.json"
_, report, _ = compare.run(f"'{giltracer}' report -q -o '{scratch}/report.html' --json '{document}' '{session}'")
events = json.load(open(document))["passes"][0]["events"]
most = 0
for name in FORMATS:
    runs = [compare.run(f"'{giltracer}' export -q -f {name} '{session}' -o /dev/null") for _ in range(5)]
    seconds, memory = min(r[2] for r in runs), max(r[1] for r in runs)
    most = max(most, memory)
    compare.row(f"export, M events/s, {name}", "3", events / seconds / 1e6, "-", "%.3f" % seconds, "%.0f" % memory)
compare.row("export, largest memory / report's", "<=1.05", most / report, memory="%.0f" % most)
EOS
