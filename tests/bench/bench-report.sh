#!/bin/sh
# SPDX-License-Identifier: MIT
# A report of a recording of a million GIL events, HTML written: a row on how many times faster that
# is than `perf script --ns --no-inline` printing the recording to /dev/null. Then "NAME VALUE UNIT"
# lines of synthetic reports: size and time of the page, and the memory it takes.
# GILTRACER_BENCH_SESSION names a session folder to use instead of recording one.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
. "$top_srcdir/tests/bench/recorded.sh"

if command -v perf >/dev/null && make_session; then
	python3 "$top_srcdir/tests/bench/compare.py" --cpu 'report / perf script' 12 7 \
		"perf script --ns --no-inline -i '$session/gil.perf.data' >/dev/null" \
		"'$GILTRACER' report -q -o '$scratch/report.html' '$session'"
	[ -z "${GILTRACER_BENCH_RELEASE:-}" ] ||
		python3 "$top_srcdir/tests/bench/compare.py" --cpu 'report / last release' 0.95 7 \
			"'$GILTRACER_BENCH_RELEASE' report -q -o '$scratch/report.html' '$session'" \
			"'$GILTRACER' report -q -o '$scratch/report.html' '$session'"
	"$GILTRACER" report -q -o "$scratch/report.html" --json "$scratch/report.json" "$session"
	python3 -c 'import json, sys
print("  report_events %d events" % json.load(open(sys.argv[1]))["passes"][0]["events"])' \
		"$scratch/report.json"
	echo "  report_recording $(wc -c <"$session/gil.perf.data") bytes"
	echo "  report_page $(wc -c <"$scratch/report.html") bytes"
fi

if [ ! -x "$top_builddir/tests/bench/synth" ]; then
	echo "# report: no tests/bench/synth; make check TESTS= builds it"
	exit 0
fi
GILTRACER_DATADIR=$top_builddir/share # synth is not beside the program
export GILTRACER_DATADIR
for events in 10000 1000000 10000000; do
	python3 - "$top_builddir/tests/bench/synth" $events "$scratch/synth.html" <<-'EOS'
		import os, subprocess, sys, time
		began = time.monotonic()
		process = subprocess.Popen([sys.argv[1], "-1"] + sys.argv[2:])
		_, status, usage = os.wait4(process.pid, 0)
		process.returncode = os.waitstatus_to_exitcode(status)
		if process.returncode:
		    sys.exit("synth: exit status %d" % process.returncode)
		name = "  synth_" + sys.argv[2]
		print(name + "_page %d bytes" % os.path.getsize(sys.argv[3]))
		print(name + "_model_and_page %.3f s" % (time.monotonic() - began))
		print(name + "_peak_rss %.0f MB" % (usage.ru_maxrss / 1024))
	EOS
done
