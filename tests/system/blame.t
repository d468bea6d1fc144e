#!/bin/sh
# SPDX-License-Identifier: MIT
# In programs whose culprit is known, its thread and its function are blamed for the waiting, without
# VizTracer. If the host preempts another thread while that holds the GIL, the blame is different, so
# a wrong result is measured up to two more times.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes cc nm
program=$top_srcdir/tests/system/blame.py

build_extension() {
	# shellcheck disable=SC2086 # words
	flags=$(include_flags "$1") &&
		cc -shared -fPIC -O2 -s $flags -o keeps.so "$top_srcdir/tests/system/keeps.c"
}

trace() {
	rm -f got.json # if there is no recording, another one's is not judged
	undisturbed env PYTHONPATH="$scratch" "$GILTRACER" -q --probes "$engine" --python "$1" --python-trace none \
		-o got.html --json got.json "$program" "$2" >truth.json 2>trace.err
}

# attempt PYTHON KIND POINT RULE ARG...: make at most three recordings until blame-judge.py says "right". $got
# is its last answer, or the reason why there is no recording.
attempt() {
	attempt_python=$1 attempt_kind=$2 attempt_point=$3 attempt_rule=$4
	shift 4
	for _ in 1 2 3; do
		if ! trace "$attempt_python" "$attempt_kind"; then
			got="no recording: $(tail -n 3 trace.err)"
			return
		fi
		got=$(python3 "$top_srcdir/tests/system/blame-judge.py" "$attempt_rule" got.json truth.json "$@" 2>&1)
		[ "$got" != right ] || return 0
		retried "$attempt_point" "$got"
	done
}

# guilty PYTHON VERSION KIND FUNCTION...: the guilty thread and these functions of it are blamed; of a convoy,
# also as one.
guilty() {
	guilty_point="$2 $3"
	rule=guilty
	[ "$3" != convoy ] || rule=convoy
	guilty_python=$1 guilty_kind=$3
	shift 3
	attempt "$guilty_python" "$guilty_kind" "$guilty_point" $rule "$@"
	is "$got" right "$guilty_point: 95 % of the waiting go to the right thread and function"
	consistent got.json "$guilty_point"
}

native_of() {
	json got.json '[h["native"] for h in d["hogs"] if h["wait_caused_ns"] ==
		max(h["wait_caused_ns"] for h in d["hogs"])][0]'
}

# native PYTHON VERSION KIND NAME: the C function is named; on a build that has neither its symbol nor
# debug files, its file.
native() {
	file=$("$GILTRACER" probes --json --python "$1" | /usr/bin/env python3 -c \
		'import json, sys; print(json.load(sys.stdin)["file"])')
	if nm "$file" 2>/dev/null | grep -q " $4\$"; then
		is "$(native_of)" "$4" "$2 $3: the C function"
	else
		like "$(native_of)" "^($4|${file##*/})\$" "$2 $3: the file of the C function, which has no symbol"
	fi
}

# The extension's calls are hogs, for as long as they measured themselves, asleep or not, except calls
# that had no CPU for most of their time.
measured() { # PYTHON VERSION KIND ASLEEP LINE
	attempt "$1" "$3" "$2 $3" measured "kept_$3" "$5" "$4"
	is "$got" right "$2 $3: the holds are as long as measured within 2 %, and the line is right"
}

line_of() {
	grep -n "keeps.$1(" "$program" | cut -d: -f1
}

# Every kind on the newest and on the system's; on the others, one that calls a builtin, and on the oldest
# those that call an extension. By uprobes but for those kinds of the system's whose blame needs no symbols.
everything() {
	[ "$1" = "$newest" ] || [ "${2#/usr/bin/}" != "$2" ]
}

every_cpython interpreters
ok 'there is a CPython' test -s interpreters
newest=$(sort -V interpreters | sed -n '$s/ .*//p')
oldest=$(sort -V interpreters | sed -n '1s/ .*//p')
while read -r version python; do
	v="$version ($python)"
	engine=uprobes
	guilty "$python" "$v" by_pow kept_by_pow
	native "$python" "$v" by_pow builtin_pow
	if everything "$version" "$python"; then
		[ "$version" = "$newest" ] || engine=preload
		guilty "$python" "$v" by_re kept_by_re match prefixmatch
		guilty "$python" "$v" by_json kept_by_json loads JSONDecoder.decode JSONDecoder.raw_decode decode raw_decode
		guilty "$python" "$v" by_sorted kept_by_sorted slow_key
		guilty "$python" "$v" convoy spin
		guilty "$python" "$v" crowd kept_by_pow kept_by_re match prefixmatch
	fi
	engine=uprobes
	everything "$version" "$python" || [ "$version" = "$oldest" ] || continue
	if ! build_extension "$python"; then
		skip "$python has no headers (its -dev package)" "$v: an extension"
		continue
	fi
	measured "$python" "$v" asleep 1 "$(line_of sleep)"
	measured "$python" "$v" busy 0 "$(line_of spin)"
	is "$(native_of)" keeps.so "$v: an extension without symbols is named"
	like "$(cat got.html)" 'kept_busy [(]blame.py:[0-9]*[)] in keeps.so' 'and the report says so'
done <interpreters

# obeys ENGINE NAME: threads that release the GIL on request are not blamed, however often the process is
# stopped meanwhile. A thread that starts threads may be.
obeys() {
	exits 0 "$2: a process that is stopped again and again" undisturbed "$GILTRACER" -q --probes "$1" \
		--python-trace none -o got.html --json got.json "$top_srcdir/tests/system/stopped.py" 8
	is "$(json got.json 'sum(t["holds"] > 1 for t in workers()) >= 2, [h for h in d["hogs"]
		if not (h["file"] or "").endswith("threading.py")]')" '(True, [])' "$2: nobody is accused for it"
}
obeys uprobes uprobes
obeys preload 'the library'

leaves_nothing
done_testing
