#!/bin/sh
# SPDX-License-Identifier: MIT
# report --without-gil against the truth: six programs are recorded on CPython 3.13, and their estimated times on two
# CPUs compared with the times on 3.13t, in turns; medians. How much two busy processes get done together is measured
# at the same time, since CPUs may share a core, and other programs may use them; and so is, for each program, how
# many times as long one thread takes without the GIL. A row has the larger of estimate / time and time / estimate,
# with the measured factor; the indented lines have the same with the default factor.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"

free=${GILTRACER_TEST_PYTHONS:-$top_builddir/pythons}/free-threaded/bin/python3
python=
for candidate in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13*/bin/python3; do
	[ ! -x "$candidate" ] || python=$candidate
done
if [ ! -x "$free" ] || [ -z "$python" ]; then
	echo '  without the GIL: needs CPython 3.13 of pyenv, and a free-threaded one (see tests/README.md)'
	exit 0
fi
exec python3 "$top_srcdir/tests/bench/without-gil-errors.py" "$GILTRACER" "$python" "$free" "${1:-3}"
