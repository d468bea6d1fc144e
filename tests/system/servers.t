#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer attaches to real servers under load and detaches, again and again, and no request fails.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/cached.sh"

# make_servers PACKAGE… FOLDER: install the packages for any Python 3 of this version.
make_servers() {
	python3 - "$@" <<'END'
import subprocess, sys
*packages, folder = sys.argv[1:]
subprocess.run([sys.executable, '-m', 'pip', 'install', '-q', '--disable-pip-version-check',
                '--root-user-action=ignore', '--target', folder] + packages, check=True)
END
}
mkdir packages
if ! cached servers "$PWD/packages" -- make_servers flask gunicorn uvicorn distributed \
	>/dev/null 2>err; then
	cat err
	echo '1..0 # SKIP needs Flask, gunicorn, uvicorn and Dask from the package index'
	exit 0
fi
PYTHONPATH=$PWD/packages:$top_srcdir/tests/system
PYTHONDONTWRITEBYTECODE=1
DASK_TEMPORARY_DIRECTORY=$PWD
export PYTHONPATH PYTHONDONTWRITEBYTECODE DASK_TEMPORARY_DIRECTORY
python=$(python3 -c 'import sys; print(sys.executable)')

# recorded: attach perf, and detach it as soon as it records; a session is left.
recorded() {
	rm -rf session messages
	mkfifo messages
	"$GILTRACER" record -p "$pid" -o session 2>messages &
	giltracer=$!
	exec 4<messages
	while read -r line <&4; do
		echo "$line"
		case $line in *"recording process $pid until Ctrl-C") break ;; esac
	done >rest
	kill -INT "$giltracer"
	cat <&4 >>rest
	exec 4<&-
	wait "$giltracer" && [ -s session/session.json ]
}

# tortures NAME: attach to process $pid and detach again, twenty times.
tortures() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
		"$GILTRACER" stacks -p "$pid" >now 2>&1 || break
	done
	like "$(cat now)" "^process $pid: " "$1: stacks"
	exits 0 "$1: samples" "$GILTRACER" -q -p "$pid" --probes none --sample 500 --duration 1 \
		--json out.json -o out.html
	is "$(json out.json 'd["samples"]["count"] > 0 and d["samples"]["stacks"] > 0')" True \
		"$1: stacks were sampled"
	has root perf uprobes || return 0
	for i in 1 2; do
		ok "$1: recorded for a moment, $i" recorded
	done
	exits 0 "$1: GIL events" "$GILTRACER" -q -p "$pid" --duration 1 --json exact.json \
		-o out.html
	consistent exact.json "$1"
}

# serves NAME PORT COMMAND…
serves() {
	name=$1 port=$2
	shift 2
	rm -f stop
	"$@" >server.log 2>&1 &
	pid=$!
	mkfifo loaded
	python3 "$top_srcdir/tests/system/servers.py" load "http://127.0.0.1:$port/" 4 loaded stop \
		>answers &
	loader=$!
	read -r _ <loaded
	rm loaded
	tortures "$name"
	: >stop
	wait $loader
	like "$(cat answers)" '^answers [1-9][0-9]* wrong 0$' "$name: no answer failed"
	ok "$name: the server lives" kill -0 $pid
	kill $pid
	wait $pid 2>/dev/null || :
}

# works NAME KIND: the server generates its own load.
works() {
	rm -f stop ready
	mkfifo ready
	{
		status=0
		"$python" "$top_srcdir/tests/system/servers.py" "$2" ready stop >answers \
			2>server.log || status=$?
		: <>ready # it may have failed before anybody was at work
		exit $status
	} &
	parent=$!
	read -r pid <ready
	tortures "$1"
	ok "$1: the process lives" kill -0 "$pid"
	: >stop
	status=0
	wait $parent || status=$?
	is $status 0 "$1: it ends as without giltracer"
	like "$(cat answers)" '^answers [1-9][0-9]* wrong 0$' "$1: no result is wrong"
}

port=$(python3 -c 'import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1])')
serves Flask "$port" "$python" -m flask --app servers:flask run --port "$port"
serves gunicorn "$port" "$python" -m gunicorn -w 2 --threads 2 -b "127.0.0.1:$port" 'servers:flask()'
serves uvicorn "$port" "$python" -m uvicorn --port "$port" --log-level warning servers:asgi
works 'a Dask worker' dask
works 'a multiprocessing pool' pool
leaves_nothing
done_testing
