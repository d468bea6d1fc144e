#!/bin/sh
# SPDX-License-Identifier: MIT
# Metrics of a program that counts: the content, the access, and that the numbers add up.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
XDG_RUNTIME_DIR=$TMPDIR
export XDG_RUNTIME_DIR
if ! has microhttpd; then
	exits 125 'without libmicrohttpd' "$GILTRACER" --metrics :0 x.py
	like "$(cat err)" 'libmicrohttpd-dev' 'it is said how to get it'
	done_testing
fi

cat >hog.py <<'PYTHON'
import os
import sys
import threading

asked, over = threading.Event(), threading.Event()


def hog():
    while not over.is_set():
        sum(range(1000000))


def meek():
    while not over.wait(0.001):
        pass


threads = [threading.Thread(target=f, name='%s-%d "x"' % (f.__name__, i))
           for i, f in enumerate((hog, meek, meek))]
for thread in threads:
    thread.start()
print(os.getpid(), flush=True)
for line in sys.stdin:
    if line == 'fork\n':
        pid = os.fork()
        if not pid:
            print(os.getpid(), flush=True)
            sys.stdin.readline()
            os._exit(0)
    elif line == 'kill\n':
        over.set()
        os.kill(os.getpid(), 15)
over.set()
for thread in threads:
    thread.join()
sys.exit(7)
PYTHON

# started OPTION…: start hog.py; sets $pid and $url; its input is descriptor 3.
started() {
	rm -f in out.fifo err.fifo && mkfifo in out.fifo err.fifo
	"$GILTRACER" --metrics 127.0.0.1:0 "$@" hog.py <in >out.fifo 2>err.fifo 3>&- &
	launcher=$!
	exec 3>in 5<out.fifo 4<err.fifo
	read -r _ _ url <&4
	read -r pid <&5
}

scraped() {
	"$tap_python" "$top_srcdir/tests/system/metrics.py" "$url" "$@" 2>&1
}

cpythons >pythons
while read -r version python <&6; do
	started --python "$python"
	like "$url" '^http://127.0.0.1:[0-9]*/metrics$' "$version: the address is said"
	is "$(scraped "value('giltracer_process_info', pid=$pid)")" 1.0 "$version: the program has metrics"
	like "$(scraped "headers['Content-Type']")" '^application/openmetrics-text; version=1.0.0' \
		"$version: OpenMetrics, if asked for"
	like "$(scraped "headers['Content-Type']" 'text/plain')" '^text/plain; version=0.0.4' \
		"$version: Prometheus' format else"
	first=$(scraped "value('giltracer_gil_hold_seconds_total', pid=$pid)")
	is "$(scraped "value('giltracer_gil_hold_seconds_total') <=
		value('giltracer_gil_watched_seconds_total') and
		value('giltracer_gil_hold_seconds_total') > $first")" True \
		"$version: holds grow, and are not longer than the GIL was watched"
	is "$(scraped "value('giltracer_gil_hold_seconds_total') +
		value('giltracer_gil_wait_seconds_total') <=
		value('giltracer_thread_lifetime_seconds_total')")" True \
		"$version: hold and wait are not longer than lives"
	tries=0
	until [ "$(scraped "value('giltracer_gil_wait_for_seconds_total', holder=r'hog-* \\\"x\\\"') > 0")" = True ] ||
		[ $((tries += 1)) -ge 300 ]; do :; done
	is "$(scraped "[t for t in groups('giltracer_gil_wait_seconds_total', 'thread') if
		abs(value('giltracer_gil_wait_for_seconds_total', thread=t) -
			value('giltracer_gil_wait_seconds_total', thread=t)) > 1e-8]")" '[]' \
		"$version: a wait is the sum of those for each group"
	is "$(scraped "max(groups('giltracer_gil_wait_for_seconds_total', 'holder') - {'none', 'other'},
		key=lambda h: value('giltracer_gil_wait_for_seconds_total',
			thread=r'meek-* \\\"x\\\"', holder=h))")" 'hog-* \"x\"' \
		"$version: they wait for the hog"
	is "$(scraped "value('giltracer_process_cpu_seconds_total') > 0")" True "$version: CPU time"
	is "$(scraped "value('giltracer_threads')")" 4.0 "$version: four threads"
	is "$(scraped "value('giltracer_threads', thread=r'meek-* \\\"x\\\"')")" 2.0 \
		"$version: in groups, by the names that the program gave them"
	like "$(scraped 'text')" '# \{thread=".*",tid="[0-9]+"\} [0-9.]+ [0-9]{10}\.[0-9]{9}$' \
		"$version: an exemplar with its time"
	is "$(scraped 'len(samples) <= 200')" True "$version: few series"
	echo fork >&3
	read -r child <&5
	is "$(scraped "value('giltracer_process_info', pid=$child, parent=$pid)")" 1.0 \
		"$version: so has its child"
	ok "$version: metrics -p" "$GILTRACER" metrics -p "$pid"
	like "$(cat out)" "^giltracer_gil_hold_seconds_total.pid=\"$child\",thread=\"MainThread\"" \
		"$version: of the process and its child"
	exec 3>&-
	wait "$launcher"
	is "$?" 7 "$version: the program's exit status"
done 6<pythons

started
unlike "$(scraped text)" 'hog[.]py' 'no arguments in labels'
# A browser sends the name by which it found this address: of a website that made it look here.
cat >host.py <<'PYTHON'
import http.client
import sys
import urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
for host in sys.argv[2:]:
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    connection.putrequest('GET', '/metrics', skip_host=True)
    for value in host.split():
        connection.putheader('Host', value)
    connection.endheaders()
    print(host, connection.getresponse().status)
PYTHON
is "$("$tap_python" host.py "$url" evil.example evil.example:80 127.0.0.1.evil.example \
	'[::1].evil.example' 2>&1)" \
	"$(printf '%s 403\n' evil.example evil.example:80 127.0.0.1.evil.example '[::1].evil.example')" \
	'names of other hosts are refused'
is "$("$tap_python" host.py "$url" localhost LocalHost:9464 127.0.0.1 127.0.0.1:1 '[::1]:9464' 2>&1)" \
	"$(printf '%s 200\n' localhost LocalHost:9464 127.0.0.1 127.0.0.1:1 '[::1]:9464')" \
	'addresses and localhost are not'
ok 'but if asked for' "$GILTRACER" metrics -p "$pid" --label-arguments
like "$(cat out)" "^giltracer_process_info.pid=\"$pid\",.*,arguments=\".*hog[.]py\"} 1\$" 'there they are'
# Each family is in the list with which the manual is compared.
scraped text >served
ok 'the metrics are those of the manual' "$tap_python" "$top_srcdir/tests/system/metrics-manual.py" \
	"$top_srcdir" served
kill "$launcher"
wait "$launcher"
is "$?" 143 'a signal to giltracer ends the program'

exits 125 'an address for everybody' "$GILTRACER" --metrics 0.0.0.0:0 hog.py
like "$(cat err)" 'listen-anywhere permits it' 'is refused'
exits 125 'so is that of IPv6' "$GILTRACER" --metrics '[::]:0' hog.py
exits 125 'and that of IPv4 in IPv6' "$GILTRACER" --metrics '[::ffff:0.0.0.0]:0' hog.py
exits 125 'no address' "$GILTRACER" --metrics nowhere hog.py
like "$(cat err)" 'give ADDRESS:PORT' 'is an error'
exits 125 'an option for recordings' "$GILTRACER" --metrics :0 --state-detect hog.py
like "$(cat err)" 'state-detect: --metrics records nothing' 'is one, too'
exits 127 'no such script' "$GILTRACER" --metrics :0 nosuch.py
exits 125 'a process that is not Python' "$GILTRACER" metrics -p $$
like "$(cat err)" 'is not CPython' 'is said to be none'

leaves_nothing
done_testing
