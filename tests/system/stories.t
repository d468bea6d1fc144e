#!/bin/sh
# SPDX-License-Identifier: MIT
# Typical problems, each explained by one command for a running program.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
examples=$top_srcdir/share/examples
python=$(python3 -c 'import sys; print(sys.executable)')

# An item stays in an asyncio.Queue for a second: the report names the call and thread that delay it.
mkfifo late
"$python" "$examples/late_queue.py" 60 >late &
pid=$!
exec 3<late
read -r line <&3
like "$line" 'an item lay in the queue for [0-9.]+ s' 'an item is late'
exits 0 'one command' "$GILTRACER" -p $pid --probes none --sample 200 --duration 4 \
	--json late.json -o late.html
is "$(json late.json '[(p["function"], p["file"].rsplit("/")[-1]) for p in d["samples"]["places"]
	if p["what"] == "holds"][:1]')" "[('rebuild_index', 'late_queue.py')]" \
	'  names the call that had the GIL'
like "$(cat err)" 'the holder ran rebuild_index \(late_queue.py:[0-9]+\)' '  in its verdict'
is "$(json late.json 'd["samples"]["threads"] and max(d["samples"]["threads"],
	key=lambda t: t["holds"])["tid"]')" "$pid" '  and its thread, which runs the event loop'
kill $pid
exec 3<&-
wait $pid 2>/dev/null || :

# A batch client that waits for its server, not for the GIL.
"$python" "$examples/batch_client.py" 60 &
pid=$!
until [ "$(find /proc/$pid/task -mindepth 1 -maxdepth 1 | wc -l)" -ge 5 ]; do :; done
exits 0 'one command' "$GILTRACER" -p $pid --probes none --sample 200 --duration 2 \
	--json batch.json -o batch.html
is "$(json batch.json 'max((p for p in d["samples"]["places"] if p["what"] in ("network", "waits")),
	key=lambda p: p["samples"])["function"]')" fetch \
	'  names the function that waits for the network'
is "$(json batch.json '(lambda w: w("network") > 3 * w("waits"))(lambda k: sum(t[k]
	for t in d["samples"]["threads"]))')" True '  far more often than any waits for the GIL'
# shellcheck disable=SC2046 # one or more ids
kill $(cat /proc/$pid/task/$pid/children) $pid
wait $pid 2>/dev/null || :

done_testing
