#!/bin/sh
# SPDX-License-Identifier: MIT
# --flight keeps the last part of a recording, exactly, in files that do not grow, and what is left after a
# kill -9 of everything is reported.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

python=$(cpython 3.11) || python=$(cpython 3.13)

# Two threads compete for the GIL in early() for a second, and then in late(), which is alike: for a second, or for
# ever if it is to tell a FIFO that it is ready.
cat >phases.py <<'END'
import sys, threading, time

def early(until):
    while time.monotonic() < until:
        sum(range(2000))

def late(until):
    while time.monotonic() < until:
        sum(range(2000))

def work(start, ready):
    early(start + 1)
    late(start + 2)
    barrier.wait()
    if ready:
        late(float('inf'))

ready = sys.argv[1:]
barrier = threading.Barrier(3)
start = time.monotonic()
for i in range(2):
    threading.Thread(target=work, args=(start, ready), name=f'work-{i}', daemon=True).start()
barrier.wait()
if ready[:1] == ['crash']:
    import ctypes
    ctypes.string_at(0)
elif ready[:1] == ['exhaust']:
    with open(ready[1], 'w') as procs:  # of a control group: this process moves to it
        procs.write('0')
    memory = []
    while True:
        memory.append(b'x' * 2**20)
elif ready:
    with open(ready[0], 'w') as fifo:
        print('ready', file=fifo)
    barrier.wait()
END

# is_last DOCUMENT: 500 ms at the end of that program
is_last() {
	is "$(json "$1" '0.4e9 < d["passes"][0]["wall_ns"] <= 0.5e9')" True '  it is of the last part'
	is "$(json "$1" 'sorted({f["function"] for f in d["functions"]} & {"early", "late"})')" "['late']" \
		'  with nothing of what ran before'
	is "$(json "$1" 'sum(t["unknown_ns"] for t in d["threads"])')" 0 \
		'  the state of each thread is known from its beginning on'
	# One of the two waits at any time; how they share the GIL is the scheduler's.
	is "$(json "$1" '(lambda waits: (len(waits), all(waits), sum(waits) > 4e8))(
		[t["wait_ns"] for t in d["threads"] if t["name"].startswith("work-")])')" '(2, True, True)' '  and who waited'
}
ok 'the last part of a program is reported' "$GILTRACER" --flight 500ms --python "$python" --json got.json \
	-o got.html phases.py
is_last got.json
is "$(json got.json 'sorted(t["name"] for t in d["threads"])')" "['MainThread', 'work-0', 'work-1']" \
	'  threads that began before have their names'
is "$(json got.json '[(c["code"], c["text"]) for c in d["caveats"] if c["code"] != "stolen"]')" \
	"[('flight', 'the report is of the last 0.5 s (--flight)')]" '  it says which part that is'

ok 'a program that is shorter is reported from its beginning on' "$GILTRACER" --flight 1m --python "$python" \
	--json got.json -o got.html phases.py
is "$(json got.json 'sorted({f["function"] for f in d["functions"]} & {"early", "late"})')" \
	"['early', 'late']" '  with everything'
is "$(json got.json 'd["caveats"]')" '[]' '  and without a remark'

# Nobody can write anything at the end.
mkfifo ready
"$GILTRACER" --flight 500ms --python "$python" --keep killed -o got.html phases.py ready &
giltracer=$!
is "$(timeout 60 head -n 1 ready)" ready 'a program that does not end'
program=$(sed 's/ .*//;q' killed/gil.children)
for pid in $giltracer $program; do
	ok 'snapshot writes a report of it' "$GILTRACER" snapshot -p "$pid" --json got.json -o got.html --keep shot
	is_last got.json
	is "$(json got.json 'sorted(t["name"] for t in d["threads"])')" "['MainThread', 'work-0', 'work-1']" \
		'  with the names of threads'
done
ok 'its session can be kept' "$GILTRACER" report shot --json again.json -o got.html
ok '  and reported again' cmp got.json again.json
kill -USR1 $giltracer
for _ in $(seq 600); do
	reported=$(find giltracer-reports -name 'giltracer-*.html' 2>/dev/null)
	[ -z "$reported" ] || break
	"$GILTRACER" snapshot -q -p $giltracer -o got.html
done
ok 'SIGUSR1 makes a report, too' grep -q 'late (phases.py' "$reported"
# shellcheck disable=SC2046 # several numbers
kill -KILL $giltracer $(cat /proc/$giltracer/task/$giltracer/children)
wait $giltracer 2>/dev/null || :
ok 'after a kill -9 of the program and giltracer, the rest is reported' "$GILTRACER" report killed \
	--json got.json -o got.html
is_last got.json
is "$(json got.json 'sorted(t["name"] for t in d["threads"])')" "['MainThread', 'work-0', 'work-1']" \
	'  with the names of threads'
exits 125 'snapshot of a process without a flight recorder' "$GILTRACER" snapshot -p $$
like "$(cat err)" 'no flight recorder is on in it' '  is refused'

# The program ends by a signal of the kernel's.
# died: its report is complete
died() {
	is "$(json got.json 'sorted(t["name"] for t in d["threads"])')" "['MainThread', 'work-0', 'work-1']" \
		'  with the names of threads'
	is_last got.json
}
exits 139 'a program that crashes' "$GILTRACER" --flight 500ms --python "$python" --json got.json -o got.html \
	phases.py crash
died
group=
limit=
for folder in memory unified .; do
	group=/sys/fs/cgroup/$folder/giltracer-test.$$
	mkdir "$group" 2>/dev/null || continue
	at_exit "rmdir $group"
	for limit in memory.limit_in_bytes memory.max; do
		[ ! -e "$group/$limit" ] || echo 128M >"$group/$limit" || continue
		[ ! -e "$group/$limit" ] || break 2
	done
done 2>/dev/null
if [ -e "$group/$limit" ]; then
	exits 137 'a program that has no more memory' "$GILTRACER" --flight 500ms --python "$python" --json got.json \
		-o got.html phases.py exhaust "$group/cgroup.procs"
	died
else
	skip 'no memory controller' 'a program that has no more memory' # a kill -9, as above
fi

cat >own.py <<'END'
import os, sys, threading
import giltracer

def own_work():
    for _ in range(100):
        sum(range(200000))

if len(sys.argv) > 1:
    try:
        giltracer.snapshot('own.html')
    except giltracer.Error as error:
        print(error)
else:
    threads = [threading.Thread(target=own_work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(giltracer.snapshot('own.html'))
END
PYTHONPATH=$top_srcdir/share/package
export GILTRACER PYTHONPATH
ok 'a program asks for a report of itself' "$GILTRACER" --flight 1m --python "$python" -o got.html own.py
like "$(cat out)" 'own_work \(own.py' '  and gets it'
ok '  as a page' [ -s own.html ]
ok 'a program without a flight recorder asks' "$python" own.py none
like "$(cat out)" 'no flight recorder is on' '  and gets the reason why there is none'
unset PYTHONPATH

# A turn of the GIL is some microseconds here: 24 MB in all.
cat >turns.py <<'END'
import os, threading

def turn():
    r, w = os.pipe()
    for _ in range(750000):
        os.write(w, b'x')
        os.read(r, 1)

thread = threading.Thread(target=turn, name='turns')
thread.start()
thread.join()
END
ok 'a program with very many events' "$GILTRACER" record --flight 5m --max-size 4 --python "$python" -o many \
	turns.py
is "$(find many/gil.preload -name '*.gil' -printf '%k\n' | awk '{ n += $1 } END { print n <= 5 * 1024 }')" 1 \
	'  takes the room that was given'
is "$(find many/gil.preload -name '*.gil' -size +15M | wc -l)" 1 '  although there were more events'
ok '  is reported' "$GILTRACER" report many --json got.json -o got.html
is "$(json got.json '600000 < d["passes"][0]["events"] < 1200000')" True '  with the events for which there was room'
like "$(json got.json '[c["text"] for c in d["caveats"]]')" 'no room for more \(--max-size\)' '  it says why no more'
is "$(json got.json 'sum(t["unknown_ns"] for t in d["threads"])')" 0 '  nothing is unknown'


# Parts of the files are dropped while they are copied.
"$GILTRACER" record -q --flight 200ms --max-size 2 --python "$python" -o busy turns.py &
giltracer=$!
shots=0
bad=
until [ -e busy/sources.json ] || ! kill -0 $giltracer 2>/dev/null; do
	run "$GILTRACER" snapshot -q -p "$giltracer" --json shot.json -o shot.html
	[ "$status" = 0 ] || continue
	shots=$((shots + 1))
	what=$(json shot.json '(sum(t["unknown_ns"] for t in d["threads"]),
		[c["code"] for c in d["caveats"] if c["code"] != "open-holds"])')
	# The first ones may begin with the program, before the recorder has dropped anything.
	case $what in "(0, ['flight'])" | *'[])') ;; *) bad="$bad $what" ;; esac
done
wait $giltracer || fail 'the program ends'
ok 'a program is copied while it records very many events' [ $shots -gt 1 ]
is "$bad" '' '  and each copy is whole'

# More functions than the library can number at a time. It begins to number them again, in a new log.
cat >functions.py <<'END'
import os

zero = os.open('/dev/zero', os.O_RDONLY)

def work(names):
    for name in names:
        space = {'os': os, 'zero': zero}
        exec(compile(f'def {name}():\n    os.read(zero, 1)\n', f'{name}.py', 'exec'), space)
        space[name]()

work(f'early{i}' for i in range(13000))
work(f'late{i}' for i in range(10000))
work(f'last{i}' for i in range(1000))
END
ok 'a program with more functions than there are numbers' "$GILTRACER" record -q --flight 200ms \
	--python "$python" -o functions functions.py
is "$(find functions/gil.preload -name '[0-9]*.old.log' | wc -l)" 1 '  has a second log'
ok '  is reported' "$GILTRACER" report functions --json got.json -o got.html
is "$(json got.json '"last999" in [p["function"] for p in d["critical_path"]]')" True \
	'  with the function that ran last'
is "$(find functions/gil.preload -name '[0-9]*.log' -size +6M | wc -l)" 0 '  its logs do not grow'

# Each child has files, whose room the next ones need.
cat >children.py <<'END'
import os, time

zero = os.open('/dev/zero', os.O_RDONLY)
until = time.monotonic() + 3
forks = 0
while time.monotonic() < until:
    child = os.fork()
    if not child:
        for _ in range(2000):
            os.read(zero, 1)
        os._exit(0)
    os.waitpid(child, 0)
    forks += 1
print(forks, flush=True)
os._exit(0) # at once: what ended some time before the end is removed
END
ok 'a program that starts children all the time' "$GILTRACER" record -q --flight 200ms --max-size 24 \
	--python "$python" -o forks children.py
forks=$(cat out)
logs=$(find forks/gil.preload -name '[0-9]*.log' | wc -l)
is "$((logs > 1 && logs * 2 < forks))" 1 '  has no files of those that ended long ago' ||
	diag "$logs of $forks"
ok '  is reported' "$GILTRACER" report forks --json got.json -o got.html
is "$(json got.json 'd["passes"][0]["wall_ns"] > 0.15e9')" True '  for as long as was asked for'

for wrong in 'abc' '0s' '2h' '31m' ''; do
	exits 125 "--flight '$wrong'" "$GILTRACER" --flight "$wrong" phases.py
	like "$(cat err)" 'expected a time such as' '  is refused'
done
exits 125 '--flight with an option for which everything is kept' "$GILTRACER" --flight 1s --state-detect phases.py
like "$(cat err)" 'option --state-detect: has no meaning with --flight' '  is refused'

leaves_nothing
done_testing
