#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer top and metrics of a program that does not count by itself: it loads the library, their numbers are
# exact, and it is as before when they end, are killed, or come one after the other.
# shellcheck disable=SC2086 # $user is words
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need microhttpd newer-pythons readelf setpriv gcc
for_all_users
cp "$top_srcdir/tests/system/join.py" . && chmod 644 join.py || exit 99
program=$PWD/join.py
gcc -O2 -o deny "$top_srcdir/tests/system/deny.c" || exit 99
mkdir user && chmod 777 user

# One thread, which holds the GIL for at least the time that it prints.
cat >innocent.py <<'PYTHON'
import os
import sys
import time

with open(sys.argv[1], 'w') as ready, open(sys.argv[2]) as go:
    print('ready', file=ready, flush=True)
    for line in go:
        begin = time.monotonic()
        sum(range(int(line)))
        print(time.monotonic() - begin, file=ready, flush=True)
PYTHON
chmod 644 innocent.py

# serve NAME ARG…: serve the metrics of $pid; sets $watcher and $url.
serve() {
	name=$1
	shift
	rm -f messages && mkfifo messages
	$user "$GILTRACER" metrics --listen 127.0.0.1:0 -p $pid "$@" 2>messages 5>&- 6<&- &
	watcher=$!
	exec 4<messages
	url=
	while [ -z "$url" ] && read -r line <&4; do
		echo "$line"
		case $line in *'metrics: http'*) url=${line##*metrics: } url=${url%% *} ;; esac
	done >rest
	url=$(sed -n 's/.*metrics: \([^ ]*\).*/\1/p' rest)
	like "$url" '^http://127.0.0.1:[0-9]*/metrics$' "$name" || cat rest
}
unserve() {
	kill -"$1" $watcher
	exec 4<&-
	wait $watcher 2>/dev/null
}
scraped() {
	"$tap_python" "$top_srcdir/tests/system/metrics.py" "$url" "$@" 2>&1
}
# until_scraped EXPRESSION: threads have to run first, and giltracer has to look.
until_scraped() {
	tries=0
	until [ "$(scraped "$1")" = True ] || [ $((tries += 1)) -ge 300 ]; do :; done
	[ $tries -lt 300 ]
}
hold="value('giltracer_gil_hold_seconds_total'"

# as_before NAME: CPython calls libc, and of the page nothing is left.
as_before() {
	ok "$1: libc is called as before" python3 "$program" restored $pid before
	is "$(python3 "$program" left $pid), $(grep -c '[.]totals' /proc/$pid/maps)" "$(cat remains), 0" \
		'  nothing is left in it'
}

adds_up() {
	is "$(scraped "$hold) > value('giltracer_gil_watched_seconds_total')")" False \
		"$1: holds are not longer than the GIL was watched"
	is "$(scraped "[t for t in groups('giltracer_gil_hold_seconds_total', 'thread') if $hold, thread=t) +
		value('giltracer_gil_wait_seconds_total', thread=t) >
		value('giltracer_thread_lifetime_seconds_total', thread=t) + 1e-8 or
		abs(value('giltracer_gil_wait_for_seconds_total', thread=t) -
			value('giltracer_gil_wait_seconds_total', thread=t)) > 1e-8]")" '[]' \
		'  nor hold and wait than lives; a wait is the sum of those for each group'
}

# exact NAME FILE: a second of top's.
exact() {
	is "$(json "$2" 'd["exact"], sum(t["has_percent"] for t in d["threads"]) + d["free_percent"] < 100.01,
		sorted(t["name"] for t in d["threads"] if t["has_percent"])')" \
		"(True, True, ['MainThread', 'my hog', 'my victim'])" "$1"
	is "$(json "$2" '[t["name"] for t in d["threads"] if abs(sum(w["percent"] for w in t["waits_for"])
		- t["waits_percent"]) > 0.001], [w["percent"] > 0 for t in d["threads"]
		if t["name"] == "my victim" for w in t["waits_for"] if w["threads"] == "my hog"]')" '([], [True])' \
		'  and for whom each thread waits'
}

{
	cpythons
	if old=$(cpython 3.8); then echo "3.8 $old"; fi
	newer_pythons
} >interpreters
while read -r version python <&3; do
	case $version in 3.6 | *t) continue ;; esac
	user=
	[ "$(id -u)" != 0 ] || user='setpriv --inh-caps=-all --bounding-set=-all env TMPDIR=user'
	case $(id -u):$python in
	0:/usr/*) user='setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent TMPDIR=user' ;;
	esac

	begun $user "$python" innocent.py ready go
	serve "$version: a program of one thread"
	worked=0
	before=$(scraped "$hold)")
	for _ in 1 2 3; do
		echo 2000000 >&5
		read -r seconds <&6
		worked=$worked+$seconds
	done
	is "$(scraped "$hold) - $before >= ($worked) * 0.9999 > 0")" True \
		'  holds the GIL at least as long as it says'
	is "$(scraped "value('giltracer_gil_wait_seconds_total'),
		value('giltracer_gil_wait_duration_seconds_count')")" '(0.0, 0.0)' '  and never waits'
	adds_up "$version, one thread"
	unserve INT
	over
	wait $pid
	is $? 0 '  it ends as without giltracer'

	begun $user "$python" -W ignore "$program" work ready go
	python3 "$program" slots $pid >before
	python3 "$program" left $pid >remains
	for round in 1 2; do
		exits 0 "$version: top, round $round" $user "$GILTRACER" top -p $pid -n 1 --json
		mv out top.json
		exact '  is exact' top.json
	done
	as_before "$version: top has ended"

	# The rest does not depend on the version.
	case $version:$python in
	*:/usr/* | 3.1[5-9]:*) ;;
	*)
		over
		wait $pid
		is $? 0 '  it ends as without giltracer'
		continue
		;;
	esac
	serve "$version: metrics"
	ok '  of groups of threads' until_scraped "$hold, thread='my victim') > 0 and
		value('giltracer_gil_wait_for_seconds_total', thread='my victim', holder='my hog') > 0 and
		value('giltracer_gil_kept_seconds_total', thread='my hog') > 0"
	adds_up "$version"
	printf x >&5
	read -r _ <&6
	is "$(scraped "groups('giltracer_process_info', 'pid')")" "{'$pid'}" '  of the process, and not of its children'
	exits 0 '  a second observer' $user "$GILTRACER" top -p $pid -n 1 --json --probes preload
	mv out top.json
	exact '  reads the same page' top.json
	exits 0 '  a recording' $user "$GILTRACER" -q -p $pid --probes preload --duration 1 --json user/out.json \
		-o user/out.html
	ok '  takes its place, and then it is counted again' until_scraped "$hold, thread='my hog') > 0"
	adds_up "$version, after a recording"
	unserve KILL
	as_before "$version: metrics were killed"

	# The second one reads the page of the first one, until that is killed.
	mkfifo first second
	$user "$GILTRACER" top -p $pid --json >first 2>err.first 5>&- 6<&- &
	one=$!
	exec 7<first
	read -r _ <&7
	$user "$GILTRACER" top -p $pid --json >second 2>err.second 5>&- 6<&- 7<&- &
	two=$!
	exec 8<second
	read -r line <&8
	echo "$line" >top.json
	exact "$version: two observers at once" top.json
	page=$(grep -o '/[^ ]*[.]totals' /proc/$pid/maps | sort -u)
	kill -KILL $one
	wait $one 2>/dev/null
	while now=$(grep -o '/[^ ]*[.]totals' /proc/$pid/maps | sort -u); [ -z "$now" ] || [ "$now" = "$page" ]; do
		read -r line <&8 || break
	done
	for _ in 1 2 3; do
		read -r line <&8
	done
	echo "$line" >top.json
	exact '  the first one is killed: the second one makes the program count' top.json
	kill -INT $two
	exec 7<&- 8<&-
	wait $two
	rm first second
	as_before "$version: both have ended"
	over
	wait $pid
	is $? 0 "$version: the program ends as without giltracer"
done 3<interpreters

# One named thread after the other: each one's start is seen.
cat >churns.py <<'PYTHON'
import sys
import threading

with open(sys.argv[1], 'w') as ready, open(sys.argv[2]) as go:
    print('ready', file=ready, flush=True)
    ended = threading.Event()
    thread = threading.Thread()
    for name in go:
        ended.set()
        if thread.ident:
            thread.join()
        ended = threading.Event()
        def work(ended=ended):
            while not ended.wait(0.001):
                pass
        thread = threading.Thread(target=work, name=name.strip())
        thread.start()
    ended.set()
PYTHON
user=
begun "$tap_python" churns.py ready go
serve 'a program whose threads end'
for name in one two three four; do
	echo $name >&5
	ok "  has the name of thread $name" until_scraped "'$name' in groups('giltracer_gil_hold_seconds_total', 'thread')"
done
names=/proc/$pid/root$(sed -n 's,.* \(/.*\)/[^/]*[.]totals$,\1,p' /proc/$pid/maps | head -n 1)/tids
[ -s "$names" ] && [ "$(wc -c <"$names")" -le $((3 * 68)) ]
is $? 0 '  keeps only names of threads that exist'
unserve INT
unharmed '  of these threads'

# Where the library cannot be loaded.
python=$(command -v python3)
begun ./deny 13 "$python" -W ignore "$program" work ready go
exits 0 'a program with a seccomp filter: top' "$GILTRACER" top -p $pid -n 1 --json
like "$(cat err)" "estimates from samples instead of exact times: process $pid is restricted by seccomp" \
	'  takes samples, and says why'
is "$(json out 'd["exact"]')" False '  and the numbers are marked'
exits 125 '  metrics' "$GILTRACER" metrics -p $pid --listen 127.0.0.1:0
like "$(cat err)" "error: metrics: process $pid is restricted by seccomp" '  are refused, and say why'
exits 125 '  top, if exact numbers are demanded' "$GILTRACER" top -p $pid -n 1 --probes preload
over
wait $pid
is $? 0 '  it ends as without giltracer'
exits 125 'without --listen' $user "$GILTRACER" metrics -p $$
if want free-threaded 'a build without the GIL'; then
	begun "$(free_threaded_python)" innocent.py ready go
	exits 125 'metrics of a build without the GIL' "$GILTRACER" metrics -p $pid --listen 127.0.0.1:0
	like "$(cat err)" 'is a free-threaded build' '  are refused'
	over
	wait $pid
fi
leaves_nothing
done_testing
