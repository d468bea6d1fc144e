#!/bin/sh
# SPDX-License-Identifier: MIT
# A report is written when a condition holds: for a program that keeps the GIL, but not for one that only
# uses it. The folder stays below its limit.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need microhttpd
XDG_RUNTIME_DIR=$TMPDIR
export XDG_RUNTIME_DIR

for condition in '' 'gil_wait' 'gil_wait>101% for 1s' 'gil_wait>5% for 0s' 'gil_wait>5% for 1h'; do
	exits 125 "no condition: '$condition'" "$GILTRACER" --metrics :0 --record-when "$condition" x.py
done
exits 125 'a condition without metrics' "$GILTRACER" --record-when 'gil_wait>5% for 1s' x.py
like "$(cat err)" 'record-when: needs --metrics' 'says what is missing'
exits 125 'and without a server' "$GILTRACER" metrics -p $$ --record-when 'gil_wait>5% for 1s'
like "$(cat err)" 'record-when: needs --listen' 'as well'

# served NAME OPTION...: start hog.py NAME, with messages in NAME.err; sets $pid.
served() {
	name=$1
	shift
	mkfifo "$name.err"
	"$GILTRACER" --metrics 127.0.0.1:0 "$@" "$top_srcdir/tests/system/hog.py" "$name" <input \
		>"$name.out" 2>"$name.err" 3>&- &
	launcher=$!
	exec 4<"$name.err"
	read -r _ <&4
}

# The folder is ours, and stays the same one whatever gets its name.
if [ "$(id -u)" = 0 ]; then
	mkdir -m 777 theirs && chown 65534 theirs
	exits 125 'a folder of another user' "$GILTRACER" --metrics 127.0.0.1:0 \
		--record-when 'gil_wait>5% for 1s' --reports theirs "$top_srcdir/tests/system/hog.py" hog
	like "$(cat err)" 'theirs: belongs to another user; choose another folder with --reports$' 'is refused'
else
	skip 'needs root' 'a folder of another user'
fi
mkfifo input
exec 3<>input
mkdir reports
# Other files, however old or large, are not deleted.
truncate -s 3M reports/giltracer-00000000T000000Z-1.html reports/giltracer-00000000T000001Z-2.html \
	reports/mine.html
served innocent --record-when 'gil_wait>50% for 1s' --reports reports
innocent=$launcher
exec 5<&4
served hog --record-when 'gil_wait>50% for 1s' --duration 1 --reports reports --reports-limit 1
read -r line <&4
like "$line" 'process [0-9]*: gil_wait>50% for 1s: recording for 1 s$' 'the condition holds'
read -r line <&4
pid=$(cat hog.out)
like "$line" "process $pid: report: reports/giltracer-[0-9TZ]*-${pid}[.]html\$" 'a report is written'
report=${line##* }
like "$(head -c 100 "$report")" '<!DOCTYPE html>' 'which is a page'
like "$(grep -c 'hog[.]py' "$report")" '^[1-9]' 'of this program'
is "$(find reports -type f | sort)" "$(printf '%s\nreports/mine.html' "$report")" \
	'older reports make room for it, other files do not'

# The same for a program that is already running.
mkfifo served.err
"$GILTRACER" metrics -p "$pid" --listen 127.0.0.1:0 --record-when 'gil_kept>10% for 1s' --duration 1 \
	--reports more 2>served.err 3>&- &
server=$!
exec 6<served.err
read -r line <&6
read -r line <&6
like "$line" "process $pid: gil_kept>10% for 1s: recording" 'a running program: the condition holds'
read -r line <&6
like "$line" "process $pid: report: more/" 'a report is written'
kill "$server"
wait "$server"
is "$?" 0 'the server ends'
is "$(find more -type f | wc -l)" 1 'there is one report an hour'

exec 3>&-
wait "$launcher"
is "$?" 0 'the program ends as ever'
wait "$innocent"
is "$(cat <&5)" '' 'an innocent program, which was watched before, has none'

# Each process has a report, and not only the first of them.
mkfifo both
exec 3<>both
mv both input
served hogs --record-when 'gil_wait>20% for 1s' --duration 1 --reports each
mv each moved && mkdir other && ln -s other each
timeout 60 grep -m 2 ': report: ' <&4 >reported || :
is "$(sed -n 's/^.*process \([0-9]*\): report: .*/\1/p' reported | sort)" "$(sort hogs.out)" \
	'of two processes, each has a report'
is "$(find moved -type f | wc -l) $(find other -type f | wc -l)" '2 0' \
	'in the folder that was there at the start'
exec 3>&-
wait "$launcher"

leaves_nothing
done_testing
