#!/bin/sh
# SPDX-License-Identifier: MIT
# Native stacks of real interpreters are equal to those of perf script, frame by frame.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf python3.11

here=$top_srcdir/tests/system

# record FILE PYTHON STACK-SIZE ROUNDS
record() {
	perf record -q -o "$1" -k CLOCK_MONOTONIC --switch-events --buildid-mmap -m 1024 \
		-e "sched:sched_switch/call-graph=dwarf,stack-size=$3/" \
		-- "$2" "$here/stacks-threads.py" "$4" >record.out 2>&1
}

count() {
	awk -v what="$1" '/^[0-9]/ && $2 == what { print $1 }' compared
}

compare() {
	"$GILTRACER" dump -s "$1" >dumped &&
		perf script --ns --no-inline -F tid,time,ip,sym,dso -i "$1" >scripted 2>/dev/null &&
		python3 "$here/stacks-compare.py" dumped scripted >compared
}

# against_perf NAME: 99 of 100 stacks have the same frames; each one that is shorter is marked.
against_perf() {
	ok "$1: dump and perf script read it" compare perf.data || return
	sed 's/^\([^#]\)/# \1/' compared
	ok "$1: there are stacks" [ "$(count stacks)" -ge 500 ]
	ok "$1: at least 99 % are perf script's" \
		[ $((100 * ($(count same) + $(count truncated)))) -ge $((99 * $(count stacks))) ]
	ok "$1: what is missing is said" [ $((1000 * $(count silent))) -le "$(count stacks)" ]
	is "$(count only-perf) $(count only-ours)" '0 0' "$1: the same samples have stacks"
}

for python in "$(cpython 3.11)" /usr/bin/python3; do
	[ -x "$python" ] || continue
	ok "$python is recorded" record perf.data "$python" 16384 100
	against_perf "$python"
	like "$(cat dumped)" '^	"_PyEval_EvalFrameDefault[."].* eval' "$python: so are eval frames"
	like "$(cat dumped)" ' kernel$' "$python: and the kernel's"
done

like_take_gil='^	"take_gil[."].* take_gil$'
ok 'a recording of a build with symbols' record perf.data "$(cpython 3.11)" 16384 20
like "$("$GILTRACER" dump -s perf.data)" "$like_take_gil" 'take_gil is marked by its symbol'

# Without symbols, take_gil is found by the session: Debian's python3 with its debug files hidden.
hidden() {
	unshare -m sh -c 'mount -t tmpfs none /usr/lib/debug && exec "$@"' sh "$@"
}
mkdir -p /usr/lib/debug
if [ -x /usr/bin/python3 ]; then
	ok 'a session of a stripped build' hidden "$GILTRACER" record -q --state-detect \
		--no-gil-detect --python-trace none --python /usr/bin/python3 -o session \
		"$here/stacks-threads.py" 20
	ok '  is dumped' hidden "$GILTRACER" dump -s session/stacks.perf.data
	like "$(cat out)" "$like_take_gil" '  take_gil is marked by its address'
	mkdir bare && cp session/stacks.perf.data bare
	ok '  and without the session' hidden "$GILTRACER" dump -s bare/stacks.perf.data
	unlike "$(cat out)" "$like_take_gil" '  it is not known'
else
	skip 'needs /usr/bin/python3' 'a session of a stripped build'
fi

# Short dumps give truncated stacks, each of which is marked.
ok 'short dumps are recorded' record perf.data "$(cpython 3.11)" 1024 50
against_perf '1,024 bytes'
ok '1,024 bytes: many are cut' [ "$(grep -c ' truncated$' dumped)" -ge 100 ]
# Without libc6-dbg, clone3 has no name.
whole='(clone3|clone|_start|ret_from_fork_asm|^"\\[libc\\.so[^"]*)" | truncated| broken| kernel'
is "$(awk -F '\t' -v whole="$whole" '
	/ stack=[1-9]/ { if (last && last !~ whole) bad++; last = "" }
	/^\t/ { last = $2 }
	END { print bad + 0 }' dumped)" 0 '1,024 bytes: no stack ends in the middle without a word'

done_testing
