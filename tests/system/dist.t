#!/bin/sh
# SPDX-License-Identifier: MIT
# A release contains every file of the repository, except those that only the repository needs.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need git make
cd "$top_srcdir" || exit 99
if [ "$(git rev-parse --show-toplevel 2>/dev/null)" != "$top_srcdir" ]; then
	echo '1..0 # SKIP not a git checkout'
	exit 0
fi

git ls-files >"$scratch/tracked"
grep -vE '^(\.gitignore|\.ci/)' "$scratch/tracked" | sort >"$scratch/want"
ok 'there are files' test -s "$scratch/want"
# The files that make dist would take. A folder stands for all files in it.
printf 'print-dist:\n\t@printf "%%s\\n" $(DISTFILES)\n' >"$scratch/print.mk"
make -s -C "$top_builddir" -f Makefile -f "$scratch/print.mk" print-dist |
	sed "s,^$top_srcdir/,,; s,^\./,,; s,^\.\./,," | while read -r file; do
	if [ -d "$file" ]; then
		git ls-files "$file"
	else
		echo "$file"
	fi
done | sort -u >"$scratch/have"
is "$(comm -23 "$scratch/want" "$scratch/have")" '' 'the release has them all (EXTRA_DIST, SOURCES)'

done_testing
