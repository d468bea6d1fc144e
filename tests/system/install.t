#!/bin/sh
# SPDX-License-Identifier: MIT
# An installed giltracer finds its own files under any prefix, and uninstall leaves none of them.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need make
unset MAKEFLAGS MAKELEVEL MFLAGS

installing() {
	make -s -C "$top_builddir" "$1" prefix="$scratch/usr" mandir="$scratch/usr/man"
}

ok 'make install' installing install
installed=$scratch/usr/bin/giltracer
ok 'the manual is there' test -s usr/man/man1/giltracer.1
ok 'and an example' test -s usr/share/giltracer/examples/hog.py
is "$(cd "$top_srcdir/probes" && ls ./*.yaml)" "$(cd usr/share/giltracer/probes && ls ./*.yaml)" \
	'and all probes'
is "$(cd "$top_srcdir/share/python" && ls ./*.py)" "$(cd usr/share/giltracer/python && ls ./*.py)" \
	'and all that runs beside the program'
ok 'and completion for bash' bash -n usr/share/bash-completion/completions/giltracer
ok 'it runs' "$installed" --version

python=$(cpythons | head -n 1 | sed 's/^[^ ]* //')
mv usr moved
if [ -n "$python" ]; then
	ok 'moved elsewhere it finds its probes' moved/bin/giltracer probes --python "$python"
fi
mv moved usr
if has root && has perf && has uprobes; then
	ok 'and records and reports' "$installed" -q --python "$python" --python-trace none \
		-o installed.html usr/share/giltracer/examples/spinners.py 0.1
	ok 'into a page' test -s installed.html
fi

ok 'make uninstall' installing uninstall
is "$(find usr -type f)" '' 'leaves nothing'

leaves_nothing
done_testing
