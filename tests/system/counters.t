#!/bin/sh
# SPDX-License-Identifier: MIT
# The counts of --event are those of the kernel, by thread: in the document and in session folders that
# are reported later. An event that this host does not have is refused.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root perf uprobes python3.11
python=$(private_python "$scratch/own" "$(cpython 3.11)")

ok 'page faults and switches are recorded' "$GILTRACER" -q --python "$python" --python-trace none \
	-e page-faults/period=1/ -e context-switches/period=1/ --keep session -o page.html \
	--json counted.json "$top_srcdir/tests/system/counters.py" counts.json
is "$(json counted.json 'sorted({c["name"] for c in d["counters"]})')" \
	"['context-switches/period=1/', 'page-faults/period=1/']" 'the document has both'
# A thread faults and switches a few times before its first and after its last line.
ok 'for each thread what the kernel says' python3 - counted.json counts.json <<'END'
import json
import sys

doc, want = (json.load(open(path)) for path in sys.argv[1:])
got = {(c["tid"], c["name"].split("/")[0]): c["count"] for c in doc["counters"]}
bad = len(want) != 2
for tid, counts in want.items():
    for name, n in zip(("page-faults", "context-switches"), counts):
        have = got.get((int(tid), name), 0)
        print(tid, name, "the kernel:", n, "giltracer:", have)
        bad |= not n - 5 <= have <= n + 0.02 * n + 20
sys.exit(bad)
END
sed 's/^/# /' out
ok 'the touching thread has the faults' [ "$(json counted.json 'max(c["count"]
	for c in d["counters"] if c["name"].startswith("page"))')" -ge 2000 ]
ok 'the recording is reported again' "$GILTRACER" report -q session -o again.html --json again.json
is "$(json again.json 'd["counters"]')" "$(json counted.json 'd["counters"]')" 'with the same counts'

exits 125 'an event that there is not' "$GILTRACER" -q --python "$python" -e no-such-event -o no.html \
	"$top_srcdir/tests/system/counters.py" counts.json
like "$(cat err)" 'no-such-event' 'is named'

leaves_nothing
done_testing
