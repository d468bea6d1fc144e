#!/bin/sh
# SPDX-License-Identifier: MIT
# Python calls in subinterpreters, recorded by the library: each one, in its thread and nesting.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

program=$top_srcdir/tests/system/subinterpreters.py

# record PYTHON [OPTION…] -- ARG…
record() {
	python=$1
	options=
	shift
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	rm -rf session
	# shellcheck disable=SC2086 # words
	"$GILTRACER" record -q --probes preload --python-trace native $options --python "$python" -o session \
		"$program" "$@" >out 2>err
	echo "$?" >>out
	cat err >>out
	"$GILTRACER" dump --calls session/gil.preload >calls.txt
}

# threads: what each thread called, a line for each that is different, with how often there is one.
threads() {
	python3 "$top_srcdir/tests/system/calls.py" calls.txt si_ |
		awk '/^thread/ { if (calls) print calls; calls = ""; next }
			{ sub(/.*/, "&;"); calls = calls $0 }
			END { if (calls) print calls }' | sort | uniq -c | sed 's/^ *//'
}

# behaves NAME PYTHON ARG…: it prints what it prints without us, and ends alike.
behaves() {
	name=$1
	python=$2
	shift 2
	"$python" "$program" "$@" >plain 2>plain.err
	echo "$?" >>plain
	cat plain.err >>plain
	is "$(diff plain out)" '' "$name"
}

notes() {
	"$GILTRACER" report -q -o report.html --json report.json session >report.out 2>report.err
	json report.json '[c["text"] for c in d["caveats"] if c["code"] == "python-trace"]'
}

every_cpython all
while read -r version python <&3; do
	case $version in
	3.[67]) ;;
	*) echo "$version $python" ;;
	esac
done 3<all >pythons

each='si_use;  si_outer;    si_inner;    si_inner;    si_inner;  si_caught;    si_raises;  si_generator;'
each="$each  si_generator;  si_generator;  si_starts;  si_uncaught;"
{
	echo '6 si_threaded;  si_inner;'
	echo "3 $each"
} | sort -k2 >calls.expected
{
	printf 'si_each;'
	printf '  si_of_%d;' $(seq 0 19)
	printf '\nsi_each;'
	printf '  si_of_%d;' $(seq 20 39)
	echo
} | sort | sed 's/^/1 /' >many.expected
{
	echo '1 si_child;  si_in_child;'
	echo '1 si_parent;  si_in_parent;si_parent;  si_in_parent;'
} >fork.expected
echo '1 si_left;si_left;' >left.expected

while read -r version python <&3; do
	case $version in
	3.[89] | 3.1[01]) kinds=shared ;;
	*) kinds='shared own' ;;
	esac
	for kind in $kinds; do
		for options in '' --trace-c-calls; do
			# shellcheck disable=SC2086 # words
			record "$python" $options -- calls "$kind"
			is "$(threads | diff calls.expected -)" '' \
				"$version, $kind GIL${options:+, $options}: three interpreters in parallel, with threads"
			behaves '  the program does what it does without us' "$python" calls "$kind"
			is "$(grep -c '"builtins.divmod (C)"' calls.txt)" "$((${#options} ? 15 : 0))" \
				'  functions in C, where asked for'
			is "$(grep -c 'unknown function' calls.txt)" 0 '  all functions are known'
			is "$(notes)" '[]' '  nothing is missing'
		done
		for what in many fork left; do
			record "$python" -- "$what" "$kind"
			is "$(threads | diff $what.expected -)" '' "$version, $kind GIL: $what"
			behaves '  the program does what it does without us' "$python" "$what" "$kind"
			is "$(notes)" '[]' '  nothing is missing'
		done
		PYTHONMALLOC=debug # overwrites what is freed, such as the states of threads that end
		export PYTHONMALLOC
		record "$python" -- many "$kind"
		behaves "$version, $kind GIL: nothing that is freed is read" "$python" many "$kind"
		unset PYTHONMALLOC
		record "$python" -- profile "$kind"
		is "$(threads)" '1 si_before;si_after;' "$version, $kind GIL: a profile function of the program's"
		is "$(notes)" '[]' '  nothing is missing'
		behaves '  the program does what it does without us' "$python" profile "$kind"
	done
done 3<pythons

# An interpreter that is older than the recorder.
mkdir site
cat >site/sitecustomize.py <<'END'
import os, sys
try:
    import _interpreters as module
except ImportError:
    import _xxsubinterpreters as module
# The interpreter that is made here imports this, too.
if os.environ.pop("MAKE_INTERPRETER", None):
    sys.early_interpreter = module.create()
END
PYTHONPATH=$scratch/site
MAKE_INTERPRETER=yes
export PYTHONPATH MAKE_INTERPRETER
while read -r version python <&3; do
	# 3.15 cannot make one as early as that.
	"$python" -c 'import sys; sys.early_interpreter' >/dev/null 2>&1 || continue
	record "$python" -- early
	is "$(threads)" '' "$version: an interpreter in which recording cannot start"
	is "$(notes)" "['Interpreters with missing Python calls, because recording could not start in them: 1']" \
		'  the report says so'
	behaves '  the program does what it does without us' "$python" early
done 3<pythons

leaves_nothing
done_testing
