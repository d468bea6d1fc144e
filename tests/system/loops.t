#!/bin/sh
# SPDX-License-Identifier: MIT
# If a thread keeps the GIL, the report says that an asyncio event loop starves, for how long and because
# of which function, on every CPython. It does not say so of a loop that does not starve. If the host
# preempts the thread while it holds the GIL, the numbers are different, so a wrong result is measured up
# to two more times.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes
program=$top_srcdir/tests/system/loops.py

# trace ARG…: by $engine; by the library, nothing is recorded by perf, as with by_library.
trace() {
	case $engine in
	preload) path=$top_srcdir/tests/fake/none:$PATH ;;
	*) path=$PATH ;;
	esac
	undisturbed env PATH="$path" "$GILTRACER" -q --probes "$engine" --python "$python" --python-trace none \
		-o got.html --json got.json "$@" >truth.json
}

# starves: whether the pattern is reported with the right threads and function, and its sum is the delay
# that the program measured, minus delays that the GIL does not cause: a tick is also late because of
# timers and CPUs. No other pattern is reported for the same waits.
starves() {
	json got.json '(lambda truth, found: "right" if len(found) == 1 and
		found[0]["tid"] == truth["loop"] and [found[0]["other_tid"]] == truth["keepers"] and
		found[0]["function"] == "keeper" and "keeper (loops.py:" in found[0]["text"] and
		0.5 <= found[0]["ns"] / truth["late"] <= 1.05 and not [p for p in d["patterns"]
		if p["code"] in ("late-wakeups", "convoy") and p["tid"] == truth["loop"]]
		else ([(p["code"], p["text"]) for p in d["patterns"]], truth))(
		json.load(open("truth.json")),
		[p for p in d["patterns"] if p["code"] == "loop-starvation"])'
}

# On the newest and the oldest by uprobes, which fetch its frames; on the others by the library.
every_cpython interpreters
ok 'there is a CPython' test -s interpreters
sort -V interpreters | sed -n '1p;$p' >ends
while read -r version python; do
	grep -Fxq "$version $python" ends && engine=uprobes || engine=preload
	for _ in 1 2 3; do
		got='nothing was recorded'
		trace "$program" beside || break
		got=$(starves)
		[ "$got" != right ] || break
		retried "$version ($python): the loop starves" "$got"
	done
	is "$got" right "$version ($python): the loop starves, by how much, and because of whom"
done <interpreters

python=$(cpython 3.13 || sed -n '1s/^[^ ]* //p' interpreters)
engine=uprobes
trace --frames 0 "$program" beside
unlike "$(json got.json '[p["code"] for p in d["patterns"]]')" loop-starvation \
	'nothing is told where the frames are not known'
engine=preload
for _ in 1 2 3; do
	trace "$program" alone
	got=$(json got.json '[p["code"] for p in d["patterns"]]')
	[ "$got" != '[]' ] || break
	retried 'a loop that is alone' "$got"
done
is "$got" '[]' 'nothing is told of a loop that is alone'

# A step that sleeps blocks the loop as well, but no process helps against that.
cat >sleeps.py <<'END'
import asyncio
import time


async def handle():
    await asyncio.sleep(0.01)
    time.sleep(0.2)


async def ping():
    for _ in range(20):
        await asyncio.sleep(0.01)


async def main():
    await asyncio.gather(handle(), ping())


if __name__ == '__main__':
    asyncio.new_event_loop().run_until_complete(main())
END
while read -r version python; do
	ok "$version: a step of a loop that sleeps" by_library -q --python "$python" -o got.html --json got.json sleeps.py
	is "$(json got.json '[f["advice"].split(":")[0] for f in d["findings"] if f["kind"] == "task"][:1]')" \
		"['The event loop ran nothing else while a step slept, waited or ran C code without the GIL']" \
		'  the advice is to await there'
	unlike "$(json got.json '[f["advice"] for f in d["findings"] if f["kind"] == "task"]')" \
		ProcessPoolExecutor '  and not to use another process'
done <ends

leaves_nothing
done_testing
