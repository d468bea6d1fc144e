#!/bin/sh
# SPDX-License-Identifier: MIT
# Many clients, and malicious ones, harm neither the metrics nor the program.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need microhttpd
XDG_RUNTIME_DIR=$TMPDIR
export XDG_RUNTIME_DIR

mkfifo in err
"$GILTRACER" --metrics 127.0.0.1:0 -m code <in >out.txt 2>err 3>&- &
launcher=$!
exec 3>in 4<err
read -r _ _ url <&4
cat <&4 >log 3>&- &
timeout 120 "$tap_python" "$top_srcdir/tests/system/metrics-load.py" "$url" >got 2>&1
like "$(cat got)" '^parallel: 1000$' '1,000 scrapes at a time are all answered'
like "$(cat got)" '^crowd: in time$' 'many slow clients keep nobody waiting'
like "$(cat got)" '^idle: True$' 'connections that say nothing keep nobody away'
like "$(cat got)" '^slow: dropped$' 'a client that never comes to the end is dropped'
like "$(cat got)" '^deaf: dropped$' 'so is one that does not read'
like "$(cat got)" '^large: refused$' 'endless headers are refused'
like "$(cat got)" '^after all: True$' 'after all that, the metrics are there'
diag "$(grep -v True got)"
echo 'print(6 * 7)' >&3
exec 3>&-
wait "$launcher"
is "$?" 0 'and the program ends as ever'
like "$(cat out.txt)" '42' 'having done its work'

leaves_nothing
done_testing
