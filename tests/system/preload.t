#!/bin/sh
# SPDX-License-Identifier: MIT
# A preloaded library records GIL events for an ordinary user, without perf and without any set-up.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

# bare COMMAND…: undisturbed, with a PATH without perf and without capabilities.
mkdir bare
for program in sh env python3 cat; do
	ln -s "$(command -v "$program")" bare/
done
bare() {
	if [ "$(id -u)" = 0 ]; then
		undisturbed setpriv --inh-caps=-all --bounding-set=-all env PATH="$scratch/bare" "$@"
	else
		undisturbed env PATH="$scratch/bare" "$@"
	fi
}

cat >spin.py <<'END'
import os, sys, threading, time

def spin(seconds):
    end = time.time() + seconds
    while time.time() < end:
        pass

if __name__ == '__main__':
    threads = [threading.Thread(target=spin, args=(0.3,), name='spin-%d' % i) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
END

cpythons >pythons
while read -r version python <&3; do
	# The GIL is free while the one that gets it next has no CPU.
	for _ in 1 2 3; do
		ok "$version: records" bare "$GILTRACER" -q --probes preload --python "$python" \
			--python-trace none --json "$version.json" -o "$version.html" spin.py
		is "$(json "$version.json" '[c for c in d["caveats"] if c["code"] != "stolen"]')" '[]' \
			"$version: nothing is lost or inferred"
		is "$(json "$version.json" 'sorted(t["name"] for t in d["threads"])')" \
			"['MainThread', 'spin-0', 'spin-1']" "$version: the threads have their names"
		idle=$(json "$version.json" '[t for t in workers() if share(t, "hold") + share(t, "wait") <= 50 or
			share(t, "hold") <= 10 or share(t, "unknown") >= 1]')
		[ "$idle" != '[]' ] || break
		retried "$version: those that spin hold the GIL or wait for it" "$idle"
	done
	is "$idle" '[]' "$version: those that spin hold the GIL or wait for it"
done 3<pythons

# A call that keeps the GIL although it was asked to release it is named, with its line; Python code,
# which releases it when asked, is not, however few CPUs there are.
cpythons >pythons
while read -r version python <&3; do
	by_library -q --python "$python" --python-trace none --json hogs.json \
		-o hogs.html "$top_srcdir/tests/system/mixed.py"
	# With few CPUs, starting a thread may also keep the GIL, so threading.py is left out.
	is "$(json hogs.json 'sorted({(h["function"], h["line"]) for h in d["hogs"]
		if not h["file"].endswith("threading.py")})')" \
		"[('hog', 13)]" "$version: the call that kept the GIL has its name and line"
done 3<pythons

# --max-size and --duration end the recording, not the program.
cat >churn.py <<'END'
import os, threading

def churn():
    zero = os.open('/dev/zero', os.O_RDONLY)
    for i in range(200000):
        os.read(zero, 1)

if __name__ == '__main__':
    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print('done')
END
python=$(cpythons | sed -n '1s/^[^ ]* //p')
run "$GILTRACER" --probes preload --python "$python" --python-trace none --max-size 1 \
	--json small.json -o small.html --keep small churn.py
is "$(cat out)" 'done' 'a recording that is large enough: the program ends as ever'
like "$(cat err)" 'reached 1 MiB .--max-size' '  it is said'
is "$(json small.json '[t["unknown_ns"] for t in d["threads"] if t["unknown_ns"] > t["total_ns"] / 10]')" \
	'[]' '  what was recorded until then is known'
ok '  not more is written' test "$(du -sk small/gil.preload | cut -f1)" -lt 1500

run "$GILTRACER" --probes preload --python "$python" --python-trace none \
	--json whole.json -o whole.html churn.py
is "$(json whole.json '[p["lost"] for p in d["passes"]]')" '[0]' \
	'four threads that do nothing but take the GIL: nothing is lost'
is "$(json whole.json 'sum(t["holds"] for t in d["threads"]) >= 800000')" True \
	'  each time that one of them takes it is seen'

# Records that were written before all processes were killed can be reported.
cat >kill.py <<'END'
import os, signal, threading, time

def work():
    end = time.time() + 0.5
    while time.time() < end:
        pass

if __name__ == '__main__':
    threads = [threading.Thread(target=work, name='worker') for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
END
"$GILTRACER" record -q --probes preload --python "$python" --python-trace none -o killed \
	kill.py >out 2>&1
ok 'program and giltracer were killed: there is a report' "$GILTRACER" report -q \
	--json killed.json -o killed.html killed
is "$(json killed.json 'sum(t["hold_ns"] + t["wait_ns"] > 50e6 for t in d["threads"] if not t["main"])')" 2 \
	'  it has what was recorded'

# Children that are forked or started afresh are recorded; programs other than Python leave no records.
cat >children.py <<'END'
import os, subprocess, sys, threading, time

def work():
    end = time.time() + 0.5
    while time.time() < end:
        pass

def two():
    threads = [threading.Thread(target=work, name='worker') for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

if len(sys.argv) > 1:
    two()
elif __name__ == '__main__':
    two()
    subprocess.check_call([sys.executable, __file__, 'again'])
    subprocess.check_call(['true'])
    pid = os.fork()
    if not pid:
        two()
        os._exit(0)
    os.waitpid(pid, 0)
END
for python in $(cpythons | sed -n '1p;$p' | cut -d' ' -f2); do
	ok "$python: a program with children" by_library -q --python "$python" \
		--python-trace none --json family.json -o family.html --keep family children.py
	is "$(json family.json 'len(set(t["pid"] for t in d["threads"]
		if t["hold_ns"] + t["wait_ns"] > 50e6 and not t["main"]))')" 3 \
		'  all three are in the report'
	is "$(find family/gil.preload -name '*.log' | wc -l)" 4 '  and no other process wrote anything'
done

# The end of a child is also known without perf: it does not hold its GIL longer than that. If a child
# outlives the program, its later events are not part of the recording, whenever the report is written.
cat >ends.py <<'END'
import os, sys, time

if __name__ == '__main__':
    for how in range(3):
        pid = os.fork()
        if not pid:
            time.sleep(0)
            if how == 0:
                os._exit(0)
            if how == 1:
                os.kill(os.getpid(), 9)
            sys.exit()
        os.waitpid(pid, 0)
    end = time.time() + 0.2
    while time.time() < end:
        pass
    ready, there = os.pipe()
    if os.fork() == 0:
        os.write(there, b'!')
        open('go').read()
        sum(range(1000000))
        open('gone', 'w').close()
        os._exit(0)
    os.read(ready, 1)
    if sys.argv[1:]:
        os._exit(0)
END
mkfifo go gone
for how in '' at-once; do
	# shellcheck disable=SC2086 # no argument, or one
	ok "a program that leaves a child behind${how:+, which ends at once}" bare "$GILTRACER" -q --probes preload \
		--python "$python" --python-trace none --json ends.json -o ends.html --keep ends ends.py $how
	is "$(json ends.json '[c["count"] for c in d["caveats"] if c["code"] == "left-behind"]')" '[1]' \
		'  is told so'
	is "$(json ends.json '(lambda all: [max(all) - t >= 0.2e9 for t in all].count(True))(
		[t["total_ns"] for t in d["threads"]])')" 4 '  and the other children end when they did'
	echo >go
	cat gone
	ok '  a report of later' "$GILTRACER" report -q --json later.json -o later.html ends
	is "$(json later.json 'd["threads"]')" "$(json ends.json 'd["threads"]')" '  says the same'
	rm -rf ends
done

# The library comes before the libraries that are already preloaded.
if want gcc 'another preloaded library'; then
	echo 'int pthread_setname_np(unsigned long t, const char *n) { return !t || !n; }' >other.c
	gcc -shared -fPIC -o other.so other.c
	ok 'another preloaded library' env LD_PRELOAD="$scratch/other.so" "$GILTRACER" -q \
		--probes preload --python "$python" --python-trace none --json other.json \
		-o other.html spin.py
	is "$(json other.json 'd["gils"][0]["held_ns"] > 100e6')" True '  the GIL is recorded'
fi

# If uprobes are not permitted, preload is the default, and a message gives the reason.
run bare "$GILTRACER" --python "$python" --python-trace none -o auto.html spin.py
is "$status" 0 'without perf and permission, a program is recorded'
like "$(cat err)" 'GIL events by a preloaded library' '  it is said how'
like "$(cat err)" 'perf is not installed' '  and why'
exits 125 '--probes uprobes insists' bare "$GILTRACER" --probes uprobes --python "$python" spin.py

# Events that the library cannot record are reported once, not silently left out.
ok 'states without perf' bare "$GILTRACER" -q --probes preload --state-detect --python "$python" \
	--python-trace none --json states.json -o states.html spin.py
is "$(json states.json '[c["count"] for c in d["caveats"] if c["code"] == "states"]')" '[1]' \
	'  are said to be missing'
is "$(json states.json 'sum(t["hold_ns"] for t in d["threads"]) > 0')" True '  the GIL is recorded'

# The library also sees Python start, but nothing is reported for a program that never runs.
echo 'def f(:' >unloaded.py
exits 1 'a program that Python cannot load' "$GILTRACER" --probes preload --state-detect --python "$python" \
	--python-trace none --json unloaded.json -o unloaded.html unloaded.py
is "$(json unloaded.json 'd["threads"]')" '[]' '  has no threads'
is "$(json unloaded.json '[n["code"] for n in d["caveats"] if n["code"] == "not-loaded"]')" \
	"['not-loaded']" '  and is told why'

# If perf is permitted, the times at which threads ran are recorded, also for an ordinary user.
as_nobody() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	else
		"$@"
	fi
}
if perf record -q --no-bpf-event -o probe.data -e dummy:u --switch-events true 2>/dev/null &&
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
	mkdir states
	chmod 777 states
	for_all_users
	ok 'an ordinary user with perf' as_nobody "$GILTRACER" record -q --probes preload \
		--python /usr/bin/python3 --python-trace none -o states/here spin.py
	ok '  has a report' "$GILTRACER" report -q --json states.json -o states.html states/here
	is "$(json states.json '[t["name"] for t in workers()
		if not t["states"]["running_ns"] > t["total_ns"] / 100 or t["states"]["unknown_ns"]]')" \
		'[]' '  in which thread states are known'
	consistent states.json 'of both'
else
	skip 'perf is not permitted' 'an ordinary user with perf'
fi

# The destructor of a thread's own data may take the GIL after everything else has ended.
cat >late.py <<'END'
import ctypes, threading
libc = ctypes.CDLL(None)
key = ctypes.c_uint()
destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda value: None)
libc.pthread_key_create(ctypes.byref(key), destroy)

def run():
    libc.pthread_setspecific(key, ctypes.c_void_p(1))

if __name__ == '__main__':
    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
END
ok 'threads that take the GIL in a destructor' bare "$GILTRACER" -q --probes preload \
	--python "$python" --python-trace none --json late.json -o late.html late.py
is "$(json late.json 'len(d["threads"]) == len({t["tid"] for t in d["threads"]}) == 4')" True \
	'  have one life each'
leaves_nothing
done_testing
