#!/bin/sh
# SPDX-License-Identifier: MIT
# A Python whose GIL the library cannot record: the time of its threads is unknown, and the report gives
# the true reason. The program itself runs as ever.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf

cat >spins.py <<'END'
import os, sys, threading, time

def spin():
    end = time.monotonic() + (1.5 if os.path.exists('long') else 0.3)
    while time.monotonic() < end:
        pass

def spin_by_two():
    threads = [threading.Thread(target=spin, name='w-%d' % i) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print('done')
END

# recorded POINT PROGRAM [ARG...]: the program ends as it would alone; its report is got.json.
recorded() {
	point=$1
	shift
	ok "$point" "$GILTRACER" --probes "$engine" --python "$python" --json got.json -o got.html "$@"
	is "$(sed 1q out)" 'done' '  it ends as ever'
	consistent got.json "$point"
}

# facts EXPRESSION WANT POINT: over the document d.
facts() {
	is "$(json got.json "$1")" "$2" "  $3"
}

# Until a new thread has a CPU, it is known to be without the GIL.
unknown='t["unknown_ns"] > 0.5 * t["total_ns"]'

# ---- children without the library

cat >child.py <<'END'
import os, subprocess, sys

CODE = 'import spins; spins.spin_by_two()'

if __name__ == '__main__':
    here = {'PYTHONPATH': os.path.dirname(os.path.abspath(__file__))}
    subprocess.check_call([sys.executable, '-c', CODE], env=here)
    subprocess.check_call([sys.executable, '-c', CODE], env=dict(os.environ, **here))
    subprocess.check_call([sys.executable, '-c', 'pass'])
END
without_library() {
	recorded "$name: a child with another environment" --python-trace none child.py
	facts "sorted([$unknown for t in d['threads'] if not t['main']])" '[False, False, True, True]' \
		'what its threads did with the GIL is unknown, and that of no other process'
	facts '[c["count"] for c in d["caveats"] if c["code"] == "other-python"]' '[1]' 'one process is not recorded'
	like "$(cat err)" 'processes with a Python whose GIL was not recorded' '  which a note says'
}

# ---- programs that lose the right to write

cat >loses.py <<'END'
import os, sys
import spins

def main():
    how = sys.argv[1].split('-')
    if 'chroot' in how:
        os.makedirs('root', exist_ok=True)
        os.chdir('root')
        os.chroot('.')
    if 'setuid' in how:
        os.setgid(65534)
        os.setuid(65534)
    if 'closes' in how:
        os.closerange(3, 10000)
    spins.spin_by_two()

if __name__ == '__main__':
    main()
END
without_rights() {
	for how in setuid chroot chroot-setuid; do
		recorded "$name, $engine: $how" loses.py $how
		facts '[t["unknown_ns"] > 0.05 * t["total_ns"] for t in d["threads"]]' '[False, False, False]' \
			'all is recorded'
		facts 'sum(t["calls_cost_ns"] > 0 for t in d["threads"])' 3 'calls, too'
		unlike "$(cat err)" 'could not|missing' '  and no note says otherwise'
		facts "$place" "{'spins.py'}" 'functions have files'
		facts '[d["verdict"]["kind"] in ("gil-bound", "cpu-starved")]' '[True]' \
			'the GIL is not acquitted: each thread waits for half of its life'
	done
}
without_descriptor() {
	recorded "$name: setuid, without any descriptor" loses.py setuid-closes
	facts "[$unknown for t in d['threads'] if not t['main']]" '[True, True]' 'the time of its threads is unknown'
	facts '[c["code"] for c in d["caveats"] if "records" in c["code"]]' "['unwritten-records']" 'records are missing'
	like "$(cat err)" "closed the library's file descriptor" '  for the true reason'
	unlike "$(cat err)" 'larger buffers|max-size|disk' '  and for no other one'
}

# ---- programs that giltracer loses the channel to

cat >channel.py <<'END'
import os, sys
import spins

def lose():
    if 'exec' not in sys.argv:
        os.closerange(3, int(sys.argv[2]))
    elif 'again' not in sys.argv:
        os.execv(sys.executable, [sys.executable] + sys.argv + ['again'])

if sys.argv[1] == 'early':
    lose()

def main():
    if sys.argv[1] == 'late':
        lose()
    spins.spin_by_two()

if __name__ == '__main__':
    main()
END
known='[t["holds"] > 0 and t["unknown_ns"] < 0.5 * t["total_ns"] for t in d["threads"] if not t["main"]]'
place='{f["file"].rsplit("/", 1)[-1] for f in d["functions"] if f["function"] == "spin"}'
without_channel() {
	for how in 'early 4096' 'late 4096' 'early 10000' 'late 10000'; do
		# shellcheck disable=SC2086 # words
		recorded "$name, $engine: $how" channel.py $how
		facts "$known" '[True, True]' 'what its threads did is known'
		facts "$place" "{'spins.py'}" 'in a function with a file'
		facts 'sorted(t["name"] for t in d["threads"])' "['MainThread', 'w-0', 'w-1']" 'the threads have names'
		case $how in
		*4096) unlike "$(cat err)" 'warning: the program' '  and no note says otherwise' ;;
		*) like "$(cat err)" "warning: the program closed giltracer's file descriptor" '  and why its end is not known' ;;
		esac
	done
	for how in early late; do
		recorded "$name, $engine: executes itself, $how" channel.py $how exec
		facts "$known" '[True, True]' 'the second one is recorded'
		like "$(cat err)" 'warning: the program executed another one' '  which a note says'
		facts "$place" "{'spins.py'}" 'functions have files'
		facts 'sorted(t["name"] for t in d["threads"])' "['MainThread', 'w-0', 'w-1']" 'the threads have names'
	done
}

# ---- programs that restrict their system calls

cat >filtered.py <<'END'
import ctypes, struct, sys, threading, time

# openat, fallocate, mincore, process_vm_readv, writev, lseek: any of them ends the process.
CALLS = 257, 285, 27, 310, 20, 8

def restrict(how):
    code = [(0x20, 0, 0, 0)]
    for call in CALLS:
        code += [(0x15, 0, 1, call), (0x06, 0, 0, 0x80000000)]
    code.append((0x06, 0, 0, 0x7fff0000))
    filters = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *one) for one in code))
    program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(code), ctypes.addressof(filters)))
    address = ctypes.c_void_p(ctypes.addressof(program))
    libc = ctypes.CDLL(None)
    # glibc loads it when a thread is ended by pthread_exit, as daemon threads are while the interpreter ends.
    ctypes.CDLL('libgcc_s.so.1')
    libc.prctl(38, 1, 0, 0, 0)
    # For all threads by the second way.
    return libc.prctl(22, ctypes.c_ulong(2), address, 0, 0) if how == 'prctl' else libc.syscall(317, 1, 1, address)

def spin(go):
    go.wait()
    end = time.monotonic() + 1.2
    while time.monotonic() < end:
        pass

def main():
    go = threading.Event()
    threads = [threading.Thread(target=spin, args=(go,), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    if restrict(sys.argv[1]):
        print('not restricted')
    go.set()
    spin(go)
    print('done')

if __name__ == '__main__':
    main()
END
restricted() {
	recorded "$name: system calls restricted by $1" filtered.py "$1"
	facts "{$unknown for t in d['threads']}" '{True}' 'the time after that is unknown'
	like "$(cat err)" 'restricted its system calls \(seccomp\)' '  for this reason'
}

cpythons >pythons
engine=preload
newest=$(sed -n '1s/ .*//p' pythons)
case $(uname -m) in
x86_64) ;;
*) restricted() { skip 'the filter is for x86-64' "$name: system calls restricted by $1"; } ;;
esac
while read -r version python; do
	name=$version
	without_library
	without_rights
	without_descriptor
	without_channel
	restricted prctl
	[ "$name" = "$newest" ] && restricted syscall
done <pythons

if want uprobes 'uprobes, without the channel'; then
	engine=uprobes
	read -r name python <pythons
	without_rights
	: >long # names are read from outside now and then
	without_channel
	# Its memory is read from outside while it runs.
	recorded "$name, uprobes: a child with another environment" child.py
	facts "$known" '[True, True, True, True]' 'what its threads did is known'
	facts "$place" "{'spins.py'}" 'in a function with a file'
	facts 'sorted(t["name"] for t in d["threads"] if not t["main"])' "['w-0', 'w-0', 'w-1', 'w-1']" \
		'the threads have names'
fi

leaves_nothing
done_testing
