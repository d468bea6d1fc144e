#!/bin/sh
# SPDX-License-Identifier: MIT
# Files made by other users can neither control the terminal nor make giltracer wait, and no file is left
# half-written when a limit of the system is reached.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need python3

data=$top_srcdir/tests/data
esc=$(printf '\033')
# C1's CSI and the override of right-to-left text, in UTF-8; and CSI as a single byte.
csi=$(printf '\302\233')
rlo=$(printf '\342\200\256')
byte=$(printf '\233')

# harmless TEXT NAME: the text contains nothing that controls a terminal.
harmless() {
	is "$(printf %s "$1" | tr -d '\t\n' | LC_ALL=C.UTF-8 grep -c "$esc\|$csi\|$rlo\|$byte")" 0 "$2"
}

for bad in "x${esc}[2Jy" "x${csi}2Jy" "x${rlo}gpj.y"; do
	{
		echo 'layout pipe'
		echo "event 'sched:$bad' sample_type=tid,time,id ids=5 flags=sample_id_all"
		echo "format sched '$bad' 0 u32:'$bad'"
		echo "sample 'sched:$bad' id=5 tid=7/7 time=100"
	} >bad.txt
	ok 'a recording with names that are commands to terminals' \
		python3 "$data/mkperf.py" bad.txt bad.perf.data
	for how in '' --header --events --stacks; do
		# shellcheck disable=SC2086
		run "$GILTRACER" dump $how bad.perf.data
		harmless "$(cat out err)" "dump $how is harmless"
	done
	run "$GILTRACER" dump "nosuch$bad"
	harmless "$(cat err)" 'as is the error'
	mkdir -p "$bad" && cp /bin/true "$bad/python3"
	for command in check probes; do
		run "$GILTRACER" $command --python "$bad/python3"
		harmless "$(cat out err)" "and $command"
	done
done
like "$(cat err)" 'gpj' 'the rest of the name is there'

# A session whose document is a FIFO.
mkdir session && mkfifo session/session.json
exits 125 'a FIFO as session.json' timeout 20 "$GILTRACER" report session
like "$(cat err)" 'session.json: not a regular file' 'is refused'

# The limit of ulimit -f, in blocks of 512 bytes: the report is larger.
rm -r session
if has perf; then
	ok 'a session' "$GILTRACER" record -q -o session --python-trace none --no-gil-detect -m this
	mkdir small
	exits 125 'a limit of file sizes' sh -c 'ulimit -f 8 && exec "$0" report -o small/x.html session' \
		"$GILTRACER"
	like "$(cat err)" 'small/x.html: .*File too large' 'is an error'
	is "$(ls -A small)" '' 'and leaves nothing'
else
	skip 'perf may not record' 'a limit of file sizes'
fi

# giltracer without /proc.
if unshare -m umount -l /proc 2>/dev/null; then
	python=$(cpythons | sed -n '1s/^[^ ]* //p')
	echo pass >empty.py
	exits 125 'without /proc' unshare -m sh -c 'umount -l /proc; exec "$0" "$@"' "$GILTRACER" \
		--python "$python" empty.py
	like "$(cat err)" '/proc is not mounted.*mount -t proc proc /proc' 'it is said what to do'
	run unshare -m sh -c 'umount -l /proc; exec "$0" "$@"' "$GILTRACER" check --python "$python"
	like "$(cat out)" '/proc is not mounted' 'by check, too'
	unlike "$(cat out)" 'no CAP_|docker' 'which blames no container'
else
	skip 'unshare -m is not permitted' 'without /proc'
fi

leaves_nothing
done_testing
