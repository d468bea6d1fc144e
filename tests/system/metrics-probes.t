#!/bin/sh
# SPDX-License-Identifier: MIT
# Metrics of programs without the library: the counts from uprobes add up, and no probe is left.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root uprobes setpriv microhttpd

python=$(private_python "$scratch/venv")
cat >hog.py <<'PYTHON'
import os
import sys
import threading

over = threading.Event()


def hog():
    while not over.is_set():
        sum(range(300000))


def meek():
    while not over.wait(0.001):
        pass


threads = [threading.Thread(target=f, name='%s-%d' % (f.__name__, i)) for i, f in enumerate((hog, meek, meek))]
for thread in threads:
    thread.start()
print(os.getpid(), flush=True)
sys.stdin.read()
over.set()
for thread in threads:
    thread.join()
PYTHON
# With one thread, there are no waits, and it holds the GIL for at least the time that it prints.
cat >innocent.py <<'PYTHON'
import os
import sys
import time

print(os.getpid(), flush=True)
for line in sys.stdin:
    begin = time.monotonic()
    sum(range(int(line)))
    print(time.monotonic() - begin, flush=True)
PYTHON

probes() {
	grep -c " $scratch/" "${tracefs:?}/uprobe_events"
}
# watch PID…: serve their metrics; sets $watcher and $url.
watch() {
	for tap_pid in "$@"; do
		shift
		set -- "$@" -p "$tap_pid"
	done
	"$GILTRACER" metrics --listen 127.0.0.1:0 "$@" 2>err.fifo 3>&- 4>&- &
	watcher=$!
	read -r _ _ url _ <err.fifo
}
scraped() {
	"$tap_python" "$top_srcdir/tests/system/metrics.py" "$url" "$@" 2>&1
}
# sums: print hold and wait of both programs, from one scrape, as a Python list.
sums() {
	scraped "[value('giltracer_gil_%s_seconds_total' % what, pid=pid)
		for what in ('hold', 'wait') for pid in ($hog, $innocent)]"
}
adds_up() {
	is "$(scraped "[p for p in ($hog, $innocent) if value('giltracer_gil_hold_seconds_total', pid=p) >
		value('giltracer_gil_watched_seconds_total', pid=p)]")" '[]' "$1: holds are not longer than the GIL was watched"
	is "$(scraped "[t for t in groups('giltracer_gil_hold_seconds_total', 'thread') if
		value('giltracer_gil_hold_seconds_total', thread=t) + value('giltracer_gil_wait_seconds_total', thread=t) >
		value('giltracer_thread_lifetime_seconds_total', thread=t) + 1e-8]")" '[]' \
		"$1: hold and wait are not longer than lives"
	is "$(scraped "[t for t in groups('giltracer_gil_wait_seconds_total', 'thread') if
		abs(value('giltracer_gil_wait_for_seconds_total', thread=t) -
			value('giltracer_gil_wait_seconds_total', thread=t)) > 1e-8]")" '[]' "$1: a wait is the sum of those for each group"
}

mkfifo in out in.hog out.hog err.fifo
"$python" innocent.py <in >out 3>&- 4>&- &
exec 3>in 5<out
"$python" hog.py <in.hog >out.hog 3>&- &
exec 4>in.hog 6<out.hog
read -r innocent <&5
read -r hog <&6
exits 125 'without --listen' "$GILTRACER" metrics -p "$hog"
like "$(cat err)" 'start it with giltracer --metrics, or give --listen, to watch it by uprobes' \
	'there is nothing to print yet'
exits 125 'gil_kept' "$GILTRACER" metrics -p "$hog" --listen :0 --record-when 'gil_kept>5% for 5s'
like "$(cat err)" 'gil_kept is known only' 'is no condition for it'
for_all_users
exits 125 'an ordinary user' nobody /usr/bin/python3 -c 'import os, subprocess, sys
sys.exit(subprocess.call([sys.argv[1], "metrics", "-p", str(os.getpid()), "--listen", ":0"]))' "$GILTRACER"
like "$(cat err)" 'start it with giltracer --metrics, or run this as root, to watch' 'learns both ways'

watch "$hog" "$innocent"
like "$url" '^http://127.0.0.1:[0-9]*/metrics$' 'two programs that run are watched'
ok 'by uprobes' test "$(probes)" -ge 4
tries=0
until [ "$(scraped "value('giltracer_gil_wait_for_seconds_total', thread='meek-*', holder='hog-*') > 0 and
	value('giltracer_gil_hold_seconds_total', thread='meek-*') > 0")" = True ] || [ $((tries += 1)) -ge 300 ]; do :; done
first=$(sums)
worked=
for _ in 1 2 3; do
	echo 2000000 >&3
	read -r seconds <&5
	worked=$worked$seconds+
done
second=$(sums)
diag "$first $worked $second"
is "$(scraped "all(a <= b for a, b in zip($first, $second)) and ${second}[0] > ${first}[0]")" True \
	'no number shrinks, and the hog goes on'
# A scrape does not include the last 2 ms before it.
is "$(scraped "${second}[1] - ${first}[1] >= $worked 0 - 0.002 and ${second}[1] > 0")" True \
	'the innocent program holds the GIL at least as long as it says'
is "$(scraped "value('giltracer_gil_wait_seconds_total', pid=$innocent),
	value('giltracer_gil_wait_duration_seconds_count', pid=$innocent)")" '(0.0, 0.0)' 'and never waits'
adds_up 'two scrapes'
is "$(scraped "max(groups('giltracer_gil_wait_for_seconds_total', 'holder') - {'none', 'other'},
	key=lambda h: value('giltracer_gil_wait_for_seconds_total', thread='meek-*', holder=h))")" 'hog-*' \
	'the others wait for the hog'
is "$(scraped "value('giltracer_threads', thread='meek-*'), value('giltracer_threads', thread='hog-*')")" '(2.0, 1.0)' \
	'threads have their names'
is "$(scraped "len(groups('giltracer_gil_kept_seconds_total', 'pid')),
	len(groups('giltracer_events_lost_total', 'pid'))")" '(0, 2)' 'what is not known is not said to be 0'
exec 4>&-
wait "$hog"
is "$(scraped "groups('giltracer_process_info', 'pid') == {'$innocent'}")" True 'a process that ends has no series'
kill -INT "$watcher"
wait "$watcher"
is "$?" 0 'Ctrl-C ends it'
is "$(probes)" 0 'and leaves no probe'

watch "$innocent"
kill -KILL "$watcher"
wait "$watcher" 2>/dev/null
watch "$innocent"
kill -TERM "$watcher"
wait "$watcher"
is "$(probes)" 0 'the next one removes what one that was killed left'

if want free-threaded 'a build without the GIL'; then
	"$(free_threaded_python)" innocent.py <in >out 3>&- 4>&- &
	exec 4>in 6<out
	read -r pid <&6
	exits 125 'a build without the GIL' "$GILTRACER" metrics -p "$pid" --listen :0
	like "$(cat err)" 'runs a free-threaded Python' 'is refused'
	exec 4>&- 6<&-
fi
exec 3>&- 5<&-
wait
leaves_nothing
done_testing
