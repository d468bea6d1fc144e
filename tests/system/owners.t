#!/bin/sh
# SPDX-License-Identifier: MIT
# Of two containers on one kernel, each leaves alone the probes that the other one uses, and removes
# those that it left behind itself.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root perf uprobes unshare flock

if ! unshare -pm --fork --mount-proc sh -c 'mount -t tmpfs none /run' 2>err; then
	echo "1..0 # SKIP no process and mount namespaces: $(cat err)"
	exit 0
fi
python=$(private_python "$scratch/venv")
probes=$(group_of "$python")
cat >wait.py <<'END_PY'
if __name__ == "__main__":
    open("ready", "w").write("x\n")
    open("go").read()
END_PY
echo 'if __name__ == "__main__": pass' >quick.py

# Each container has its own processes and its own /run, so their giltracers share no files there.
# shellcheck disable=SC2016 # the inner shell's
contained() {
	unshare -pm --fork --mount-proc --kill-child \
		sh -c 'mount -t tmpfs none /run && exec "$0" "$@"' "$@"
}
record() {
	"$GILTRACER" -q --python-trace none --python "$python" -o "$1.html" "$1.py"
}
contained_record() {
	contained "$GILTRACER" -q --python-trace none --python "$python" -o "$1.html" "$1.py"
}
# Groups of this interpreter, from all containers.
groups() {
	sed -n "s,^[pr]:\(${probes}[a-z0-9_]*\)/.*,\1,p" $tracefs/uprobe_events | sort -u
}
waits() {
	"$@" wait 2>wait.err
}
# begin COMMAND…: start it in the background, and wait until its program runs.
begin() {
	begun waits "$@"
	tracer=$pid
}
finish() {
	over
	ended=0
	wait "$tracer" || ended=$?
	is $ended 0 'and that recording ends well' || diag "$(cat wait.err)"
}

ok 'in a container' contained_record quick
is "$(groups)" '' 'nothing is left'

begin record
is "$(groups)" "$probes" 'outside, something is recorded'
before=$(grep -c ":$probes/" $tracefs/uprobe_events)
exits 0 'check in a container' contained "$GILTRACER" check --python "$python"
like "$(cat out)" "^note +others' probes +$probes: [0-9]+ in .*lib" 'sees that it is of others'
unlike "$(cat out)" '^note +stray' 'and no stray'
ok 'the same interpreter in a container' contained_record quick
is "$(grep -c ":$probes/" $tracefs/uprobe_events)" "$before" 'leaves it all'
is "$(groups)" "$probes" 'and of its own nothing'
finish

begin contained_record
theirs=$(groups)
like "$theirs" "^${probes}_c[0-9a-f]{6}$" 'in a container, something is recorded'
before=$(grep -c ":$theirs/" $tracefs/uprobe_events)
ok 'outside meanwhile' record quick
ok 'and in another container' contained_record quick
is "$(groups)" "$theirs" 'leave that alone'
is "$(grep -c ":$theirs/" $tracefs/uprobe_events)" "$before" 'all of it'
finish
is "$(groups)" '' 'it removes them itself'

# The whole container is killed at once.
begin contained_record
exec 9</run/giltracer/lock
flock 9
kill -KILL "$(ps -o pid= --ppid "$tracer" | tr -d ' ')"
wait "$tracer" 2>/dev/null || :
is "$(groups)" "$theirs" 'a container that is killed leaves its probes'
# Without an interpreter, since it would wait for our lock otherwise.
run "$GILTRACER" check --python /usr/bin/false
like "$(cat out)" "^note +others' probes +$theirs:" 'which check shows'
exec 9<&-
rm -rf "$TMPDIR"/giltracer.*
# The kernel closes the events of a killed perf in its own time; until then they cannot be removed.
for _ in 1 2 3; do
	ok 'the next recording outside' record quick
	removed
	[ -n "$(groups)" ] || break
	retried 'removes them' "$(groups)"
done
is "$(groups)" '' 'removes them'

rm -rf "$scratch/venv"
leaves_nothing
done_testing
