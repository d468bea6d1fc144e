#!/bin/sh
# SPDX-License-Identifier: MIT
# After setup, an ordinary user who is a member of the group records without root; others do not.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root perf uprobes useradd flock

# Where the user can reach it: root's home is not.
from=$(cpythons | sed 's/^[^ ]* //' | while read -r py; do
	nobody "$py" -c '' 2>/dev/null && echo "$py"
done | head -n 1)
if [ -z "$from" ]; then
	echo '1..0 # SKIP no interpreter that an ordinary user can run: apt-get install python3'
	exit 0
fi
if ! nobody "$GILTRACER" --version >/dev/null 2>&1; then
	echo '1..0 # SKIP the build folder cannot be read by ordinary users: chmod o+x its parents'
	exit 0
fi

GILTRACER_STATEDIR=$scratch/state
export GILTRACER_STATEDIR
unset SUDO_USER SUDO_UID SUDO_GID
chmod 755 "$scratch"
user=gtu$$
group=gtg$$
python=$(private_python "$scratch/venv" "$from")
probes=$(group_of "$python")
at_exit "userdel $user 2>/dev/null; groupdel $user 2>/dev/null"
at_exit '"$GILTRACER" setup --undo >/dev/null 2>&1'
lock_system
useradd --no-create-home --shell /bin/sh "$user"
mkdir home && chown "$user" home

# Standard input is not ours to give away, nor are our variables.
# shellcheck disable=SC2016
as_user() {
	(cd home && env -i PATH="$PATH" LC_ALL=C HOME="$scratch/home" TMPDIR="$scratch/home" \
		setpriv --reuid="$user" --regid="$user" --init-groups --inh-caps=-all \
		--bounding-set=-all sh -c 'exec "$0" "$@"' "$@") </dev/null
}
cat >home/two.py <<'END'
import sys
import threading

def count():
    for _ in range(300000):
        pass

if __name__ == "__main__":
    threads = [threading.Thread(target=count) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sys.exit(7)
END

exits 1 'before setup, check' as_user "$GILTRACER" check --python "$python"
like "$(cat out)" "-> sudo giltracer setup --python $python" 'says what to do'
exits 125 'before setup, recording' as_user "$GILTRACER" --python "$python" two.py
like "$(cat err)" "^giltracer: error: .*" 'is refused'

ok 'setup' "$GILTRACER" setup --group "$group" --python "$python"
exits 1 'who is no member' as_user "$GILTRACER" check --python "$python"
exits 125 'still cannot record' as_user "$GILTRACER" --python "$python" two.py
gpasswd --add "$user" "$group" >/dev/null
ok 'a member: check is content' as_user "$GILTRACER" check --python "$python"
like "$(cat out)" '^ok +uprobes +installed by giltracer setup' 'with the probes of setup'
exits 7 'and records, with the exit status of the program' as_user "$GILTRACER" -q \
	--python-trace none --python "$python" --json two.json -o two.html two.py
ok 'there is a report' test -s home/two.html
consistent home/two.json 'the report'
is "$(json home/two.json 'len(workers())')" 2 'has both threads'
is "$(json home/two.json 'all(t["holds"] > 0 for t in workers())')" True 'which held the GIL'
is "$(json home/two.json 'sum(p["lost"] for p in d["passes"])')" 0 'nothing is lost'
ok 'the probes are still there' test "$(probes_in "$probes")" -ge 4
exits 125 'a member cannot undo' as_user "$GILTRACER" setup --undo
exits 7 'root uses the same probes' "$GILTRACER" -q --python-trace none --python "$python" \
	-o root.html home/two.py
ok 'and leaves them' test "$(probes_in "$probes")" -ge 4

# The interpreter is upgraded: another file, which setup has not seen.
exe=$("$python" -c 'import os; print(os.readlink("/proc/self/exe"))')
lib=$("$GILTRACER" probes --python "$python" --json |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["file"])')
cp "$lib" new && mv new "$lib" && chmod 755 "$lib" "$exe"
exits 125 'an interpreter that was replaced since' as_user "$GILTRACER" --python "$python" two.py
like "$(cat err)" 'was replaced, .* since giltracer setup installed probes for it' 'is noticed'
like "$(cat err)" "sudo giltracer setup --python $python" 'with the command'
ok 'which mends it' "$GILTRACER" setup --group "$group" --python "$python"
exits 7 'so that it can be recorded again' as_user "$GILTRACER" -q --python-trace none \
	--python "$python" -o two.html two.py

ok 'undo' "$GILTRACER" setup --undo
is "$(probes_in "$probes")" 0 'removes the probes'
exits 125 'and recording is refused again' as_user "$GILTRACER" --python "$python" two.py

is "$(find home -mindepth 1 | sort | tr '\n' ' ')" 'home/two.html home/two.json home/two.py ' \
	'no other file is left'
leaves_nothing
done_testing
