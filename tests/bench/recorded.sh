# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# For benchmarks of a recording of a million GIL events: a scratch folder, $scratch, and make_session.
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"
: "${GILTRACER_BENCH_SESSION:=}"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/giltracer-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' HUP INT TERM

# make_session: the session folder GILTRACER_BENCH_SESSION, or a new one, in $session: 70000 turns of
# 4 threads, each four events.
make_session() {
	session=$GILTRACER_BENCH_SESSION
	[ -z "$session" ] || return 0
	session=$scratch/session
	"$GILTRACER" record -q --probes uprobes --python-trace none -o "$session" \
		"$top_srcdir/share/examples/churn.py" 4 70000 >/dev/null 2>"$scratch/err" && return 0
	echo "# ${0##*/}: cannot record: $(head -n 1 "$scratch/err")"
	return 1
}
