#!/bin/sh
# SPDX-License-Identifier: MIT
# Samples of programs with several interpreters have each thread once, in the interpreter whose code it
# runs, and the holder of each GIL.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

library=$top_builddir/giltracer/preload/libgiltracer-preload.so

# start PYTHON [REST]: gils.py under it; its id in $pid, those of its interpreters in $ids.
start() {
	begun "$1" "$top_srcdir/tests/system/gils.py" ready go ${2:+"$2"}
	ids=$(cat told)
}

# look WHAT NAME [ARG…]: gils-live.py finds no error.
look() {
	what=$1 name=$2
	shift 2
	# shellcheck disable=SC2086 # two numbers
	is "$(python3 "$top_srcdir/tests/system/gils-live.py" "$what" "$@" $ids)" '' "$name"
}

every_cpython interpreters
while read -r version python <&3; do
	case $version in *t | 3.6* | 3.7*) continue ;; esac
	start "$python"
	case $version in
	3.8* | 3.9* | 3.10* | 3.11*)
		look stacks "$version: with one GIL, no thread is accused in another's place" "$GILTRACER" $pid
		unharmed "$version"
		continue
		;;
	esac
	export OWN=1
	look stacks "$version: with a GIL each, its holder and whoever waits for it" "$GILTRACER" $pid
	ok '  text, for people' "$GILTRACER" stacks -p $pid
	like "$(cat out)" 'thread [0-9]+ (spin|run) [0-9]+: holds the GIL of interpreter [0-9]+, ' \
		'  names the interpreter'
	ok '  samples' "$GILTRACER" -q -p $pid --probes none --sample 200 --duration 2 --json samples.json \
		-o out.html
	look samples '  of each thread, and of each GIL' samples.json
	ok '  a line a second' "$GILTRACER" top -p $pid -n 1 --json
	mv out top.json
	look top '  has each thread once, and each GIL' top.json
	ok '  as text' "$GILTRACER" top -p $pid -n 1
	like "$(cat out)" 'has the GIL: .* [0-9]+ ~[0-9]+% of interpreter [0-9]+ in spin_' \
		'  with the interpreters'
	unharmed "$version"
	rm -rf totals && mkdir totals
	export LD_PRELOAD="$library" GILTRACER_TOTALS="$scratch/totals"
	start "$python" 0.002
	unset LD_PRELOAD GILTRACER_TOTALS
	ok '  exact times' "$GILTRACER" top -p $pid -n 3 --json
	mv out free.json
	look free '  for which the GIL is free that is held longest' free.json
	unharmed "$version"
	unset OWN
done 3<interpreters
ok 'there were interpreters' test -s interpreters
done_testing
