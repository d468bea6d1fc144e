#!/bin/sh
# SPDX-License-Identifier: MIT
# With --locks all, waits for locks of C code are recorded, with the thread that unlocks them, and these locks
# behave as they did; and it is known which thread has a Lock of any version.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

# Mutexes of glibc: how the kinds of PTHREAD_MUTEX_* behave is printed.
cat >mutexes.py <<'END'
import ctypes
import os
import threading
import time

NORMAL, RECURSIVE, ERRORCHECK = 0, 1, 2
libc = ctypes.CDLL(None)


def mutex_of(kind):
    attributes, mutex = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
    libc.pthread_mutexattr_init(attributes)
    libc.pthread_mutexattr_settype(attributes, kind)
    libc.pthread_mutex_init(mutex, attributes)
    return mutex


def behaves():
    for kind in NORMAL, RECURSIVE, ERRORCHECK:
        mutex = mutex_of(kind)
        results = [libc.pthread_mutex_lock(mutex)]
        if kind != NORMAL:
            results.append(libc.pthread_mutex_lock(mutex))
        thread = threading.Thread(target=lambda: results.append(libc.pthread_mutex_trylock(mutex)))
        thread.start()
        thread.join()
        results += [libc.pthread_mutex_unlock(mutex) for _ in range(2 if kind == RECURSIVE else 1)]
        if kind == ERRORCHECK:
            results.append(libc.pthread_mutex_unlock(mutex))
        print(kind, [os.strerror(result) for result in results])


def tid():
    return int(os.readlink('/proc/thread-self').rpartition('/')[2])


def sleeps(of):
    with open('/proc/self/task/%d/stat' % of) as stat:
        return stat.read().rpartition(')')[2].split()[0] == 'S'


def holds():
    libc.pthread_mutex_lock(mutex)
    has.set()
    times = 0
    while times < 20:
        time.sleep(0.001)
        times = times + 1 if tids and sleeps(tids[0]) else 0
    libc.pthread_mutex_unlock(mutex)


def waits():
    has.wait()
    tids.append(tid())
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_unlock(mutex)


if __name__ == '__main__':
    behaves()
    mutex, has, tids = mutex_of(NORMAL), threading.Event(), []
    threads = [threading.Thread(target=f, name=f.__name__) for f in (holds, waits)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
END
# Locks for readers and writers, and a mutex that a wait for a condition releases: how they behave is printed.
cat >others.py <<'END'
import ctypes
import os
import threading
import time

import mutexes

libc, PAST, CLOCK_MONOTONIC = mutexes.libc, ctypes.create_string_buffer(16), 1


def made(init, size=64):
    lock = ctypes.create_string_buffer(size)
    init(lock, None)
    return lock


def behaves():
    lock, results = made(libc.pthread_rwlock_init), []

    def tries():
        results.append(libc.pthread_rwlock_timedrdlock(lock, PAST))
        results.append(libc.pthread_rwlock_timedwrlock(lock, PAST))
        if hasattr(libc, 'pthread_rwlock_clockrdlock'):
            results.append(libc.pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, PAST))
            results.append(libc.pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, PAST))
    for take in libc.pthread_rwlock_wrlock, libc.pthread_rwlock_rdlock:
        before = len(results)
        results += [take(lock), take(lock)]
        thread = threading.Thread(target=tries)
        thread.start()
        thread.join()
        results += [libc.pthread_rwlock_unlock(lock) for _ in range(results[before:].count(0))]
    wrong = ctypes.create_string_buffer((0).to_bytes(8, 'little') + b'\xff' * 8, 16)
    results += [libc.pthread_rwlock_timedrdlock(lock, wrong), libc.pthread_rwlock_timedwrlock(lock, wrong)]
    if hasattr(libc, 'pthread_rwlock_clockrdlock'):
        results += [libc.pthread_rwlock_clockrdlock(lock, 2, PAST), libc.pthread_rwlock_clockwrlock(lock, 1, wrong)]
    mutex, condition = made(libc.pthread_mutex_init), made(libc.pthread_cond_init)
    libc.pthread_mutex_lock(mutex)
    results.append(libc.pthread_cond_timedwait(condition, mutex, PAST))
    if hasattr(libc, 'pthread_cond_clockwait'):
        results.append(libc.pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, PAST))
    results.append(libc.pthread_mutex_unlock(mutex))
    print([os.strerror(result) for result in results])


def until_asleep(count):
    times = 0
    while times < 20:
        time.sleep(0.001)
        times = times + 1 if len(tids) == count and all(map(mutexes.sleeps, tids)) else 0


def writes():
    libc.pthread_rwlock_wrlock(rwlock)
    has.set()
    until_asleep(2)
    libc.pthread_rwlock_unlock(rwlock)


def reads():
    has.wait()
    tids.append(mutexes.tid())
    libc.pthread_rwlock_rdlock(rwlock)
    libc.pthread_rwlock_unlock(rwlock)


def notices():
    libc.pthread_mutex_lock(mutex)
    has.set()
    until_asleep(2)
    libc.pthread_cond_timedwait(condition, mutex, PAST)
    libc.pthread_mutex_unlock(mutex)


def wants():
    has.wait()
    tids.append(mutexes.tid())
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_unlock(mutex)


if __name__ == '__main__':
    behaves()
    rwlock, mutex = made(libc.pthread_rwlock_init), made(libc.pthread_mutex_init)
    condition = made(libc.pthread_cond_init)
    for holds, waits in (writes, reads), (notices, wants):
        has, tids = threading.Event(), []
        threads = [threading.Thread(target=f, name=f.__name__) for f in (holds, waits, waits)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
END
# Two threads that wait for each other until the end.
cat >dead.py <<'END'
import os
import threading
import time

a, b = threading.Lock(), threading.Lock()
has, tids = {a: threading.Event(), b: threading.Event()}, []


def takes(one, other):
    tids.append(int(os.readlink('/proc/thread-self').rpartition('/')[2]))
    with one:
        has[one].set()
        has[other].wait()
        with other:
            pass


def sleeps(of):
    with open('/proc/self/task/%d/stat' % of) as stat:
        return stat.read().rpartition(')')[2].split()[0] == 'S'


if __name__ == '__main__':
    for name, locks in ('first', (a, b)), ('second', (b, a)):
        threading.Thread(target=takes, args=locks, name=name, daemon=True).start()
    times = 0
    while times < 20:
        time.sleep(0.001)
        ready = len(tids) == 2 and all(event.is_set() for event in has.values())
        times = times + 1 if ready and all(map(sleeps, tids)) else 0
    os._exit(0)
END
# A query keeps the connection from another thread.
cat >query.py <<'END'
import sqlite3
import threading

connection = sqlite3.connect(':memory:', check_same_thread=False)
begun = threading.Event()


def long_query():
    connection.create_function('begins', 0, begun.set)
    connection.execute('''WITH RECURSIVE n(i) AS (SELECT coalesce(begins(), 1) UNION ALL SELECT i + 1 FROM n
                       WHERE i < 2000000) SELECT count(*) FROM n''').fetchone()


def short_query():
    begun.wait()
    connection.execute('SELECT 1').fetchone()


if __name__ == '__main__':
    threads = [threading.Thread(target=f, name=f.__name__) for f in (long_query, short_query)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
END

# waited FILE: the threads that waited, not only for a moment, and who released what they mostly waited for.
waited() {
	json "$1" 'sorted((n[b["waiter_tid"]], n[b["released_by_tid"]])
		for n in [{t["tid"]: t["name"] for t in d["threads"]}]
		for w in [{t["tid"]: t["lock_wait_ns"] for t in d["threads"]}]
		for b in d["lock_blame"] if b["released_by_tid"] and b["wait_ns"] > 0.5 * w[b["waiter_tid"]] and
		b["wait_ns"] > 0.2 * max(w.values()) and n[b["waiter_tid"]] != "MainThread")'
}

every_cpython pythons
while read -r version python <&3; do
	"$python" mutexes.py >plain
	ok "$version: mutexes of C code" by_library -q --python "$python" --python-trace none --locks all \
		--json all.json -o all.html mutexes.py
	cp out recorded
	is "$(cat recorded)" "$(cat plain)" "$version: each kind of mutex behaves as it did"
	is "$(waited all.json)" "[('waits', 'holds')]" "$version: the wait, and the thread that unlocked it"
	is "$(json all.json '[(c["lock"]["function"], c["lock"]["line"], c["at"]["function"])
		for c in d["lock_chains"]][0]')" \
		"('waits', 55, 'holds')" "$version: in which functions"
	ok "$version: the same without this option" by_library -q --python "$python" --python-trace none \
		--json python.json -o python.html mutexes.py
	is "$(waited python.json)" '[]' "$version: records no such wait"
	"$python" others.py >plain
	ok "$version: other locks of C code" by_library -q --python "$python" --python-trace none --locks all \
		--json others.json -o others.html others.py
	cp out recorded
	is "$(cat recorded)" "$(cat plain)" "$version: each function behaves as it did"
	# The second thread of wants waits for both: the one that waits for a condition, and the first.
	is "$(json others.json 'sorted((t["name"], n[b["released_by_tid"]]) for t in d["threads"]
		for n in [{t["tid"]: t["name"] for t in d["threads"]}] for b in d["lock_blame"]
		if b["waiter_tid"] == t["tid"] and n.get(b["released_by_tid"]) in ("writes", "notices")
		and b["wait_ns"] > 10000000)')" \
		"[('reads', 'writes'), ('reads', 'writes'), ('wants', 'notices'), ('wants', 'notices')]" \
		"$version: a writer keeps readers waiting; a wait for a condition releases its mutex"
	ok "$version: a deadlock" by_library -q --python "$python" --python-trace none --locks all \
		--json dead.json -o dead.html dead.py
	is "$(json dead.json '[sorted((t["lock"]["name"], t["lock"]["line"]) for t in l["threads"])
		for l in d["deadlocks"]]')" "[[('other', 14), ('other', 14)]]" \
		"$version: which thread has a lock is known of each kind"
	ok "$version: two threads of a connection to SQLite" by_library -q --python "$python" --python-trace none \
		--locks all --json query.json -o query.html query.py
	is "$(waited query.json)" "[('short_query', 'long_query')]" "$version: one waits for the other"
done 3<pythons

leaves_nothing
done_testing
