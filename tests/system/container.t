#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer -p of a program in a container, which sees other files and numbers, by an ordinary user outside or
# inside of it: the report is that of a program outside.
# shellcheck disable=SC2086 # $user, $bare, $nobody, $who, $how and $inside are words
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need unshare setpriv
for_all_users
cp "$top_srcdir/tests/system/join.py" . && chmod 644 join.py || exit 99
mkdir user && chmod 777 user

# Nobody owns a container's user namespace; what only root can read is run by root without capabilities.
nobody='setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent'
bare='setpriv --inh-caps=-all --bounding-set=-all env'
case $(id -u) in
0) ;;
*) nobody=env bare=env ;;
esac

# The program has its own /tmp, to which its file is copied, and its own numbers.
cat >inside.sh <<'END'
mount -t tmpfs -o "mode=1777$1" none /tmp
mount -t tmpfs -o "mode=1777$1" none /var/tmp
mount -t tmpfs -o "mode=1777$1" none /dev/shm
mount -t proc none /proc
shift
cp join.py /tmp/
exec "$@"
END
chmod 644 inside.sh
if ! $nobody unshare -Urmpf sh -e inside.sh '' true 2>err; then
	echo "1..0 # SKIP no namespaces for ordinary users: $(cat err)"
	exit 0
fi

# start USER PYTHON WHAT…: start the program in a container; sets $pid and $user.
start() {
	user="$1 TMPDIR=$PWD/user" python=$2
	shift 2
	case $(id -u),$user in
	"0,$bare "*) first='unshare -mpf --kill-child' then=$bare ;;
	*) first="$user unshare -Urmpf --kill-child" then=env ;;
	esac
	begun $first sh -e inside.sh "$options" $then "$python" -W ignore /tmp/join.py "$@" ready go
	outer=$pid
	pid=$(pgrep -P "$outer")
}

# finish NAME
finish() {
	over
	status=0
	wait "$outer" || status=$?
	is "$status" 0 "$1: the program ends as without giltracer"
}

# joined NAME ARG…
joined() {
	name=$1
	shift
	exits 0 "$name" $user "$GILTRACER" -p "$pid" --duration 1 --probes preload --json user/out.json \
		-o user/out.html "$@"
	like "$(cat err)" "recording process $pid" '  by its number outside'
	consistent user/out.json "$name"
	is "$(find "/proc/$pid/root/tmp" "/proc/$pid/root/var/tmp" "/proc/$pid/root/dev/shm" -name 'giltracer*')" '' \
		'  nothing is left in its files'
}

# tells NAME: what a report of a program outside tells, with the numbers inside
tells() {
	is "$(json user/out.json '[(f["function"].split(".")[-1], f["file"], f["source"]) for f in d["hogs"][:1]]')" \
		"[('hog', '/tmp/join.py', 'keep(20000)')]" '  the call that kept the GIL, with its line'
	is "$(json user/out.json 'sorted(t["name"] for t in d["threads"])')" "['MainThread', 'my hog', 'my victim']" \
		'  threads as the program calls them'
	is "$(json user/out.json '{t["pid"] for t in d["threads"]}')" '{1}' '  and by its own numbers'
	is "$(json user/out.json 'sum(t["unknown_ns"] > 10**8 for t in d["threads"])')" 0 '  what they did is known'
}

{
	cpythons | sed "s,^,$bare|,"
	all_cpythons | grep -E '^3[.](7|8|10|11|12) ' | sed "s,^,$bare|,"
	newer_pythons | sed "s,^,$nobody|,"
	all_uv_pythons | sed "s,^,$nobody|,"
} | sort -u | sed "/ .usr/s,^$bare,$nobody," >interpreters
# from_outside USER VERSION PYTHON
from_outside() {
	who=$1 version=$2 python=$3 options=
	cp ../join.py ../inside.sh .
	start "$who" "$python" work
	joined "$version ($python): from outside"
	tells
	joined '  and again'
	tells
	finish "$version"
	for how in 'join 0' 'poll 7'; do
		start "$who" "$python" waits $how
		joined "$version: its main thread waits ($how)"
		is "$(json user/out.json 'sorted((t["name"], t["no_gil_ns"] == t["total_ns"]) for t in d["threads"])')" \
			"[('MainThread', False), ('my closer', True), ('my worker', False)]" \
			'  a thread that sleeps throughout is without the GIL'
		finish "$version: $how"
	done
}
while IFS='|' read -r who version <&3; do
	python=${version#* } version=${version%% *}
	case $version in 3.6 | *t) continue ;; esac
	# The container does not see them: another folder with the same interpreters is tested.
	case $(readlink -f "$python") in /tmp/* | /var/tmp/* | /dev/shm/*) continue ;; esac
	[ "$who" = "$bare" ] || $who test -x "$python" || who=$bare
	together from_outside "$who" "$version" "$python"
done 3<interpreters
gather

# A program that needs no capability to be run.
python=$(command -v /usr/bin/python3) || python=$(cpython 3.11)
case $python in
/usr/*) who=$nobody ;;
*) who=$bare ;;
esac

options=
start "$who" "$python" work
if nsenter --help 2>&1 | grep -q preserve-credentials; then
	inside="nsenter -t $pid -U -m -p --preserve-credentials"
	[ "$who" = "$nobody" ] || inside="nsenter -t $pid -m -p"
	$who cp -R all "/proc/$pid/root/tmp/"
	exits 0 'from inside' $who $inside env TMPDIR=/tmp /tmp/all/bin/giltracer -p 1 --duration 1 --json - \
		-o /tmp/out.html
	cp out user/out.json
	tells
else
	skip 'no nsenter' 'from inside'
fi
finish 'a program that is recorded from inside'

# No folder permits that the library is executed from it.
options=,noexec
start "$who" "$python" work
joined 'no file may be executed'
tells
finish 'no file may be executed'

options=
start "$who" "$python" work
chmod 555 "/proc/$pid/root/tmp" "/proc/$pid/root/var/tmp" "/proc/$pid/root/dev/shm"
exits 125 'no folder may be written' $user "$GILTRACER" -p "$pid" --duration 1 --probes preload -o user/out.html
like "$(cat err)" "process $pid is in another container, in which neither /tmp, /var/tmp nor /dev/shm can be written" \
	'  is refused'
exits 0 '  and sampled instead' $user "$GILTRACER" -p "$pid" --duration 1 --json user/out.json -o user/out.html
is "$(json user/out.json 'd["verdict"]["kind"]')" sampled '  as the verdict says'
finish 'no folder may be written'

# A flight recorder, of which others make a report.
start "$who" "$python" work
rm -f messages
mkfifo messages
$user "$GILTRACER" -p "$pid" --flight 1m -o user/flight.html 2>messages 5>&- 6<&- &
giltracer=$!
exec 4<messages
while read -r line <&4; do
	case $line in *'recording process'*) break ;; esac
done
ok 'a flight recorder' $user "$GILTRACER" snapshot -p "$pid" --json user/out.json -o user/out.html
while [ "$(json user/out.json 'd["hogs"] != []')" = False ]; do # the program has not held the GIL yet
	$user "$GILTRACER" snapshot -p "$pid" --json user/out.json -o user/out.html 2>err || break
done
tells
kill -INT $giltracer
cat <&4 >/dev/null
exec 4<&-
wait $giltracer
is $? 0 '  goes on until it is ended'
finish 'a flight recorder'

# Whoever controls the container can put a link to our files in the place of the folder, and FIFOs into it.
start "$who" "$python" work
mkdir -p user/ours/gil.preload
chmod -R 777 user/ours
rm -f messages
mkfifo messages
$user "$GILTRACER" -p "$pid" --probes preload --json user/out.json -o user/out.html 2>messages 5>&- 6<&- &
giltracer=$!
exec 4<messages
while read -r line <&4; do
	case $line in *'recording process'*) break ;; esac
done
folder=$(echo "/proc/$pid/root/tmp/giltracer."??????)
$user mv "$folder" "$folder.moved"
$user ln -s "$PWD/user/ours" "$folder"
$user rm -f "$folder.moved/gil.preload/names"
$user mkfifo "$folder.moved/gil.preload/names" "$folder.moved/gil.preload/1.2.log"
kill -INT $giltracer
cat <&4 >/dev/null
exec 4<&-
wait $giltracer
is $? 0 'a link in the place of the folder'
is "$(find user/ours -type f)" '' '  is not followed'
is "$(json user/out.json '{t["pid"] for t in d["threads"]}')" '{1}' '  and the recording is complete'
$user rm -r "$folder.moved"
finish 'a link in the place of the folder'

leaves_nothing
done_testing
