#!/bin/sh
# SPDX-License-Identifier: MIT
# A recording that reaches its limit of time or size ends. The program continues, and the report covers
# what was recorded.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes

# A program that releases and takes the GIL until it is told to end, after giltracer's message.
cat >server.py <<'EOF'
import os, sys, threading
def serve():
    while not over:
        os.stat("/")
if __name__ == "__main__":
    over = False
    thread = threading.Thread(target=serve, name="server")
    thread.start()
    with open("go") as f:
        f.read()
    over = True
    thread.join()
    print("ended", flush=True)
    sys.exit(4)
EOF
mkfifo go says

# limited OPTION…: record; $said is giltracer's line about the limit, which it prints while the program runs,
# perhaps after one about the library, and err has the rest.
limited() {
	"$GILTRACER" --python-trace none -o report.html --json report.json --keep session "$@" \
		server.py >out 2>says &
	pid=$!
	exec 3<says
	while read -r said <&3; do
		case $said in
		*' recording ended '*) break ;;
		esac
	done
	echo >go
	cat <&3 >err
	exec 3<&-
	status=0
	wait $pid || status=$?
}

# A machine that stops for a second ends the recording later.
for _ in 1 2 3; do
	limited --duration 1
	lasted=$(json session/session.json '[(p["stop_ns"] - p["start_ns"]) // 1000000000
		for p in d["passes"]]')
	[ "$lasted" != '[1]' ] || break
	retried '  and is of that second' "$lasted s"
done
is "$said" 'giltracer: the recording ended after 1 s (--duration), before the program' 'time is up'
is "$status $(cat out)" '4 ended' '  and the program goes on to its end'
like "$(cat err)" 'note: the recording ended after 1 s' '  the report says so, too'
is "$lasted" '[1]' '  and is of that second'
is "$(json report.json '[t["holds"] > 0 and t["total_ns"] < 2e9 for t in d["threads"]
	if t["name"] == "server"]')" '[True]' '  in which the GIL was recorded'
consistent report.json '  so'

limited --max-size 1
like "$said" 'ended after [0-9.]+ s, before the program, when it had reached 1 MiB' 'it is large'
is "$status $(cat out)" '4 ended' '  and the program goes on to its end'
ok '  and the recording is whole' perf script -i session/gil.perf.data
consistent report.json '  so'

leaves_nothing
done_testing
