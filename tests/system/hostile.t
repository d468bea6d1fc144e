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

# Files that the kernel makes when they are read, and removes what is read, look like regular files.
if [ -e /proc/kmsg ]; then
	rm session/session.json && ln -s /proc/kmsg session/session.json
	exits 125 'a link to the messages of the kernel' timeout 20 "$GILTRACER" report session
	like "$(cat err)" 'session.json: not a regular file' 'is refused'
fi
exits 125 'a file of procfs' timeout 20 "$GILTRACER" dump /proc/self/status
like "$(cat err)" 'status: not a regular file' 'is refused'

# A link in a session may lead to a file that only the user who reads it may read.
cat >threads.py <<'END_PY'
import threading
if __name__ == "__main__":
    thread = threading.Thread(target=sum, args=(range(100000),))
    thread.start()
    thread.join()
END_PY
ok 'a recording' by_library record -q -o linked threads.py
ok 'its report' "$GILTRACER" report -q -o linked.html linked
ls linked/session.json linked/gil.preload/*.log linked/gil.preload/*.gil >files
while read -r file; do
	mv "$file" kept && ln -s "$scratch/kept" "$file"
	exits 125 "a link in place of ${file##*.}" "$GILTRACER" report -q -o x.html linked
	like "$(cat err)" "$file: not a regular file" 'is not followed'
	rm "$file" && mv kept "$file"
done <files
mv linked/gil.preload kept && ln -s "$scratch/kept" linked/gil.preload
exits 125 'a link in place of a folder' "$GILTRACER" report -q -o x.html linked
rm linked/gil.preload && mv kept linked/gil.preload
ln -s linked/gil.preload named
ok 'a link that the user names' "$GILTRACER" dump named

# Where others can write, the name of the report may be that of a device, or of a FIFO.
mkdir written && ln -s /dev/null written/giltracer.html
exits 125 'a link to a device as report' env -C written "$GILTRACER" report -q ../linked
like "$(cat err)" 'giltracer.html: neither a regular file nor a FIFO' 'is refused'
rm written/giltracer.html && mkfifo written/giltracer.html
exits 125 'a FIFO that nothing reads' timeout 20 env -C written "$GILTRACER" report -q ../linked
like "$(cat err)" 'giltracer.html: no process reads this FIFO' 'is not waited for'
exec 3<>written/giltracer.html
timeout 20 cat <written/giltracer.html >read.html &
ok 'a FIFO of our own that is read' env -C written "$GILTRACER" report -q ../linked 3>&-
exec 3>&-
wait $!
ok 'gets the report' cmp linked.html read.html
if [ "$(id -u)" = 0 ]; then
	chown 65534 written/giltracer.html
	exec 3<>written/giltracer.html
	exits 125 'one of another user' timeout 20 env -C written "$GILTRACER" report -q ../linked 3>&-
	like "$(cat err)" 'giltracer.html: a FIFO of another user' 'does not'
	exec 3>&-
else
	skip 'needs root' 'one of another user'
fi
ok 'a device that is named as such' "$GILTRACER" report -q -o /dev/null linked
ok 'what is open' "$GILTRACER" report -q -o /proc/self/fd/1 linked
mv out stdout.html
ok 'gets the report' cmp linked.html stdout.html

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
