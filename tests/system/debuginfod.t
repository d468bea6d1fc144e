#!/bin/sh
# SPDX-License-Identifier: MIT
# Symbols from a debuginfod server: a server is asked only if the user names it and symbols are missing.
# Its answer is used only if it is for the same build. A server that does not answer is abandoned.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need gcc strip objcopy debuginfod
. "$top_srcdir/tests/system/prefix.sh"
helper=$top_srcdir/tests/system/debuginfod.py
unset DEBUGINFOD_URLS DEBUGINFOD_TIMEOUT GILTRACER_DEBUGDIR

for python in $(cpythons | sed 's/^[^ ]* //') none; do
	case $python in
	/usr/bin/*) continue ;; # its debug file may be installed
	none) echo '1..0 # SKIP needs a CPython with a libpython of its own' && exit 0 ;;
	esac
	python=$(own_libpython "$scratch/prefix" "$python") && break
done
library=$(echo "$scratch"/prefix/lib/libpython*)
objcopy --only-keep-debug "$library" symbols.debug
strip --strip-all --remove-section=.gnu_debuglink "$library"
gcc -shared -o other.so -x c /dev/null

mkfifo port
end_server() {
	[ -z "${server_pid:-}" ] || { kill "$server_pid" && wait "$server_pid"; } 2>/dev/null
	server_pid=
}
# server MODE FILE: start a server that is used from now on; its requests are in the file log.
server() {
	end_server
	rm -rf log cache && : >log
	python3 "$helper" serve "$1" "$2" port "$scratch/log" &
	server_pid=$!
	read -r number <port
	DEBUGINFOD_URLS=http://127.0.0.1:$number/
	DEBUGINFOD_CACHE_PATH=$scratch/cache
	export DEBUGINFOD_URLS DEBUGINFOD_CACHE_PATH
}
at_exit end_server

# how: print how take_gil was found. Copies of drop_gil in other functions are always found by code.
how() {
	"$GILTRACER" probes --json --python "$python" >found.json 2>err || { cat err && return; }
	json found.json 'd["probes"][0]["kind"], d["probes"][0]["how"]'
}
by_server="('debug', 'debug file from debuginfod, and its code')"
by_code="('code', 'code: PyEval_RestoreThread and PyEval_AcquireThread lead to it')"

server gives symbols.debug
is "$(how)" "$by_server" 'symbols come from the server'
is "$(sed 's,/[0-9a-f]*/,/ID/,' log | cut -d/ -f2-)" 'buildid/ID/debuginfo' '  which was asked once'
is "$(how)" "$by_server" 'they are kept'
is "$(wc -l <log)" 1 '  and nobody is asked again'
# On a terminal, a message explains the delay.
if command -v script >/dev/null; then
	ok 'on a terminal' script -qec "'$GILTRACER' probes --python '$python'" typescript
	like "$(tr '\r' '\n' <typescript)" 'asking debuginfod for the symbols of /' \
		'  it is said who is waited for'
else
	skip 'apt-get install bsdutils' 'on a terminal, it is said who is waited for'
fi

rm -rf cache && : >log
is "$(unset DEBUGINFOD_URLS && how)" "$by_code" 'without DEBUGINFOD_URLS, the code is read'
is "$(DEBUGINFOD_URLS='' how)" "$by_code" '  and if it is empty'
is "$(GILTRACER_DEBUGDIR='' how)" "$by_code" '  and without debug files'
is "$(wc -l <log)" 0 '  and nobody is asked'
cp -L "$(about "$python" 'v("LIBDIR")')/$(basename "$library")" "$library"
like "$(how)" '^..symbol' 'with symbols, they are used'
is "$(wc -l <log)" 0 '  and nobody is asked'
strip --strip-all --remove-section=.gnu_debuglink "$library"

server gives other.so
is "$(how)" "$by_code" "another build's file is not used"
is "$(wc -l <log)" 1 '  though it was sent'
server lacks none
is "$(how)" "$by_code" 'a server that has none'
is "$(wc -l <log)" 1 '  was asked'

server hangs none
is "$(DEBUGINFOD_TIMEOUT=1 how)" "$by_code" 'a server that does not answer is given up on'
rm -rf cache log && mkfifo log
is "$(python3 "$helper" interrupt log "$GILTRACER" probes --python "$python")" '-2 []' \
	'Ctrl-C while it is asked ends it'
# After a signal during the download, the program must not be started.
echo 'open("ran", "w")' >program.py
is "$(python3 "$helper" interrupt log "$GILTRACER" record -o session --python "$python" \
	--python-trace none program.py)" '-2 []' '  before a recording, too'
ok '  and the program is not run' test ! -e ran

end_server
leaves_nothing
done_testing
