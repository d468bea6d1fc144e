#!/bin/sh
# SPDX-License-Identifier: MIT
# The function and the line that kept the GIL are named, not those that ran when it was released.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes
program=$top_srcdir/tests/system/culprits.py

line_of() {
	grep -n "# $1\$" "$program" | cut -d: -f1
}

# attempt POINT WANT EXPRESSION ARG...: record at most three times until the expression is WANT: the host
# may stop a CPU, and nobody is accused then.
attempt() {
	point=$1 want=$2 expression=$3
	shift 3
	for _ in 1 2 3; do
		rm -f got.json
		undisturbed "$GILTRACER" -q -o got.html --json got.json "$@" >out 2>&1
		got=$(json got.json "$expression" 2>&1)
		[ "$got" != "$want" ] || break
		retried "$point" "$got"
	done
	is "$got" "$want" "$point"
}

# culprit ENGINE PYTHON VERSION KIND FUNCTION: all of the overdue holds, and nothing else, are FUNCTION's.
culprit() {
	attempt "$3, $1: $4 is charged to $5" "[('$5', $(line_of "$4"), False)]" '[(h["function"], h["line"], h["inferred"])
		for h in d["hogs"] if not (h["file"] or "").endswith("threading.py")]' \
		--probes "$1" --python "$2" "$program" "$4"
}

# inferred PYTHON VERSION: without the library, nobody looks at the holder when it is asked, so nobody is
# accused for certain, least of all the function that had just begun.
inferred() {
	attempt "$2: what is only known from the end of the hold is marked as inferred" '(True, [])' \
		'(bool(d["hogs"]), [h for h in d["hogs"] if not h["inferred"] or h["function"] == "audit"])' \
		--probes uprobes --python-trace none --python "$1" "$program" operator
}

every_cpython interpreters
for v in 3.10 3.11 3.12; do
	if python=$(cpython $v); then
		echo "$v $python"
	fi
done >>interpreters
{
	cat interpreters
	all_uv_pythons
} | sort -u >each
while read -r version python <&3; do
	for engine in preload uprobes; do
		culprit $engine "$python" "$version" operator is_known
	done
	[ "${version#3.}" -lt 10 ] || inferred "$python" "$version"
done 3<each
while read -r version python <&3; do
	[ "$version" != 3.6 ] || continue
	# A function in a library is told with the caller in the program's own file.
	for engine in preload uprobes; do
		attempt "$version, $engine: raw_decode is called by parse" "[('raw_decode', 'parse', $(line_of library))]" \
			'[(h["function"].split(".")[-1], *map((h["user"] or {}).get, ("function", "line"))) for h in d["hogs"]
			if h["wait_caused_ns"] == max(h["wait_caused_ns"] for h in d["hogs"])]' \
			--probes $engine --python "$python" "$program" library
		like "$(cat got.html)" 'raw_decode [(]decoder.py:[0-9]*[)].*, called by parse [(]culprits.py:' \
			'and the report says so'
	done
	# Short holds, which nobody asks to end, are known by their calls, not by the call that ended them.
	attempt "$version: short holds are charged to the calls that ran while others waited" True \
		'[f["kind"] == "function" and f["function"] == "parse" and all(part in f["text"] for part in
		("raw_decode (decoder.py:", " called by parse (culprits.py:")) for f in d["findings"] if f["kind"] in
		("call", "function", "thread")][0]' --probes preload --python "$python" "$program" handlers
	# What a thread's function frees when it returns is charged to Thread.run, which has not done it for
	# certain, and whose line is not shown.
	for engine in preload uprobes; do
		attempt "$version, $engine: who frees objects at the end of a thread is inferred" '(True, [])' \
			'(any(h["inferred"] and h["function"].split(".")[-1] == "run" for h in d["hogs"]),
			[h for h in d["hogs"] if h["function"].endswith("run") and (not h["inferred"] or h["source"])])' \
			--probes $engine --python "$python" "$program" ends
	done
	# Some samples are in code without a symbol, and say nothing; where there are no symbols, the file is named.
	for engine in preload uprobes; do
		attempt "$version, $engine: what kept the GIL in C is named" '(True, [])' \
			'(any(h["function"] == "backtracks" for h in d["hogs"]),
			[h for h in d["hogs"] if h["function"] == "backtracks" and not h["native"]])' \
			--probes $engine --state-detect --python "$python" "$program" backtracks
	done
	# Forced switches to a thread without a CPU are no hand-offs that larger pieces would avoid.
	for engine in preload uprobes; do
		attempt "$version, $engine: a lack of CPUs is no fault of the threads" "('spin', [])" \
			'([f["function"] for f in d["findings"] if f["kind"] in ("call", "function")][0],
			[f for f in d["findings"] if "larger pieces" in str(f["advice"])])' \
			--probes $engine --python "$python" "$program" starved
	done
	# A garbage collection is one, with and without symbols; no call could release the GIL there.
	for engine in preload uprobes; do
		attempt "$version, $engine: garbage collections are recognised" "{('collect', 'collector', 'not-a-call')}" \
			'{(h["function"], h["cause"], h["no_gain"]) for h in d["hogs"] if
			h["wait_caused_ns"] == max(h["wait_caused_ns"] for h in d["hogs"])}' \
			--probes $engine --python "$python" "$program" collect
		is "$(json got.json '[f["advice"].split(":")[0] for f in d["findings"] if f["kind"] == "call"][:1]')" \
			"['The garbage collector runs there']" 'the advice is not to release the GIL'
		like "$(json got.json '[f["text"] for f in d["findings"]]')" \
			'collect .culprits.py:[0-9]*. in garbage collections' 'the report says so, with symbols and without'
		exits 1 'nor in the report' grep -q 'calls\{0,1\} release the GIL' got.html
	done
done 3<interpreters

# The library is told of collections by gc.callbacks. The program sees this entry until its end; gc is not
# imported for that.
cat >own-gc.py <<'END'
import sys
print('gc' in sys.modules)
import gc
print(len(gc.callbacks))
class AtEnd:
    def __del__(self, callbacks=gc.callbacks, out=sys.stdout, len=len):
        print(len(callbacks), file=out)
at_end = AtEnd()
END
is "$(by_library -q --python "$(sort -V interpreters | sed -n '$s/[^ ]* //p')" -o own.html own-gc.py | tr '\n' ' ')" \
	'False 1 0 ' 'gc.callbacks has one entry more while the program runs'

# The report shows the line as it was when it was recorded, wherever the report is made; --no-source leaves
# it out, and a file that has changed since the program began is not read.
cat >own.py <<'END'
import threading, time

BIG, done = [0] * 8_000_000, False

def heartbeat():
    while not done:
        time.sleep(0.005)

def search():
    for _ in range(8):
        \tassert -1 not in BIG  # a line

if __name__ == '__main__':
    thread = threading.Thread(target=heartbeat)
    thread.start()
    search()
    done = True
    thread.join()
    if __import__('os').environ.get('CHANGE'):
        __import__('os').utime(__file__, (2e9, 2e9))
END
sed -i 's/\\t//' own.py
sources() {
	by_library -q --python "$newest" -o own.html --json own.json "$@" own.py
	json own.json '{h["source"] for h in d["hogs"] if h["function"] == "search"}'
}
newest=$(sort -V interpreters | sed -n '$s/[^ ]* //p')
is "$(sources --keep kept)" "{'assert -1 not in BIG  # a line'}" 'the line of the culprit'
like "$(cat own.html)" 'own.py:[0-9]* is: assert -1 not in BIG  # a line' 'is in the report'
sed -i 's/# a line/# another/' own.py
exits 0 'a report of the kept session' "$GILTRACER" report -q kept -o kept.html --json kept.json
is "$(json kept.json '{h["source"] for h in d["hogs"] if h["function"] == "search"}')" \
	"{'assert -1 not in BIG  # a line'}" 'has the line as it was'
ok 'the session may be replaced' sources --keep kept
is "$(sources --no-source --keep without)" '{None}' '--no-source leaves it out'
is "$(ls without/sources.json 2>/dev/null)" '' 'also of the session'
is "$(CHANGE=1 sources)" '{None}' 'a file that has changed is not shown'

leaves_nothing
done_testing
