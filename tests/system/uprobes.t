#!/bin/sh
# SPDX-License-Identifier: MIT
# Probes exist while a recording uses them, and are removed afterwards, however the last one ended.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root perf uprobes flock

python=$(private_python "$scratch/venv")
probes=$(group_of "$python")
cat >wait.py <<'END'
import sys

if __name__ == "__main__":
    open("ready", "w").write("x\n")
    open("go").read()
    sys.exit(3)
END
cat >quick.py <<'END'
import threading

if __name__ == "__main__":
    t = threading.Thread(target=lambda: None)
    t.start()
    t.join()
END
record() {
	"$GILTRACER" -q --python-trace none --python "$python" "$@"
}
# Start a recording in the background and wait until its program runs.
begin() {
	begun "$GILTRACER" -q --python-trace none --python "$python" -o wait.html wait.py 2>wait.err
	tracer=$pid
}
finish() {
	over
	finished=0
	wait "$tracer" 2>/dev/null || finished=$?
}

ok 'a recording' record -o quick.html quick.py
removed
is "$(probes_in "$probes")" 0 'leaves no probe'

begin
ok 'during one there are probes' test "$(probes_in "$probes")" -ge 4
ok 'another of the same interpreter at the same time' record -o quick.html quick.py
ok 'leaves the probes to the first' test "$(probes_in "$probes")" -ge 4
finish
is "$finished" 3 'which ends as its program does'
removed
is "$(probes_in "$probes")" 0 'and then removes them'

begin
exits 0 'check meanwhile' "$GILTRACER" check --python "$python"
unlike "$(cat out)" "stray probes +$probes" 'sees no stray in what is used'
ok 'and leaves the probes' test "$(probes_in "$probes")" -ge 4
finish
is "$finished" 3 'for the recording'

# Nobody waits until the kernel has removed them: neither the caller, nor the reader of a pipe. As long as the
# test holds the lock, nobody can remove them.
begin
exec 9</run/giltracer/lock
flock 9
finish
is "$finished" 3 'giltracer ends before its probes are removed'
ok 'which are still there' test "$(probes_in "$probes")" -ge 4
remover=$(pgrep giltracer-end | while read -r pid; do
	! grep -qFxz "GILTRACER_TEST_ID=$scratch" "/proc/$pid/environ" || echo "$pid"
done)
is "$(ps -o comm= -p "$remover")" giltracer-end 'one process remains'
# It may wait for perf, and holds the record and probes; the folder is the one that find reads.
is "$(find "/proc/$remover/fd" ! -type d ! -lname '/run/giltracer/*' ! -lname 'anon_inode:*' -printf '%l\n')" '' \
	'which keeps no file or pipe of ours open'
is "$(readlink "/proc/$remover/cwd") $(sed -n 's/^SigBlk:\t//p' "/proc/$remover/status")" '/ 0000000000000000' \
	'nor a folder, and can be ended'
exec 9<&-
removed
is "$(probes_in "$probes")" 0 'and removes them then'

# A giltracer that is killed cannot clean up, so the next one does. perf and the program continue for a
# while. Another giltracer on this host would also clean up, but not while the test holds the lock.
begin
exec 9</run/giltracer/lock
flock 9
children=$(ps -o pid= --ppid "$tracer")
kill -KILL "$tracer"
finished=0
wait "$tracer" 2>/dev/null || finished=$?
over
is "$finished" 137 'a giltracer that is killed'
for pid in $children; do
	tail --pid="$pid" -f /dev/null
done
ok 'leaves its probes' test "$(probes_in "$probes")" -ge 4
run "$GILTRACER" check --python /usr/bin/false
like "$(cat out)" "stray probes +$probes:" 'which check calls strays'
like "$(cat out)" "stray session +$TMPDIR/giltracer\..{6}$" 'and its session'
exec 9<&-
# Not every folder that is named like a session is one.
mkdir -m 700 "$TMPDIR/giltracer.mydata" && : >"$TMPDIR/giltracer.mydata/mine"
begin
ok 'the next recording' record -o quick.html quick.py
is "$(find "$TMPDIR" -mindepth 1 -maxdepth 1 -type d | wc -l)" 2 'removes it, and no other'
ok 'neither who lives' test -e "$(echo "$TMPDIR"/giltracer.??????/lock)"
ok 'nor who is somebody else' test -e "$TMPDIR/giltracer.mydata/mine"
finish
removed
is "$(probes_in "$probes")" 0 'and the probes go'
rm -r "$TMPDIR/giltracer.mydata"

# If a file was replaced, its probes are still in the old file.
begin
lib=$("$GILTRACER" probes --python "$python" --json |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["file"])')
cp "$lib" new && mv new "$lib" && chmod 755 "$lib"
exits 125 'an interpreter replaced while it is recorded' record --probes uprobes -o quick.html quick.py
like "$(cat err)" 'another build of .* in use by another giltracer' 'is not probed by the old places'
ok 'but is recorded' "$GILTRACER" --python-trace none --python "$python" -o quick.html quick.py
like "$(cat err)" 'by a preloaded library .* because uprobes cannot be used: .*another build' 'by the library'
finish
is "$finished" 3 'the recording is not disturbed'
ok 'and later it can be recorded' record -o quick.html quick.py
removed
is "$(probes_in "$probes")" 0 'without a probe left'

# Members of a group could read the records of earlier versions, and hold a lock on one for ever.
GILTRACER_RUNDIR=$scratch/run
export GILTRACER_RUNDIR
mkdir run
record=run/$(group_of "$python")
echo "setup 1 2 $lib" >"$record" && chmod 644 "$record"
mkfifo held
# shellcheck disable=SC2016 # the inner shell's
sh -c 'exec 9<"$1" && flock 9 && echo >held && exec tail -f /dev/null' - "$record" &
holder=$!
at_exit "kill $holder 2>/dev/null"
read -r _ <held
ok 'a record that somebody else has locked' timeout 10 "$GILTRACER" --python-trace none --python "$python" \
	--json quick.json -o quick.html quick.py
like "$(cat err)" 'by a preloaded library' 'neither delays a recording nor makes it fail'
is "$(json quick.json 'all(t["holds"] for t in d["threads"])')" True 'which is complete'
kill $holder
wait $holder 2>/dev/null || :
ok 'afterwards' record -o quick.html quick.py
is "$(find run -perm /077 ! -type d)" '' 'no other user can read a record'

# What was found in the interpreter is kept, for root alone, and as long as the interpreter is the same.
places=$(echo run/places-*)
ours=$(group_of "$python")
group_used() {
	"$GILTRACER" -v --python-trace none --python "$python" -o quick.html quick.py 2>&1 |
		sed -n 's/.*perf record .* -e \(giltracer_[0-9a-fc_]*\):take_gil .*/\1/p'
}
is "$(group_used)" "$ours" 'the next recording'
sed -i 's/_[0-9a-f]\{6\}_c/_abcdef_c/' "$places"
like "$(group_used)" '_abcdef_c' 'takes the places that were kept'
chmod 660 "$places"
is "$(group_used)" "$ours" 'unless others can write there'
sed -i 's/_[0-9a-f]\{6\}_c/_abcdef_c/' "$places"
chown 65534 "$places"
is "$(group_used)" "$ours" 'or it is of somebody else'
sed -i 's/_[0-9a-f]\{6\}_c/_abcdef_c/' "$places"
chmod 777 run
is "$(group_used)" "$ours" 'or in a folder that others can write to'
chmod 755 run
rm "$places" && ln -s "$scratch/quick.py" "$places"
is "$(group_used)" "$ours" 'or a link'
sed -i 's/_[0-9a-f]\{6\}_c/_abcdef_c/' "$places"
touch "$lib"
is "$(group_used)" "$ours" 'or of what the interpreter was before'
rm "$places"
for i in $(seq 100); do
	touch -d "$i days ago" "run/places-$i"
done
is "$(group_used)" "$ours" 'of many interpreters'
is "$(find run -name 'places-*' | wc -l) $(find run -path "$places")" "64 $places" 'the last 64 are kept'
removed

rm -rf "$scratch/venv"
leaves_nothing
done_testing
