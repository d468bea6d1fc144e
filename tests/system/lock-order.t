#!/bin/sh
# SPDX-License-Identifier: MIT
# Two locks that two threads take in both orders are found without any wait, where locks are semaphores; locks that are
# taken in one order, and signals of Python's library, are not.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

cat >both.py <<'END'
import threading


class Bank:
    def __init__(self):
        self.accounts, self.log = threading.Lock(), threading.Lock()

    def pay(self):
        with self.accounts:
            with self.log:
                pass

    def audit(self):
        with self.log:
            self.sum_up()

    def sum_up(self):
        with self.accounts:
            pass


def one_after_the_other(*functions):
    for function in functions:
        thread = threading.Thread(target=function, name=function.__name__)
        thread.start()
        thread.join()


if __name__ == '__main__':
    bank = Bank()
    one_after_the_other(bank.pay, bank.audit)
END
cat >again.py <<'END'
import both

if __name__ == '__main__':
    bank = both.Bank()
    bank.pay()
    bank.audit()
    both.one_after_the_other(bank.pay)
END
cat >one.py <<'END'
import asyncio
import concurrent.futures
import logging
import multiprocessing.pool
import queue
import threading

import both


def work(i):
    logging.info('%d', i)
    return i


def consume(items):
    while items.get() is not None:
        items.task_done()


def new_locks(i):
    """The memory of locks is used again."""
    a, b = threading.Lock(), threading.Lock()
    with a if i % 2 else b:
        with b if i % 2 else a:
            pass
    a, b = threading.Lock(), threading.Lock()
    with b if i % 2 else a:
        with a if i % 2 else b:
            pass


def threads(count, function, *args):
    all_threads = [threading.Thread(target=function, args=args) for _ in range(count)]
    for thread in all_threads:
        thread.start()
    return all_threads


if __name__ == '__main__':
    logging.basicConfig(filename='one.log', level=logging.INFO)
    bank = both.Bank()
    both.one_after_the_other(bank.pay, bank.pay, bank.sum_up)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(100)))
        concurrent.futures.wait([pool.submit(work, i) for i in range(50)])
        for future in concurrent.futures.as_completed([pool.submit(new_locks, i) for i in range(50)]):
            future.result()
        loop = asyncio.new_event_loop()
        loop.run_until_complete(loop.run_in_executor(pool, work, 1))
        loop.close()
    with multiprocessing.pool.ThreadPool(4) as pool:
        pool.map(work, range(50))
    items, barrier = queue.Queue(2), threading.Barrier(3)
    consumers = threads(3, consume, items)
    for i in range(100):
        items.put(i)
    items.join()
    for i in range(3):
        items.put(None)
    for thread in consumers + threads(3, lambda: [barrier.wait() for _ in range(20)]):
        thread.join()
END

every_cpython pythons
while read -r version python <&3; do
	ok "$version: two locks in both orders" by_library -q --python "$python" --python-trace none \
		--json both.json -o both.html both.py
	orders=$(json both.json '[[(o["lock"]["name"], o["lock"]["of"], o["lock"]["line"],
		next(t["name"] for t in d["threads"] if t["tid"] == o["tid"])) for o in pair] for pair in d["lock_orders"]]')
	case $version in
	3.1[4-9]*) is "$orders" '[]' "$version: taking a free PyMutex is not recorded" ;;
	*) is "$orders" "[[('self.log', 'Bank', 10, 'pay'), ('self.accounts', 'Bank', 18, 'audit')]]" \
		"$version: both locks, where each was taken, and by which thread"
	like "$(json both.json 'd["verdict"]["context"]')" 'Two locks are taken in both orders; two threads that '\
'do so at the same time block each other for good, unless each has a third lock that keeps them apart: '\
'pay took `self\.log` of Bank \(both\.py:6\) in (Bank\.)?pay \(both\.py:10\), and audit '\
'took `self\.accounts` of Bank \(both\.py:6\) in (Bank\.)?sum_up \(both\.py:18\), each while it had the other lock\.' \
		"$version: and in words"
	like "$(json both.json 'd["verdict"]["advice"]')" 'Take these locks in the same order everywhere' \
		"$version: with the remedy" ;;
	esac
	# That one thread took both orders first hides no other thread.
	ok "$version: both orders by one thread, one of them by another" by_library -q --python "$python" \
		--python-trace none --json again.json -o again.html again.py
	case $version in
	3.1[4-9]*) ;;
	*) is "$(json again.json '[[next(t["name"] for t in d["threads"] if t["tid"] == o["tid"]) for o in pair]
		for pair in d["lock_orders"]]')" "[['MainThread', 'pay']]" "$version: two threads are not the first one" ;;
	esac
	ok "$version: locks in one order" by_library -q --python "$python" --python-trace none \
		--json one.json -o one.html one.py
	is "$(json one.json 'd["lock_orders"]')" '[]' "$version: are no problem, nor are signals"
done 3<pythons

leaves_nothing
done_testing
