#!/bin/sh
# SPDX-License-Identifier: MIT
# The verdict on real programs, one of each kind, and on empty recordings.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need python3

# verdict DIR: print the kind of its verdict, from the page; its report is in DIR.said, DIR.json and DIR.html.
verdict() {
	"$GILTRACER" report "$1" -o "$1.html" --json "$1.json" >"$1.said" 2>/dev/null &&
		sed -n 's/.*class="headline" data-kind="\([a-z-]*\)".*/\1/p' "$1.html" | head -n 1
}

# made DIR PERF-TEXT STOP-NS [FREE-THREADED]: make a session without running a program.
made() {
	mkdir "$1"
	python3 "$top_srcdir/tests/data/mkperf.py" "$2" "$1/gil.perf.data"
	cat >"$1/session.json" <<-EOS
		{"session": 1, "command": ["x.py"],
		 "options": {"state_detect": false, "gil_detect": true},
		 "python": {"version": "3.13.1", "free_threaded": ${4:-false}},
		 "passes": [{"name": "gil", "perf_data": "gil.perf.data", "exit_status": 0,
		             "start_ns": 1000000000, "stop_ns": $3, "pid": 100, "tid": 100}]}
	EOS
}

sed '/^sample/d' "$top_srcdir/tests/data/hog.perf.txt" >nothing.txt
made nothing nothing.txt 1100000000
is "$(verdict nothing)" nothing 'no event of a GIL'
made free nothing.txt 1100000000 true
is "$(verdict free)" free-threaded 'a free-threaded interpreter'
made short "$top_srcdir/tests/data/hog.perf.txt" 1005000000
is "$(verdict short)" too-short '5 ms'
made hog "$top_srcdir/tests/data/hog.perf.txt" 1100000000
is "$(verdict hog)" gil-bound 'a hog of 40 ms'
is "$(json hog.json 'max(" spent %.1f %% of its time waiting for it (%.1f ms)" % (
	100 * t["wait_ns"] / t["total_ns"], t["wait_ns"] / 1e6)
	in d["verdict"]["headline"] for t in d["threads"])')" True 'the headline has the numbers of a thread'
is "$(json hog.json '(lambda waited: max("%.1f %% of all waiting for the GIL (%.1f ms)" % (
	100 * ns / waited, ns / 1e6) in d["findings"][0]["text"] for ns in [sum(b["wait_ns"]
	for b in d["blame"] if b["holder_tid"] == t["tid"]) for t in d["threads"]]))(
	sum(b["wait_ns"] for b in d["blame"]))')" True 'and the first finding those of the blame, of all waiting'

agrees hog.said hog.json hog.html 'a hog of 40 ms'

# acquitted NAME PROGRAM…: by $engine, the GIL is not accused of anything, after at most three recordings: other
# programs may take the CPU of a thread that has the GIL.
engine=preload
acquitted() {
	acquitted_name="$1, $engine"
	shift
	for _ in 1 2 3; do
		undisturbed "$GILTRACER" -q --probes $engine -o /dev/null --json acquitted.json "$@" >/dev/null 2>&1
		acquitted_got=$(json acquitted.json '[d["verdict"]["headline"]] * d["verdict"]["kind"].startswith("gil-") *
			(d["verdict"]["kind"] != "gil-none") + [p["text"] for p in d["patterns"]] +
			[f["text"] for f in d["findings"] if f["kind"] == "call" and f["percent"] >= 10]')
		[ "$acquitted_got" != '[]' ] || break
		retried "$acquitted_name" "$acquitted_got"
	done
	is "$acquitted_got" '[]' "$acquitted_name"
}

# Every 20 ms, five of the threads get work; at the end, all of them get up at once, which takes by far less than
# a tenth of the time, also where probes make it longer.
cat >idle.py <<'EOS'
import queue, sys, threading, time
queues = [queue.Queue() for _ in range(int(sys.argv[1]))]
def serve(q):
    while q.get() is not None:
        sum(range(2000))
if __name__ == '__main__':
    threads = [threading.Thread(target=serve, args=(q,), name=f'conn-{i}') for i, q in enumerate(queues)]
    for thread in threads:
        thread.start()
    for _ in range(80):
        for q in queues[:5]:
            q.put(1)
        time.sleep(.02)
        sum(i * i for i in range(30_000))
    for q in queues:
        q.put(None)
    for thread in threads:
        thread.join()
EOS
acquitted '5 threads that are mostly idle' idle.py 5
acquitted '200 threads that are mostly idle' idle.py 200

# hashlib releases the GIL: it is free for most of the time, and hardly wanted.
cat >hashing.py <<'EOS'
import hashlib, threading
def work():
    for _ in range(3000):
        hashlib.sha256(b'x' * 50_000).digest()
if __name__ == '__main__':
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
EOS
acquitted 'two threads that release the GIL to compute' hashing.py

# The rest needs to record.
for cap in root perf uprobes; do
	has $cap && continue
	case " $GILTRACER_TEST_REQUIRE " in
	*" $cap "*) fail "needs $cap, which GILTRACER_TEST_REQUIRE promises" ;;
	*) skip "needs $cap: $(how_to_get $cap)" 'programs of each kind' ;;
	esac
	done_testing
done

cat >single.py <<'EOS'
import time
until = time.monotonic() + 0.3
while time.monotonic() < until:
    sum(range(1000))
EOS
cp "$top_srcdir"/share/examples/*.py .

# The probes cost more than these programs use the GIL.
engine=uprobes
acquitted '200 threads that are mostly idle' idle.py 200
acquitted 'two threads that release the GIL to compute' hashing.py

# program KIND NAME DIR COMMAND…: the verdict on a program is KIND, after at most three recordings. If
# other programs used the CPUs while its threads were runnable, another verdict is right.
program() {
	program_kind=$1
	program_name=$2
	program_dir=$3
	shift 3
	for _ in 1 2 3; do
		undisturbed "$GILTRACER" record -q --probes "$engine" --python-trace none -o "$program_dir" "$@" \
			>/dev/null 2>&1
		program_got=$(verdict "$program_dir")
		[ "$program_got" != "$program_kind" ] || break
		retried "$program_name: $program_kind" "$program_got"
	done
	program_line=$(json "$program_dir.json" 'int(100 * sum(t["states"]["runnable_ns"]
		for t in d["threads"]) / sum(t["states"]["runnable_ns"] + t["states"]["running_ns"]
		for t in d["threads"]))')
	agrees "$program_dir.said" "$program_dir.json" "$program_dir.html" "$program_name"
	if [ "$program_got" != "$program_kind" ] && [ "$program_line" -ge 25 ]; then
		skip "the CPUs are busy: threads were runnable for $program_line %" "$program_name"
	else
		is "$program_got" "$program_kind" "$program_name: $program_kind"
	fi
}
program gil-bound 'two spinners' spin spinners.py 0.3
program gil-bound 'a hog among workers' hogs hog.py 0.3
case $(json hogs.json '"%(kind)s %(function)s. %(text)s" % d["findings"][0]') in
"call keep_the_gil. Run by hog: "* | "call keep_the_gil. keep_the_gil (hog.py:"*", run by hog: "*) pass=yes ;;
*) pass=no ;;
esac
[ $pass = yes ] || [ "$program_line" -ge 25 ] || diag "$(json hogs.json 'd["verdict"], d["findings"]')"
if [ $pass = no ] && [ "$program_line" -ge 25 ]; then
	skip "the CPUs are busy: threads were runnable for $program_line %" 'the call is named'
else
	is $pass yes 'the call is named'
fi
engine=preload
program io-bound 'sleepers' wait waiters.py 0.3
program single-threaded 'one thread' alone single.py
program native 'native code that releases the GIL' native native.py 0.3

# Two threads of native code on one CPU are runnable half of the time, whatever else runs.
cat >one-cpu.py <<'EOS'
import os, runpy, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
sys.argv = ["native.py", "0.3"]
runpy.run_path("native.py", run_name="__main__")
EOS
for _ in 1 2 3; do
	undisturbed "$GILTRACER" record -q --probes preload --python-trace none --trace-imports -o starved one-cpu.py \
		>/dev/null 2>&1
	starved=$(verdict starved)
	[ "$starved" != cpu-starved ] || break
	retried 'two threads on one CPU: cpu-starved' "$starved"
done
is "$starved" cpu-starved 'two threads on one CPU: cpu-starved'

# A control group that may use a quarter of a CPU, of which other programs take nothing.
quota=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup [^ ]*\bcpu\b.*/\1/p' /proc/mounts)
quota=${quota:-/sys/fs/cgroup}/giltracer-test-$$
limited() {
	mkdir "$quota" && if [ -e "$quota/cpu.max" ]; then
		echo '25000 100000' >"$quota/cpu.max" && echo 10000 >"$quota/cpu.weight"
	else
		echo 100000 >"$quota/cpu.cfs_period_us" && echo 25000 >"$quota/cpu.cfs_quota_us" &&
			echo 262144 >"$quota/cpu.shares"
	fi
}
if limited 2>/dev/null; then
	at_exit 'rmdir "$quota"'
	for engine in preload uprobes; do
		sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$quota" "$GILTRACER" -q \
			--probes $engine -o quota.html --json quota.json spinners.py 0.5 >/dev/null 2>&1
		like "$(json quota.json '[f["text"] for f in d["findings"] if f["kind"] == "quota"]')" \
			'Its control group may use 0.25 CPUs, and was throttled in [0-9]* of [0-9]* periods' \
			"$engine: a CPU limit is told"
		is "$(json quota.json '[q for p in d["passes"] for q in [p["cpu_quota"]]
			if not q["periods"] >= q["throttled"] > q["periods"] / 2 or q["quota_ns"] != 25e6]')" '[]' \
			'  with its periods, most of which were throttled'
	done
else
	skip 'no control group with a CPU limit can be made' 'a CPU limit is told'
fi

leaves_nothing
done_testing
