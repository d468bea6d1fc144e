#!/bin/sh
# SPDX-License-Identifier: MIT
# Formatters and linters find nothing in the sources. Points whose tool is missing are skipped, or fail if
# GILTRACER_TEST_REQUIRE names it.
# shellcheck disable=SC2086 # lists of names without blanks
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
cd "$top_srcdir" || exit 99

# check TOOL NAME COMMAND…
check() {
	tool=$1
	name=$2
	shift 2
	if command -v "$tool" >/dev/null; then
		ok "$name" "$@"
		return
	fi
	case " $GILTRACER_TEST_REQUIRE " in
	*" $tool "*) fail "$name: $tool is missing" ;;
	*) skip "needs $tool: apt-get install $tool" "$name" ;;
	esac
}

c_files=$(find giltracer tests -name '*.[ch]')
sh_files=$(
	find tests quickstart .ci/run -name '*.t' -o -name '*.sh' -o -name quickstart -o -name run
) 2>/dev/null
sh_files=$(grep -lE '^#!/bin/(sh|bash)|shellcheck shell=' $sh_files)

format_c() {
	clang-format --dry-run -Werror $c_files
}
check clang-format 'clang-format would change nothing' format_c
# lib.sh is checked once, not again with each test: the tests get only a list of its variables.
check_sh() (
	mkdir -p "$scratch/short/tests/system" && cd "$scratch/short" || exit
	{
		echo '# shellcheck shell=sh disable=SC2034'
		grep -E '^(: |[a-z_]+=|	(status|pid)=)' "$top_srcdir/tests/system/lib.sh"
	} >tests/system/lib.sh
	printf '%s\n' $sh_files | sed "s|^|$top_srcdir/|" |
		xargs -n 16 -P "$(nproc)" shellcheck -x -P "$top_srcdir"
)
check shellcheck 'shellcheck finds nothing' check_sh
lint_manual() { # which other manuals are installed is not our fault
	! mandoc -Tlint share/giltracer.1 2>&1 | grep -vE 'mandoc.db|referenced manual'
}
check mandoc 'mandoc finds nothing in the manual' lint_manual

# Words that are right: names of programs and in code, "to and fro", a macro of mdoc.
spelling() {
	! codespell -q 3 -L "doas,fro,hsi,lod,nd,want's,whats" -S '*.png,tests/data,tests/fuzz/seeds' ./*.md NEWS \
		quickstart configure.ac Makefile.am giltracer probes share tests 2>&1 | grep .
}
check codespell 'codespell finds nothing' spelling

# none NAME COMMAND…: the command prints nothing.
none() {
	name=$1
	shift
	is "$("$@")" '' "$name"
}
none 'no line of shell is longer than 120 columns' \
	awk 'length > 120 { print FILENAME ":" FNR }' $sh_files
none 'no blanks end a line' grep -nE '[[:blank:]]+$' $c_files $sh_files Makefile.am configure.ac
none 'nothing is put off' grep -nE '\b(TO''DO|FIX''ME|XX''X)\b' $c_files $sh_files
none 'no test sleeps' grep -nE '^[[:space:]]*sleep [0-9.]' $sh_files

# What quickstart installs runs as root, so it is no newer than what was tried.
packages() { # COMMAND
	{ tr -d '\n' <quickstart && echo; } | sed -n "s/.*[[:space:]]$1[^']*'\([^']*\)'.*/\1/p" | tr -s '[:space:]' '\n'
}
is "$({ packages make_venv; packages npm_install; } | grep -cE '[a-z]')" 14 'quickstart installs packages'
is "$(packages make_venv | grep -v '==[0-9.]*$')$(packages npm_install | grep -v '.@[0-9.]*$')" '' \
	'  of a version that it names'

none 'each file in a list of Makefile.am has its backslash' \
	grep -nE '^	(giltracer|probes|share|tests)/[^ ]+$' Makefile.am
none 'and stands there once' sh -c 'sed -n "/_SOURCES = .$/,/END/p; /_TESTS = .$/,/END/p" \
	Makefile.am | grep -E "^	(giltracer|tests)/" | sort | uniq -d'

# The library runs in programs that are not ours, so the compiler guards it like the program.
protected() {
	readelf -Ws --dyn-syms "$top_builddir/giltracer/preload/libgiltracer-preload.so" |
		grep -q __stack_chk_fail
}
check readelf "the library's stack is protected" protected
is "$(sed -n '/^giltracer_preload.*_CPPFLAGS/,/[^\\]$/p' Makefile.am | grep -c banned.h)" 1 \
	'  and functions that we do not use do not compile in it'

done_testing
