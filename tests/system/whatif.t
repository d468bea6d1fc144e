#!/bin/sh
# SPDX-License-Identifier: MIT
# The estimated gain from releasing the GIL is the real gain, for programs with a fixed amount of work whose
# extension can be switched. A machine that stops another thread in the middle disturbs them, so a wrong
# result is measured up to two more times.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes cc

# record KIND [free]: by the library, since uprobes stretch what is measured.
record() {
	undisturbed env PYTHONPATH="$scratch" taskset -c "$cpus" "$GILTRACER" -q --probes preload --python "$python" \
		--python-trace none -o "$1$2.html" --json "$1$2.json" \
		"$top_srcdir/tests/system/whatif.py" "$1" ${2:+"$2"}
}

# compare KIND PART: whether the estimated gain differs from the real gain, in waiting for the GIL and for
# a CPU, by at most PART of the waiting. With only one of the two, there is nothing to compare.
compare() {
	json "$1.json" "(lambda lost, told, all:
		'right' if abs(lost(d) - lost(json.load(open('$1free.json'))) - told) <= $2 * all else
		'told %d ms, gained %d ms of %d' % (told / 1e6,
		(lost(d) - lost(json.load(open('$1free.json')))) / 1e6, all / 1e6))(
		lambda doc: sum(t['wait_ns'] + t['states']['runnable_ns']
			for t in doc['threads'] if not t['main']),
		sum(h['gain_ns'] for h in d['hogs'] if h['function'] in ('worker', 'napper')),
		sum(t['wait_ns'] for t in workers()))"
}

# predicts KIND PART NAME
predicts() {
	got='nothing was recorded'
	for _ in 1 2 3; do
		if ! record "$1" '' || ! record "$1" free; then
			break
		fi
		got=$(compare "$1" "$2")
		[ "$got" != right ] || break
		retried "$3" "$got"
	done
	is "$got" right "$3"
	is "$(json "$1.json" '[h for h in d["hogs"] if (h["gain_ns"] or 0) > h["wait_caused_ns"]]')" \
		'[]' 'and no gain is more than the blame'
}

python=
for candidate in $(cpython 3.13) $(cpythons | sed 's/^[^ ]* //'); do
	include=$("$candidate" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
	if [ -r "$include/Python.h" ]; then
		python=$candidate
		break
	fi
done
if [ -z "$python" ]; then
	skip 'no CPython here has headers (a -dev package)' 'an extension'
	done_testing
fi
include=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
ok 'the extension' cc -shared -fPIC -O2 -I"$include" -o switchable.so \
	"$top_srcdir/tests/system/switchable.c"

all=$(taskset -cp $$ | sed 's/.*: //')
cpus=$all
predicts nap 0.2 'a call that sleeps'

# A thread that releases the GIL often, for moments in which the waiting thread may not wake up, and then keeps it:
# most of what that costs would be saved, or the replay is not what was recorded, and nothing is told.
cat >moments.py <<'END'
import os, threading

DATA = [x * 7919 % 1000003 for x in range(600_000)]

def keeps_gil():
    return sorted(DATA)

def other():
    while not done:
        pass

if __name__ == '__main__':
    done = False
    victim = threading.Thread(target=other)
    victim.start()
    for _ in range(300):
        os.stat('/')
    for _ in range(5):
        keeps_gil()
    done = True
    victim.join()
END
for engine in preload uprobes; do
	for _ in 1 2 3; do
		undisturbed "$GILTRACER" -q --probes $engine --python "$python" --python-trace none -o moments.html \
			--json moments.json moments.py
		got=$(json moments.json '[h["no_gain"] == "not-reproduced" or h["gain_ns"] > 0.5 * h["wait_caused_ns"] or h
			for h in d["hogs"] if h["function"] == "keeps_gil"]')
		[ "$got" != '[True]' ] || break
		retried "$engine: a call after many short releases" "$got"
	done
	is "$got" '[True]' "$engine: a call after many short releases"
done

case $all in
*[,-]*)
	predicts work 0.2 'a call that computes'
	predicts two 0.2 'two threads with one'
	;;
*) skip 'there is one CPU only' 'calls that compute' ;;
esac
is "$(json nap.json 'd["hogs"][0]["function"]')" napper 'it is the culprit'
gain=$(json nap.json '"%.1f" % (d["hogs"][0]["gain_ns"] / 1e6)')
like "$(cat nap.html)" "<td>$gain</td></tr>" 'the page has its gain'
told='If napper .* released the GIL, it would save about [0-9.]+ ms of waiting'
for _ in 1 2 3; do
	undisturbed env PYTHONPATH="$scratch" "$GILTRACER" -o nap.html --python "$python" --python-trace none \
		"$top_srcdir/tests/system/whatif.py" nap 2>table
	! grep -Eq "$told" table || break
	retried 'and the table' "$(cat table)"
done
like "$(cat table)" "$told" 'and the table'
# On one CPU, threads that did not wait for the GIL would wait for the CPU.
cpus=${all%%[,-]*}
for _ in 1 2 3; do
	record two ''
	less=$(json two.json '(lambda hogs: sum(h["gain_ns"] for h in hogs) <
		0.9 * sum(h["wait_caused_ns"] for h in hogs) if hogs else "no hogs")(
		[h for h in d["hogs"] if h["function"] == "worker"])')
	[ "$less" != True ] || break
	retried 'one CPU: there is less to gain' "$less"
done
is "$less" True 'one CPU: there is less to gain'

leaves_nothing
done_testing
