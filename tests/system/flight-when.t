#!/bin/sh
# SPDX-License-Identifier: MIT
# --flight with --record-when writes a report of the seconds before a long wait or hold, also while that goes
# on, and not too many.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

python=$(cpython 3.11) || python=$(cpython 3.13)

# PyDLL keeps the GIL during the call; another thread waits for it if there is one.
cat >stall.py <<'END'
import ctypes, sys, threading

libc = ctypes.PyDLL(None)
over = threading.Event()

def spin():
    while not over.is_set():
        sum(range(500))

def stall():
    libc.usleep(400000)

threads = [threading.Thread(target=spin, name=name) for name in sys.argv[2:]]
for thread in threads:
    thread.start()
for _ in range(int(sys.argv[1])):
    stall()
over.set()
for thread in threads:
    thread.join()
END

# watched CONDITION ARG…: stall.py; its reports are in reports/, and what giltracer said in err
watched() {
	condition=$1
	shift
	rm -rf reports
	run "$GILTRACER" --flight 10s --record-when "$condition" --reports reports --python "$python" \
		-o got.html stall.py "$@"
	is "$status $(find reports -name '*.html' | wc -l)" "$expected" "$condition: $*"
}

expected='0 1'
watched 'gil_wait>200ms' 1 waiter
like "$(cat err)" 'thread [0-9]* of process [0-9]* waited for the GIL for [3-9][0-9][0-9]\.. ms: report: reports/' \
	'  it says who waited and for how long'
ok '  the report says for what' grep -q 'libc.usleep(400000)' reports/*.html
watched 'gil_kept > 0.2s' 1 waiter
like "$(cat err)" 'thread [0-9]* of process [0-9]* kept the GIL after a request for [2-9][0-9][0-9]' '  it says who did'
watched 'gil_hold>200ms' 1
like "$(cat err)" 'held the GIL for [3-9][0-9][0-9]' '  of a thread for which nobody waits'
watched 'gil_wait>200ms' 3 waiter
is "$(grep -c 'report: reports' err)" 1 '  only one report of several'

expected='0 0'
watched 'gil_wait>200ms' 1
watched 'gil_kept>200ms' 1
watched 'gil_wait>5s' 1 waiter
watched 'gil_hold>5s' 1 waiter

# The GIL is kept until there is a report of that.
cat >endless.py <<'END'
import ctypes, threading

libc = ctypes.PyDLL(None)
over = threading.Event()

def spin():
    while not over.is_set():
        sum(range(500))

thread = threading.Thread(target=spin)
thread.start()
print(libc.system(b'timeout 120 sh -c "until ls reports/*.html; do :; done" >/dev/null 2>&1'))
over.set()
thread.join()
END
rm -rf reports
ok 'a report of what does not end' "$GILTRACER" --flight 10s --record-when 'gil_kept>100ms' --reports reports \
	--python "$python" -o got.html endless.py
is "$(cat out)" 0 '  is written while it goes on'
ok '  and says where' grep -q 'endless.py:12' reports/*.html

# The same in a program that runs already.
if want root 'a program that runs already'; then
	rm -rf reports
	mkfifo ready messages
	cat >running.py <<'END'
import os, sys

with open('ready', 'w') as ready:
    print('ready', file=ready)
while not os.path.exists('go'):
    pass
sys.argv = ['stall.py', '1', 'waiter']
exec(compile(open('stall.py').read(), 'stall.py', 'exec'))
END
	"$python" running.py &
	pid=$!
	timeout 60 head -n 1 ready >/dev/null
	"$GILTRACER" -p $pid --flight 10s --record-when 'gil_wait>200ms' --reports reports -o got.html 2>messages &
	giltracer=$!
	: >said
	timeout 60 sh -c 'while read -r line; do
		echo "$line"
		case $line in *"recording process"*) : >go ;; esac
	done' <messages >said
	status=0
	wait $giltracer || status=$?
	is $status 0 'a program that runs already is recorded' || cat said
	wait $pid
	like "$(cat said)" 'waited for the GIL for [3-9][0-9][0-9]\.. ms: report: reports/' '  and so is its wait'
	ok '  in a report that says for what' grep -q 'libc.usleep(400000)' reports/*.html
fi

# The second for which items of an example's queue wait now and then is told by a report that nobody asked for.
# No wait for the GIL is long meanwhile.
late=$top_srcdir/share/examples/late_queue.py
rm -rf reports
ok 'an event loop that is late' "$GILTRACER" --flight 10s --python-trace native --record-when 'loop_late>500ms' \
	--reports reports --python "$python" -o got.html "$late" 3
like "$(cat err)" "ran one task or callback of its event loop for 1[0-9]{3}[.][0-9] ms: report: reports/" \
	'  is noticed'
is "$(find reports -name '*.html' | wc -l)" 1 '  there is one report of it'
ok '  which names the task that was late, and the function that made it late' \
	grep -q 'consume (late_queue.py:[0-9]*) was ready for .* of that in rebuild_index (late_queue.py' reports/*.html
rm -rf reports
ok 'an event loop that is not late for so long' "$GILTRACER" --flight 10s --python-trace native \
	--record-when 'loop_late>2s' --reports reports --python "$python" -o got.html "$late" 2
is "$(find reports -name '*.html' | wc -l)" 0 '  is not reported'
exits 125 'loop_late without calls' "$GILTRACER" --flight 1s --record-when 'loop_late>1s' stall.py 1
like "$(cat err)" 'loop_late needs the calls of a program .* --python-trace native' '  is refused'

for wrong in gil_wait 'gil_wait>' 'gil_wait>x' 'gil_wait>50% for 10s' 'wait>1s' ''; do
	exits 125 "--record-when '$wrong'" "$GILTRACER" --flight 1s --record-when "$wrong" stall.py 1
	like "$(cat err)" 'option --record-when: .* expected' '  is refused'
done

leaves_nothing
done_testing
