#!/bin/sh
# SPDX-License-Identifier: MIT
# Ctrl-C, kill and the end of a terminal end the program as they end it under plain python, still
# give the report, and leave nothing behind.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root perf uprobes setsid

# A program that reports by a FIFO when it is traced, and waits for a signal.
cat >waits.py <<'EOF'
import select, signal, sys
if sys.argv[1:] == ["handle"]:
    def handler(number, frame):
        print("handled", number, flush=True)
        sys.exit(6)
    signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGINT, handler)
else:
    # A shell starts background commands with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if __name__ == "__main__":
    with open("ready", "w") as f:
        f.write("ready\n")
    # Not signal.pause(): the signal may come just before it.
    while True:
        select.select([], [], [], 0.1)
EOF

apart() {
	exec setsid "$@" >out 2>err
}

# interrupt SIGNAL WHOM ARG…: run giltracer in a process group of its own, and signal it when the program
# waits; WHOM is group, or giltracer alone. $status is its exit status, 128+N if signal N killed it.
interrupt() {
	signal=$1 whom=$2
	shift 2
	begun apart "$@"
	case $whom in
	group) kill -"$signal" -$pid ;;
	*) kill -"$signal" $pid ;;
	esac
	status=0
	wait $pid || status=$?
	sed 's/^/# /' err
}

record() {
	interrupt "$1" "$2" env PATH="$path" "$GILTRACER" record -o session --probes "$engine" \
		--python-trace none waits.py "$3"
}

# traced: the session's recording contains acquires of the GIL.
traced() {
	is "$(json session/session.json 'd["passes"][0]["start_ns"] > 0, d["passes"][0]["'"$1"'"]')" \
		"(True, $2)" '  and the session says so'
	ok '  and the recording is whole' perf script -i session/gil.perf.data
}

# By uprobes, perf has to end well, too; else it is all the same to giltracer.
engine=uprobes path=$PATH
record INT group default
is $status 130 'SIGINT to the group: dies of it, as python does'
like "$(cat err)" '^KeyboardInterrupt' '  after its traceback'
traced exit_status "$(python3 -c 'import sys; print(130 if sys.version_info >= (3, 8) else 1)')"

record INT group handle
is $status 6 'SIGINT to the group: a program that handles it ends as it likes'
is "$(cat out)" 'handled 2' '  and is asked once'
traced exit_status 6

record TERM group default
is $status 143 'SIGTERM to the group: dies of it'
traced signal 15
like "$(json session/session.json '[n["code"] for n in d["notes"]]')" not-stopped '  and notes it'

engine=preload path=$top_srcdir/tests/fake/none:$PATH
record TERM giltracer handle
is $status 6 'SIGTERM to giltracer alone: the program gets it'
is "$(cat out)" 'handled 15' '  once'
record TERM group handle
is $status 6 'SIGTERM to the group: the program ends as it likes'
is "$(cat out)" 'handled 15' '  and is asked once'
record INT giltracer handle
is $status 6 'SIGINT to giltracer alone: the program gets it'
is "$(cat out)" 'handled 2' '  once'
record HUP giltracer default
is $status 129 'SIGHUP to giltracer alone: the program dies of it'
record KILL group default
is $status 137 'SIGKILL to the group: that is all'
rm -rf session

interrupt INT group env PATH="$path" "$GILTRACER" -o report.html --probes preload --python-trace none waits.py default
is $status 130 'record and report: dies of SIGINT'
like "$(head -c 100 report.html)" '<!doctype|<!DOCTYPE' '  after the report was written'

interrupt INT group "$GILTRACER" record --state-detect -o session --probes preload --python-trace none \
	waits.py handle
is $status 6 'two passes: SIGINT ends the first'
like "$(cat err)" 'interrupted: there was no second run' '  and there is no second'
is "$(json session/session.json '[p["name"] for p in d["passes"]]')" "['gil']" '  in the session'

cat >again.py <<'EOF'
import os, select, signal
if __name__ == "__main__":
    if os.path.exists("ran"):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with open("ready", "w") as f:
            f.write("ready\n")
        while True:
            select.select([], [], [], 0.1)
    open("ran", "w").close()
EOF
interrupt INT group "$GILTRACER" record --state-detect -o session --probes preload --python-trace none \
	again.py
is $status 130 'SIGINT in the second run ends it'
like "$(cat err)" 'interrupted: the second run, which records stacks, is incomplete' '  which is said'
is "$(json session/session.json '[p["name"] for p in d["passes"]]')" "['gil', 'stacks']" \
	'  and both runs are in the session'

interrupt INT group "$GILTRACER" record --state-detect --one-run -o session --python-trace none \
	waits.py handle
is $status 6 'one run: SIGINT ends it'
is "$(json session/session.json '[(p["name"], p["exit_status"]) for p in d["passes"]],
	len({p["pid"] for p in d["passes"]})')" "([('gil', 6), ('stacks', 6)], 1)" \
	'  and both recordings'
ok '  which are whole' "$GILTRACER" report -q session -o one.html --json one.json
is "$(json one.json '[p["events"] > 0 for p in d["passes"]]')" '[True, True]' '  and have events'

# wait_end PID: wait until the process has ended, whichever process reaps it.
wait_end() {
	while [ -d /proc/"$1" ] && ! grep -q '^State:.*zombie' /proc/"$1"/status 2>/dev/null; do
		:
	done
}

# giltracer itself is killed: perf ends with it, the program does not, and the next run works. While that perf
# ends, nobody can remove its probes: they are in an interpreter that no other test uses.
python=$(private_python "$scratch/venv")
begun apart "$GILTRACER" record -q -o session --python "$python" --python-trace none waits.py handle
perf='' program=''
# shellcheck disable=SC2013 # words are what they are
for child in $(cat /proc/$pid/task/$pid/children); do
	case $(cat /proc/"$child"/comm) in
	perf) perf=$child ;;
	giltracer) ;; # its witness
	*) program=$child ;;
	esac
done
kill -KILL $pid
wait $pid
wait_end "$perf"
ok 'giltracer is killed: perf ends, the program goes on' kill -TERM "$program"
wait_end "$program"
is "$(cat out)" 'handled 15' '  and ends well'
echo >empty.py
ok '  and the next run works' "$GILTRACER" record -q -o session --python "$python" --python-trace none \
	empty.py
rm -rf "$scratch/venv"

# If perf is killed, as by the kernel when memory runs out, the program does not notice.
cat >kills.py <<'EOF'
import os, signal
if __name__ == "__main__":
    children = "/proc/%d/task/%d/children" % (os.getppid(), os.getppid())
    for pid in open(children).read().split():
        if open("/proc/%s/comm" % pid).read() == "perf\n":
            os.kill(int(pid), signal.SIGKILL)
    print("killed")
EOF
exits 125 'perf is killed: the run has failed' \
	"$GILTRACER" --python-trace none -o report.html kills.py
is "$(cat out)" killed '  the program ends as it likes'
like "$(cat err)" 'perf record was killed by signal 9 \(by the kernel if memory ran out' \
	'  it says who was killed'
like "$(cat err)" 'What helps: The recording is truncated: record again' '  and what to do'
exits 125 'with -q, too' "$GILTRACER" -q --python-trace none -o report.html kills.py
like "$(cat err)" '^giltracer: error: perf record was killed by signal 9' '  it says so'

# A daemon stays behind.
cat >leaves.py <<'EOF'
import os
if __name__ == "__main__":
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open("go").read()
        os._exit(0)
    os.wait()
    os._exit(0)
EOF
rm go
mkfifo go
exits 0 'a program that leaves a daemon behind' \
	"$GILTRACER" --python-trace none -o report.html --json left.json leaves.py
echo >go
is "$(json left.json '[c["count"] for c in d["caveats"] if c["code"] == "left-behind"]')" '[1]' \
	'  is told so'

# The program is stopped and continued, as by Ctrl-Z and fg.
cat >stops.py <<'EOF'
import os, signal
if __name__ == "__main__":
    pid = os.getpid()
    child = os.fork()
    if child == 0:
        while open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0] != "T":
            pass
        os.kill(pid, signal.SIGCONT)
        os._exit(0)
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(child, 0)
EOF
exits 0 'a program that was stopped goes on' \
	"$GILTRACER" record -o session --python-trace none stops.py
like "$(json session/session.json '[n["code"] for n in d["notes"]]')" "'stopped'" \
	'  and the session notes it'

# For as long as the threads run otherwise.
cat >suspended.py <<'EOF'
import os, signal, threading, time
def spin():
    while time.process_time() < 0.3:
        pass
def state(pid):
    return open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0]
if __name__ == "__main__":
    pid = os.getpid()
    threads = [threading.Thread(target=spin) for _ in range(2)]
    child = os.fork()
    if child == 0:
        while state(pid) != "T":
            pass
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            pass
        os.kill(pid, signal.SIGCONT)
        os._exit(0)
    for thread in threads:
        thread.start()
    os.kill(pid, signal.SIGSTOP)
    for thread in threads:
        thread.join()
    os.waitpid(child, 0)
EOF
exits 0 'a program that was stopped for half a second' no_perf "$GILTRACER" --probes preload --python-trace none \
	-o suspended.html --json suspended.json suspended.py
is "$(json suspended.json '[t["suspended_ns"] / 1e9 for t in d["threads"] if t["name"].startswith("Thread")
	and not 0.4 < t["suspended_ns"] / 1e9 < 0.7]')" '[]' '  has that time taken off'
is "$(json suspended.json 'max(t["longest_hold_ns"] for t in d["threads"]
	if t["name"].startswith("Thread")) < 0.4e9')" True \
	'  no thread held the GIL for it'
is "$(json suspended.json 'd["verdict"]["kind"]')" gil-bound '  and the verdict is that of the rest'

# Ctrl-Z stops giltracer, too.
cat >computes.py <<'EOF'
import threading, time
def spin():
    while time.process_time() < 0.4:
        pass
if __name__ == "__main__":
    threads = [threading.Thread(target=spin) for _ in range(2)]
    for thread in threads:
        thread.start()
    print("runs", flush=True)
    for thread in threads:
        thread.join()
EOF
cat >ctrl-z.py <<'EOF'
import os, signal, subprocess, sys, time
job = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, preexec_fn=lambda: os.setpgid(0, 0))
job.stdout.readline()
os.killpg(job.pid, signal.SIGTSTP)
os.waitpid(job.pid, os.WUNTRACED)
until = time.monotonic() + 0.5
while time.monotonic() < until:
    pass
os.killpg(job.pid, signal.SIGCONT)
sys.exit(job.wait())
EOF
exits 0 'Ctrl-Z and fg' no_perf python3 ctrl-z.py "$GILTRACER" --probes preload --python-trace none \
	-o suspended.html --json suspended.json computes.py
is "$(json suspended.json '[t["suspended_ns"] / 1e9 for t in d["threads"] if t["name"].startswith("Thread")
	and not 0.4 < t["suspended_ns"] / 1e9 < 0.7]')" '[]' '  have their time taken off'
is "$(json suspended.json 'd["verdict"]["kind"]')" gil-bound '  and the verdict is that of the rest'

leaves_nothing
done_testing
