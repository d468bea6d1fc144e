#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer -p: a running program is recorded and blamed like any other, and continues.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes
. "$top_srcdir/tests/system/attach.sh"

# recorded NAME ARG…: record the program for a second. On a busy host, perhaps no call made the other
# thread wait in that second; then record ten seconds.
recorded() {
	name=$1
	shift
	exits 0 "$name" "$GILTRACER" -p $pid --duration 1 --json out.json -o out.html "$@"
	if [ "$(json out.json 'd["hogs"]')" = '[]' ]; then
		retried "$name" 'nobody was blamed'
		"$GILTRACER" -q -p $pid --duration 10 --json out.json -o out.html "$@"
	fi
}

# blamed NAME: the last recording blames the right thread and function.
blamed() {
	is "$(json out.json '[(f["function"].split(".")[-1], f["file"].rsplit("/")[-1], f["line"])
		for f in d["hogs"][:1]]')" "[('hog', 'attach.py', 17)]" \
		"$1: the call that kept the GIL, with file and line"
	is "$(json out.json 'sorted(t["name"] for t in d["threads"] if t["pid"] == '$pid')')" \
		"['MainThread', 'my hog', 'my victim']" "$1: threads as the program calls them"
	consistent out.json "$1"
}

# A second time on the newest and on the oldest.
every_cpython interpreters
sort -V interpreters | sed -n '1p;$p' >ends
while read -r version python <&3; do
	case $version in *t) continue ;; esac
	start "$python"
	for round in first second; do
		[ $round = first ] || grep -Fxq "$version $python" ends || continue
		recorded "$version: the $round recording"
		blamed "$version, $round"
	done
	finish "$version"
done 3<interpreters

# States and stacks are recorded in the same execution.
start python3
recorded 'with states' --state-detect
blamed 'with states'
is "$(json out.json '[p["name"] for p in d["passes"]]')" "['gil', 'stacks']" '  both recordings'
ok '  and states are known' \
	test "$(json out.json 'sum(t["states"]["running_ns"] for t in d["threads"]) > 0')" = True

# Ctrl-C ends the recording, not the program.
mkfifo messages
"$GILTRACER" -p $pid --json out.json -o out.html 2>messages &
giltracer=$!
exec 4<messages
read -r line <&4
like "$line" "recording process $pid until Ctrl-C" 'what is being recorded is said'
kill -INT $giltracer
cat <&4 >rest
exec 4<&-
status=0
wait $giltracer || status=$?
is $status 0 'Ctrl-C ends the recording with success'
ok '  with a report' test -s out.html
ok '  and the program runs on' kill -0 $pid
finish 'after all that'

# Some threads end while perf reads the list of threads and their names.
mkfifo ask answer
python3 "$top_srcdir/tests/system/attach-threads.py" ask answer &
pid=$!
exec 5>ask 6<answer
# answers: the main thread takes and releases the GIL.
answers() {
	echo question >&5
	read -r _ <&6
}
answers
for round in 1 2 3 4 5 6; do
	"$GILTRACER" -p $pid --json out.json -o out.html 2>messages &
	giltracer=$!
	exec 4<messages
	: >rest
	while read -r line <&4; do
		case $line in *'recording process'*) break ;; esac
		echo "# $line" >>rest
	done
	answers
	answers
	kill -INT $giltracer 2>/dev/null || :
	sed 's/^/# /' <&4 >>rest
	exec 4<&-
	status=0
	wait $giltracer || status=$?
	is "$status $(json out.json 'sum(t["holds"] for t in d["threads"] if t["main"]) > 0')" '0 True' \
		"threads that come and go, attached $round times: GIL events" || cat rest
	rm -f out.json
done
exec 5>&- 6<&-
wait $pid || :

# refuses STATUS PATTERN WHAT ARG…
refuses() {
	status=$1 pattern=$2 what=$3
	shift 3
	exits "$status" "$what" "$GILTRACER" "$@"
	like "$(cat err)" "$pattern" '  says so'
}
refuses 125 "'script.py': -p records a program that is already running" 'a script' -p 1 script.py
refuses 125 'option --entry: needs a program that giltracer starts' 'an entry' -p 1 --entry main
refuses 125 'option --probes both: needs' 'both' -p 1 --probes both
sh -c 'exit 0' &
gone=$!
wait $gone
refuses 125 "process $gone: there is no such process" 'a process that has ended' -p $gone
refuses 125 'process .* is not CPython' 'a shell' -p $$
leaves_nothing
done_testing
