#!/bin/sh
# SPDX-License-Identifier: MIT
# A traced program prints, reads and ends exactly as under plain python.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes
. "$top_srcdir/tests/system/behaves.sh"

python3 "$top_srcdir/tests/system/semantics.py" || exit 99

few() {
	behaves "$1" basic.py a -b -- --state-detect
	behaves "$1" traceback.py
	behaves "$1" sigterm.py
	behaves "$1" atexit-order.py
	behaves "$1" -m package
	behaves "$1" folder q
}

many() {
	behaves "$1" ./basic.py
	behaves "$1" "$scratch/basic.py"
	behaves "$1" shadow/link.py
	behaves "$1" shadow/script.py
	for name in exit7 exit-message exit-none exit-list exit-raise exit-os traceback-guard \
		traceback-first syntax indent keyboard sigkill sigusr2 processes surroundings \
		stdin excepthook threads fork exec close-all latin future; do
		behaves "$1" $name.py
	done
	behaves "$1" -m module x
	behaves "$1" -m package.other
	behaves "$1" -m nosuch
	behaves "$1" -m package.nosuch
	behaves "$1" app.zip q
}

# Everything on the oldest and on the newest, by the library, which the kernel takes no time to place and
# to remove; and what versions differ in on all, by uprobes.
cpythons >pythons
oldest=$(sort -V pythons | head -n 1)
newest=$(sort -V pythons | tail -n 1)
while read -r version python; do
	engine=uprobes
	few "$python"
	engine=preload
	case "$version $python" in
	"$oldest" | "$newest") many "$python" ;;
	esac
done <pythons

is "$(cat written)" mine 'a file of a program that closed everything has nothing of ours in it'
leaves_nothing
done_testing
