#!/bin/sh
# SPDX-License-Identifier: MIT
# The rules and the dashboard work with a real Prometheus: it scrapes a program that keeps the GIL and one
# that only uses it all the time, and the alert fires for the former only.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
PATH=$top_builddir/prometheus:$PATH
need prometheus promtool
XDG_RUNTIME_DIR=$TMPDIR
export XDG_RUNTIME_DIR
share=$top_srcdir/share/metrics
helper=$top_srcdir/tests/system/prometheus.py

ok 'the rules are rules' promtool check rules "$share/rules.yaml"
ok 'each alert fires when it should' promtool test rules "$share/rules-test.yaml"
ok 'the example is a configuration' promtool check config "$share/prometheus.yaml"
want microhttpd 'a real Prometheus' || done_testing

# served PROGRAM NAME: serve the metrics of PROGRAM NAME; sets $address.
served() {
	mkfifo "$2.err"
	"$GILTRACER" --metrics 127.0.0.1:0 "$1" "$2" <input >"$2.out" 2>"$2.err" 3>&- &
	programs="${programs:-} $!"
	read -r _ _ url <"$2.err"
	address=${url#http://}
	address=${address%/metrics}
}

mkfifo input port started
exec 3<>input
served "$top_srcdir/tests/system/hog.py" innocent
innocent=$address
served "$top_srcdir/tests/system/hog.py" hog
hog=$address
cat >locks.py <<'END'
import sys
import threading
import time

lock, over = threading.Lock(), threading.Event()


def work():
    while not over.is_set():
        with lock:
            time.sleep(0.001)


threads = [threading.Thread(target=work, name='worker-%d' % i) for i in range(3)]
for thread in threads:
    thread.start()
sys.stdin.read()
over.set()
for thread in threads:
    thread.join()
END
served locks.py locks
locks=$address
"$tap_python" "$top_srcdir/tests/system/metrics.py" "http://$hog/metrics" text text/plain >hog.txt
ok 'promtool check metrics' sh -c 'promtool check metrics <hog.txt'
is "$(cat out err)" '' 'has nothing to say'

timeout 120 "$tap_python" "$helper" manager port GilKept "instance=$hog" >fired &
manager=$!
# shellcheck disable=SC2094 # a FIFO
read -r port <port
# All intervals are those of the rules, but shorter.
sed 's/\[1m\]/[3s]/; s/for: .*/for: 0s/' "$share/rules.yaml" >rules.yaml
cat >prometheus.yaml <<YAML
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: [rules.yaml]
alerting:
  alertmanagers:
    - static_configs:
        - targets: ['127.0.0.1:$port']
scrape_configs:
  - job_name: giltracer
    static_configs:
      - targets: ['$hog', '$innocent', '$locks']
YAML
prometheus --config.file=prometheus.yaml --storage.tsdb.path=data \
	--web.listen-address=127.0.0.1:0 2>started 3>&- &
prometheus=$!
at_exit "kill $prometheus 2>/dev/null"
exec 4<started
server=$(sed -n '/Listening on/{s/.*address=\([0-9.:]*\).*/\1/p;q;}' <&4)
cat <&4 >log &
like "$server" '^127.0.0.1:' 'Prometheus is there'

wait "$manager"
is "$?" 0 'the alert fires'
like "$(cat fired)" '"alertname": "GilKept".*"thread": "hogs-[*]"' 'for the threads that keep the GIL'
"$tap_python" "$helper" query "http://$server" 'ALERTS{alertstate="firing"}' >firing
unlike "$(cat firing)" "$innocent" 'and not for those that only use it'
# lines N QUERY: print its result when it has N lines, since a rate needs two scrapes.
lines() {
	tries=0
	until "$tap_python" "$helper" query "http://$server" "$2" >result &&
		[ "$(wc -l <result)" -eq "$1" ] || [ $((tries += 1)) -ge 300 ]; do :; done
	cat result
}
lines 2 "pid:giltracer_gil_hold:ratio{instance!=\"$locks\"}" >held
is "$(wc -l <held)" 2 'though both hold it'
is "$(awk '$NF > 1.0001' held)" '' 'for no more than all of the time, to microseconds'
is "$(lines 1 "pid:giltracer_gil_hold:ratio{instance=\"$innocent\"} > 0.9" | wc -l)" 1 \
	'the innocent one for nearly all of it'
lines 1 "sum by (thread, line) (rate(giltracer_lock_wait_seconds_total{instance=\"$locks\"}[3s])) > 0" >waited
like "$(cat waited)" '"line": "work \(locks\.py:10\)"' 'in which line threads wait for a lock'
like "$(cat waited)" '"thread": "worker-[*]"' 'and which threads'
lines 1 "topk(1, holder:giltracer_gil_wait:threads{instance=\"$hog\", holder!=\"none\"})" >waited
like "$(cat waited)" '"holder": "hogs-[*]"' 'whom the others wait for'
tries=0
until "$tap_python" "$helper" dashboard "http://$server" "$share/dashboard.json" >panels &&
	! grep -qv ': 1$' panels || [ $((tries += 1)) -ge 300 ]; do :; done
is "$(grep -vc ': 1$' panels)" 0 'each panel of the dashboard has results'
diag "$(grep -v ': 1$' panels)"
is "$(wc -l <panels)" 15 'all fifteen'

kill "$prometheus"
wait "$prometheus"
exec 3>&-
# shellcheck disable=SC2086 # a list
wait $programs
leaves_nothing
done_testing
