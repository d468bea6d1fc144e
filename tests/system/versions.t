#!/bin/sh
# SPDX-License-Identifier: MIT
# Every interpreter, however it was built, stripped, laid out or started (all of it in make check-all):
# the same program, the same thresholds. The table of all is printed at the end, by `make interpreters`
# alone, and the manual has the same.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes gcc strip
. "$top_srcdir/tests/system/prefix.sh"

# measured NAME PYTHON: measure one row of the table.
measured() {
	[ -n "$2" ] || return 0
	rows=$((rows + 1))
	file=$(printf '%s/%02d-%s.json' "$scratch" $rows "$1")
	ok "$1 ($2)" python3 "$top_srcdir/tests/system/versions.py" measure "$1" "$2" "$file"
	grep '^attempt' out >attempts && retried "$1" "$(cat attempts)"
}

rows=0
cpythons >pythons
ok 'there is a CPython' test -s pythons
# pyenv's Pythons, since system Pythons may have neither ensurepip nor libpython.a.
newest=$(sort -V pythons | grep -v ' /usr/bin' | tail -n 1 | sed 's/^[^ ]* //')
: "${newest:=$(cpythons | sed -n '1s/^[^ ]* //p')}"

oldest=$(sort -V pythons | sed -n '1s/^[^ ]* //p')
while read -r version python; do
	case $python in
	/usr/*)
		v=debian-$version
		measured "$v" "$(copied_python "$scratch/$v" "$python")"
		;;
	*) v=$version ;;
	esac
	if own_libpython "$scratch/shared-$v" "$python" >path; then
		measured "shared-$v" "$(cat path)"
		symbols=$file
		measured "stripped-$v" \
			"$(own_libpython "$scratch/stripped-$v" "$python" --strip-all)"
		ok "  stripped or not, $v is seen the same" \
			python3 "$top_srcdir/tests/system/versions.py" compare "$symbols" "$file"
	fi
	case $python in
	"$oldest" | "$newest")
		[ -z "${GILTRACER_TEST_ALL:-}" ] ||
			measured "static-$v" "$(static_python "$scratch/static-$v" "$python")"
		;;
	esac
done <pythons
if debug=$(command -v python3-dbg); then
	measured debug "$(copied_python "$scratch/debug" "$debug")"
fi

# The same interpreter, started in different ways.
started_otherwise() {
	"$newest" -m venv --without-pip --symlinks venv-links
	measured venv-symlinks "$scratch/venv-links/bin/python"
	"$newest" -m venv --without-pip --copies venv-copies
	measured venv-copies "$scratch/venv-copies/bin/python"
	# shellcheck disable=SC2016
	printf '#!/bin/sh\nAROUND=it exec %s "$@"\n' "$newest" >wrapper
	chmod +x wrapper
	measured wrapper "$scratch/wrapper"
	measured script-path "#!$scratch/venv-copies/bin/python"
	mkdir on-path && ln -s "$scratch/wrapper" on-path/python3.99
	export PATH="$scratch/on-path:$PATH"
	measured script-env '#!/usr/bin/env python3.99'
}
[ -z "${GILTRACER_TEST_ALL:-}" ] || started_otherwise

want newer-pythons 'the Pythons of newer Debian suites'
newer_pythons >newer
while read -r version python; do
	measured "new-$version" "$python"
done <newer
want uv-pythons "uv's Pythons"
all_uv_pythons >uv
while read -r version python; do
	measured "uv-$version" "$python"
done <uv

diag "$(python3 "$top_srcdir/tests/system/versions.py" details "$scratch"/*.json)"
table=$(python3 "$top_srcdir/tests/system/versions.py" table "$scratch"/*.json)
diag "$table"
[ -z "${GILTRACER_TEST_TABLE:-}" ] || echo "$table" >"$GILTRACER_TEST_TABLE"
# Its row says that it was found by its debug file.
want python3-dbg "the row of Debian's python3" || rm -f "$scratch"/*-debian-*.json
ok 'the manual has this table' python3 "$top_srcdir/tests/system/versions.py" manual \
	"$top_srcdir/share/giltracer.1" "$scratch"/*.json
diag "$(cat out)"
leaves_nothing
done_testing
