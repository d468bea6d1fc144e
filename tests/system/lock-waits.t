#!/bin/sh
# SPDX-License-Identifier: MIT
# Waits for locks of the program are exact, and charged to the thread that releases the lock; threads that
# wait for a signal are idle. The program measures its own waits.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need setsid

cat >judge.py <<'END'
import json, sys

document, measured = (json.load(open(name)) for name in sys.argv[1:3])
minor = int(sys.argv[3].split('.')[1].split(' ')[0].rstrip(',t'))
threads = {t['name']: t for t in document['threads']}
names = {t['tid']: t['name'] for t in document['threads']}
cases = ['lock', 'rlock', 'nested', 'semaphore', 'bounded', 'condition', 'timed', 'two']


def charged(waiter, by):
    return sum(b['wait_ns'] for b in document['lock_blame'] if waiter in (b['waiter_tid'], names.get(b['waiter_tid']))
               and names.get(b['released_by_tid'], b['released_by_tid']) == by)


# What the program measures includes taking the GIL afterwards, and time without a CPU. At a hand-off, the waiting
# thread has to get a CPU after the release: that part is charged to nobody.
def waited(t, own_and_delay, waiter, holder, held):
    own, delay = own_and_delay
    delay += t['wait_ns'] + t['free_wait_ns']
    wait, by, nobody = t['lock_wait_ns'], charged(waiter, holder), charged(waiter, None)
    if not own - delay - 2e6 <= wait <= own + 1e5:
        yield waiter, 'waited', own, 'recorded', wait, 'and for the GIL or a CPU', delay
    if by < 0.95 * (held - delay):
        yield waiter, 'charged', by, 'and to nobody', nobody, 'of', wait


def all_charged(waiter, holders, wait):
    if sum(charged(waiter, by) for by in (*holders, None)) < 0.999 * wait:
        yield waiter, 'is charged otherwise', [b for b in document['lock_blame'] if b['waiter_tid'] == waiter]


def wrong():
    for case in cases:
        t = threads[case + '-waits']
        yield from waited(t, measured[case], t['tid'], case + '-holds', 6e7)
        yield from all_charged(t['tid'], [case + '-holds'], t['lock_wait_ns'])
    for waiter, holder in (('chain-1', 'chain-2'), ('chain-2', 'chain-3'), ('import-waits', 'import-holds')):
        t = threads[waiter]
        yield from waited(t, measured[waiter], t['tid'], holder, 4e7)
        yield from all_charged(t['tid'], [holder], t['lock_wait_ns'])
    # The last of many waits until all others had the lock.
    for case, holder in (('woken', 'notifies'), ('crowd', 'MainThread')):
        for t in document['threads']:
            if t['name'] == case:
                yield from waited(t, measured[case][str(t['tid'])], t['tid'], holder, 4e7)
                yield from all_charged(t['tid'], [holder, case], t['lock_wait_ns'])
    for name, t in threads.items():
        if name.startswith('idle-') and t['lock_wait_ns'] > 0.1 * t['total_ns'] + measured['idle']:
            yield name, 'waited', t['lock_wait_ns'], 'of', t['total_ns'], 'all had no CPU for', measured['idle']
    if len([name for name in threads if name.startswith('idle-')]) != 13:
        yield 'idle threads', sorted(threads)
    # A time-out runs while the thread has no CPU, too: what is left when it gets one is the wait.
    child = {t['tid']: t for t in document['threads']}[measured['child']]
    for t, key, waits, least in ((threads['impatient'], 'impatient', 3, 6e7), (child, 'child-waits', 1, 4e7)):
        own, delay = measured[key]
        if t['lock_waits'] != waits or not least - delay - 2e6 <= t['lock_wait_ns'] <= own + 1e5:
            yield t['name'], t['lock_waits'], 'waits', t['lock_wait_ns'], 'of', own, 'without a CPU', delay
    if threads['daemon']['lock_wait_ns'] < 0.95 * 2e7:
        yield 'daemon', 'waited only', threads['daemon']['lock_wait_ns']
    # Nobody releases these locks, or nobody in the same process.
    for t in (threads['impatient'], threads['daemon'], child):
        by = [names.get(b['released_by_tid']) for b in document['lock_blame'] if b['waiter_tid'] == t['tid']]
        # The main thread has these locks, which the library sees if they are semaphores; a child has a copy.
        if by not in ([[None]] if t['tid'] == measured['child'] or minor > 13 else
                      [['MainThread'], [None]] if minor == 13 else [['MainThread']]):
            yield t['name'], 'is charged to', by


print(list(wrong()))
END

# is_right NAME ARG...: the waits of a recording made with these arguments.
is_right() {
	name=$1
	shift
	for _ in 1 2 3; do
		ok "$name: records" "$@" -q --python "$python" --json waits.json -o waits.html \
			"$top_srcdir/tests/system/lock-waits.py" measured.json
		wrong=$(python3 judge.py waits.json measured.json "$version")
		[ "$wrong" != '[]' ] || break
		retried "$name: waits for locks are those that the program measures" "$wrong"
	done
	is "$wrong" '[]' "$name: waits for locks are those that the program measures"
	is "$(json waits.json '[c["code"] for c in d["caveats"] if c["code"] in ("broken-identity", "two-holders")]')" \
		'[]' "$name: the states of each thread add up"
	is "$(json waits.json 'abs(sum(c["ns"] for c in d["critical_path"]) -
		max(t["total_ns"] for t in d["threads"] if t["main"])) < 1000')" True \
		"$name: the critical path lasts as long as the program"
}

every_cpython pythons
while read -r version python <&3; do
	is_right "$version" by_library --python-trace none
done 3<pythons

# The library is in the program whatever records the GIL.
if want uprobes 'waits for locks while uprobes record the GIL'; then
	while read -r version python <&3; do
		is_right "$version, uprobes" "$GILTRACER" --probes uprobes
	done 3<pythons
fi

# A lock that is held across a sleep, and one that is held while its thread waits for the GIL. The lines
# are those of the programs.
cat >asleep.py <<'END'
import threading
import time


def work():
    for _ in range(10):
        with lock:
            time.sleep(0.01)


if __name__ == '__main__':
    lock = threading.Lock()
    threads = [threading.Thread(target=work, name='worker-%d' % i) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
END
cat >through.py <<'END'
import os
import re
import threading
import time

PATTERN = re.compile('(a|aa)+$')
done = []


def matches():
    PATTERN.match('a' * 30 + '!')


def keeps():
    with lock:
        has.set()
        while not done:
            os.stat('/')


def wants():
    tids.append(os.readlink('/proc/thread-self').rpartition('/')[2])
    with lock:
        pass


def asleep():
    with open('/proc/self/task/%s/stat' % tids[0]) as stat:
        return stat.read().rpartition(')')[2].split()[0] == 'S'


if __name__ == '__main__':
    lock, has, tids, times = threading.Lock(), threading.Event(), [], 0
    threads = [threading.Thread(target=f, name=f.__name__) for f in (keeps, wants)]
    threads[0].start()
    has.wait()
    threads[1].start()
    while times < 5:
        time.sleep(0.0005)
        times = times + 1 if tids and asleep() else 0
    matches()
    done.append(True)
    for thread in threads:
        thread.join()
END
cat >storm.py <<'END'
import logging
import threading
import time


class Slow(logging.Handler):
    def emit(self, record):
        time.sleep(0.005)


def work():
    for i in range(5):
        log.info('%d', i)


if __name__ == '__main__':
    log = logging.getLogger('storm')
    log.setLevel(logging.INFO)
    log.addHandler(Slow())
    threads = [threading.Thread(target=work, name='worker-%d' % i) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
END

cat >pipe.py <<'END'
import queue
import threading
import time


def store(item):
    time.sleep(0.002)


def produce():
    for i in range(100):
        raw.put(i)
    raw.put(None)


def convert():
    for item in iter(raw.get, None):
        parsed.put(str(item))
    parsed.put(None)


def consume():
    for item in iter(parsed.get, None):
        store(item)


if __name__ == '__main__':
    raw = queue.Queue(4)
    parsed = queue.Queue(4)
    threads = [threading.Thread(target=f, name=f.__name__) for f in (produce, convert, consume)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
END
cat >busy.py <<'END'
import logging
import threading

logging.basicConfig(filename='busy.log', level=logging.INFO, format='%(asctime)s %(threadName)s %(message)s')
log = logging.getLogger('busy')


def work():
    for i in range(2000):
        log.info('%d', i)


if __name__ == '__main__':
    threads = [threading.Thread(target=work, name='worker-%d' % i) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
END
cat >dead.py <<'END'
import os
import signal
import threading
import time

a, b = threading.Lock(), threading.Lock()
have, have_both = threading.Barrier(2), []


def first():
    time.sleep(0.1)
    with a:
        have.wait()
        have_both.append(a)
        with b:
            pass


def second():
    time.sleep(0.1)
    with b:
        have.wait()
        have_both.append(b)
        with a:
            pass


def asleep(tid):
    with open('/proc/self/task/%s/stat' % tid) as stat:
        return stat.read().rpartition(')')[2].split()[0] == 'S'


if __name__ == '__main__':
    # A shell starts background commands with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    times = 0
    for f in (first, second):
        threading.Thread(target=f, name=f.__name__, daemon=True).start()
    while times < 20:
        time.sleep(0.001)
        tids = [tid for tid in os.listdir('/proc/self/task') if int(tid) != os.getpid()]
        times = times + 1 if len(have_both) > 1 and all(map(asleep, tids)) else 0
    with open('ready', 'w') as ready:
        ready.write('ready\n')
    while True:
        time.sleep(1)
END
sed 's/threading\.Lock/threading.RLock/g' dead.py >rdead.py
cat >crowd.py <<'END'
import os
import threading


class Cache:
    def __init__(self):
        self._lock = threading.RLock()

    def get(self):
        with self._lock:
            for _ in range(10):
                os.stat('/')


def work():
    start.wait()
    for _ in range(200):
        cache.get()


if __name__ == '__main__':
    cache, start = Cache(), threading.Barrier(8)
    threads = [threading.Thread(target=work, name='worker-%d' % i) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
END
apart() {
	exec setsid "$@" >out 2>err
}

# longest FILE LINE KEY: what was done during most of the waiting in that line, and its function or line.
longest() {
	json "$1" "max(([c['wait_ns'], c['meanwhile'], c['through'], c['at']['$3']] for c in d['lock_chains']
		if c['line'] == $2), default=None)[1:]"
}

# path_adds_up FILE NAME: the critical path lasts as long as the program.
path_adds_up() {
	is "$(json "$1" 'sum(c["ns"] for c in d["critical_path"]) -
		max(t["total_ns"] for t in d["threads"] if t["main"])')" 0 "$2: the critical path adds up"
}
# is_asleep COMMAND…
is_asleep() {
	ok "$version: a lock held across a sleep" "$@" --python "$python" --python-trace native \
		--json asleep.json -o asleep.html asleep.py
	agrees err asleep.json asleep.html "$version, a lock held across a sleep"
	is "$(json asleep.json '[d["verdict"]["kind"]]')" "['lock-bound']" \
		"$version: locks limit the program, not the GIL"
	like "$(json asleep.json 'd["verdict"]["headline"]')" \
		'^A lock limits this program, not the GIL: the 5 threads worker-\* spent '\
'[0-9.]+ % of their time waiting, '\
'[0-9.]+ % of it for `lock` \(asleep\.py:12\) in work \(asleep\.py:7\), '\
'while the thread that had it (slept|was without the GIL) in work \(asleep\.py:8\)\.$' \
		"$version: the first line says it all"
}
first=$(sed -n 1p pythons)
while read -r version python <&3; do
	if [ "$version $python" = "$first" ] && want uprobes 'a lock held across a sleep, by uprobes'; then
		is_asleep "$GILTRACER" --probes uprobes
	fi
	is_asleep by_library
	is "$(json asleep.json '[d["lock_chains"][0]["lock"][key]
		for key in ("kind", "name", "line", "made_in_line")]')" \
		"['Lock', 'lock', 7, 12]" "$version: what the lock is called, and where it was made"
	is "$(longest asleep.json 7 line)" "['without the GIL', False, 8]" \
		"$version: the line of the lock, and that of the sleep"
	is "$(json asleep.json 'sum(c["wait_ns"] for c in d["lock_chains"]) ==
		sum(t["lock_wait_ns"] for t in d["threads"])')" True "$version: chains add up to the waits"
	path_adds_up asleep.json "$version, a lock held across a sleep"
	ok "$version: a lock held during a wait for the GIL" by_library -q --python "$python" \
		--python-trace none --json through.json -o through.html through.py
	is "$(longest through.json 23 line)" "['holds the GIL', True, 11]" \
		"$version: the line that kept the GIL from the thread that had the lock"
	ok "$version: threads that write to a slow log" by_library -q --python "$python" \
		--python-trace none --json storm.json -o storm.html storm.py
	is "$(json storm.json '[d["verdict"]["kind"]]')" "['lock-bound']" "$version: locks limit the program"
	like "$(json storm.json 'd["verdict"]["headline"]')" \
		'the 8 threads worker-\* spent [0-9.]+ % of their time waiting, '\
'[0-9.]+ % of it for the lock of a logging handler in work \(storm\.py:13\), '\
'while the thread that had it (slept|was without the GIL) in (Slow\.)?emit \(storm\.py:8\)\.$' \
		"$version: the verdict names the lock of the handler, who waits for it, and what its holder did"
	path_adds_up storm.json "$version, a slow log"
	# Several causes share the waiting; the first line still names the lock, unless the machine makes the GIL,
	# or CPUs, the larger problem.
	ok "$version: threads that write much to a log" by_library -q --python "$python" --python-trace none \
		--json busy.json -o busy.html busy.py
	like "$(json busy.json '[[d["verdict"]["headline"]], [f["title"] for f in d["findings"]]][
		d["verdict"]["kind"] != "lock-bound"]')" \
		'the lock of a logging handler in work \(busy\.py:10\)' "$version: the report names the lock of the handler"
	path_adds_up busy.json "$version, a log"
	ok "$version: a pipeline with a slow stage" by_library -q --python "$python" \
		--python-trace none --json pipe.json -o pipe.html pipe.py
	like "$(json pipe.json 'd["verdict"]["headline"]')" \
		'^Thread consume limits this program, not the GIL: for [0-9.]+ % of the run, '\
'it (slept|was without the GIL) in store \(pipe\.py:7\), '\
'and convert waited [0-9.]+ % of its time for room in `parsed` \(pipe\.py:29\)\.$' \
		"$version: the verdict names the stage, and the queue before it"
	is "$(json pipe.json 'd["verdict"]["advice"]')" None "$version: where it sleeps is known"
	path_adds_up pipe.json "$version, a pipeline"
	ok "$version: threads that queue for a lock" by_library -q --python "$python" \
		--python-trace none --json crowd.json -o crowd.html crowd.py
	is "$(json crowd.json '[(c["lock"]["kind"], c["lock"]["name"], c["lock"]["of"], c["lock"]["made_in_line"])
		for c in d["lock_chains"] if c["line"] == 10][0]')" "('RLock', 'self._lock', 'Cache', 7)" \
		"$version: the attribute of a class that is the lock, and where it is made"
	# At least 100 releases while threads wait, and at most a millisecond from one to the next, as far as the
	# machine permits; a PyMutex wakes a thread less often.
	is "$(json crowd.json '(lambda l: [l["most_waiters"] >= 4,
		("threads wait at a time for `self._lock` of Cache (crowd.py:7)" in
			str([f["text"] for f in d["findings"]])) ==
		(l["releases"] >= 100 and l["wanted_ns"] // l["releases"] <= 1000000)])(
			max(d["locks"], key=lambda l: l["wait_ns"]))')" \
		'[True, True]' "$version: how many threads queue, and how often it is released"
	for program in dead rdead; do
		begun apart "$GILTRACER" -q --probes preload --python "$python" --python-trace none --json dead.json \
			-o dead.html $program.py
		kill -INT -$pid
		wait $pid || :
		over
		case $program:$version in
		# Which thread has a PyMutex is recorded if it is an RLock.
		dead:3.13*) like "$(json dead.json '[len(l["threads"]) for l in d["deadlocks"]]')" '^\[2?\]$' \
			"$version: a deadlock, if locks are semaphores" ;;
		dead:3.1[4-9]*) is "$(json dead.json 'd["deadlocks"]')" '[]' "$version: no deadlock is known" ;;
		*) like "$(json dead.json 'd["verdict"]["headline"]')" \
			'^Deadlock: 2 threads waited for each other, from [0-9.]+ s on until the end, '\
'.*first waited for `b` \(r?dead\.py:6\) in first \(r?dead\.py:15\), which second had\.' \
			"$version, $program: the report after Ctrl-C tells of the deadlock"
		like "$(json dead.json '[f["advice"] for f in d["findings"] if f["kind"] == "lock"]')" \
			'Take these locks in the same order everywhere' "$version, $program: and how to prevent it" ;;
		esac
	done
done 3<pythons

# A thread that another thread than the main one creates: the critical path is theirs, one after the other. If
# the first one has no CPU after that, the program ends with it.
cat >relay.py <<'END'
import threading
import time


def first():
    time.sleep(0.3)
    threading.Thread(target=second).start()


def second():
    time.sleep(0.3)
    done.set()


if __name__ == '__main__':
    done = threading.Event()
    threading.Thread(target=first).start()
    done.wait()
END
while read -r version python <&3; do
	ok "$version: threads one after the other" by_library -q --python "$python" --python-trace none \
		--json relay.json -o relay.html relay.py
	is "$(json relay.json 'sorted((c["line"], c["reason"]) for c in d["critical_path"] if c["ns"] >= 1.5e8)')" \
		"[(6, 'without the GIL'), (11, 'without the GIL')]" \
		"$version: the path goes on with the thread that created another one"
done 3<pythons

ok 'a program that waits for a lock' by_library record -q -o asleep asleep.py
exits 3 'a limit of the wait for locks fails' "$GILTRACER" report -q --json asleep.json -o asleep.html \
	--fail-on 'lock_wait>10%' asleep
like "$(cat err)" "^giltracer: error: --fail-on 'lock_wait>10%': lock_wait is [0-9.]+ %$" 'with the value'
ok 'two recordings are compared' "$GILTRACER" diff through.json asleep.json
like "$(cat out)" '^  lock_wait % ' 'also in how long their threads waited for locks'

leaves_nothing
done_testing
