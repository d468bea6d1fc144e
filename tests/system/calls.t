#!/bin/sh
# SPDX-License-Identifier: MIT
# Python calls, recorded by the library: each call and return, in their order, whatever the program does.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

# calls PYTHON PROGRAM [OPTION|ARG…]: what it called, of its own file; its status is in the file status.
calls() {
	calls_python=$1
	calls_program=$2
	shift 2
	rm -rf session
	"$GILTRACER" record -q --probes preload --python-trace native --python "$calls_python" \
		-o session "$calls_program" "$@" >out 2>err
	echo $? >status
	"$GILTRACER" dump --calls session/gil.preload >calls.txt
	python3 "$top_srcdir/tests/system/calls.py" calls.txt "$calls_program"
}

# notes: what the report says of the Python calls.
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
while read -r version python <&3; do
	"$python" expected.py >expected
	calls "$python" shapes.py >got
	is "$(diff expected got)" '' "$version: each call of three threads, in its nesting"
done 3<pythons

# A program that is gone without notice, and its forked child: what was open is shown as open. A thread
# that the child has not is not in it.
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

# Up to 3.11 there is one profile function: the program's own stays. Later, both see everything.
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
aside='Threads that miss Python calls, since the program set a profile function of its own'
while read -r version python <&3; do
	case $version in
	3.[6-9] | 3.1[01]) wanted=old ;;
	*) wanted=new ;;
	esac
	is "$(calls "$python" own.py | diff $wanted -)" '' "$version: the program's own profile functions"
	is "$(cat out)" '[1]' '  are called'
	case $wanted in
	old) like "$(notes)" "$aside .sys.setprofile, cProfile.: 3" '  what they make us miss is said' ;;
	new) is "$(notes)" '[]' '  and nothing is missing' ;;
	esac
done 3<pythons

# Code that is gone leaves its memory to other code: each call has the name of what was called.
cat >reuse.py <<'END'
import sys
if __name__ == '__main__':
    for i in range(500):
        exec('def f%d(): pass\nf%d()' % (i, i), {})
END
while read -r version python <&3; do
	calls "$python" reuse.py >got
	is "$(sed -n 's/.*"f\([0-9]*\) (<string>:1)"/\1/p' calls.txt | awk '$1 == NR - 1 { n++ } END { print n }')" 500 \
		"$version: 500 functions that are gone at once have their names"
done 3<pythons

# Names of any kind.
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

# The last calls are kept, of all threads together; a filter leaves the others out.
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
"$GILTRACER" record -q --probes preload --python "$python" --python-trace-entries 30000 -o session many.py
"$GILTRACER" dump -c session/gil.preload >calls.txt
is "$(wc -l <calls.txt)" 30000 'the last 30,000 calls are kept'
is "$(grep -c '"early (' calls.txt)" 0 '  not the first ones'
is "$(grep '"leaf (' calls.txt | cut -d' ' -f1 | sort | uniq -c | awk '$1 == 10000' | wc -l)" 2 \
	'  all of the threads that came last'
ok '  less is on disk' test "$(du -sk session/gil.preload | cut -f1)" -lt 1600
like "$(notes)" 'The oldest Python calls are missing' '  the report says so'

rm -rf session
"$GILTRACER" record -q --probes preload --python "$python" --trace-only thread,many,__main__ -o session many.py
"$GILTRACER" dump -c session/gil.preload >calls.txt
is "$(grep -vc 'many.py:[0-9]*)"$' calls.txt)" 0 '--trace-only: other modules are left out'
is "$(grep -c '"leaf (' calls.txt)" 80000 '  those of the module are there'

rm -rf session
"$GILTRACER" record -q --probes preload --python "$python" --trace-min-us 1000 -o session many.py
"$GILTRACER" dump -c session/gil.preload >calls.txt
is "$(awk '$3 < 1000000 && !/ open /' calls.txt)" '' '--trace-min-us: shorter calls are left out'
like "$(cat calls.txt)" '"run ' '  longer ones are there'
exits 125 'a filter that VizTracer does not have' "$GILTRACER" record --python-trace none \
	--trace-min-us 5 -o session many.py
like "$(cat err)" '--trace-min-us: needs --python-trace native' '  is refused'

# --max-size, too, ends the recording, not the program, which waits until that is said.
cat >fills.py <<'END'
import sys

def leaf():
    pass

if __name__ == '__main__':
    for _ in range(400000):
        leaf()
    with open(sys.argv[1]) as f:
        f.read()
END
mkfifo fifo said
"$GILTRACER" record --probes preload --python "$python" --max-size 1 -o small fills.py fifo >out 2>said &
recorder=$!
exec 5<said 4>fifo
while read -r line <&5; do
	case $line in *'reached 1 MiB (--max-size)'*) break ;; esac
done
exec 4>&-
like "$line" 'reached 1 MiB' '--max-size ends the recording of calls'
wait $recorder
is "$?" 0 '  but not the program'
exec 5<&-

# --duration ends the recording, in the middle of calls.
cat >long.py <<'END'
import os, sys

def leaf():
    pass

def waits(fifo):
    leaf()
    with open(fifo) as f:
        f.read()
    leaf()
    leaf()

if __name__ == '__main__':
    waits(sys.argv[1])
    print(getattr(sys, 'getprofile')())
END
sed -n '1p;2p' pythons >two
while read -r version python <&3; do
	rm -rf session
	"$GILTRACER" record --duration 1 --probes preload --python "$python" -o session long.py fifo \
		>out 2>said &
	recorder=$!
	exec 5<said 4>fifo
	while read -r line <&5; do
		case $line in *'the recording ended'*) break ;; esac
	done
	exec 4>&- 5<&-
	wait $recorder
	"$GILTRACER" dump --calls session/gil.preload >calls.txt
	is "$(python3 "$top_srcdir/tests/system/calls.py" calls.txt long.py)" 'thread 0
waits open
  leaf' "$version: --duration ends the recording of calls"
	is "$(cat out)" None '  and takes the profile function away'
done 3<two

# Beside uprobes, and where a script starts the interpreter, as pyenv's do.
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
