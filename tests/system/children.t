#!/bin/sh
# SPDX-License-Identifier: MIT
# Other processes, and threads that exist before tracing begins or after it ends: each thread has the GIL
# of its process, and the numbers of all are consistent.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes gcc strip
. "$top_srcdir/tests/system/prefix.sh"

# traced WHAT OPTION…, or other PYTHON: by $engine; the report's facts in got.json, what the program says in out.
traced() {
	what=$1
	argument=
	case $what in
	other) argument=$2 && shift ;;
	esac
	shift
	ok "$name $what, $engine" "$GILTRACER" -q --probes "$engine" --python "$python" --python-trace none \
		--json got.json -o got.html "$@" "$top_srcdir/tests/system/children.py" "$what" ${argument:+"$argument"} ||
		return
	cp out said
	consistent got.json "$name $what"
}

# facts EXPRESSION WANT POINT: the expression over the document d and over said, the threads that the
# program printed, by role.
facts() {
	is "$(json got.json "(lambda said: $1)({what: [t for line in open('said')
		for w, pid, tid in [line.split()] for t in d['threads']
		if w == what and (t['pid'], t['tid']) == (int(pid), int(tid))]
		for what in ('spin', 'main', 'other', 'daemon')})")" "$2" "$name $what: $3"
}

# Four spinners may have only two CPUs; but all of them are in the report.
spinners() {
	facts 'len(said["spin"])' "$1" 'every thread is in the report, under its process'
	facts '[t for t in said["spin"] if t["no_gil_ns"] >
		2e7 + 0.2 * t["total_ns"] + t["states"]["runnable_ns"]]' '[]' \
		'spinners hold it, wait for it or for a CPU'
	facts '{t["pid"] for t in said["spin"]} - {g["pid"] for g in d["gils"]}' 'set()' \
		'each process has its GIL'
	facts '[b for b in d["blame"] for pid in [{t["tid"]: t["pid"] for t in d["threads"]}]
		if b["holder_tid"] and pid[b["holder_tid"]] != pid[b["waiter_tid"]]]' '[]' \
		'nobody waits for another process'
}

# The ways to start processes do not depend on the interpreter: the newest and the system's are enough. By
# uprobes, everything on the newest, and forks on all.
checks() {
	methods=fork
	case "$version $python" in
	"$newest "* | *-system/*) methods='fork spawn forkserver' ;;
	esac
	engine=uprobes
	for method in $methods; do
		[ "$method" = fork ] || engine=$rest
		traced "$method" || continue
		spinners 4
		facts 'len({t["pid"] for t in said["spin"]})' 2 'two processes'
		named='len({t["pid"] for f in d["functions"] for t in said["spin"]
			if f["tid"] == t["tid"] and f["function"] == "spin_for_both"'
		facts "$named})" 2 'functions of children have names'
		# Only a forked child shares the code objects of its parent, which have the names of files.
		[ "$method" != fork ] || facts "$named"'
			and f["line"] and f["file"].endswith("/children.py")})' 2 'and lines'
		# It waits for its children for 0.3 s, minus the time until it has a CPU to begin waiting.
		facts '[t["no_gil_ns"] + t["unknown_ns"] + t["states"]["runnable_ns"] > 0.25e9
			for t in said["main"][:1]]' '[True]' \
			'the thread that waits for children does not hold the GIL'
	done
	engine=$rest
	if traced again; then
		spinners 4
		facts 'len({t["pid"] for t in said["spin"]})' 1 'one process'
		facts '[c["code"] for c in d["caveats"] if c["code"] in
			("other-python", "two-holders")]' '[]' 'and nothing odd'
	fi
	if traced early --entry work; then
		facts 'len(said["spin"])' 2 'the thread that was there before is seen'
		facts '[t for t in said["spin"] if t["unknown_ns"] > 0.5 * t["total_ns"]]' '[]' \
			'and known from its first event'
	fi
	if traced daemons; then
		facts 'len(said["daemon"])' 3 'threads that never get the GIL again'
		facts 'all(t["waits"] + t["free_waits"] >= t["holds"] for t in said["daemon"])' True 'end waiting for it'
	fi
	[ "$methods" = fork ] || started_otherwise
}

started_otherwise() {
	if traced subprocess; then
		spinners 2
		facts 'len(said["main"])' 2 'both main threads'
	fi
	if traced scripts; then
		seen=$(json got.json 'len([t for t in d["threads"] if t["main"] and t["holds"] >= 50])')
		if [ "$seen" -lt 6 ] && ! uname -r | awk -F. '{ exit !($1 * 100 + $2 >= 612) }'; then
			skip 'a kernel before 6.12 forgets them' "$name: children of scripts are seen"
		else
			facts 'len([t for t in d["threads"] if t["main"] and t["holds"] >= 50]) >= 6' \
				True 'children of scripts are seen'
		fi
	fi
	if traced exec; then
		facts '[t["name"] for t in said["other"]]' "['sh']" 'another program has its name'
		facts '[c["code"] for c in d["caveats"] if c["code"] == "open-holds"]' '[]' \
			'and does not keep the GIL'
	fi
	engine=uprobes # the library is in the other one, too
	if [ "$other" ] && traced other "$other"; then
		facts 'len(said["spin"])' 2 'what was before it'
		facts '[c["count"] for c in d["caveats"] if c["code"] == "other-python"]' '[2]' \
			'says twice that another Python ran'
	fi
}

cpythons >pythons
ok 'there is a CPython' test -s pythons
oldest=$(sort -V pythons | sed -n 1p)
newest=$(sort -V pythons | grep -v ' /usr/' | sed -n '$s/ .*//p')
: "${newest:=$(sort -V pythons | sed -n '$s/ .*//p')}"
while read -r version python; do
	case "$version $python" in
	"$oldest" | "$newest "* | 3.12\ * | *\ /usr/*) ;;
	*) continue ;;
	esac
	name=$version
	other=$(cpythons | sed 's/^[^ ]* //' | grep -Fxv "$python" | head -n 1)
	rest=preload
	[ "$version" != "$newest" ] || rest=uprobes
	# A separate file has separate probes.
	case $python in
	/usr/*) python=$(copied_python "$scratch/$version-system" "$python") ;;
	*) python=$(own_libpython "$scratch/$version" "$python") ;;
	esac
	checks
done <pythons

leaves_nothing
done_testing
