#!/bin/sh
# SPDX-License-Identifier: MIT
# Python calls, recorded by the library: each call and return, in their order, whatever the program does.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

# calls PYTHON [OPTION…] -- PROGRAM…: what it called, of its own files.
calls() {
	calls_python=$1
	shift
	rm -rf session
	"$GILTRACER" record -q --probes preload --python-trace native --python "$calls_python" \
		-o session "$@" >out 2>err
	status=$?
	"$GILTRACER" dump --calls session/gil.preload >calls.txt
	python3 "$top_srcdir/tests/system/calls.py" calls.txt shapes.py
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
while read -r version python <&3; do
	"$python" expected.py >expected
	calls "$python" shapes.py >got
	is "$(diff expected got)" '' "$version: each call of three threads, in its nesting"
done 3<pythons

leaves_nothing
done_testing
