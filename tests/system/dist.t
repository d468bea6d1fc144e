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

# make release refuses files that do not agree on the version.
release=$top_srcdir/share/package/make-release
ok 'the files that name the version agree' "$release" "$top_srcdir"
for file in NEWS debian/changelog share/package/pyproject.toml; do
	for copied in configure.ac NEWS debian/changelog share/package/pyproject.toml; do
		mkdir -p "$(dirname "$scratch/tree/$copied")" && cp "$copied" "$scratch/tree/$copied"
	done
	sed -i 's/\([0-9]\)\.\([0-9]*\)\.\([0-9]\)/\1.\2\39/' "$scratch/tree/$file"
	exits 1 "$file with another one" "$release" "$scratch/tree"
	like "$(cat "$scratch/err")" "^make-release: $file " '  is named'
done

done_testing
