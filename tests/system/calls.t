#!/bin/sh
# SPDX-License-Identifier: MIT
# The library records each Python call and return, in order, whatever the program does.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

# calls PYTHON PROGRAM [ARG…]: record with the options in $options, and print the calls of functions of its own
# file. Its exit status is in the file status.
options=
calls() {
	calls_python=$1
	calls_program=$2
	shift 2
	rm -rf session
	# shellcheck disable=SC2086 # words
	by_library record -q --python-trace native --python "$calls_python" $options \
		-o session "$calls_program" "$@" >out 2>err
	echo $? >status
	"$GILTRACER" dump --calls session/gil.preload >calls.txt
	python3 "$top_srcdir/tests/system/calls.py" calls.txt "$calls_program"
}

# notes: print the report's notes about the Python calls.
notes() {
	"$GILTRACER" report -q -o report.html --json report.json session >out 2>err
	json report.json '[c["text"] for c in d["caveats"] if c["code"] == "python-trace"]'
}

cat >shapes.py <<'END'
import threading, _thread

def leaf(i):
    return i

def tail(n):
    return tail(n - 1) if n else leaf(n)

def numbers():
    for i in range(2):
        yield leaf(i)

def closed():
    try:
        yield leaf(0)
    finally:
        leaf(1)

def thrown():
    try:
        yield leaf(0)
    except ValueError:
        leaf(1)
        yield leaf(2)

def boom():
    leaf(0)
    raise ValueError

def caught():
    try:
        boom()
    except ValueError:
        leaf(1)

def uncaught():
    boom()

def outer():
    try:
        uncaught()
    except ValueError:
        pass

class Thing:
    def __init__(self):
        leaf(0)
    def __del__(self):
        leaf(1)
    @property
    def value(self):
        return leaf(2)

def delegate():
    yield from numbers()

async def inner():
    return leaf(0)

async def waits():
    return await inner()

def work(done=None):
    tail(3)
    list(numbers())
    generator = closed()
    next(generator)
    generator.close()
    generator = thrown()
    next(generator)
    generator.throw(ValueError())
    list(generator)
    caught()
    outer()
    thing = Thing()
    thing.value
    del thing
    list(delegate())
    sorted([2, 1], key=leaf)
    try:
        waits().send(None)
    except StopIteration:
        pass
    eval('leaf(9)')
    if done:
        done()

if __name__ == '__main__':
    before = threading.Thread(target=work)
    before.start()
    before.join()
    lock = _thread.allocate_lock()
    lock.acquire()
    _thread.start_new_thread(work, (lock.release,))
    lock.acquire()
    work()
END

# The same by a profile function in Python, which the interpreter itself calls.
cat >expected.py <<'END'
import sys, threading
sys.argv[:] = ['shapes.py']
threads = {}

def profile(frame, event, arg):
    if event not in ('call', 'return') or not frame.f_code.co_filename.endswith('shapes.py'):
        return
    calls = threads.setdefault(threading.get_ident(), [0, []])
    if event == 'return':
        calls[0] -= 1
        return
    name = getattr(frame.f_code, 'co_qualname', frame.f_code.co_name)
    if name != '<module>' or frame.f_code.co_firstlineno != 1:
        calls[1].append('  ' * calls[0] + name)
    calls[0] += 1

def work_only(frame, event, arg):
    if frame.f_code.co_name == 'work':
        sys.setprofile(profile)
        profile(frame, event, arg)

source = open('shapes.py').read()
threading.setprofile(work_only)
space = {'__name__': 'shapes'}
exec(compile(source, 'shapes.py', 'exec'), space)
one = threading.Thread(target=space['work'])
one.start()
one.join()
lines = list(threads.values())[0][1]
for number in range(3):
    print('thread', number)
    for line in lines:
        print(line)
END

cpythons >pythons
free_threaded_python | sed 's/^/3.13t /' >>pythons
want free-threaded 'a free-threaded interpreter'
while read -r version python <&3; do
	"$python" expected.py >expected
	calls "$python" shapes.py >got
	is "$(diff expected got)" '' "$version: each call of three threads, in its nesting"
done 3<pythons

# The same under VizTracer, which up to 3.11 does not see the thread that _thread started.
if want viztracer 'the calls that VizTracer sees'; then
	python=$(viztracer_python)
	calls "$python" shapes.py >got
	by_library record -q --python-trace viztracer --python "$python" -o viztracer shapes.py
	python3 "$top_srcdir/tests/system/calls.py" viztracer/gil.viztracer.json shapes.py >expected
	ok 'VizTracer sees calls of two threads' test "$(grep -c ^thread expected)" -ge 2
	is "$(head -n "$(wc -l <expected)" got | diff expected -)" '' '  the same, in the same nesting'
fi

# Calls of functions in C, if requested, are those that a profile function gets, with VizTracer's names.
cat >native.py <<'END'
import collections, os, sys, threading

class Mine(list):
    pass

def leaf(i):
    return len(str(i))

def gen():
    for i in range(2):
        yield abs(i)

def star(*args, **more):
    print(*args, **more)

def raises(function, *args):
    try:
        function(*args)
    except Exception:
        pass

def work():
    some = []
    some.append(1)
    mine = Mine()
    mine.append(2)
    super(Mine, mine).append(3)
    mine.sort(key=leaf)
    queue = collections.deque()
    queue.append(4)
    dict.fromkeys([1])
    str.upper('a')
    ' '.join(str(i) for i in range(2))
    sum(gen())
    list(map(leaf, [1]))
    sorted([2, 1], key=leaf)
    eval('leaf(1)')
    exec('some.append(5)')
    star('a', 'b', sep='')
    min(*[1, 2], key=leaf)
    getattr(some, 'append')(6)
    raises({}.pop, 1)
    raises(some.index, 9)
    raises(len)
    raises(list.append)
    raises(next, iter(()))
    raises(sorted, [2, 1], gen)

def forks():
    pid = os.fork()
    if not pid:
        in_child()
        os._exit(0)
    os.waitpid(pid, 0)

def in_child():
    abs(1)

if __name__ == '__main__':
    work()
    one = threading.Thread(target=work)
    one.start()
    one.join()
    forks()
    ord('a')
END
cat >told.py <<'END'
import sys
lines, depth = [], 0

def profile(frame, event, arg):
    global depth
    if event in ('return', 'c_return', 'c_exception'):
        depth -= 1
        return
    if event == 'call':
        name = getattr(frame.f_code, 'co_qualname', frame.f_code.co_name)
    else:
        of = arg.__module__
        if of is None:
            kind = type(arg.__self__)
            of = kind.__qualname__
            if kind.__module__ not in ('builtins', 'native'):
                of = kind.__module__ + '.' + of
        name = of + '.' + arg.__name__
    lines.append('  ' * depth + name)
    depth += 1

space = {'__name__': 'native'}
exec(compile(open('native.py').read(), 'native.py', 'exec'), space)
sys.setprofile(profile)
space['work']()
sys.setprofile(None)
print('\n'.join(lines[:-1]))
END

# of_work FILE: print the calls of work() in the first thread that ran it.
of_work() {
	awk '/^thread/ { if (seen) exit } /^[^ ]/ { inside = $0 == "work" } inside { seen = 1; print }' "$1"
}

# record_native PYTHON [OPTION…]
record_native() {
	native_python=$1
	shift
	rm -rf session
	by_library record -q --python "$native_python" "$@" -o session native.py >out 2>err
	"$GILTRACER" dump --calls session/gil.preload >calls.txt
	python3 "$top_srcdir/tests/system/calls.py" calls.txt >got
}

while read -r version python <&3; do
	"$python" told.py | sed 1d >expected
	record_native "$python"
	unlike "$(cat calls.txt)" '(C)"' "$version: no call of a function in C that nobody asked for"
	record_native "$python" --trace-c-calls
	is "$(of_work got | diff expected -)" '' '  each one where asked for, in its nesting'
	is "$(grep -c '^ *builtins.abs$' got)" "$(($(grep -c '^ *builtins.abs$' expected) * 2 + 1))" \
		'  in all threads, and in a forked child'
	is "$(grep -c '^builtins.ord$' got)" 1 '  also where the caller was running before'
	is "$(notes)" '[]' '  nothing is missing'
done 3<pythons
"$GILTRACER" export -q --format chrome -o chrome.json session
ok 'other tools have them' grep -q '"list.append (C)"' chrome.json

python=$(sed -n '1s/^[^ ]* //p' pythons)
record_native "$python" --trace-c-calls --trace-only __main__
is "$(of_work got | diff expected -)" '' '--trace-only: those that the module calls are there'
is "$(grep -c '_thread' got)" 0 '  the others are not'

exits 125 'calls of functions in C by nobody' "$GILTRACER" record --python-trace none --trace-c-calls \
	-o session native.py
like "$(cat err)" '--trace-c-calls: needs --python-trace native' '  are refused'

if want viztracer 'the calls of functions in C that VizTracer sees'; then
	python=$(viztracer_python)
	record_native "$python" --trace-c-calls
	rm -rf viztracer
	by_library record -q --python-trace viztracer --python "$python" -o viztracer native.py \
		>out
	python3 "$top_srcdir/tests/system/calls.py" viztracer/gil.viztracer.json >all
	of_work all >expected
	ok 'VizTracer sees functions in C' grep -q 'collections.deque.append' expected
	is "$(of_work got | diff expected -)" '' '  the same, in the same nesting'
fi

# If a program and its forked child end abruptly, open calls are shown as open. A thread that the child
# does not have is not in the child's recording.
cat >ends.py <<'END'
import os, signal, sys, threading

def leaf():
    pass

def last(n):
    if n:
        last(n - 1)
    if sys.argv[1] == 'kill':
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(3)

def waits():
    started.release()
    forever.acquire()

if __name__ == '__main__':
    started, forever = threading.Lock(), threading.Lock()
    started.acquire()
    forever.acquire()
    threading.Thread(target=waits, daemon=True).start()
    started.acquire()
    leaf()
    pid = os.fork()
    if not pid:
        leaf()
        last(1)
    os.waitpid(pid, 0)
    last(0)
END
cat >wanted <<'END'
thread 0
leaf
last open
thread 1
waits open
thread 2
leaf
last open
  last open
END
while read -r version python <&3; do
	for end in kill exit; do
		is "$(calls "$python" ends.py $end | diff wanted -)" '' \
			"$version, $end: calls of the program and its forked child, open ones too"
	done
	is "$(cat status)" 3 '  the exit status is the program'"'"'s'
	is "$(notes)" '[]' '  nothing is missing'
done 3<pythons

# Where the library uses the only profile function that there is, the program's own stays. Elsewhere, both
# see everything; before 3.12, the library also records the calls of the program's profile function.
cat >own.py <<'END'
import cProfile, sys, threading

def leaf():
    pass

def mine(frame, event, arg):
    pass

def sets():
    leaf()
    sys.setprofile(mine)
    leaf()

def restores():
    before = sys.getprofile()
    sys.setprofile(mine)
    leaf()
    sys.setprofile(before)
    leaf()

def profiles():
    leaf()
    profile = cProfile.Profile()
    profile.enable()
    leaf()
    profile.disable()
    leaf()
    print([s.callcount for s in profile.getstats() if getattr(s.code, 'co_name', '') == 'leaf'])

if __name__ == '__main__':
    for function in sets, restores, profiles:
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()
    leaf()
END
cat >old <<'END'
thread 0
leaf
thread 1
sets open
  leaf
thread 2
restores
  leaf
thread 3
profiles open
  leaf
END
cat >new <<'END'
thread 0
leaf
thread 1
sets
  leaf
  leaf
thread 2
restores
  leaf
  leaf
thread 3
profiles
  leaf
  leaf
  leaf
END
aside='Threads with missing Python calls, because the program set its own profile function'
own_calls() {
	calls "$python" own.py | grep -v ' mine$\|^mine$\|<listcomp>$\| (C)\( open\)\?$'
}
while read -r version python <&3; do
	is "$(own_calls | diff new -)" '' "$version: the program's own profile functions"
	is "$(cat out)" '[1]' '  are called'
	is "$(notes)" '[]' '  and nothing is missing'
	case $version in 3.[6-9] | 3.1[01])
		options=--trace-c-calls
		is "$(own_calls | diff old -)" '' "$version: with calls of functions in C"
		options=
		is "$(cat out)" '[1]' '  they are called, too'
		like "$(notes)" "$aside .sys.setprofile, cProfile.: 3" '  what they make us miss is said'
		;;
	esac
done 3<pythons

# Up to 3.11.3, a subscript in a loop calls __getitem__ in a way of its own, whatever else it was used for before.
cat >subscript.py <<'END'
class Early:
    def __getitem__(self, i):
        return i

def use(of, times):
    for i in range(times):
        of[i % 2]

use(Early(), 100)

class Changed(dict):
    pass

if __name__ == '__main__':
    use(Early(), 100)
    use([1, 2], 100)
    use(Early(), 50)
    Early.__getitem__.__defaults__ = ()
    use(Early(), 50)
    Changed.__getitem__ = lambda self, i: i
    use(Changed(), 100)
END
while read -r version python <&3; do
	calls "$python" subscript.py >got
	is "$(grep -c '__getitem__$' got) $(grep -c '<lambda>$' got)" '200 100' "$version: subscripts that call functions"
done 3<pythons

# In 3.11, functions written in Python call each other without C's stack, as deeply as the program permits. An
# evaluator needs that stack, so profile functions record the calls from some depth on, in all threads, also
# the ends of calls that have begun before.
cat >deep.py <<'END'
import sys, threading

def down(n):
    return down(n - 1) + 1 if n else leaf()

def leaf():
    return 0

def numbers():
    yield leaf()
    started.set()
    go.wait()
    yield leaf()

def waits():
    for number in numbers():
        leaf()

def small():
    down(200)

if __name__ == '__main__':
    started, go = threading.Event(), threading.Event()
    thread = threading.Thread(target=waits)
    thread.start()
    started.wait()
    sys.setrecursionlimit(200000)
    print(down(100000))
    go.set()
    thread.join()
    leaf()
    threading.stack_size(65536)
    thread = threading.Thread(target=small)
    thread.start()
    thread.join()
END
cat >expected <<'END'
thread 0
leaf
leaf
thread 1
waits
  numbers
    leaf
  leaf
  numbers
    leaf
  leaf
  numbers
thread 2
small
  leaf
END
every_cpython all
while read -r version python <&3; do
	[ "$version" = 3.11 ] || continue
	rm -rf session
	exits 0 "$version, $python: very deep calls" by_library record -q --python-trace native \
		--python "$python" -o session deep.py
	is "$(cat out)" 100000 '  the program does what it does without us'
	"$GILTRACER" dump --calls session/gil.preload >all.txt
	grep -v '"down (' all.txt >calls.txt
	is "$(python3 "$top_srcdir/tests/system/calls.py" calls.txt deep.py | diff expected -)" '' \
		'  all that begin and end meanwhile are recorded, in their nesting'
	is "$(grep -c '"down (' all.txt)" 100202 '  and they themselves'
	is "$(notes)" '[]' '  nothing is missing'
done 3<all

# From 3.12 on, the events of a function that is left out are turned off: the first instruction of one that is
# recorded is another one.
cat >others.py <<'END'
def call(function, number):
    return function(number)

def count(n):
    yield from range(n)

def fails():
    raise ValueError
END
cat >left_out.py <<'END'
import others

def mine(number):
    return number

def first(function):
    return function.__code__._co_code_adaptive[0]

if __name__ == '__main__':
    for i in range(100):
        mine(i)
        others.call(mine, i)
        list(others.count(3))
        try:
            others.fails()
        except ValueError:
            pass
    print([first(f) == first(mine) for f in (others.call, others.fails)])
END
while read -r version python <&3; do
	case $version in 3.[6-9] | 3.1[01] | 3.13t) continue ;; esac
	rm -rf session
	exits 0 "$version: functions that are left out" by_library record -q --python-trace native \
		--trace-only __main__ --python "$python" -o session left_out.py
	is "$(cat out)" '[False, False]' '  are not instrumented'
	"$GILTRACER" dump --calls session/gil.preload >calls.txt
	is "$(grep -c '"mine (' calls.txt) $(grep -c 'others.py' calls.txt)" '200 0' \
		'  the others are recorded, also those that they call'
done 3<all

# A subscript that calls a function is a call, however often it has been used.
cat >subscripts.py <<'END'
class Squares:
    def __getitem__(self, i):
        return i * i

def sums(n):
    squares = Squares()
    return sum(squares[i] for i in range(n))

if __name__ == '__main__':
    sums(500)
END
while read -r version python <&3; do
	calls "$python" subscripts.py >got
	is "$(grep -c '__getitem__$' got)" 500 "$version: 500 subscripts"
done 3<all

# Tasks of asyncio: the life of each task, its waits, and the functions that created and woke it. An item
# stays in a queue while the loop is busy with another function, however long a thread takes.
cat >tasks.py <<'END'
import asyncio, threading, time

async def leaf(future):
    return await future

async def waits(future):
    return await leaf(future)

async def fails():
    raise ValueError

async def yields():
    for _ in range(3):
        await asyncio.sleep(0)

async def consume(queue):
    return await queue.get()

def put(loop, queue):
    loop.call_soon_threadsafe(queue.put_nowait, 1)

def block(thread):
    began = time.monotonic()
    _ = thread.start(), thread.join()
    end = time.monotonic() + 3 * (time.monotonic() - began) + 0.4
    while time.monotonic() < end:
        list(range(50000))

async def main(loop):
    future, queue = loop.create_future(), asyncio.Queue()
    tasks = []
    for coroutine in waits(future), fails(), yields(), consume(queue):
        tasks.append(loop.create_task(coroutine))
    if hasattr(tasks[3], 'set_name'):
        tasks[3].set_name('</script>consumer-7\udcff\x1b')
    forever = loop.create_task(waits(loop.create_future()))
    await asyncio.gather(tasks[1], tasks[2], return_exceptions=True)
    block(threading.Thread(target=put, args=(loop, queue)))
    await tasks[3]
    future.set_result(None)
    await tasks[0]

if __name__ == '__main__':
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(main(loop))
END
# task_groups: print the report's groups: tasks, done, raised and steps, the places of their waits, and
# the functions that woke and created them.
task_groups() {
	json report.json '"\n".join(sorted("%s: %d %d %d %d, at %s, by %s, of %s" % (
		next(t["function"] for t in d["tasks"]["list"] if t["group"] == i).split()[0],
		g["tasks"], g["done"], g["raised"], g["steps"], *[
			" ".join(sorted(str(row[what]).split()[0] for row in g[key])) or "-" for key, what in
			(("waits", "line"), ("woken_by", "function"), ("created_by", "function"))])
		for i, g in enumerate(d["tasks"]["groups"])))'
}

cat >wanted <<'END'
consume: 1 1 0 2, at 17, by main put, of main
fails: 1 1 1 1, at -, by main, of main
main: 1 1 0 4, at 37 39 41, by consume waits yields, of -
waits: 2 1 0 3, at 4, by main, of main
yields: 1 1 0 4, at 14, by main yields, of main
END
while read -r version python <&3; do
	calls "$python" tasks.py >got
	is "$(notes)" '[]' "$version: tasks of asyncio"
	is "$(task_groups)" "$(cat wanted)" '  how many, their steps, where they wait, who woke them and made them'
	is "$(json report.json 'all(t["running_ns"] + t["waiting_ns"] + t["late_ns"] + t["unknown_ns"] ==
		t["life_ns"] for t in d["tasks"]["list"] + d["tasks"]["groups"])')" True '  the parts of their lives add up'
	is "$(json report.json '[g["longest_late"]["function"].split()[0] for g in d["tasks"]["groups"]
		if g["longest_late"]["ns"] > 4e8]')" "['block']" '  one was late, because of a function'
	case $version in
	3.[67]) name='consume .tasks.py:16.' ;;
	*) name='</script>consumer-7' ;;
	esac
	like "$(json report.json '" ".join(f["text"] for f in d["findings"] if f["kind"] == "task")')" \
		"Task $name.* was ready for [0-9.]* m*s before it ran, as inferred .*spent .* in block .tasks.py:22.\\." \
		'  the finding names it, the loop and the function'
done 3<pythons
sed -n '1p;$p' pythons >two
while read -r version python <&3; do
	rm -rf session
	by_library record -q --trace-c-calls --python "$python" -o session tasks.py >out
	notes >/dev/null
	is "$(task_groups)" "$(cat wanted)" "$version: the same, with calls of functions in C"
done 3<two

# The memory of freed code objects is reused for others, but each call has the name of the function that
# was called. A call that the recursion limit prevents is not recorded.
cat >reuse.py <<'END'
import sys

def endless():
    global count
    count += 1
    endless()

if __name__ == '__main__':
    for i in range(500):
        exec('def f%d(): pass\nf%d()' % (i, i), {})
    count = 0
    try:
        endless()
    except RecursionError:
        print(count)
END
while read -r version python <&3; do
	calls "$python" reuse.py >got
	is "$(sed -n 's/.*"f\([0-9]*\) (<string>:1)"/\1/p' calls.txt | awk '$1 == NR - 1 { n++ } END { print n }')" 500 \
		"$version: 500 functions that are gone at once have their names"
	is "$(grep -c '"endless (' calls.txt)" "$(cat out)" '  and so many calls as the limit of recursion permits'
done 3<pythons

# Function names may contain any characters.
cat >hostile.py <<'END'
# -*- coding: utf-8 -*-
import threading

def ünïcode_漢字():
    pass

def renamed(name):
    code = compile('f = lambda: 0\nf()', name, 'exec')
    exec(code, {})

if __name__ == '__main__':
    ünïcode_漢字()
    for name in ('</script><b>', 'new\nline "quote" \\', 'nul\x01\x7f', 'x' * 9000, '\udcff', ''):
        renamed(name)
    thread = threading.Thread(target=ünïcode_漢字, name='\udcff</script>\n')
    thread.start()
    thread.join()
END
while read -r version python <&3; do
	calls "$python" hostile.py >got
	is "$(cat status)" 0 "$version: names of any kind"
	is "$(grep -c '"<lambda> (' calls.txt)" 6 '  of files'
	is "$(grep -c 'code_.*hostile.py:4)"' calls.txt)" 2 '  and functions'
	is "$(notes)" '[]' '  the report takes them'
done 3<pythons

# The last calls of all threads together are kept; a filter leaves calls out.
cat >many.py <<'END'
import sys, threading

def early():
    pass

def leaf():
    pass

def run(n):
    for i in range(n):
        leaf()

if __name__ == '__main__':
    early()
    run(int(sys.argv[1]) if sys.argv[1:] else 60000)
    for i in range(2):
        thread = threading.Thread(target=run, args=(10000,))
        thread.start()
        thread.join()
END
python=$(sed -n '1s/^[^ ]* //p' pythons)
rm -rf session
by_library record -q --python "$python" --python-trace-entries 30000 -o session many.py
"$GILTRACER" dump -c session/gil.preload >calls.txt
is "$(wc -l <calls.txt)" 30000 'the last 30,000 calls are kept'
is "$(grep -c '"early (' calls.txt)" 0 '  not the first ones'
is "$(grep '"leaf (' calls.txt | cut -d' ' -f1 | sort | uniq -c | awk '$1 == 10000' | wc -l)" 2 \
	'  all of the threads that came last'
ok '  less is on disk' test "$(du -sk session/gil.preload | cut -f1)" -lt 1600
like "$(notes)" 'The oldest Python calls are missing' '  the report says so'

rm -rf session
by_library record -q --python "$python" --trace-only thread,many,__main__ -o session many.py
"$GILTRACER" dump -c session/gil.preload >calls.txt
is "$(grep -vc 'many.py:[0-9]*)"$' calls.txt)" 0 '--trace-only: other modules are left out'
is "$(grep -c '"leaf (' calls.txt)" 80000 '  those of the module are there'

rm -rf session
by_library record -q --python "$python" --trace-min-us 1000 -o session many.py
"$GILTRACER" dump -c session/gil.preload >calls.txt
is "$(awk '$3 < 1000000 && !/ open /' calls.txt)" '' '--trace-min-us: shorter calls are left out'
like "$(cat calls.txt)" '"run ' '  longer ones are there'

# The cost of recording for each thread is the number of its calls, including those left out, times the
# cost of one call, which is 1 ns here.
cat >cost.py <<'END'
import glob, struct, sys
for name in glob.glob('session/gil.preload/[0-9]*.log'):
    with open(name, 'ab') as f:
        f.write(struct.pack('=IIQQQ', 32, 13, 0, 0, 1000))
END
python3 cost.py
notes >/dev/null
is "$(json report.json 'sorted(t["calls_cost_ns"] // 10000 for t in d["threads"])')" '[1, 1, 6]' \
	'the report has what recording its calls cost each thread'

exits 125 'a filter that VizTracer does not have' "$GILTRACER" record --python-trace none \
	--trace-min-us 5 -o session many.py
like "$(cat err)" '--trace-min-us: needs --python-trace native' '  is refused'

# --max-size also ends the recording, but not the program, which waits for the message about it. The test
# opens both ends of the FIFO, so that it does not wait if the program never opens it.
cat >fills.py <<'END'
import sys

def leaf():
    pass

if __name__ == '__main__':
    for _ in range(400000):
        leaf()
    with open(sys.argv[1]) as f:
        f.readline()
END
mkfifo fifo said
by_library record --python "$python" --max-size 1 -o small fills.py fifo >out 2>said &
recorder=$!
exec 5<said 4<>fifo
while read -r line <&5; do
	case $line in *'reached 1 MiB (--max-size)'*) break ;; esac
done
echo >&4
like "$line" 'reached 1 MiB' '--max-size ends the recording of calls'
wait $recorder
is "$?" 0 '  but not the program'
exec 4>&- 5<&-

# --duration ends the recording, in the middle of calls.
cat >long.py <<'END'
import os, sys

def leaf():
    pass

def waits(fifo):
    leaf()
    with open(fifo) as f:
        f.readline()
    leaf()
    leaf()

if __name__ == '__main__':
    waits(sys.argv[1])
    print(getattr(sys, 'getprofile')())
END
sed -n '1p;2p' pythons >two
while read -r version python <&3; do
	rm -rf session
	by_library record --duration 1 --python "$python" -o session long.py fifo \
		>out 2>said &
	recorder=$!
	exec 5<said 4<>fifo
	while read -r line <&5; do
		case $line in *'the recording ended'*) break ;; esac
	done
	echo >&4
	wait $recorder
	exec 4>&- 5<&-
	"$GILTRACER" dump --calls session/gil.preload >calls.txt
	is "$(python3 "$top_srcdir/tests/system/calls.py" calls.txt long.py)" 'thread 0
waits open
  leaf' "$version: --duration ends the recording of calls"
	is "$(cat out)" None '  and takes the profile function away'
done 3<two

# Processes that the program starts afresh record their calls, too, and see nothing of that. Before 3.8,
# they do so from their first thread on.
cat >fresh.py <<'END'
import gc
import multiprocessing
import os
import subprocess
import sys
import threading

CODE = """
import sys
modules = [name for name in ('gc', 'giltracer_calls') if name in sys.modules]
import fresh
fresh.run()
print(modules, sys.gettrace(), 'LD_PRELOAD' in fresh.os.environ)
"""

def leaf():
    gc.collect()

def run():
    thread = threading.Thread(target=leaf)
    thread.start()
    thread.join()

def main():
    for method in 'spawn', 'forkserver':
        process = multiprocessing.get_context(method).Process(target=run)
        process.start()
        process.join()
    subprocess.check_call([sys.executable, '-c', CODE], env=dict(os.environ, PYTHONPATH=os.getcwd()))
    subprocess.check_call([sys.executable, '-c', 'import os, colorsys; os._exit(0)'])

if __name__ == '__main__':
    main()
END
every_cpython all
while read -r version python <&3; do
	calls "$python" fresh.py >/dev/null
	is "$(cat status out)" "0
[] None True" "$version: a program that starts others"
	is "$(sed -n 's,^\([0-9]*\)/.*"leaf (.*fresh.py.*,\1,p' calls.txt | sort -u | wc -l)" 3 \
		'  all of their calls are recorded'
	case $version in
	3.[67]) ;; # the last one has no threads
	*) is "$(notes)" '[]' '  and nothing is missing' ;;
	esac
done 3<all

# Calls are also recorded together with uprobes, and if a script starts the interpreter, as with pyenv.
if want uprobes 'calls beside uprobes'; then
	while read -r version python <&3; do
		printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >wrapper
		chmod +x wrapper
		rm -rf session
		"$GILTRACER" record --probes uprobes --python "$scratch/wrapper" --python-trace native \
			-o session shapes.py >out 2>err
		unlike "$(cat err)" 'recorder of Python calls' "$version: a script starts the interpreter"
		"$GILTRACER" dump --calls session/gil.preload >calls.txt
		like "$(cat calls.txt)" '"boom ' '  and calls are recorded beside uprobes'
	done 3<two
fi

leaves_nothing
done_testing
