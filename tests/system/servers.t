#!/bin/sh
# SPDX-License-Identifier: MIT
# Real servers under load, attached and detached again and again: no answer fails.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/cached.sh"

# make_servers FOLDER: packages for any Python 3 of this version.
make_servers() {
	python3 -m pip install -q --disable-pip-version-check --target "$1" flask gunicorn uvicorn
}
mkdir packages
if ! cached servers "$PWD/packages" -- make_servers >/dev/null 2>err; then
	cat err
	echo '1..0 # SKIP needs Flask, gunicorn and uvicorn from the package index'
	exit 0
fi
PYTHONPATH=$PWD/packages:$top_srcdir/tests/system
PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE
python=$(python3 -c 'import sys; print(sys.executable)')

# answers URL: it does.
answers() {
	python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)' "$1" \
		2>/dev/null
}

# tortures NAME PORT COMMAND…
tortures() {
	name=$1 port=$2
	shift 2
	rm -f stop
	"$@" >server.log 2>&1 &
	pid=$!
	until answers "http://127.0.0.1:$port/"; do
		kill -0 $pid 2>/dev/null || break
	done
	python3 "$top_srcdir/tests/system/servers.py" load "http://127.0.0.1:$port/" 4 stop >answers &
	loader=$!
	for _ in 1 2 3 4 5; do
		ok "$name: stacks" "$GILTRACER" stacks -p $pid
	done
	exits 0 "$name: samples" "$GILTRACER" -q -p $pid --probes none --sample 500 --duration 1 \
		--json out.json -o out.html
	is "$(json out.json 'd["samples"]["count"] > 0 and d["samples"]["stacks"] > 0')" True \
		"$name: stacks were sampled"
	if has root perf uprobes; then
		exits 0 "$name: GIL events" "$GILTRACER" -q -p $pid --duration 1 --json exact.json \
			-o out.html
		consistent exact.json "$name"
	fi
	: >stop
	wait $loader
	like "$(cat answers)" '^answers [1-9][0-9]* wrong 0$' "$name: no answer failed"
	ok "$name: the server lives" kill -0 $pid
	kill $pid
	wait $pid 2>/dev/null || :
}

port=$(python3 -c 'import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1])')
tortures Flask "$port" "$python" -m flask --app servers:flask run --port "$port"
tortures gunicorn "$port" "$python" -m gunicorn -w 2 --threads 2 -b "127.0.0.1:$port" 'servers:flask()'
tortures uvicorn "$port" "$python" -m uvicorn --port "$port" --log-level warning servers:asgi
leaves_nothing
done_testing
