#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer export: the tool of each format can read it, it has the numbers of the JSON document, and
# names may contain quotes, control characters and bytes that are not UTF-8. Needs no privilege.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need python3
reader=$top_srcdir/tests/system/exports.py

# session DIR [CALLS]: make a session from tests/data/hog.perf.txt, with a hostile thread name.
session() {
	mkdir "$1"
	python3 "$top_srcdir/tests/data/mkperf.py" "$top_srcdir/tests/data/hog.perf.txt" \
		"$1/gil.perf.data"
	cat >"$1/session.json" <<-EOS
		{"session": 1, "giltracer": "0", "created": "2026-01-31T12:00:00Z",
		 "command": ["hog.py", "\"'\\u001b[31m\\u202e"], "cwd": "/",
		 "host": {"kernel": "6.18.0", "arch": "x86_64", "cpus": 2, "perf": "6.1"},
		 "options": {"state_detect": false, "gil_detect": true, "one_run": false,
		             "python_trace": "auto"},
		 "python": {"executable": "/usr/bin/python3", "version": "3.11.2",
		            "implementation": "CPython", "build_id": "ab", "free_threaded": false,
		            "gil_functions": []},
		 "passes": [{"name": "gil", "perf_data": "gil.perf.data", "python_trace": ${2:-null},
		             "exit_status": 0, "signal": 0, "wall_ns": 120000000,
		             "start_ns": 1000000000, "stop_ns": 1100000000, "pid": 100, "tid": 100}],
		 "notes": []}
	EOS
}

session plain
session calls '"calls.json"'
python3 - >calls/calls.json <<'END'
import sys
calls = [(101, b"work (/a b/hog.py:3)", 1002.1, 88000), (101, b"\xff\\\"</script>\\u001b;x (\\\\:7)", 1003.5, 40000),
         (102, b"waits", 1002.5, 92000), (102, b"\\u202e=1+1 (c:9)", 1003.0, 40000)]
out = [b'{"ph":"X","pid":100,"tid":%d,"name":"%s","ts":%d,"dur":%d}' % (t, n, ms * 1000, us)
       for t, n, ms, us in calls]
sys.stdout.buffer.write(b'{"traceEvents":[' + b",".join(out) + b"]}")
END

ok 'a report has exports, too' "$GILTRACER" report -q plain -o x.html --json plain.json \
	--export chrome=plain.chrome --export csv=plain.csv
ok 'and with calls' "$GILTRACER" report -q calls -o x.html --json calls.json
for name in plain calls; do
	for format in chrome csv firefox speedscope; do
		ok "$name: $format is written" "$GILTRACER" export -q --format $format $name -o $name.$format
		ok "$name: $format has the document's numbers" \
			python3 "$reader" $format $name.$format $name.json
	done
	if want firefox-profiler "$name: the Firefox profiler"; then
		ok "$name: the Firefox profiler has the document's numbers" \
			env PROFILER_CLI="$(profiler_cli_path)" \
			python3 "$reader" firefox_profiler $name.firefox $name.json
	fi
done
ok 'the same file by report' "$GILTRACER" report -q plain -o x.html --export chrome=again
ok '  ' cmp again plain.chrome
# named TEXT DIR: the session with this name of a thread.
named() {
	session "$2"
	awk -v name="$1" '$2 == "100/102" { sub(/".*" time/, "\"" name "\" time") } { print }' \
		"$top_srcdir/tests/data/hog.perf.txt" >named.txt
	python3 "$top_srcdir/tests/data/mkperf.py" named.txt "$2/gil.perf.data"
}
# Spreadsheets take these for formulas, the full-width ones if they are in Japanese.
for sign in = + - @ ＝ ＋ － ＠; do
	named "${sign}1+1" "sign $sign"
	ok "a name that begins with $sign" "$GILTRACER" export -q -f csv "sign $sign" -o formula.csv
	is "$(grep ^100,102, formula.csv | cut -d, -f3 | sort -u)" "\"'${sign}1+1\"" 'is no formula'
done
ok 'to standard output' "$GILTRACER" export -q -f csv plain
cp out printed
ok '  the same' cmp printed plain.csv

# The protobuf formats, if giltracer was built with protobuf.
if grep -q '^#define HAVE_PROTOBUF_C 1' "$top_builddir/config.h"; then
	if want trace-processor "Perfetto's trace processor"; then
		"$GILTRACER" export -q --format perfetto calls -o calls.perfetto
		ok "Perfetto's trace processor has the document's numbers, calls and arrows" \
			"$tap_venv/bin/python" "$reader" trace_processor calls.perfetto calls.json
	fi
	for name in plain calls; do
		for format in perfetto pprof; do
			ok "$name: $format is written" \
				"$GILTRACER" export -q --format $format $name -o $name.$format
		done
		if want perfetto "$name: Perfetto's messages"; then
			ok "$name: perfetto has the document's numbers" \
				"$tap_venv/bin/python" "$reader" perfetto $name.perfetto $name.json
		fi
		if want go "$name: go tool pprof"; then
			ok "$name: go tool pprof reads it" go tool pprof -raw $name.pprof
			cp out raw
			ok "$name: pprof has the document's numbers" python3 "$reader" pprof raw $name.json
		fi
	done
	if has go; then
		ok 'functions of calls' go tool pprof -sample_index=hold -top calls.pprof
		like "$(cat out)" 'work$' 'are there'
		like "$(cat out)" "$(printf '\357\277\275')\"" 'a hostile one, too'
	fi
else
	exits 125 'without protobuf-c there is no perfetto' "$GILTRACER" export -f perfetto plain
	like "$(cat err)" 'built without protobuf-c' '  which is said'
fi

if traced=$(viztracer_python); then
	mkdir viztracer # it leaves temporary folders
	for name in plain calls; do
		cp $name.chrome $name.chrome.json
		ok "$name: VizTracer loads and combines it" \
			env TMPDIR="$scratch/viztracer" "$traced" -m viztracer --combine $name.chrome.json -o $name.combined.json
		ok "$name: with every event" "$traced" - $name.chrome.json $name.combined.json <<-'END'
			import json, sys
			ours, combined = (json.load(open(f))["traceEvents"] for f in sys.argv[1:])
			assert len(ours) > 20 and len(combined) >= len(ours), (len(ours), len(combined))
		END
	done
else
	skip "needs viztracer: $(how_to_get viztracer)" 'VizTracer loads it'
fi

# Annotations: in this fixture no function is known, so there is only the verdict.
ok 'a notice for GitHub' "$GILTRACER" report -q plain -o x.html --annotate github
like "$(cat out)" '^::notice title=giltracer::The GIL limits this program: ' 'has the verdict'
unlike "$(cat out)" '% ' 'in which percent signs are escaped'

# GitHub's runner executes commands in the names of threads, unless it was told to stop that.
named ::error::x commands
for how in '--annotate github' '--fail-on gil_wait>100%'; do
	# shellcheck disable=SC2086 # words
	ok "$how: a report in a workflow" env GITHUB_ACTIONS=true "$GILTRACER" report commands -o x.html $how
	token=$(sed -n 's/^::stop-commands::\(giltracer-[0-9a-f]\{32\}\)$/\1/p' out)
	like "$(sed -n "/^::stop-commands::$token/,/^::$token::/p" out)" '^ *::error::x' 'executes no command in a name'
	unlike "$(sed "/^::stop-commands::$token/,/^::$token::/d" out)" '^ *::error' 'at no place'
done
like "$(sed "1,/^::$token::/d" out; "$GILTRACER" report commands -o x.html --annotate github |
	sed '1,/^::giltracer-/d')" '^::notice ' 'but its own'
mkdir 'a:b,c%'
cp "$top_srcdir/share/examples/hog.py" 'a:b,c%/hog.py'
ok 'a culprit is recorded' by_library -q --python-trace none --annotate github \
	-o x.html --export perfetto=live.perfetto 'a:b,c%/hog.py'
like "$(cat err)" '^::warning file=a%3Ab%2Cc%25/hog\.py,line=[0-9]+,title=giltracer::[0-9.]+.%25 of all' \
	'and is marked, with an escaped path'

# A recording that cannot be exported is refused with one clear message.
refuses() { # MESSAGE NAME COMMAND...
	refuses_message=$1
	shift
	exits 125 "$@"
	like "$(cat err)" "^giltracer: error: $refuses_message" "$1: says why"
}
refuses "export: option -f: 'x' is not one of chrome, csv" 'an unknown format' \
	"$GILTRACER" export -f x plain
refuses 'export: --format is expected' 'no format' "$GILTRACER" export plain
refuses 'export: a session folder is expected' 'no folder' "$GILTRACER" export -f csv
refuses "export: 'b': only one session" 'two folders' "$GILTRACER" export -f csv a b
refuses 'option --export: csv needs a file: write csv=FILE' 'no file' "$GILTRACER" --export csv x.py
refuses 'report: x: cannot take two documents' 'the same file twice' \
	"$GILTRACER" report plain --export csv=x --export chrome=x
refuses 'export: none: the session has no call stacks' 'nothing of that kind' \
	"$GILTRACER" export -f folded-off-cpu plain -o none
refuses 'export: none: the session has no samples' 'nothing of another kind' \
	"$GILTRACER" export -f folded-samples plain -o none
ok 'and no file' test ! -e none
if [ -w /dev/full ]; then
	refuses 'export: /dev/full: .*No space left' 'a full disk' \
		"$GILTRACER" export -q -f chrome plain -o /dev/full
fi

# limited COMMAND...: run it with a limit of 512 bytes for each file, as if the disk were full.
limited() {
	sh -c 'trap "" XFSZ; ulimit -f 1; exec "$@"' sh "$@"
}
mkdir limited
for format in chrome csv firefox speedscope; do
	exits 125 "$format: a disk that is nearly full" \
		limited "$GILTRACER" export -q -f $format calls -o limited/it
	like "$(cat err)" '^giltracer: error: export: limited/it: cannot write: File too large' \
		"$format: says why"
done
is "$(ls limited)" '' 'and nothing half-written is left'

leaves_nothing
done_testing
