#!/bin/sh
# SPDX-License-Identifier: MIT
# After setup, an ordinary user who is a member of the group records without root; others do not.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root perf uprobes useradd flock

# The folder must be accessible to the user, which root's home is not.
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
GILTRACER_LIBEXECDIR=$scratch/libexec
export GILTRACER_STATEDIR GILTRACER_LIBEXECDIR
unset SUDO_USER SUDO_UID SUDO_GID
chmod 755 "$scratch"
user=gtu$$
group=gtg$$
python=$(private_python "$scratch/venv" "$from")
probes=$(group_of "$python")
at_exit "userdel $user 2>/dev/null; groupdel $user 2>/dev/null; groupdel $group 2>/dev/null"
at_exit '"$GILTRACER" setup --undo >/dev/null 2>&1'
lock_system
useradd --no-create-home --shell /bin/sh "$user"
mkdir home && chown "$user" home

# The user gets neither our standard input nor our environment variables.
# shellcheck disable=SC2016
as_user_with() {
	groups=$1
	shift
	(cd home && env -i PATH="$PATH" LC_ALL=C HOME="$scratch/home" TMPDIR="$scratch/home" \
		GILTRACER_LIBEXECDIR="$GILTRACER_LIBEXECDIR" \
		setpriv --reuid="$user" --regid="$user" "$groups" --inh-caps=-all \
		sh -c 'exec "$0" "$@"' "$@") </dev/null
}
as_user() {
	as_user_with --init-groups "$@"
}
# A user who logged in before joining the group.
as_old() {
	as_user_with --clear-groups "$@"
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
exits 125 'before setup, recording' as_user "$GILTRACER" --probes uprobes --python "$python" two.py
like "$(cat err)" "^giltracer: error: .*" 'is refused'

ok 'setup' "$GILTRACER" setup --group "$group" --python "$python"
exits 1 'who is no member' as_user "$GILTRACER" check --python "$python"
like "$(cat out)" "-> sudo usermod -aG $group $user, then log in again" 'is told to join the group'
unlike "$(cat out)" 'giltracer setup --python' 'not to set up again'
exits 125 'still cannot record' as_user "$GILTRACER" --probes uprobes --python "$python" two.py
gpasswd --add "$user" "$group" >/dev/null
exits 1 'who has joined it since logging in' as_old "$GILTRACER" check --python "$python"
like "$(cat out)" "-> log in again: you are a member of the group $group by now" 'is told so'
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
ok 'perf_event_paranoid is not what permits it' test "$paranoid" -ge 2
ok 'a member: check is content' as_user "$GILTRACER" check --python "$python"
like "$(cat out)" '^ok +uprobes +installed by giltracer setup' 'with the probes of setup'
like "$(cat out)" '^ok +perf .*perf-for-members' 'and the perf of setup'
exits 7 'and records, with the exit status of the program' as_user "$GILTRACER" -q \
	--python-trace none --python "$python" --json two.json -o two.html two.py
ok 'there is a report' test -s home/two.html
consistent home/two.json 'the report'
is "$(json home/two.json 'len(workers())')" 2 'has both threads'
is "$(json home/two.json 'all(t["holds"] > 0 for t in workers())')" True 'which held the GIL'
is "$(json home/two.json 'sum(p["lost"] for p in d["passes"])')" 0 'nothing is lost'
exits 7 'why threads sleep, too' as_user "$GILTRACER" -q --state-detect --python-trace none \
	--python "$python" --json two.json -o two.html two.py
is "$(json home/two.json '[(p["name"], p["events"] > 0, p["lost"]) for p in d["passes"]]')" \
	"[('gil', True, 0), ('stacks', True, 0)]" 'by two recordings'
is "$(json home/two.json 'all(t["states"]["running_ns"] > 1e6 for t in workers())')" True 'of states'
exits 7 'and what is counted' as_user "$GILTRACER" -q --event page-faults --python-trace none \
	--python "$python" --json two.json -o two.html two.py
ok 'the probes are still there' test "$(probes_in "$probes")" -ge 4
# A member may not record other users' processes or the kernel's events, nor read what others trace.
member=$GILTRACER_LIBEXECDIR/perf-for-members
own() {
	as_user "$member" record "output=$scratch/home/x.data" "$@" control=3 ack=4 \
		3</dev/null 4>/dev/null
}
exits 125 "a process of root's" own pid=$$
like "$(cat err)" "process $$ is not yours to record" 'is refused'
exits 125 "a process that has ended" own pid=4194303
for word in everybody=1 counter=sched:sched_switch counter=cycles/config=1/ counter=-a \
	probe=sched:sched_switch probe=giltracer_x:a/b; do
	exits 125 "$word" own pid=$$ "$word"
	like "$(cat err)" "'$word' is not permitted" 'is refused'
done
is "$(find home -name 'x.data*')" '' 'nothing is recorded'

# A process that becomes root's while perf attaches to it is either noticed, or the kernel has removed the
# events. In no case is there a sample of it.
cp "$(command -v yes)" home/yes-as-root && chmod 4755 home/yes-as-root
cat >home/race.py <<'END'
import os, subprocess, sys
member, delay = sys.argv[1], float(sys.argv[2])
go_r, go_w = os.pipe()
control_r, control_w = os.pipe()
ack_r, ack_w = os.pipe()
pid = os.fork()
if pid == 0:
    os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
    os.read(go_r, 1)
    os.execv("./yes-as-root", ["yes-as-root"])
guard = subprocess.Popen([member, "record", "output=%s/x.data" % os.getcwd(), "pid=%d" % pid,
                          "control=%d" % control_r, "ack=%d" % ack_w, "native=1024", "hz=250"],
                         pass_fds=(control_r, ack_w), stderr=subprocess.PIPE)
os.close(ack_w)
def cpu_ticks():
    return sum(map(int, open("/proc/%d/stat" % pid).read().rsplit(")")[1].split()[11:13]))
children = "/proc/%d/task/%d/children" % (guard.pid, guard.pid)
while guard.poll() is None and not open(children).read():
    pass
# Somewhere between the start of perf and its events.
subprocess.call(["sleep", str(delay)])
os.write(go_w, b"x")
os.write(control_w, b"enable\n")
os.read(ack_r, 16)
# Use enough CPU time for a dozen samples, however busy the host is.
enough = cpu_ticks() + 5
while cpu_ticks() < enough:
    os.sched_yield()
os.kill(pid, 9)
os.waitpid(pid, 0)
guard.terminate()
guard.wait()
END
for delay in 0 0.01 0.03 0.1 0.3; do
	rm -f home/x.data
	ok "becomes root's after $delay s" as_user "$from" race.py "$member" $delay
	is "$("$GILTRACER" dump home/x.data 2>/dev/null | grep -c 'SAMPLE.*giltracer_native')" 0 \
		'nothing of it is recorded'
done
chmod 755 home/yes-as-root
ok "one that stays the user's" as_user "$from" race.py "$member" 0
ok 'is' test "$("$GILTRACER" dump home/x.data | grep -c 'SAMPLE.*giltracer_native')" -gt 0
rm -f home/x.data* home/yes-as-root home/race.py
exits 13 "a tracepoint that is not the scheduler's" as_user "$member" try raw_syscalls:sys_enter
ok "one that is" as_user "$member" try sched:sched_switch
exits 1 'what root traces' as_user cat $tracefs/trace_pipe
exits 2 'all of tracefs' as_user ls $tracefs
exits 1 'a copy of the program has no capabilities' as_user sh -c \
	'cp "$0" copy && ./copy try sched:sched_switch; ret=$?; rm -f copy; [ $ret = 0 ]' "$member"
run as_user env PERF_CONFIG=/nosuch PATH="$scratch/home" "$member" record "output=$scratch/home/x.data" \
	pid=1 control=3 ack=4
unlike "$(cat err)" nosuch 'its environment is not the caller'"'"'s'
is "$(stat -c %a "$member")" 750 'and others cannot execute it'
exits 126 'at all' nobody "$member" try self
exits 125 'a member cannot undo' as_user "$GILTRACER" setup --undo
exits 7 'root uses the same probes' "$GILTRACER" -q --python-trace none --python "$python" \
	-o root.html home/two.py
ok 'and leaves them' test "$(probes_in "$probes")" -ge 4

# The interpreter is upgraded: setup has not seen the new file.
exe=$("$python" -c 'import os; print(os.readlink("/proc/self/exe"))')
lib=$("$GILTRACER" probes --python "$python" --json |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["file"])')
cp "$lib" new && mv new "$lib" && chmod 755 "$lib" "$exe"
exits 125 'an interpreter that was replaced since' as_user "$GILTRACER" --probes uprobes --python "$python" two.py
like "$(cat err)" 'probes that giltracer setup installed for .* do not match it any more' 'is noticed'
like "$(cat err)" "sudo giltracer setup --python $python" 'with the command'
ok 'which mends it' "$GILTRACER" setup --group "$group" --python "$python"
exits 7 'so that it can be recorded again' as_user "$GILTRACER" -q --python-trace none \
	--python "$python" -o two.html two.py

gpasswd --delete "$user" "$group" >/dev/null
ok 'undo' "$GILTRACER" setup --undo
is "$(probes_in "$probes")" 0 'removes the probes'
exits 125 'and recording is refused again' as_user "$GILTRACER" --probes uprobes --python "$python" two.py

is "$(find home -mindepth 1 | sort | tr '\n' ' ')" 'home/two.html home/two.json home/two.py ' \
	'no other file is left'
leaves_nothing
done_testing
