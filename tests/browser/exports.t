#!/bin/sh
# SPDX-License-Identifier: MIT
# giltracer export: speedscope itself opens its format and folded stacks, and shows each thread.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need chromium node playwright speedscope

mkdir session
python3 "$top_srcdir/tests/data/mkperf.py" "$top_srcdir/tests/data/hog.perf.txt" session/gil.perf.data
cat >session/session.json <<'END'
{"session": 1, "giltracer": "0", "created": "2026-01-31T12:00:00Z", "command": ["hog.py"], "cwd": "/",
 "host": {"kernel": "6.18.0", "arch": "x86_64", "cpus": 2, "perf": "6.1"},
 "options": {"state_detect": false, "gil_detect": true, "one_run": false, "python_trace": "none"},
 "python": {"executable": "/usr/bin/python3", "version": "3.11.2", "implementation": "CPython",
            "build_id": "ab", "free_threaded": false, "gil_functions": []},
 "passes": [{"name": "gil", "perf_data": "gil.perf.data", "python_trace": null, "exit_status": 0,
             "signal": 0, "wall_ns": 120000000, "start_ns": 1000000000, "stop_ns": 1100000000,
             "pid": 100, "tid": 100, "threads": [{"tid": 101, "name": "the-hog"}]}],
 "notes": []}
END
"$GILTRACER" export -q -f speedscope session -o hog.speedscope.json || exit 99
"$GILTRACER" export -q -f folded session -o hog.folded || exit 99
NODE_PATH=$(playwright_path) CHROMIUM=$(chromium_path) SPEEDSCOPE=$(speedscope_path) \
	node "$top_srcdir/tests/browser/exports.mjs" hog.speedscope.json hog.folded
