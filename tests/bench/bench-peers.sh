#!/bin/sh
# SPDX-License-Identifier: MIT
# Compares other tools for the same job: rows on making a report or trace from one recording of a
# million GIL events, then indented lines on the duration of programs that are recorded. Tools that
# are neither in PATH nor in the folder GILTRACER_BENCH_PEERS are left out:
#
#   perf-viz-merge   a Perfetto trace of the GIL, from perf.data
#   per4m            `perf script --ns --no-inline | per4m perf2trace gil`: JSON; and, with viztracer,
#                    `viztracer --combine` to make a page of that
#   py-spy           `py-spy record --gil`
#   viztracer        `viztracer PROGRAM`, with the python3 in the same folder
#
# GILTRACER_BENCH_SESSION names a session folder to use instead of recording one.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
. "$top_srcdir/tests/bench/recorded.sh"
: "${GILTRACER_BENCH_PEERS:=}"
[ -z "$GILTRACER_BENCH_PEERS" ] || PATH=$PATH:$GILTRACER_BENCH_PEERS
export PATH

have() {
	command -v "$1" >/dev/null && return 0
	echo "# peers: no $1"
	return 1
}

# NAME RUNS COMMAND: compare the report of the session with the command.
compare() {
	python3 "$top_srcdir/tests/bench/compare.py" --cpu "report / $1" 5 "$2" "$3" \
		"'$GILTRACER' report -q -o '$scratch/report.html' '$session'"
}

compare_reports() {
	data=$session/gil.perf.data
	! have perf-viz-merge || compare perf-viz-merge 7 \
		"perf-viz-merge --perf '$data' -o '$scratch/merged' 2>/dev/null"
	have perf && have per4m || return 0
	# It expects other names of probes, and fails on samples of native stacks.
	names='s/giltracer_[0-9a-f]*_[0-9a-fc_]*:/python:/;T;s/_ret:/__return:/;p'
	convert="perf script --ns --no-inline -i '$data' 2>/dev/null | sed -n '$names' |
		per4m perf2trace gil -q -o '$scratch/per4m.json' >/dev/null"
	compare per4m 1 "$convert"
	! have viztracer || compare 'per4m, page by viztracer' 1 "$convert
		viztracer --combine '$scratch/per4m.json' -o '$scratch/per4m.html' >/dev/null"
}

# Both print how long their own work took, in seconds.
write_programs() {
	cat >"$scratch/gil.py" <<-'EOS'
		import os, threading, time
		def turns(fd):
		    for _ in range(20000):
		        os.read(fd, 1)
		if __name__ == "__main__":
		    fd = os.open("/dev/zero", os.O_RDONLY)
		    start = time.perf_counter()
		    threads = [threading.Thread(target=turns, args=(fd,)) for _ in range(4)]
		    [t.start() for t in threads]
		    [t.join() for t in threads]
		    print(time.perf_counter() - start)
	EOS
	cat >"$scratch/cpu.py" <<-'EOS'
		import time
		def fib(n):
		    return n if n < 2 else fib(n - 1) + fib(n - 2)
		if __name__ == "__main__":
		    start = time.perf_counter()
		    fib(30)
		    print(time.perf_counter() - start)
	EOS
}

# NAME PROGRAM COMMAND: the median of the program's own times in five runs, and its ratio to the
# plain run.
overhead() {
	for _ in 1 2 3 4 5; do
		eval "$3" 2>/dev/null | grep -E '^[0-9.e-]+$' || echo 0
	done | sort -g | sed -n 3p >"$scratch/seconds"
	[ "$1" != plain ] || cp "$scratch/seconds" "$scratch/plain"
	awk -v name="$2_$1" -v s="$(cat "$scratch/seconds")" -v plain="$(cat "$scratch/plain")" \
		'BEGIN { printf "  %s_seconds %.4f %.2f\n", name, s, s / plain }'
}

compare_overhead() {
	python=python3
	! have viztracer || [ ! -x "$(dirname "$(command -v viztracer)")/python3" ] ||
		python=$(dirname "$(command -v viztracer)")/python3
	for program in gil cpu; do
		script=$scratch/$program.py
		overhead plain $program "'$python' '$script'"
		overhead giltracer $program "'$GILTRACER' record -q --python '$python' \
			--python-trace none -o '$scratch/recorded' '$script'"
		! command -v py-spy >/dev/null || overhead py-spy $program \
			"py-spy record --gil -o '$scratch/spy.svg' -- '$python' '$script'"
		! command -v viztracer >/dev/null || overhead viztracer $program \
			"viztracer --quiet -o '$scratch/viz.json' '$script'"
	done
}

! make_session || compare_reports
have py-spy || :
write_programs
compare_overhead
