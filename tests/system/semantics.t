#!/bin/sh
# SPDX-License-Identifier: MIT
# A traced program prints, reads and ends exactly as under plain python.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes
. "$top_srcdir/tests/system/behaves.sh"

python3 "$top_srcdir/tests/system/semantics.py" || exit 99

# by ENGINE PYTHON ARG…
by() {
	engine=$1
	shift
	behaves "$@"
}

# On every interpreter; its start by uprobes, which the kernel takes most of a second to remove.
few() {
	by uprobes "$1" basic.py a -b -- --state-detect
	by uprobes "$1" -m package
	for name in traceback sigterm atexit-order; do
		by preload "$1" $name.py
	done
	by preload "$1" folder q
}

many() {
	by preload "$1" ./basic.py
	by preload "$1" "$scratch/basic.py"
	by preload "$1" shadow/link.py
	by preload "$1" shadow/script.py
	for name in exit7 exit-message exit-none exit-list exit-raise exit-os traceback-guard \
		traceback-first syntax indent keyboard stdin excepthook threads warns latin future; do
		by preload "$1" $name.py
	done
	# What uprobes could disturb: signals, forks, other programs.
	for name in sigkill sigusr2 processes surroundings fork exec close-all; do
		by "$2" "$1" $name.py
	done
	by preload "$1" -m module x
	by preload "$1" -m package.other
	by preload "$1" -m nosuch
	by preload "$1" -m package.nosuch
	by preload "$1" app.zip q
}

cpythons >pythons
oldest=$(sort -V pythons | head -n 1)
newest=$(sort -V pythons | tail -n 1)
while read -r version python; do
	few "$python"
	case "$version $python" in
	"$oldest") many "$python" preload ;;
	"$newest") many "$python" uprobes ;;
	esac
done <pythons

is "$(cat written)" mine 'a file of a program that closed everything has nothing of ours in it'
leaves_nothing
done_testing
