#!/bin/sh
# SPDX-License-Identifier: MIT
# Uprobes and the preloaded library, recording the same execution, agree. The cost of uprobes for a thread
# that only releases and takes the GIL is reported, but not as waiting.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need perf uprobes python3

# compare [DEFECT]
compare() {
	python3 "$top_srcdir/tests/system/engines.py" "$@"
}

every_cpython pythons
while read -r version python <&3; do
	# The library's recording contains the events that perf lost.
	for try in 1 2 3; do
		rm -rf both preload
		ok "$version: recorded by both" undisturbed "$GILTRACER" record -q --probes both \
			--python "$python" --python-trace none -o both "$top_srcdir/tests/system/mixed.py"
		"$GILTRACER" dump --events both/gil.perf.data >uprobes.events
		lost=$(sed -n 's/^# lost //p' uprobes.events)
		if [ "$lost" = 0 ] || [ $try = 3 ]; then
			break
		fi
		retried "$version: no record is lost" "$lost"
	done
	is "$lost" 0 "$version: no record is lost"
	ok "$version: the library's events" "$GILTRACER" dump both/gil.preload
	cp out preload.events
	cp -r both preload
	python3 -c 'import json
d = json.load(open("preload/session.json"))
d["passes"][0].update(perf_data=None, code_objects=None)
json.dump(d, open("preload/session.json", "w"))'
	for engine in uprobes preload; do
		folder=$engine
		[ $engine = uprobes ] && folder=both
		ok "$version: report of $engine" "$GILTRACER" report -q --json $engine.json \
			-o $engine.html $folder
	done
	ok "$version: event by event, both tell the same" compare
done 3<pythons

for defect in missing twice swapped early late all-late unheld; do
	exits 1 "a defect is seen: $defect" compare $defect
done

cat >take.py <<'END'
import os
fd = os.open('/dev/null', os.O_RDONLY)
for i in range(20000):
    os.lseek(fd, 0, 0)
END
# price DOCUMENT: print whether the only thread waits, and whether the cost of probes causes a note.
price() {
	json "$1" '[[t["wait_ns"] > t["total_ns"] / 100, t["probe_cost_ns"] >= t["total_ns"] / 50,
		t["probe_cost_ns"] <= t["total_ns"]] for t in d["threads"]] + [
		c["count"] for c in d["caveats"] if c["code"] == "probe-cost"]'
}
while read -r version python <&3; do
	ok "$version: uprobes, one thread" "$GILTRACER" --probes uprobes --python "$python" \
		--python-trace none --json uprobes.json -o uprobes.html take.py
	cat out err >uprobes.txt
	ok "$version: preload, one thread" by_library --python "$python" \
		--python-trace none --json preload.json -o preload.html take.py
	cat out err >preload.txt
	is "$(price uprobes.json)" '[[False, True, True], 1]' "$version: it never waits; uprobes cost much"
	like "$(cat uprobes.txt)" ' probes%' 'which is a column'
	like "$(cat uprobes.txt)" 'note: .*GIL probes' 'and a note'
	like "$(cat uprobes.txt)" 'note: uprobes took more than 5 %.* --probes preload' \
		'which names the other engine'
	is "$(price preload.json)" '[[False, False, True]]' "$version: preloaded it never waits, nor pays much"
	unlike "$(cat preload.txt)" 'probes%|--probes' 'so there is no such column, nor note'
done 3<pythons

leaves_nothing
done_testing
