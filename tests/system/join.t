#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer -p without uprobes: CPython loads the library itself, from 3.14 on by its own mechanism,
# before by a call that ptrace puts into its main thread. The program behaves as before, while it is
# recorded and afterwards.
# shellcheck disable=SC2086 # $bare is words
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need newer-pythons readelf setpriv gcc
for_all_users
cp "$top_srcdir/tests/system/join.py" . && chmod 644 join.py || exit 99
program=$PWD/join.py

bare=
[ "$(id -u)" != 0 ] || bare='setpriv --inh-caps=-all --bounding-set=-all'

at_once() {
	LD_BIND_NOW=1 exec "$@" 2>program-err
}

# start WHAT COMMAND…: start the program; sets $pid.
start() {
	what=$1
	shift
	begun at_once "$@" -W ignore "$program" $what ready go ${uid:+"$uid"} || cat program-err
}

# finish NAME
finish() {
	over
	status=0
	wait $pid || status=$?
	is "$status $(cat program-err)" '0 ' "$1: the program ends as without giltracer"
}

# begin ARG…: start giltracer, and wait until it records.
begin() {
	rm -f messages
	mkfifo messages
	"$GILTRACER" -p $pid --probes preload --json out.json -o out.html "$@" 2>messages 5>&- 6<&- &
	giltracer=$!
	exec 4<messages
	: >rest
	while read -r line <&4; do
		echo "$line" >>rest
		case $line in *'recording process'*) break ;; esac
	done
}

# end NAME: end the recording by Ctrl-C.
end() {
	kill -INT $giltracer 2>/dev/null || :
	cat <&4 >>rest
	exec 4<&-
	status=0
	wait $giltracer || status=$?
	is $status 0 "$1" || cat rest
}

# children COUNT: let the program fork that many children, one by one.
children() {
	for _ in $(seq "$1"); do
		printf x >&5
		read -r _ <&6
	done
}

recorded() {
	rm -rf kept
	exits 0 "$1" "$GILTRACER" -p $pid --probes preload --duration 1 --json out.json -o out.html --keep kept
	# The name of that folder may be given to another one meanwhile.
	is "$(find kept -name '*.py')" '' '  the program executed nothing of the folder that is kept'
	is "$(json out.json '[(f["function"].split(".")[-1], f["file"].rsplit("/")[-1])
		for f in d["hogs"][:1]]')" "[('hog', 'join.py')]" '  the call that kept the GIL'
	is "$(json out.json 'sorted(t["name"] for t in d["threads"] if t["pid"] == '$pid')')" \
		"['MainThread', 'my hog', 'my victim']" '  threads as the program calls them'
	like "$(cat err)" "the program loaded giltracer's library" '  what it means is said'
	consistent out.json "$1"
}

# refuses PATTERN WHAT ARG…
refuses() {
	pattern=$1 what=$2
	shift 2
	exits 125 "$what" "$GILTRACER" -p $pid --probes preload --duration 1 "$@"
	like "$(cat err)" "^giltracer: error: $pattern\$" '  one sentence says so'
}

joins() {
	version=$1 python=$2
	start work "$python"
	python3 "$program" slots $pid >before
	for round in first second; do
		recorded "$version: the $round recording"
		ok '  libc is called as before' python3 "$program" restored $pid before
	done

	begin
	refuses "process $pid: the library cannot be used: it is being recorded already" \
		"$version: two recordings at once"
	python3 "$program" slots $pid >others
	ok '  CPython calls the library' test "$(cat others)" != "$(cat before)"
	kill -KILL $giltracer
	wait $giltracer || :
	exec 4<&-
	ok "$version: giltracer is killed, and libc is called as before" \
		python3 "$program" restored $pid before
	recorded "$version: the recording after that"

	begin
	children 2
	end "$version: children are recorded"
	# Each child exits with status 7, otherwise the program ends.
	is "$(json out.json 'len({t["pid"] for t in d["threads"]})')" 3 '  both of them'
	begin --no-children
	children 1
	end "$version: or not"
	is "$(json out.json '{t["pid"] for t in d["threads"]}')" "{$pid}" '  the program alone'

	begin
	children 1
	finish "$version"
	cat <&4 >>rest
	exec 4<&-
	status=0
	wait $giltracer || status=$?
	is $status 0 "$version: the program ends while it is recorded" || cat rest
	is "$(json out.json 'sum(t["holds"] for t in d["threads"]) > 0')" True \
		'  and there is a report'
}

serves() {
	version=$1 python=$2
	# Threads start and end while the library is loaded and disabled.
	rm -f questions answers
	mkfifo questions answers
	"$python" "$program" serve <questions >answers 2>program-err &
	pid=$!
	exec 5>questions
	read -r port <answers
	python3 "$program" load "$port" 2000 5>&- 6<&- &
	load=$!
	for round in 1 2 3 4 5 6 7 8 9 10; do
		begin
		python3 "$program" load "$port" 10 || fail "round $round: wrong answers"
		end "$version, round $round: a server at work"
	done
	status=0
	wait $load || status=$?
	is $status 0 "$version: each answer was right"
	finish "$version: the server"
}

joins_relro() {
	version=$1 python=$2
	# The addresses of the functions that it calls are read-only.
	mkdir -p relro/bin
	cp "$python" relro/bin/
	python3 "$program" relro "$python.real" "relro/bin/python$version.real"
	ln -sfn "$(dirname "$(dirname "$python")")/lib" relro/lib
	start work "relro/bin/python$version"
	python3 "$program" slots $pid >before
	unlike "$(cat before)" 'rw-p' "$version, linked with full RELRO: read-only addresses"
	recorded "$version, linked with full RELRO"
	ok '  libc is called as before, and its addresses are read-only' \
		python3 "$program" restored $pid before
	finish "$version, linked with full RELRO"
}

unprivileged() {
	version=$1 python=$2
	# Without uprobes, auto loads the library or, if that is impossible, takes samples.
	start work $bare "$python"
	exits 0 "$version: without privilege" $bare "$GILTRACER" -p $pid --duration 1 --json out.json \
		-o out.html
	like "$(cat err)" 'GIL events by a library that the program loads' '  it is said how'
	is "$(json out.json '[f["function"].split(".")[-1] for f in d["hogs"][:1]]')" "['hog']" \
		'  the call that kept the GIL'
	finish "$version: the program without privilege"
	start asleep $bare "$python"
	exits 0 "$version: without privilege, asleep" $bare "$GILTRACER" -p $pid --duration 1 \
		--json out.json -o out.html
	like "$(cat err)" 'samples of the stacks instead of GIL events: process' '  it is said why'
	is "$(json out.json 'd["verdict"]["kind"]')" sampled '  and the verdict says so'
	finish "$version: the program that sleeps"

	start work "$python" -X disable-remote-debug
	refuses "process $pid was started with -X disable-remote-debug or .*" \
		"$version: a program that forbids it"
	finish "$version: which"

	start asleep "$python"
	refuses "process $pid: its main thread, .*, executed no Python for 5 s" \
		"$version: a main thread that waits in C"
	finish "$version: which"

	for how in 'join 0' 'epoll 600' 'child 0'; do
		start "waits $how" "$python"
		exits 0 "$version: its main thread waits ($how)" "$GILTRACER" -p $pid --probes preload \
			--duration 1 --json out.json -o out.html
		is "$(json out.json 'sorted(t["name"] for t in d["threads"])')" \
			"['MainThread', 'my closer', 'my worker']" '  all threads'
		finish "$version: $how"
	done

	if [ "$(id -u)" = 0 ]; then
		uid=65534
		start work "$python"
		uid=
		refuses "process $pid is another user's: .*" "$version: another user's program"
		finish "$version: which"
	else
		skip 'not root' "$version: another user's program"
	fi
}

newer_pythons >interpreters
while read -r version python <&3; do
	case $version in *t | 3.13) continue ;; esac
	for part in joins serves joins_relro unprivileged; do
		together $part "$version" "$python"
	done
done 3<interpreters

# Before 3.14, whatever the main thread does.
joined() {
	exits 0 "$1" $user "$GILTRACER" -p $pid --probes preload --duration 1 --json "$out/out.json" \
		-o "$out/out.html"
	like "$(cat err)" "the program's main thread was stopped for [0-9.]* ms" '  the stop is measured'
	is "$(json "$out/out.json" 'sorted(t["name"] for t in d["threads"] if t["holds"])')" "$2" \
		'  threads as the program calls them'
	is "$(json "$out/out.json" 'sum(t["unknown_ns"] > 10**8 for t in d["threads"])')" 0 \
		'  and what they did is known'
	consistent "$out/out.json" "$1"
}

at_work() {
	version=$1 python=$2
	start work $user "$python"
	python3 "$program" slots $pid >before
	python3 "$program" left $pid >remains
	ok "$version: its calls of libc are found" test -s before
	joined "$version: a program at work" "['MainThread', 'my hog', 'my victim']"
	is "$(json "$out/out.json" '[(f["function"].split(".")[-1], f["file"].rsplit("/")[-1])
		for f in d["hogs"][:1]]')" "[('hog', 'join.py')]" '  the call that kept the GIL'
	ok '  libc is called as before' python3 "$program" restored $pid before
	is "$(python3 "$program" left $pid)" "$(cat remains)" '  nothing is left in it'
	finish "$version: the program"
}

# waits HOW LIMIT
waits() {
	version=$1 python=$2 how="$3 $4"
	start "waits $how" $user "$python"
	joined "$version: its main thread waits ($how)" "['MainThread', 'my worker']"
	is "$(json "$out/out.json" '[t["no_gil_ns"] == t["total_ns"] > 9 * 10**8 for t in d["threads"]
		if t["name"] == "my closer"]')" '[True]' '  a thread that sleeps throughout is without the GIL'
	finish "$version: $how"
}

prefork() {
	version=$1 python=$2
	start prefork $user "$python"
	three="'MainThread', 'MainThread', 'MainThread'"
	joined "$version: children that were there before" "[$three, 'my hog', 'my hog', 'my victim', 'my victim']"
	is "$(json "$out/out.json" 'sum(t["lock_wait_ns"] for t in d["threads"] if t["pid"] == '$pid')')" 0 \
		'  its main thread does not wait for a lock: it waits for an item'
	finish "$version: which"
}

comes_and_goes() {
	version=$1 python=$2
	start work $user "$python"
	python3 "$program" slots $pid >before
	python3 "$program" left $pid >remains
	for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		begin
		end "$version, round $round: joined and left"
	done
	ok '  libc is called as before' python3 "$program" restored $pid before
	is "$(python3 "$program" left $pid)" "$(cat remains)" '  nothing is left'
	finish "$version: the program"
}

# killed WHAT [HOW LIMIT]
killed() {
	version=$1 python=$2
	shift 2
	start "$*" $user "$python"
	python3 "$program" kill "$GILTRACER" $pid "$libraries/killed.so" >"$kills/$*"
	case $1 in
	work) joined '  the recording after that' "['MainThread', 'my hog', 'my victim']" ;;
	*)
		is $(($(cat "$kills/$*") >= 15)) 1 "$version: $*, and giltracer is killed" ||
			diag "$(cat "$kills/$*") times"
		joined '  the recording after that' "['MainThread', 'my worker']"
		;;
	esac
	finish "$version: $*"
}

traced_child() {
	version=$1 python=$2
	start prefork $user "$python"
	rm -f questions answers
	mkfifo questions answers
	child=$(ps -o pid= --ppid $pid | head -n 1 | tr -d ' ')
	python3 "$program" trace "$child" <questions >answers &
	tracer=$!
	exec 7>questions
	read -r _ <answers
	joined "$version: but a child that another process traces" "['MainThread', 'MainThread', 'my hog', 'my victim']"
	like "$(cat err)" "warning: process $child, a child of the program, is not recorded: process $child is traced by" \
		'  there is a warning'
	like "$(json out.json '[c["text"] for c in d["caveats"] if c["code"] == "left-out"]')" \
		"child processes of the program are not recorded [(]1[)], the first one because process $child is traced" \
		'  and a note'
	exec 7>&-
	wait $tracer
	finish "$version: the program"
}

traced() {
	version=$1 python=$2
	start work $user "$python"
	rm -f questions answers
	mkfifo questions answers
	python3 "$program" trace $pid <questions >answers &
	tracer=$!
	exec 7>questions
	read -r _ <answers
	refuses "process $pid is traced by process $tracer, .*: end that first" "$version: another tracer"
	exec 7>&-
	wait $tracer
	joined "$version: after that" "['MainThread', 'my hog', 'my victim']"
	finish "$version: the program"
}

filtered() {
	version=$1 python=$2
	# A filter may end a program for a call of the library's.
	start work $user $libraries/deny 13 "$python"
	exits 0 "$version: a program with a seccomp filter" $user "$GILTRACER" -p $pid --duration 1 \
		--json "$out/out.json" -o "$out/out.html"
	like "$(cat err)" "process $pid is restricted by seccomp, which may forbid what the library does" \
		'  is sampled, and it is said why'
	is "$(json "$out/out.json" 'd["verdict"]["kind"]')" sampled '  as the verdict says'
	finish "$version: the program with a filter"
}

registers() {
	version=$1 python=$2
	# Code in C, whose registers, stack and system calls are as before. giltracer cannot join meanwhile.
	start "registers $libraries/registers.so" $user "$python"
	is "$(python3 "$program" kill "$GILTRACER" $pid $libraries/killed.so 12)" 12 "$version: registers in use"
	finish '  they are as before'
	start "poll $libraries/registers.so" $user "$python"
	begin
	end "$version: it is joined after a wait that is not CPython's"
	finish '  which has waited for the whole time'
}

gcc -O2 -o deny "$top_srcdir/tests/system/deny.c" || exit 99
gcc -O2 -shared -fPIC -o killed.so "$top_srcdir/tests/system/killed.c" -ldl || exit 99
gcc -O2 -mno-red-zone -shared -fPIC -o registers.so "$top_srcdir/tests/system/registers.c" || exit 99
mkdir kills
libraries=$PWD kills=$PWD/kills
{
	cpythons
	echo "3.8 $(cpython 3.8)"
} >interpreters
while read -r version python <&3; do
	case $python in
	'') continue ;;
	/usr/*) version=debian-$version ;;
	esac
	case $version in 3.6 | 3.1[4-9]) continue ;; esac
	user=$bare out=.
	case $(id -u):$python in
	0:/usr/*) user='setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent TMPDIR=user' out=user ;;
	esac

	together at_work "$version" "$python"
	# Of calls that return in the same way, one is tried with each interpreter, and all with one.
	calls='read c_read pause semaphore'
	case $version in debian-*) calls="$calls input write recv open flock sigwait" ;; esac
	for how in 'sleep 7' 'poll 7' 'join 0' 'lock 600' 'select 600' 'poll 600' 'epoll 600' 'accept 0' 'child 0' $calls; do
		case $how in *' '*) ;; *) how="$how 0" ;; esac
		together waits "$version" "$python" $how
	done
	together prefork "$version" "$python"

	# What does not depend on the version
	case $version in
	debian-*) ;;
	*) continue ;;
	esac
	gather
	user=$bare out=.
	for how in 'work' 'waits join 0' 'waits lock 600' 'waits sleep 7' 'waits poll 600' 'waits accept 0' 'waits child 0' \
		'waits read 0' 'waits c_read 0' 'waits write 0' 'waits pause 0' 'waits semaphore 0'; do
		together killed "$version" "$python" $how
	done
	for part in comes_and_goes traced_child traced filtered registers; do
		together $part "$version" "$python"
	done
	gather
	is $(($(cat kills/* | paste -sd+ -) >= 200)) 1 "$version: giltracer is killed before each of its calls of ptrace" ||
		diag "$(cat kills/*) times"
done 3<interpreters
gather

leaves_nothing
done_testing
