#!/bin/sh
# SPDX-License-Identifier: MIT
# Running programs, looked at from outside: their stacks, who holds the GIL and who waits for it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

# start PYTHON: start live.py; sets $pid, and $tids to the ids of its threads.
start() {
	begun "$1" "$top_srcdir/tests/system/live.py" ready go
	tids=$(cat told)
}

every_cpython interpreters
while read -r version python <&3; do
	case $version in *t) continue ;; esac
	start "$python"
	# shellcheck disable=SC2086 # three ids
	is "$(python3 "$top_srcdir/tests/system/stacks-live.py" "$GILTRACER" $pid $tids 20)" '' \
		"$version: holder first, waiter and sleeper, with function, file and line"
	unharmed "$version"
done 3<interpreters
if python36=$(cpython 3.6); then
	start "$python36"
	ok '3.6, whose GIL has no place of its own' "$GILTRACER" stacks -p $pid
	like "$(cat out)" 'holder of the GIL is unknown' '  says that its holder is not known'
	unharmed 3.6
fi
ok 'there were interpreters' test -s interpreters

# refuses WHAT PATTERN PID [COMMAND…]: every command that takes a PID, run by COMMAND, refuses this one
# with the same message.
refuses() {
	what=$1 pattern=$2 wrong=$3
	shift 3
	: >said
	for command in stacks top metrics ''; do
		status=0
		# shellcheck disable=SC2086 # -p alone records
		"$@" "$GILTRACER" $command -p "$wrong" >out 2>>said </dev/null || status=$?
		echo "exit status $status" >>said
	done
	sed 's/^giltracer: error: //; s/^[a-z]*: //' said | sort | uniq -c | sed 's/^ *//' >same
	like "$(cat same)" "4 $pattern" "$what"
	is "$(wc -l <same | tr -d ' ') $(grep -c '^4 exit status 125$' same)" '2 1' \
		'  is refused by all in the same words' || cat said
}

# An ordinary user looks at an own program and at another user's.
start python3
# shellcheck disable=SC2086 # three ids
python3 "$top_srcdir/tests/system/stacks-live.py" "$GILTRACER" $pid $tids 1 >/dev/null
ok 'text, for people' "$GILTRACER" stacks -p $pid
like "$(cat out)" "thread ${tids%% *} .*: holds the GIL" '  says who holds the GIL'
if has root; then
	for_all_users
	refuses "another user's program" "process $pid belongs to another user" $pid \
		setpriv --reuid=65534 --regid=65534 --clear-groups env -C /tmp TMPDIR=/tmp
fi
for tid in $tids; do
	[ "$tid" = $pid ] || break
done
refuses 'a thread' "$tid is a thread of process $pid" "$tid"
exits 125 'metrics of a program that counts nothing' "$GILTRACER" metrics -p $pid
like "$(cat err)" "process $pid does not count its GIL's time" '  are refused'
unharmed 'text'

sh -c 'exit 0' &
gone=$!
wait $gone
refuses 'a process that has ended' "process $gone: there is no such process" $gone
mkfifo hold id
sh -c 'read -r _ <hold' &
shell=$!
refuses 'a shell' "process $shell: .* is not CPython" $shell
echo >hold
wait $shell
# A child whose parent does not wait for it is a zombie.
python3 -c 'import os, sys
pid = os.fork()
if not pid: os._exit(0)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
print(pid, flush=True)
sys.stdin.read(1)' <hold >id &
parent=$!
exec 4>hold
read -r zombie <id
refuses 'a zombie' "process $zombie has ended" "$zombie"
exec 4>&-
wait $parent
# 32-bit programs, if the host can build and run them.
if [ "$(cat /proc/2/comm 2>/dev/null)" = kthreadd ]; then
	refuses 'a kernel thread' 'process 2 is a kernel thread' 2
fi
python3 "$top_srcdir/tests/system/elf32.py" >id 2>err &
pid=$!
if read -r _ <id; then
	refuses 'a 32-bit program' "process $pid runs a 32-bit program" $pid
	kill $pid
fi
wait $pid
exits 125 'no process' "$GILTRACER" stacks
like "$(cat err)" 'option -p PID is missing' '  says what is missing'
done_testing
